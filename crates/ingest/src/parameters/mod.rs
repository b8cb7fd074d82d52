//! Decodes rows of parameter values, as sent in the wire protocol's Bind messages, to typed values.
//!
//! The header describes how the values were sent. It begins with the number of described values (16
//! bits). Each described value then has a format (8 bits: 0 text, 1 binary, 2 columnar protocol)
//! and a type (32 bits: a `PostgreSQL` OID, 0 if unspecified; or a type code of the columnar
//! protocol). All further values are text.
//!
//! The rows follow the header. Each row begins with its number of values (16 bits). Each value has
//! its length in bytes (32 bits, -1 for null), followed by its bytes. Numbers are big-endian.

mod binary;
mod columnar;
mod items;
mod oid;
mod reader;
mod text;

use tidemark_types::{EngineError, EngineResult, ErrorCode, ParameterValue};

pub(crate) use self::binary::BinaryKind;
use self::text::text_of;
pub(crate) use self::text::truth;

/// A sent value's format and type.
#[derive(Debug, Clone, Copy)]
struct Sent {
    format: Format,
    oid: u32,
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Text,
    Binary,
    Columnar,
}

const AS_TEXT: Sent = Sent { format: Format::Text, oid: oid::UNKNOWN };

/// The rows. Their strings borrow from the input.
#[derive(Debug)]
pub struct ParameterRows<'b> {
    values: Vec<ParameterValue<'b>>,
    /// Number of values per row.
    width: usize,
}

impl<'b> ParameterRows<'b> {
    /// Reads the rows. An empty input has no rows.
    pub fn read(bytes: &'b [u8]) -> EngineResult<Self> {
        if bytes.is_empty() {
            return Ok(Self { values: Vec::new(), width: 0 });
        }
        let mut bytes = bytes;
        let sent = sent_as(&mut bytes)?;
        let width = bytes.first_chunk().map_or(0, |count| usize::from(u16::from_be_bytes(*count)));
        let mut values = Vec::new();
        while !bytes.is_empty() {
            if usize::from(u16::from_be_bytes(take(&mut bytes)?)) != width {
                let message = "all parameter rows must have the same number of values";
                return Err(EngineError::new(ErrorCode::InvalidValue, message));
            }
            for index in 0..width {
                let length = i32::from_be_bytes(take(&mut bytes)?);
                let Ok(length) = usize::try_from(length) else {
                    values.push(ParameterValue::Null);
                    continue;
                };
                let (value, rest) = bytes.split_at_checked(length).ok_or_else(cut_short)?;
                bytes = rest;
                let sent = sent.get(index).copied().unwrap_or(AS_TEXT);
                values.push(value_of(value, sent).map_err(|error| named(error, index))?);
            }
        }
        Ok(Self { values, width })
    }

    /// Iterates over the rows.
    pub fn iter(&self) -> impl Iterator<Item = &[ParameterValue<'b>]> {
        self.values.chunks(self.width.max(1))
    }

    /// Returns the values of the only row, or no values if there is no row.
    pub fn into_single(self) -> EngineResult<Vec<ParameterValue<'static>>> {
        if self.values.len() > self.width {
            return Err(EngineError::internal(
                "more than one parameter row for a single execution",
            ));
        }
        Ok(self.values.into_iter().map(ParameterValue::into_owned).collect())
    }
}

/// Returns, for each value described in the header, whether it was sent as text.
pub fn are_texts(mut header: &[u8]) -> EngineResult<Vec<bool>> {
    let sent = sent_as(&mut header)?;
    Ok(sent.iter().map(|one| matches!(one.format, Format::Text)).collect())
}

fn sent_as(bytes: &mut &[u8]) -> EngineResult<Vec<Sent>> {
    let count = u16::from_be_bytes(take(bytes)?);
    let one = |_| {
        let [format] = take(bytes)?;
        let oid = u32::from_be_bytes(take(bytes)?);
        let format = match format {
            1 => Format::Binary,
            2 => Format::Columnar,
            _ => Format::Text,
        };
        Ok(Sent { format, oid })
    };
    (0..count).map(one).collect()
}

fn value_of(bytes: &[u8], sent: Sent) -> EngineResult<ParameterValue<'_>> {
    match sent.format {
        Format::Binary => return binary::decoded(bytes, sent.oid),
        Format::Columnar => return columnar::decoded(bytes, sent.oid),
        Format::Text => {}
    }
    let text = text_of(bytes)?;
    Ok(match sent.oid {
        // Converted to a number, because a timestamp parameter accepts a count of microseconds only
        // as a number.
        oid::INT8 => match text.parse() {
            Ok(number) if number != i64::MIN => ParameterValue::Long(number),
            _ => ParameterValue::text(text),
        },
        oid::BOOL => truth(text).map_or(ParameterValue::text(text), ParameterValue::Boolean),
        _ => ParameterValue::text(text),
    })
}

/// Decodes a value that was sent in binary for the parameter with this index.
pub(crate) fn binary_value(
    bytes: &[u8],
    oid: u32,
    index: usize,
) -> EngineResult<ParameterValue<'_>> {
    binary::decoded(bytes, oid).map_err(|error| named(error, index))
}

/// Adds the parameter number to an error about its value.
fn named(error: EngineError, index: usize) -> EngineError {
    let detail = format!("parameter ${}", index + 1);
    EngineError { detail: Some(detail), ..error }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> EngineResult<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk().ok_or_else(cut_short)?;
    *bytes = rest;
    Ok(*head)
}

fn cut_short() -> EngineError {
    EngineError::internal("parameter rows are truncated")
}

#[cfg(test)]
mod tests;
