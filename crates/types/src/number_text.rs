//! String form of numbers in the dialect: the fewest digits that parse back to the same value,
//! written as `1.0` and `1.0E10` rather than `1` and `1e10`.

/// Appends an integer in decimal.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a DOUBLE: in plain form from 10⁻³ up to 10⁷, otherwise with one digit before the point
/// and an exponent `E`.
///
/// NaN and infinities are written as words. They never reach this function from the dialect, where
/// they are null.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        let mut buffer = ryu::Buffer::new();
        let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
        relayout(out, buffer.format_finite(value).as_bytes(), plain);
    } else {
        write_not_finite(out, value.is_nan(), value > 0.0);
    }
}

/// Appends a FLOAT in the same form as [`write_f64`], with as many digits as a FLOAT needs.
pub fn write_f32(out: &mut Vec<u8>, value: f32) {
    if let Some(digits) = integer_digits(value) {
        relayout(out, itoa::Buffer::new().format(digits).as_bytes(), false);
    } else if value.is_finite() {
        let mut buffer = ryu::Buffer::new();
        let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
        relayout(out, buffer.format_finite(value).as_bytes(), plain);
    } else {
        write_not_finite(out, value.is_nan(), value > 0.0);
    }
}

/// If an integer does not fit in the mantissa of a FLOAT, rounds it to the digits that the mantissa
/// represents; `None` for other numbers. The result sometimes has one digit more than is needed to
/// parse the same value.
fn integer_digits(value: f32) -> Option<i64> {
    const BITS: i32 = 24;
    let exponent = (value.to_bits() >> 23 & 0xff) as i32 - 127;
    if !(BITS + 1..=62).contains(&exponent) {
        return None;
    }
    let lost = (1_i64 << (exponent - BITS - 1)).ilog10();
    let unit = 10_i64.pow(lost);
    let whole = value as i64;
    let rest = whole % unit;
    let up = 2 * rest.abs() >= unit && rest != 0;
    Some(whole - rest + if up { unit * rest.signum() } else { 0 })
}

/// Returns the string form of a DOUBLE.
#[must_use]
pub fn f64_text(value: f64) -> String {
    let mut out = Vec::with_capacity(24);
    write_f64(&mut out, value);
    into_text(out)
}

/// Returns the string form of a FLOAT.
#[must_use]
pub fn f32_text(value: f32) -> String {
    let mut out = Vec::with_capacity(16);
    write_f32(&mut out, value);
    into_text(out)
}

fn into_text(out: Vec<u8>) -> String {
    // The writers emit only ASCII, so no character is replaced.
    String::from_utf8(out).unwrap_or_default()
}

fn write_not_finite(out: &mut Vec<u8>, nan: bool, positive: bool) {
    out.extend_from_slice(match (nan, positive) {
        (true, _) => b"NaN",
        (false, true) => b"Infinity",
        (false, false) => b"-Infinity",
    });
}

/// Converts the output of ryu (`123.45`, `1e16`, `1.25e-7`) to the dialect's layout.
fn relayout(out: &mut Vec<u8>, shortest: &[u8], plain: bool) {
    let exponent_mark = shortest.iter().position(|&byte| byte == b'e');
    if plain && exponent_mark.is_none() {
        out.extend_from_slice(shortest);
        return;
    }
    let (mantissa, written_exponent) = match exponent_mark {
        Some(mark) => (&shortest[..mark], parse_exponent(&shortest[mark + 1..])),
        None => (shortest, 0),
    };
    let mantissa = match mantissa.strip_prefix(b"-") {
        Some(rest) => {
            out.push(b'-');
            rest
        }
        None => mantissa,
    };
    let point = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    let mut digits = [0_u8; 32];
    let mut count = 0;
    for &byte in mantissa.iter().filter(|byte| byte.is_ascii_digit()) {
        digits[count] = byte;
        count += 1;
    }
    let leading = digits[..count].iter().take_while(|&&byte| byte == b'0').count();
    let trailing = digits[leading..count].iter().rev().take_while(|&&byte| byte == b'0').count();
    let significant = &digits[leading..count - trailing];
    let exponent = written_exponent + point as i32 - leading as i32 - 1;
    if plain {
        write_plain(out, significant, exponent);
    } else {
        out.push(significant[0]);
        out.push(b'.');
        out.extend_from_slice(if significant.len() > 1 { &significant[1..] } else { b"0" });
        out.push(b'E');
        out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
    }
}

/// Writes `significant` × 10^`exponent` without an exponent. The first digit has the weight
/// 10^`exponent`.
fn write_plain(out: &mut Vec<u8>, significant: &[u8], exponent: i32) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(significant);
        return;
    }
    let integer_digits = exponent as usize + 1;
    let retained = integer_digits.min(significant.len());
    out.extend_from_slice(&significant[..retained]);
    out.extend(std::iter::repeat_n(b'0', integer_digits - retained));
    out.push(b'.');
    out.extend_from_slice(if significant.len() > retained {
        &significant[retained..]
    } else {
        b"0"
    });
}

fn parse_exponent(text: &[u8]) -> i32 {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = digits.iter().fold(0_i32, |sum, byte| sum * 10 + i32::from(byte - b'0'));
    if negative { -value } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_formatted_like_questdb() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1e10, "1.0E10"),
            (123_456_789.0, "1.23456789E8"),
            (123_456_789.123_456_79, "1.2345678912345679E8"),
            (1e-5, "1.0E-5"),
            (1e300, "1.0E300"),
            (-1e-320, "-1.0E-320"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(f64_text(value), text);
        }
        assert_eq!(f32_text(1.5), "1.5");
        assert_eq!(f32_text(1e10), "1.0E10");
        assert_eq!(f32_text(0.1), "0.1");
        assert_eq!(f32_text(16_777_216.0), "1.6777216E7");
        assert_eq!(f32_text(2_147_483_648.0), "2.14748365E9");
        assert_eq!(f32_text(-1_704_164_645_678_901_i64 as f32), "-1.70416464E15");
        assert_eq!(f32_text(1e30), "1.0E30");
    }

    #[test]
    fn every_number_round_trips_through_its_string() {
        let mut bits = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                assert_eq!(f64_text(value).parse::<f64>().unwrap().to_bits(), bits);
            }
        }
    }
}
