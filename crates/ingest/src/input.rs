//! One column of a file: how its texts are read, and which type they need.

use memchr::memchr;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

use crate::column::ColumnBuilder;
use crate::csv_spec::{CsvColumn, Widened};
use crate::number_text::plain_number;

/// Characters of a value that a message shows.
const SHOWN_CHARACTERS: usize = 40;
/// Digits from which a number with a plus sign is one to call.
const PHONE_DIGITS: usize = 7;

/// One column of the file.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) field: usize,
    /// Its place in [`crate::CsvSpec::columns`].
    pub(crate) reported: usize,
    /// The name of a column that must not be null.
    pub(crate) required: Option<String>,
    /// Its type is a guess.
    pub(crate) guessed: bool,
    pub(crate) builder: ColumnBuilder,
    sql_type: SqlType,
    /// The decimal mark of its numbers, where they are written for people.
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
        // The designated timestamp has rules of its own.
        let required = column.required && sql_type.is_nullable() && !is_designated;
        let pattern = column.pattern.as_deref();
        Ok(Self {
            field: column.index,
            reported,
            required: required.then(|| field.name.clone()),
            guessed: column.guessed && !is_designated,
            builder: ColumnBuilder::new(field, pattern)?,
            sql_type,
            mark: decimal_mark(field, pattern)?,
            has_pattern: pattern.is_some(),
        })
    }

    /// Appends the value of a text that is not empty. `false`: not a value of the type, or not one
    /// that a guessed type would keep as it is; nothing was appended.
    #[inline]
    pub(crate) fn append(&mut self, text: &[u8], digits: &mut Vec<u8>) -> EngineResult<bool> {
        if self.guessed && !keeps(self.sql_type, self.has_pattern, text) {
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

    /// Takes a wider type until it holds `text`; tells the new one.
    pub(crate) fn widen(
        &mut self,
        text: &[u8],
        line: u64,
        digits: &mut Vec<u8>,
    ) -> EngineResult<Option<Widened>> {
        let mut widened = None;
        while !self.builder.takes_any_text() {
            let fits = self.append(text, digits)?;
            self.builder.truncate(0);
            if fits {
                break;
            }
            self.sql_type = match self.sql_type {
                SqlType::Int => SqlType::Long,
                SqlType::Long => SqlType::Double,
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

/// The decimal mark that the pattern of a number is.
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
            let message =
                format!("column '{column}': the pattern of a number is its decimal mark, , or .");
            Err(EngineError::new(ErrorCode::InvalidValue, message))
        }
    }
}

/// Whether a value of a guessed type tells all that its text does: zeros in front are part of a
/// code, a plus sign before many digits of a telephone number; a fraction may be too fine.
#[inline]
fn keeps(sql_type: SqlType, has_pattern: bool, text: &[u8]) -> bool {
    match sql_type {
        SqlType::Int | SqlType::Long | SqlType::Double => match text {
            [b'0', b'0'..=b'9', ..] | [b'-' | b'+', ..] => is_quantity(text),
            _ => true,
        },
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

/// Whether an instant begins with a date, rather than being a number, and has so many digits of a
/// second at most.
fn is_iso(text: &[u8], most_digits: usize) -> bool {
    let fraction = memchr(b'.', text).map_or(&[][..], |point| &text[point + 1..]);
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(4) == Some(&b'-') && digits <= most_digits
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
