//! One CSV column: how to parse its values, and which type they need.

use memchr::memchr;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

use crate::column::ColumnBuilder;
use crate::csv_spec::{CsvColumn, Widened};
use crate::number_text::plain_number;

/// Maximum number of a value's characters shown in a message.
const SHOWN_CHARACTERS: usize = 40;
/// Minimum number of digits after a plus sign for a value to count as a telephone number.
const PHONE_DIGITS: usize = 7;
/// Minimum number of digits in an integer that exceeds LONG.
const LONG_DIGITS: usize = 19;

/// One column of the CSV file.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) field: usize,
    /// Index of the column in [`crate::CsvSpec::columns`].
    pub(crate) reported: usize,
    /// The column name, if the column is NOT NULL.
    pub(crate) required: Option<String>,
    /// Whether the column's type was guessed.
    pub(crate) guessed: bool,
    /// Strings that are read as null unless they are valid values of the type.
    null_texts: Vec<String>,
    pub(crate) builder: ColumnBuilder,
    sql_type: SqlType,
    /// Decimal mark, if the column's numbers are in a localised format.
    mark: Option<u8>,
    has_pattern: bool,
}

impl Input {
    pub(crate) fn new(
        column: &CsvColumn,
        reported: usize,
        field: &Field,
        is_designated: bool,
    ) -> EngineResult<Self> {
        let sql_type = field.sql_type;
        // Rows without a designated timestamp are handled separately.
        let required = column.required && sql_type.is_nullable() && !is_designated;
        let pattern = column.pattern.as_deref();
        Ok(Self {
            field: column.index,
            reported,
            required: required.then(|| field.name.clone()),
            guessed: column.guessed && !is_designated,
            null_texts: if is_designated { Vec::new() } else { column.null_texts.clone() },
            builder: ColumnBuilder::new(field, pattern)?,
            sql_type,
            mark: decimal_mark(field, pattern)?,
            has_pattern: pattern.is_some(),
        })
    }

    /// Whether a string that is not a value of the type represents null.
    #[cold]
    pub(crate) fn is_null(&self, text: &[u8]) -> bool {
        (self.guessed && is_null_word(text))
            || self.null_texts.iter().any(|null| null.as_bytes() == text)
    }

    /// Parses and appends a non-empty string. Returns `false` without appending anything if the
    /// string is not a value of the type, or if a guessed type would not preserve the string
    /// exactly.
    #[inline]
    pub(crate) fn append(&mut self, text: &[u8], digits: &mut Vec<u8>) -> EngineResult<bool> {
        if self.guessed && !preserves_meaning(self.sql_type, self.has_pattern, text) {
            return Ok(false);
        }
        match self.mark {
            None => self.builder.append(text),
            Some(mark) => self.append_dressed(text, mark, digits),
        }
    }

    #[cold]
    fn append_dressed(
        &mut self,
        text: &[u8],
        mark: u8,
        digits: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        match plain_number(text, mark, digits) {
            Some(number) => self.builder.append(number),
            None => Ok(false),
        }
    }

    /// Widens the type until it fits `text`; returns the new type.
    pub(crate) fn widen(
        &mut self,
        text: &[u8],
        line: u64,
        digits: &mut Vec<u8>,
    ) -> EngineResult<Option<Widened>> {
        let mut widened = None;
        while !self.builder.accepts_any_text() {
            let fits = self.append(text, digits)?;
            self.builder.truncate(0);
            if fits {
                break;
            }
            self.sql_type = match self.sql_type {
                SqlType::Int => SqlType::Long,
                SqlType::Long if is_integer(text, self.mark) => SqlType::Decimal(38, 0),
                SqlType::Long => SqlType::Double,
                SqlType::Decimal(38, 0) if is_integer(text, self.mark) => SqlType::Decimal(76, 0),
                SqlType::Date if !self.has_pattern => SqlType::Timestamp,
                SqlType::Timestamp if !self.has_pattern => SqlType::TimestampNs,
                _ => SqlType::Varchar,
            };
            let field = Field::new("", self.sql_type);
            self.builder = ColumnBuilder::new(&field, None)?;
            let shown = String::from_utf8_lossy(text).chars().take(SHOWN_CHARACTERS).collect();
            widened = Some(Widened { sql_type: self.sql_type, line, text: shown });
        }
        Ok(widened)
    }
}

/// Returns the decimal mark that a number pattern specifies.
fn decimal_mark(field: &Field, pattern: Option<&str>) -> EngineResult<Option<u8>> {
    let is_number = matches!(
        field.sql_type,
        SqlType::Byte
            | SqlType::Short
            | SqlType::Int
            | SqlType::Long
            | SqlType::Float
            | SqlType::Double
            | SqlType::Decimal(..)
    );
    match pattern.filter(|_| is_number) {
        None => Ok(None),
        Some(",") => Ok(Some(b',')),
        Some(".") => Ok(Some(b'.')),
        Some(_) => {
            let column = &field.name;
            let message = format!(
                "column '{column}': a number's pattern must be its decimal separator (, or .)"
            );
            Err(EngineError::new(ErrorCode::InvalidValue, message))
        }
    }
}

/// Whether a guessed type preserves a string's meaning. Leading zeros suggest a code, and a plus
/// sign before many digits suggests a telephone number. A fraction may have too many digits for the
/// type.
#[inline]
fn preserves_meaning(sql_type: SqlType, has_pattern: bool, text: &[u8]) -> bool {
    match sql_type {
        SqlType::Int | SqlType::Long => match text {
            [b'0', b'0'..=b'9', ..] | [b'-' | b'+', ..] => {
                is_quantity(text) && !is_sentinel(sql_type, text)
            }
            _ => true,
        },
        SqlType::Double => match text {
            [b'0', b'0'..=b'9', ..] | [b'-' | b'+', ..] => is_quantity(text) && is_exact(text),
            _ => text.len() < LONG_DIGITS || is_exact(text),
        },
        SqlType::Decimal(..) => is_quantity(text) && (has_pattern || is_integer(text, None)),
        SqlType::Boolean => {
            text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false")
        }
        SqlType::Char => text.len() == 1,
        SqlType::Date if !has_pattern => is_iso(text, 3),
        SqlType::Timestamp if !has_pattern => is_iso(text, 6),
        SqlType::TimestampNs if !has_pattern => is_iso(text, 9),
        _ => true,
    }
}

/// Whether a timestamp begins with a date rather than being a number, and has at most this many
/// fractional digits.
fn is_iso(text: &[u8], most_digits: usize) -> bool {
    let fraction = memchr(b'.', text).map_or(&[][..], |point| &text[point + 1..]);
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(4) == Some(&b'-') && digits <= most_digits
}

/// Whether a string is the word `null`.
fn is_null_word(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b"null")
}

/// Whether a number is the type's minimum, which represents null.
fn is_sentinel(sql_type: SqlType, text: &[u8]) -> bool {
    match sql_type {
        SqlType::Int => text == b"-2147483648",
        _ => text == b"-9223372036854775808",
    }
}

/// Whether a number is written as an integer: digits only or, if a decimal mark is configured,
/// digits that may be separated into groups.
#[cold]
fn is_integer(text: &[u8], mark: Option<u8>) -> bool {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    let is_plain = |byte: &u8| match mark {
        None => byte.is_ascii_digit(),
        Some(mark) => *byte != mark && !byte.is_ascii_alphabetic(),
    };
    !digits.is_empty() && digits.iter().all(is_plain)
}

/// Whether DOUBLE represents a number exactly as written. An integer beyond LONG must retain all
/// its digits.
#[cold]
fn is_exact(text: &[u8]) -> bool {
    if text.len() < LONG_DIGITS || !is_integer(text, None) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(text) else { return true };
    let text = text.strip_prefix('+').unwrap_or(text);
    let is_long = text.parse::<i64>().is_ok();
    is_long || text.parse::<f64>().is_ok_and(|value| format!("{value:.0}") == text)
}

#[cold]
fn is_quantity(text: &[u8]) -> bool {
    let (plus, digits) = match text {
        [b'+', digits @ ..] => (true, digits),
        [b'-', digits @ ..] | digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let is_code = digits.len() > 1 && digits[0] == b'0';
    let is_phone = plus && digits.len() >= PHONE_DIGITS;
    !(is_code || is_phone)
}
