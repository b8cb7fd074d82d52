//! Parses single values. The result is `None` if the string is not a value of the type. A null
//! value, such as an integer's sentinel, NaN or 0.0.0.0, is `Some(None)`.

use std::net::Ipv4Addr;

use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow_array::types::Decimal256Type;
use arrow_buffer::i256;

/// A parsed value, or null.
pub(crate) type Read<T> = Option<Option<T>>;

/// Parses a boolean. Any string other than `true` is false.
pub(crate) fn boolean(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b"true")
}

/// Parses a sign and digits; `None` if the number does not fit in 64 bits.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // Accumulates a negative number, because the minimum has no positive counterpart. 18 digits
    // never overflow.
    let mut value = 0_i64;
    let (mut head, tail) = digits.split_at(digits.len().min(18));
    while let Some((eight, rest)) = head.split_first_chunk() {
        value = value * 100_000_000 - i64::from(eight_digits(*eight)?);
        head = rest;
    }
    for byte in head {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 - i64::from(digit);
    }
    for byte in tail {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// Parses eight digits by combining adjacent ones: first pairs, then groups of four, then all
/// eight.
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u32> {
    const ONES: u64 = u64::MAX / 255;
    let text = u64::from_le_bytes(text);
    let digits = text.wrapping_sub(ONES * u64::from(b'0'));
    // A byte that is not a digit sets the top bit in at least one of the three values.
    if (digits.wrapping_add(ONES * 0x76) | digits | text) & (ONES << 7) != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some(((fours * 10_000 + (fours >> 32)) & 0xffff_ffff) as u32)
}

#[inline]
pub(crate) fn byte(text: &[u8]) -> Option<i8> {
    integer(text)?.try_into().ok()
}

#[inline]
pub(crate) fn short(text: &[u8]) -> Option<i16> {
    integer(text)?.try_into().ok()
}

#[inline]
pub(crate) fn int(text: &[u8]) -> Read<i32> {
    let value: i32 = integer(text)?.try_into().ok()?;
    Some((value != i32::MIN).then_some(value))
}

/// Parses a LONG. An `L` may follow the digits.
#[inline]
pub(crate) fn long(text: &[u8]) -> Read<i64> {
    let digits = text.strip_suffix(b"L").or_else(|| text.strip_suffix(b"l")).unwrap_or(text);
    let value = integer(digits)?;
    Some((value != i64::MIN).then_some(value))
}

/// Parses a DOUBLE. Surrounding spaces and the suffixes `f` and `d` are allowed. NaN and infinities
/// become null.
#[inline]
pub(crate) fn double(text: &[u8]) -> Read<f64> {
    let value = match fast_float2::parse::<f64, _>(text) {
        Ok(value) => value,
        Err(_) => fast_float2::parse(without_dressing(text)?).ok()?,
    };
    Some(value.is_finite().then_some(value))
}

#[inline]
pub(crate) fn float(text: &[u8]) -> Read<f32> {
    let value = match fast_float2::parse::<f32, _>(text) {
        Ok(value) => value,
        Err(_) => fast_float2::parse(without_dressing(text)?).ok()?,
    };
    Some(value.is_finite().then_some(value))
}

/// Strips surrounding spaces and a type suffix.
#[cold]
fn without_dressing(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    match text {
        [digits @ .., b'f' | b'F' | b'd' | b'D'] if digits.last()?.is_ascii_digit() => Some(digits),
        [digits @ .., b'.', b'f' | b'F' | b'd' | b'D'] => Some(digits),
        other => Some(other),
    }
}

/// Returns the string's first UTF-16 code unit.
pub(crate) fn char(text: &[u8]) -> Option<u16> {
    let head = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
    };
    let first = valid.chars().next()?;
    Some(first.encode_utf16(&mut [0; 2])[0])
}

/// `11111111-2222-3333-4444-555555555555`
pub(crate) fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.try_into().ok()?;
    let mut bytes = [0; 16];
    let mut at = 0;
    for (index, byte) in bytes.iter_mut().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            if text[at] != b'-' {
                return None;
            }
            at += 1;
        }
        *byte = hex_digit(text[at])? << 4 | hex_digit(text[at + 1])?;
        at += 2;
    }
    Some(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Parses `0x` and 1 to 64 hexadecimal digits as 32 big-endian bytes.
pub(crate) fn long256(text: &[u8]) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?;
    if digits.is_empty() || digits.len() > 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, digit) in digits.iter().rev().enumerate() {
        bytes[31 - index / 2] |= hex_digit(*digit)? << (index % 2 * 4);
    }
    Some(bytes)
}

pub(crate) fn ipv4(text: &[u8]) -> Read<u32> {
    let address: Ipv4Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    let value = u32::from(address);
    Some((value != 0).then_some(value))
}

/// Parses the first `bits` bits of a geohash in base 32. If the bits do not form whole characters,
/// also accepts exactly `bits` binary digits.
pub(crate) fn geohash(text: &[u8], bits: u8) -> Option<i64> {
    let width = usize::from(bits);
    if !bits.is_multiple_of(5)
        && text.len() == width
        && text.iter().all(|b| matches!(b, b'0' | b'1'))
    {
        return Some(text.iter().fold(0, |value, bit| value << 1 | i64::from(bit - b'0')));
    }
    let characters = width.div_ceil(5);
    let mut value = 0_i64;
    for character in text.get(..characters)? {
        value = value << 5 | i64::from(geohash_digit(*character)?);
    }
    Some(value >> (characters * 5 - width))
}

/// Whether a string consists of geohash base 32 characters.
pub(crate) fn is_geohash(text: &[u8]) -> bool {
    text.iter().all(|character| geohash_digit(*character).is_some())
}

fn geohash_digit(character: u8) -> Option<u8> {
    const BASE32: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let lower = character.to_ascii_lowercase();
    BASE32.iter().position(|known| *known == lower).map(|index| index as u8)
}

/// Parses a decimal with this precision and scale; `None` if it has too many digits.
pub(crate) fn decimal(text: &[u8], precision: u8, scale: u8) -> Option<i256> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let text = text.strip_suffix(['m', 'M']).unwrap_or(text);
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (_, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = fraction.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain && fraction.trim_end_matches('0').len() > usize::from(scale) {
        return None;
    }
    parse_decimal::<Decimal256Type>(text, precision, scale as i8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_up_to_their_limits() {
        assert_eq!(int(b"2147483647"), Some(Some(i32::MAX)));
        assert_eq!(int(b"-2147483648"), Some(None));
        assert_eq!(int(b"2147483648"), None);
        assert_eq!(int(b"+5"), Some(Some(5)));
        assert_eq!(int(b"007"), Some(Some(7)));
        for bad in [&b""[..], b"-", b"1.5", b" 1", b"1 ", b"x"] {
            assert_eq!(int(bad), None);
        }
        assert_eq!(long(b"1700000000123456789"), Some(Some(1_700_000_000_123_456_789)));
        for at in 0..17 {
            for other in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                let mut text = *b"12345678901234567";
                text[at] = other;
                let is_sign = at == 0 && matches!(other, b'-' | b'+');
                assert_eq!(integer(&text).is_some(), is_sign, "{text:?}");
            }
        }
        assert_eq!(long(b"5L"), Some(Some(5)));
        assert_eq!(long(b"9223372036854775807"), Some(Some(i64::MAX)));
        assert_eq!(long(b"-9223372036854775808"), Some(None));
        assert_eq!(long(b"9223372036854775808"), None);
        assert_eq!(byte(b"-128"), Some(-128));
        assert_eq!(byte(b"128"), None);
        assert_eq!(short(b"-32768"), Some(i16::MIN));
    }

    #[test]
    fn doubles_accept_spaces_and_suffixes() {
        for (text, value) in [
            ("1.5", 1.5),
            ("1e10", 1e10),
            ("1.5f", 1.5),
            ("1d", 1.0),
            (" 1", 1.0),
            ("-0.25 ", -0.25),
            ("99999999999999999999", 1e20),
        ] {
            assert_eq!(double(text.as_bytes()), Some(Some(value)), "{text}");
        }
        for null in ["NaN", "Infinity", "-Infinity"] {
            assert_eq!(double(null.as_bytes()), Some(None), "{null}");
        }
        for bad in ["", "x", "1.5x", "1,5", "f", "--1"] {
            assert_eq!(double(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn uuids_addresses_geohashes_and_decimals_are_parsed() {
        assert_eq!(uuid(b"00112233-4455-6677-8899-aAbBccddeeff").unwrap()[..2], [0, 0x11]);
        assert_eq!(uuid(b"00112233-4455-6677-8899-aabbccddeef"), None);
        assert_eq!(uuid(b"001122330445506677-8899-aabbccddeeff"), None);
        assert_eq!(long256(b"0xfff").unwrap()[30..], [0x0f, 0xff]);
        assert_eq!(long256(b"ff"), None);
        assert_eq!(ipv4(b"1.2.3.4"), Some(Some(0x0102_0304)));
        assert_eq!(ipv4(b"0.0.0.0"), Some(None));
        assert_eq!(ipv4(b"1.2.3"), None);
        assert_eq!(geohash(b"u33de", 25), Some((((26 * 32 + 3) * 32 + 3) * 32 + 12) * 32 + 13));
        assert_eq!(geohash(b"u33de", 10), Some(26 * 32 + 3));
        assert_eq!(geohash(b"u", 10), None);
        assert_eq!(geohash(b"1010101", 7), Some(0b101_0101));
        assert_eq!(decimal(b"1.005", 10, 2), None);
        assert_eq!(decimal(b"1.050", 10, 2), Some(i256::from_i128(105)));
        assert_eq!(decimal(b"12.34", 4, 2), Some(i256::from_i128(1234)));
        assert_eq!(decimal(b"-7m", 4, 2), Some(i256::from_i128(-700)));
        assert_eq!(decimal(b"123.45", 4, 2), None);
        assert_eq!(decimal(b"x", 4, 2), None);
        assert_eq!(char("é".as_bytes()), Some(0xe9));
        assert_eq!(char("zzzz€".as_bytes()), Some(u16::from(b'z')));
        assert_eq!(char(b"\xff"), None);
        assert!(boolean(b"TRUE") && !boolean(b"t"));
    }
}
