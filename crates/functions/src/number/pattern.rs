//! Formats numbers with `PostgreSQL`'s patterns: `to_char(1234.5, 'FM9,999.00')`.

use std::sync::Arc;

use tidemark_types::timestamp_pattern::MAX_PATTERN_BYTES;

use crate::column::{Call, invalid, try_build_text};
use crate::native::Kernel;
use crate::resolve::ResolveError;
use crate::signature::Bound;
use crate::text::bounded_text::BoundedText;

/// Maximum number of zeros that an exponent may add to a number's digits. No DOUBLE requires more.
const MAX_ZEROS: i32 = 400;
/// Roman numerals and their values.
const ROMAN: [(&str, u32); 13] = [
    ("M", 1000),
    ("CM", 900),
    ("D", 500),
    ("CD", 400),
    ("C", 100),
    ("XC", 90),
    ("L", 50),
    ("XL", 40),
    ("X", 10),
    ("IX", 9),
    ("V", 5),
    ("IV", 4),
    ("I", 1),
];
/// Width of the longest Roman numeral below 4,000.
const ROMAN_WIDTH: usize = 15;

/// A pattern element.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternElement {
    /// A digit position. A zero or a blank is written if the number has no digit there.
    Digit {
        is_zero: bool,
    },
    Point,
    Comma,
    /// An explicit sign: `S` and `SG` write both signs, `MI` only a minus, `PL` only a plus.
    Sign {
        has_plus: bool,
        has_minus: bool,
    },
    /// `TH`, `th`.
    Ordinal {
        is_lower: bool,
    },
    Text(String),
}

/// A parsed number pattern.
#[derive(Debug, Default)]
struct Pattern {
    elements: Vec<PatternElement>,
    /// Number of digit positions before and after the decimal point.
    digits: [usize; 2],
    /// Number of decimal places by which `V` shifts the point.
    shift: usize,
    has_point: bool,
    /// `FM`: no padding blanks, and no trailing zeros unless a `0` requires them.
    is_dense: bool,
    /// `PR`: negative numbers are written in angle brackets.
    is_bracketed: bool,
    is_scientific: bool,
    /// Whether a leading plus sign is written.
    has_plus: bool,
    /// `RN`, `rn`: the number is written in Roman numerals, in lower case if `true`.
    roman: Option<bool>,
}

/// Pattern keywords. Each keyword is listed before its own prefixes.
const WORDS: [&str; 14] =
    ["EEEE", "FM", "MI", "PL", "SG", "PR", "RN", "TH", "9", "0", ".", "D", ",", "G"];

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_BYTES {
            let length = text.len();
            return Err(format!(
                "number pattern is {length} bytes long: at most {MAX_PATTERN_BYTES} bytes are \
                 allowed"
            ));
        }
        let mut pattern = Self::default();
        let mut after_v = false;
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let end = quoted.find('"').unwrap_or(quoted.len());
                pattern.elements.push(PatternElement::Text(quoted[..end].to_owned()));
                rest = quoted.get(end + 1..).unwrap_or_default();
                continue;
            }
            let starts = |word: &&&str| {
                rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            };
            let word = WORDS.iter().find(starts).copied();
            let written = &rest[..word.map_or(next.len_utf8(), str::len)];
            rest = &rest[written.len()..];
            match (word, next) {
                (Some(word), _) => pattern.add(word, written, after_v)?,
                (None, 'V' | 'v') => after_v = true,
                // A sign before the digit positions is written next to the first written digit.
                (None, 'S' | 's') if pattern.digits == [0, 0] => pattern.has_plus = true,
                (None, 'S' | 's') => {
                    pattern.elements.push(PatternElement::Sign { has_plus: true, has_minus: true });
                }
                // No locale is set, so the currency symbol is a blank.
                (None, 'L' | 'l') => pattern.elements.push(PatternElement::Text(" ".into())),
                (None, other) => pattern.elements.push(PatternElement::Text(other.to_string())),
            }
        }
        if pattern.digits == [0, 0] && pattern.roman.is_none() {
            return Err(format!("the number pattern '{text}' has no digit position (9 or 0)"));
        }
        Ok(pattern)
    }

    fn add(&mut self, word: &str, written: &str, after_v: bool) -> Result<(), String> {
        let sign = |has_plus, has_minus| PatternElement::Sign { has_plus, has_minus };
        let is_lower = written.bytes().any(|letter| letter.is_ascii_lowercase());
        self.elements.push(match word {
            "9" | "0" => {
                self.digits[usize::from(self.has_point)] += 1;
                self.shift += usize::from(after_v);
                PatternElement::Digit { is_zero: word == "0" }
            }
            "." | "D" if self.has_point => {
                return Err("a number pattern can have only one decimal point".into());
            }
            "." | "D" => {
                self.has_point = true;
                PatternElement::Point
            }
            "," | "G" => PatternElement::Comma,
            "MI" => sign(false, true),
            "PL" => sign(true, false),
            "SG" => sign(true, true),
            "TH" => PatternElement::Ordinal { is_lower },
            "EEEE" => {
                self.is_scientific = true;
                return Ok(());
            }
            "FM" => {
                self.is_dense = true;
                return Ok(());
            }
            "PR" => {
                self.is_bracketed = true;
                return Ok(());
            }
            _ => {
                self.roman = Some(is_lower);
                return Ok(());
            }
        });
        Ok(())
    }

    /// Writes a number given as a string.
    fn write(&self, text: &str, out: &mut BoundedText) {
        let Some(number) = Number::parse(text) else { return };
        if let Some(is_lower) = self.roman {
            self.write_roman(&number, is_lower, out);
        } else if self.is_scientific {
            self.write_scientific(&number, out);
        } else {
            self.write_digits(&number.rounded(self.digits[1], self.shift), out);
        }
    }

    fn write_roman(&self, number: &Number, is_lower: bool, out: &mut BoundedText) {
        let rounded = number.rounded(0, 0);
        let value = rounded.integer.parse::<u32>().unwrap_or(0);
        if number.is_negative || !(1..4000).contains(&value) {
            out.push_str(&"#".repeat(ROMAN_WIDTH));
            return;
        }
        let (mut letters, mut left) = (String::new(), value);
        for (letter, worth) in ROMAN {
            while left >= worth {
                letters.push_str(letter);
                left -= worth;
            }
        }
        if is_lower {
            letters.make_ascii_lowercase();
        }
        let blanks = if self.is_dense { 0 } else { ROMAN_WIDTH - letters.len() };
        out.push_str(&" ".repeat(blanks));
        out.push_str(&letters);
    }

    /// Writes one digit before the point, the pattern's decimal places, and the exponent.
    fn write_scientific(&self, number: &Number, out: &mut BoundedText) {
        let places = self.digits[1];
        let (mut mantissa, mut exponent) = number.normal();
        mantissa = mantissa.rounded(places, 0);
        if mantissa.integer.len() > 1 {
            // 9.96 with one decimal place is 1.0e1.
            exponent += 1;
            mantissa.fraction.insert(0, '0');
            mantissa.fraction.truncate(places);
            mantissa.integer.truncate(1);
        }
        let sign = if number.is_negative { "-" } else { " " };
        out.push_str(if self.is_dense && !number.is_negative { "" } else { sign });
        out.push_str(if mantissa.integer.is_empty() { "0" } else { &mantissa.integer });
        if places > 0 {
            out.push('.');
            out.push_str(&mantissa.fraction);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("e{sign}{:02}", exponent.unsigned_abs()));
    }

    fn write_digits(&self, number: &Number, out: &mut BoundedText) {
        let positions = self.digits[0];
        let is_over = number.integer.len().max(1) > positions;
        let is_zero =
            |element: &PatternElement| matches!(element, PatternElement::Digit { is_zero: true });
        let is_digit = |element: &&PatternElement| matches!(element, PatternElement::Digit { .. });
        let digits = if is_over { self.digits[1] } else { self.decimal_places(number) };
        // First position at which a digit is written. Either the number has a digit there or the
        // pattern requires a zero. If no decimal places are written, at least one digit is written
        // before the point.
        let is_whole = digits == 0;
        let by_number = positions.saturating_sub(number.integer.len().max(usize::from(is_whole)));
        let zeros = self.elements.iter().filter(is_digit).position(is_zero);
        let first = zeros.map_or(by_number, |zero| zero.min(by_number));
        let is_own = |element: &PatternElement| {
            matches!(element, PatternElement::Sign { has_minus: true, .. })
        };
        let mut is_signed = self.elements.iter().any(is_own);
        let mut at = 0;
        for element in &self.elements {
            let is_blank = at < first;
            let starts = match element {
                PatternElement::Digit { .. } => !is_blank,
                PatternElement::Point => true,
                _ => false,
            };
            if starts && !is_signed {
                is_signed = true;
                self.write_sign(number.is_negative, out);
            }
            match element {
                PatternElement::Digit { .. } => {
                    self.write_digit(number, (at, first, digits, is_over), out);
                    at += 1;
                }
                PatternElement::Point if self.digits[1] == 0 && !is_over => {}
                PatternElement::Point => out.push('.'),
                PatternElement::Comma if at <= first => {
                    out.push_str(if self.is_dense { "" } else { " " });
                }
                PatternElement::Comma => out.push(','),
                PatternElement::Sign { has_plus, has_minus } => {
                    let (has, sign) =
                        if number.is_negative { (has_minus, "-") } else { (has_plus, "+") };
                    out.push_str(match (*has, self.is_dense) {
                        (true, _) => sign,
                        (false, true) => "",
                        (false, false) => " ",
                    });
                }
                PatternElement::Ordinal { is_lower }
                    if !number.is_negative && !self.has_point && !is_over =>
                {
                    let ordinal = ordinal(&number.integer);
                    out.push_str(&if *is_lower { ordinal.into() } else { ordinal.to_uppercase() });
                }
                PatternElement::Ordinal { .. } => {}
                PatternElement::Text(text) => out.push_str(text),
            }
        }
        if self.is_bracketed {
            out.push_str(match (number.is_negative, self.is_dense) {
                (true, _) => ">",
                (false, false) => " ",
                (false, true) => "",
            });
        }
    }

    fn write_sign(&self, is_negative: bool, out: &mut BoundedText) {
        out.push_str(match (is_negative, self.is_bracketed, self.is_dense) {
            (true, true, _) => "<",
            (true, false, _) => "-",
            (false, ..) if self.has_plus => "+",
            (false, _, false) => " ",
            (false, _, true) => "",
        });
    }

    /// Writes one digit. The position is counted from the pattern's first digit.
    fn write_digit(
        &self,
        number: &Number,
        (at, first, digits, is_over): (usize, usize, usize, bool),
        out: &mut BoundedText,
    ) {
        let positions = self.digits[0];
        let digit = if at >= positions {
            let position = at - positions;
            if position >= digits {
                return;
            }
            number.fraction.as_bytes().get(position)
        } else {
            let leading = positions.saturating_sub(number.integer.len());
            at.checked_sub(leading).and_then(|index| number.integer.as_bytes().get(index))
        };
        match digit {
            _ if is_over => out.push('#'),
            _ if at < first && self.is_dense => {}
            _ if at < first => out.push(' '),
            Some(digit) => out.push(char::from(*digit)),
            None => out.push('0'),
        }
    }

    /// Returns the number of decimal places to write.
    fn decimal_places(&self, number: &Number) -> usize {
        if !self.is_dense {
            return self.digits[1];
        }
        let mut at = 0;
        let mut required = 0;
        for element in &self.elements {
            if let PatternElement::Digit { is_zero } = element {
                at += 1;
                if *is_zero && at > self.digits[0] {
                    required = at - self.digits[0];
                }
            }
        }
        required.max(number.fraction.trim_end_matches('0').len())
    }
}

/// Returns a number's ordinal suffix: `st`, `nd`, `rd` or `th`.
pub(crate) fn ordinal(integer: &str) -> &'static str {
    let last = |count: usize| &integer[integer.len().saturating_sub(count)..];
    match (last(2), last(1)) {
        ("11" | "12" | "13", _) => "th",
        (_, "1") => "st",
        (_, "2") => "nd",
        (_, "3") => "rd",
        _ => "th",
    }
}

/// A number as its decimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Number {
    is_negative: bool,
    /// Digits before the decimal point, without leading zeros; empty for a number below 1.
    integer: String,
    /// Digits after the decimal point.
    fraction: String,
}

impl Number {
    /// Parses a number such as `-12.5` or `1.0E10`; `None` for any string that is not a finite
    /// number.
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = Self { is_negative, integer: whole.into(), fraction: fraction.into() };
        (exponent.abs() <= MAX_ZEROS).then(|| number.moved(exponent))
    }

    /// Returns the number times 10 to the power of `places`.
    fn moved(self, places: i32) -> Self {
        let by = places.unsigned_abs() as usize;
        let Self { is_negative, integer: mut whole, mut fraction } = self;
        if places >= 0 {
            fraction.extend(std::iter::repeat_n('0', by.saturating_sub(fraction.len())));
            whole.extend(fraction.drain(..by));
        } else {
            whole.insert_str(0, &"0".repeat(by.saturating_sub(whole.len())));
            fraction.insert_str(0, &whole.split_off(whole.len() - by));
        }
        Self { is_negative, integer: whole.trim_start_matches('0').into(), fraction }
    }

    /// Returns the number times 10 to the power of `shift`, rounded to `places` decimal places with
    /// halves rounded away from zero.
    fn rounded(&self, places: usize, shift: usize) -> Self {
        let Self { is_negative, integer: whole, mut fraction } = self.clone().moved(shift as i32);
        let mut carry = fraction.as_bytes().get(places).is_some_and(|digit| *digit >= b'5');
        fraction.truncate(places);
        fraction.extend(std::iter::repeat_n('0', places - fraction.len()));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        for digit in digits.iter_mut().rev() {
            let sum = *digit + u8::from(carry);
            carry = sum > b'9';
            *digit = if carry { b'0' } else { sum };
        }
        if carry {
            digits.insert(0, b'1');
        }
        let all: String = digits.into_iter().map(char::from).collect();
        let (whole, fraction) = all.split_at(all.len() - places);
        let is_zero = all.bytes().all(|digit| digit == b'0');
        Self {
            is_negative: is_negative && !is_zero,
            integer: whole.trim_start_matches('0').into(),
            fraction: fraction.into(),
        }
    }

    /// Returns the number with one digit before the decimal point, along with its base-10 exponent.
    fn normal(&self) -> (Self, i32) {
        let zeros = self.fraction.bytes().take_while(|digit| *digit == b'0').count();
        let exponent = match self.integer.len() {
            0 if zeros == self.fraction.len() => 0,
            0 => -(zeros as i32) - 1,
            digits => digits as i32 - 1,
        };
        (self.clone().moved(-exponent), exponent)
    }
}

/// Builds the kernel for `to_char(number, pattern)`. The number is passed as a string.
pub(crate) fn to_char(bound: &Bound<'_>) -> Result<Kernel, ResolveError> {
    let known = bound.arguments[1].text().map(|text| Pattern::parse(&text)).transpose();
    let known = known.map_err(|message| ResolveError::Invalid { message })?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (numbers, patterns) = (call.texts(0)?, call.texts(1)?);
        try_build_text(call.rows, |row, out| {
            let (Some(number), Some(pattern)) = (numbers.get(row), patterns.get(row)) else {
                return Ok(false);
            };
            match &known {
                Some(known) => known.write(number, out),
                None => Pattern::parse(pattern).map_err(invalid)?.write(number, out),
            }
            Ok(true)
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_like_postgresql() {
        for (number, pattern, expected) in include!("pattern_cases.rs") {
            let mut out = BoundedText::default();
            Pattern::parse(pattern).unwrap().write(number, &mut out);
            assert_eq!(out.get().unwrap(), expected, "{number} by {pattern}");
        }
    }
}
