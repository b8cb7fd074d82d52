//! Localised numbers: country-specific decimal marks, and digits in groups of three.

use memchr::memchr;

/// All separators allowed between groups of digits. The decimal mark itself is excluded.
const SEPARATORS: [&[u8]; 7] =
    [b".", b",", b" ", b"'", "\u{2019}".as_bytes(), "\u{a0}".as_bytes(), "\u{202f}".as_bytes()];
const GROUP_DIGITS: usize = 3;

/// Writes the number to `out` with a decimal point and without group separators. Returns `None` if
/// the groups are malformed. The caller must check whether the result is a number.
pub(crate) fn plain_number<'a>(text: &[u8], mark: u8, out: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    out.clear();
    let text = text.trim_ascii();
    let at = memchr(mark, text);
    push_integer(&text[..at.unwrap_or(text.len())], mark, out)?;
    if let Some(at) = at {
        let fraction = &text[at + 1..];
        if fraction.iter().any(|byte| matches!(byte, b'.' | b',')) {
            return None;
        }
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
    Some(out)
}

/// Writes the digits before the decimal mark. All separators must be the same, and each must be
/// followed by exactly three digits.
fn push_integer(text: &[u8], mark: u8, out: &mut Vec<u8>) -> Option<()> {
    let signed = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    out.extend_from_slice(&text[..signed]);
    let mut rest = &text[signed..];
    let mut separator: Option<&[u8]> = None;
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_group = match separator {
            None => (1..=GROUP_DIGITS).contains(&digits),
            Some(_) => digits == GROUP_DIGITS,
        };
        let (group, tail) = rest.split_at(digits);
        out.extend_from_slice(group);
        let found = SEPARATORS.into_iter().find(|one| *one != [mark] && tail.starts_with(one));
        match found {
            Some(one) if is_group && separator.is_none_or(|known| known == one) => {
                separator = Some(one);
                rest = &tail[one.len()..];
            }
            Some(_) => return None,
            None if separator.is_some() && !is_group => return None,
            None => {
                // Either the tail is an exponent, or the text is not a number, which the caller
                // checks.
                out.extend_from_slice(tail);
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn localised_decimal_and_group_separators_are_normalised() {
        for (text, mark, plain) in [
            ("1,5", b',', "1.5"),
            ("-1.234.567,25", b',', "-1234567.25"),
            ("1 234,5", b',', "1234.5"),
            ("1\u{a0}234\u{a0}567", b',', "1234567"),
            ("1\u{202f}234", b',', "1234"),
            ("1,234.5", b'.', "1234.5"),
            ("1'234.50", b'.', "1234.50"),
            ("1,234,567", b'.', "1234567"),
            ("12345,5", b',', "12345.5"),
            ("1,5e3", b',', "1.5e3"),
            ("1e3", b',', "1e3"),
            (",5", b',', ".5"),
        ] {
            let found = plain_number(text.as_bytes(), mark, &mut Vec::new()).map(<[u8]>::to_vec);
            assert_eq!(found.as_deref(), Some(plain.as_bytes()), "{text}");
        }
        for (text, mark) in [
            ("1.5", b','),
            ("1,5", b'.'),
            ("1.234.5", b','),
            ("1234.567,5", b','),
            ("1.234 567,5", b','),
            ("1,5,5", b','),
            ("1,234.567.8", b'.'),
            (".234", b','),
        ] {
            assert_eq!(plain_number(text.as_bytes(), mark, &mut Vec::new()), None, "{text}");
        }
    }
}
