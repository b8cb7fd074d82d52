//! Parsing of strings, with one function per type. The whole string must be the value; nothing is
//! trimmed.

/// Parses an integer: an optional sign, digits (with `_` between digits) and an optional `L`.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_suffix(['L', 'l']).unwrap_or(text);
    plain_integer(digits).filter(|&value| value != i64::MIN)
}

/// Parses an INT like `integer`, but without the LONG suffix.
pub(crate) fn int(text: &str) -> Option<i32> {
    plain_integer(text).and_then(|value| i32::try_from(value).ok()).filter(|&x| x != i32::MIN)
}

fn plain_integer(text: &str) -> Option<i64> {
    if !text.contains('_') {
        return text.parse().ok();
    }
    let bytes = text.as_bytes();
    let between = |at: usize| {
        at > 0
            && bytes[at - 1].is_ascii_digit()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    let well_placed = bytes.iter().enumerate().all(|(at, &byte)| byte != b'_' || between(at));
    if well_placed { text.replace('_', "").parse().ok() } else { None }
}

/// Parses a DOUBLE. `NaN`, `Infinity`, out-of-range numbers and strings that are not numbers become
/// null.
pub(crate) fn double(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let numeric = digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    if !numeric {
        return None;
    }
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses a FLOAT by the same rules as `double`.
pub(crate) fn float(text: &str) -> Option<f32> {
    double(text).map(|value| value as f32).filter(|value| value.is_finite())
}

/// Parses `true` or `t`, ignoring case. Any other string is false.
pub(crate) fn boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("t")
}

/// Whether a string is a valid BOOLEAN. Used by conversions that must fail on any other string.
pub(crate) fn is_boolean(text: &str) -> bool {
    boolean(text) || text.eq_ignore_ascii_case("false") || text.eq_ignore_ascii_case("f")
}

/// Parses bytes in `PostgreSQL`'s syntax: either `\\x` and two hexadecimal digits per byte, or
/// plain characters, where `\\\\` is a backslash and `\\377` is a byte in octal.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return hexadecimal(digits);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let (byte, length) = match (first, behind) {
            (b'\\', [b'\\', ..]) => (b'\\', 1),
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', ..]) => {
                ((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'), 3)
            }
            (b'\\', _) => return None,
            (byte, _) => (*byte, 0),
        };
        bytes.push(byte);
        rest = &behind[length..];
    }
    Some(bytes)
}

/// Parses bytes written as two hexadecimal digits each.
pub(crate) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match *pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

/// Parses a UUID, with or without hyphens, as big-endian bytes.
pub(crate) fn uuid(text: &str) -> Option<[u8; 16]> {
    // Some drivers send UUIDs without hyphens.
    if !matches!(text.len(), 32 | 36) {
        return None;
    }
    uuid::Uuid::try_parse(text).ok().map(uuid::Uuid::into_bytes)
}

/// Parses an IPv4 address in dotted notation.
pub(crate) fn ipv4(text: &str) -> Option<u32> {
    text.parse::<std::net::Ipv4Addr>().ok().map(u32::from)
}

/// Parses a network such as `10.1.0.0/16` or `10.1/16` as (base, mask, bits). A single address is a
/// network of one address.
pub(crate) fn ipv4_network(text: &str) -> Option<(u32, u32, u32)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, bits.parse().ok().filter(|&bits: &u32| bits <= 32)?),
        None => (text, 32),
    };
    let given = address.split('.').count();
    let padded = format!("{address}{}", ".0".repeat(4_usize.checked_sub(given)?));
    let base = ipv4(&padded)?;
    let mask = if bits == 0 { 0 } else { u32::MAX << (32 - bits) };
    Some((base & mask, mask, bits))
}

/// Parses a LONG256 in hexadecimal, with or without `0x`, as 32 big-endian bytes.
pub(crate) fn long256(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let padded = format!("{digits:0>64}");
    let mut bytes = [0; 32];
    for (slot, pair) in bytes.iter_mut().zip(padded.as_bytes().chunks(2)) {
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or_default() as u8;
        *slot = digit(pair[0]) * 16 + digit(pair[1]);
    }
    Some(bytes)
}

const GEOHASH_ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// Parses a geohash and truncates it to `bits`, or parses a string of exactly `bits` binary digits.
/// Returns `None` if a character is not in the alphabet or the string is too short.
pub(crate) fn geohash(text: &str, bits: u8) -> Option<i64> {
    let is_binary = text.len() == usize::from(bits) && !bits.is_multiple_of(5);
    if is_binary && text.bytes().all(|byte| matches!(byte, b'0' | b'1')) {
        // Geohashes whose bits do not make up whole characters are written as binary digits.
        return i64::from_str_radix(text, 2).ok();
    }
    let mut value = 0_i64;
    let mut have = 0_u8;
    for byte in text.bytes() {
        if have >= bits {
            break;
        }
        let lower = byte.to_ascii_lowercase();
        let digit = GEOHASH_ALPHABET.iter().position(|&letter| letter == lower)?;
        value = value << 5 | digit as i64;
        have += 5;
    }
    (have >= bits && have > 0).then(|| value >> (have - bits))
}

/// Formats a geohash as characters if the number of bits allows it, otherwise as binary digits.
pub(crate) fn geohash_text(value: i64, bits: u8) -> String {
    if bits.is_multiple_of(5) {
        let digit =
            |at: u8| GEOHASH_ALPHABET[(value >> (bits - 5 * (at + 1)) & 31) as usize] as char;
        (0..bits / 5).map(digit).collect()
    } else {
        (0..bits).rev().map(|bit| if value >> bit & 1 == 1 { '1' } else { '0' }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_only_if_the_whole_string_matches() {
        for (text, value) in [
            ("12", Some(12)),
            ("+5", Some(5)),
            ("-7", Some(-7)),
            ("12L", Some(12)),
            ("1_0", Some(10)),
        ] {
            assert_eq!(integer(text), value, "{text}");
        }
        for text in ["", " 12 ", "1.5", "0x10", "1,000", "_1", "1_", "L", "9223372036854775808"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!(int("2147483648"), None);
        assert_eq!(int("12L"), None);
    }

    #[test]
    fn null_and_nan_strings_parse_as_none() {
        assert_eq!(double("1e3"), Some(1000.0));
        assert_eq!(double("-.5"), Some(-0.5));
        for text in ["NaN", "Infinity", "inf", "", "abc", "e", "1e999", "1 "] {
            assert_eq!(double(text), None, "{text}");
        }
    }

    #[test]
    fn abbreviated_networks_are_parsed() {
        assert_eq!(ipv4_network("10.1/16"), Some((0x0A01_0000, 0xFFFF_0000, 16)));
        assert_eq!(ipv4_network("1.2.3.4"), Some((0x0102_0304, u32::MAX, 32)));
        assert_eq!(ipv4_network("1.2.3.4/33"), None);
        assert_eq!(ipv4_network("1.2.3.4.5/8"), None);
    }

    #[test]
    fn geohashes_round_trip() {
        assert_eq!(geohash_text(geohash("u33d8", 25).unwrap(), 25), "u33d8");
        assert_eq!(geohash("u33d8", 20), geohash("u33d", 20));
        assert_eq!(geohash(&geohash_text(0b101_0101, 7), 7), Some(0b101_0101));
        assert_eq!(geohash("u3", 25), None);
        assert_eq!(geohash("a", 5), None);
        assert_eq!(geohash_text(0b101, 3), "101");
    }
}
