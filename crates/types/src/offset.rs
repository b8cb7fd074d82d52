//! Time zone offsets: `Z`, `±HH`, `±HHmm`, `±HH:mm`.

/// Parses a complete string as seconds east of UTC.
pub(crate) fn parse_offset(text: &str) -> Option<i64> {
    let mut at = 0;
    let offset = read_offset(text.as_bytes(), &mut at)??;
    (at == text.len()).then_some(offset)
}

/// Parses the offset at `at` and moves `at` past it. Returns `Some(None)` if there is no offset,
/// and `None` if the offset is malformed.
#[allow(clippy::option_option)]
pub(crate) fn read_offset(bytes: &[u8], at: &mut usize) -> Option<Option<i64>> {
    let sign = match bytes.get(*at) {
        Some(b'Z') => {
            *at += 1;
            return Some(Some(0));
        }
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Some(None),
    };
    let hours = two_digits(bytes, *at + 1).filter(|hours| *hours < 24)?;
    *at += 3;
    let mut minutes = 0;
    if *at < bytes.len() {
        *at += usize::from(bytes[*at] == b':');
        minutes = two_digits(bytes, *at).filter(|minutes| *minutes < 60)?;
        *at += 2;
    }
    Some(Some(sign * (hours * 3_600 + minutes * 60)))
}

fn two_digits(bytes: &[u8], at: usize) -> Option<i64> {
    let digits = bytes.get(at..at + 2)?;
    let is_number = digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| i64::from(digits[0] - b'0') * 10 + i64::from(digits[1] - b'0'))
}
