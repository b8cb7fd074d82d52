//! The literal text between the values of a line. Lines from one sender usually differ only in
//! their values. Such values are parsed at the expected positions directly into their columns,
//! without looking up names. If a line differs elsewhere, it is parsed again from its start by the
//! general parser. The general parser appends the same values again, which is harmless because only
//! the first value of each column in a row is used.

use super::lexer::{COMMA, Line, SPACE, Token, class_of, last_word_at, special};
use super::value;
use crate::column::ColumnBuilder;

/// The literal strings between the values of a table's last line, concatenated.
#[derive(Debug, Default)]
pub(super) struct Template {
    texts: Vec<u8>,
    fields: Vec<Expected>,
}

/// An expected value, and the end offset in `texts` of the string before it.
#[derive(Debug, Clone, Copy)]
struct Expected {
    text_end: usize,
    column: usize,
    is_symbol: bool,
}

/// Position of a value in a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueRange {
    pub(super) column: usize,
    pub(super) is_symbol: bool,
    pub(super) at: usize,
}

impl Template {
    /// Number of values; 0 before the first line has been recorded.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Records a line with a timestamp as the template. The line's values belong to `columns`.
    pub(super) fn learn(
        &mut self,
        line: &Line,
        bytes: &[u8],
        columns: impl Iterator<Item = usize>,
    ) {
        self.texts.clear();
        self.fields.clear();
        let Some(timestamp) = line.timestamp else { return };
        let mut from = line.table.end();
        for ((name, raw), column) in line.fields.iter().zip(columns) {
            let begin = name.end() + "=".len();
            self.texts.extend_from_slice(&bytes[from..begin]);
            let text_end = self.texts.len();
            self.fields.push(Expected { text_end, column, is_symbol: raw.is_symbol() });
            from = raw.end();
        }
        self.texts.extend_from_slice(&bytes[from..timestamp.start()]);
    }

    /// Returns the position of a field's value, if the line matches the template at `at`.
    #[inline]
    pub(super) fn value_range(&self, field: usize, bytes: &[u8], at: usize) -> Option<ValueRange> {
        let Expected { text_end, column, is_symbol } = *self.fields.get(field)?;
        let from = field.checked_sub(1).map_or(0, |before| self.fields[before].text_end);
        let at = skip_text(bytes, at, &self.texts[from..text_end])?;
        Some(ValueRange { column, is_symbol, at })
    }

    /// Returns the timestamp after the last value, and the end of the line.
    #[inline]
    pub(super) fn timestamp(&self, bytes: &[u8], at: usize) -> Option<(Token, usize)> {
        let from = self.fields.last()?.text_end;
        let at = skip_text(bytes, at, &self.texts[from..])?;
        last_word_at(bytes, at)
    }
}

/// Returns the position after `text`, if the bytes at `at` match it.
#[inline]
fn skip_text(bytes: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    let end = at + text.len();
    is_same(bytes.get(at..end)?, text).then_some(end)
}

/// Whether two short strings are equal. Compares whole words without a function call.
#[inline]
pub(crate) fn is_same(text: &[u8], other: &[u8]) -> bool {
    fn ends<const N: usize>(text: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
        Some((text.first_chunk()?, text.last_chunk()?))
    }
    match text.len() {
        length if length != other.len() => false,
        4..8 => ends::<4>(text) == ends::<4>(other),
        8..=16 => ends::<8>(text) == ends::<8>(other),
        _ => text == other,
    }
}

/// Parses a value in its most common notation into its column; returns the value's end.
#[inline]
pub(super) fn push_plain(column: &mut ColumnBuilder, bytes: &[u8], at: usize) -> Option<usize> {
    let end = match column {
        ColumnBuilder::Double(cells) => {
            let (value, end) = match bytes.get(at)? {
                b'=' => value::binary_double(bytes, at)?,
                _ => value::short_double(bytes, at)?,
            };
            ends_value(bytes, end)?;
            cells.push(Some(value));
            end
        }
        ColumnBuilder::Long(cells) => {
            let (value, end) = value::short_integer(bytes, at)?;
            let end = skip_text(bytes, end, b"i")?;
            ends_value(bytes, end)?;
            cells.push(Some(value));
            end
        }
        ColumnBuilder::Boolean(cells) => {
            let value = match bytes.get(at)? {
                b't' => true,
                b'f' => false,
                _ => return None,
            };
            ends_value(bytes, at + 1)?;
            cells.push(value);
            at + 1
        }
        _ => return None,
    };
    Some(end)
}

/// Like [`push_plain`], but for a symbol. The symbol must already be in the column and must not
/// contain backslashes.
#[inline]
pub(super) fn push_symbol(column: &mut ColumnBuilder, bytes: &[u8], at: usize) -> Option<usize> {
    let ColumnBuilder::Symbol { texts, keys } = column else { return None };
    let end = special(bytes, at);
    ends_value(bytes, end)?;
    keys.push(Some(texts.key_of(bytes.get(at..end)?)?));
    Some(end)
}

#[inline]
fn ends_value(bytes: &[u8], at: usize) -> Option<()> {
    (class_of(*bytes.get(at)?) & (COMMA | SPACE) != 0).then_some(())
}
