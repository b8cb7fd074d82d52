//! Backslash escapes in the text format.

/// Decodes a value's backslash escapes. Each escape stands for a control character, a byte in octal
/// or hexadecimal notation, or the escaped character itself.
pub(super) fn unescaped(raw: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + found]);
        at += found + 1;
        let Some(&letter) = raw.get(at) else {
            out.push(b'\\');
            return;
        };
        at += 1;
        let digits = |radix: u32, from: usize, max: usize| {
            let chunk = &raw[from..raw.len().min(from + max)];
            chunk.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count()
        };
        let value = |radix: u32, from: usize, count: usize| {
            let digit = |byte: &u8| char::from(*byte).to_digit(radix).unwrap_or_default();
            let whole =
                raw[from..from + count].iter().fold(0, |all, byte| all * radix + digit(byte));
            (whole & 0xff) as u8
        };
        match letter {
            b'0'..=b'7' => {
                let count = digits(8, at - 1, 3);
                out.push(value(8, at - 1, count));
                at += count - 1;
            }
            b'x' | b'X' if digits(16, at, 2) > 0 => {
                let count = digits(16, at, 2);
                out.push(value(16, at, count));
                at += count;
            }
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(0x0b),
            other => out.push(other),
        }
    }
    out.extend_from_slice(&raw[at..]);
}
