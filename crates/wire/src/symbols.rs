//! Strings of a symbol dictionary, escaped once and reused for every batch that shares it.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::columns::Text;

/// The whole dictionary is escaped only if it has at most this many entries per row seen so far.
const MAX_ESCAPED_PER_ROW: usize = 4;

/// Escaped strings of one column's dictionary.
#[derive(Debug, Default)]
pub(crate) struct SymbolTexts {
    /// The dictionary of these strings. Holding it prevents its address from being reused.
    dictionary: Option<ArrayRef>,
    rows_seen: usize,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl SymbolTexts {
    /// Prepares for a batch of `rows` rows that uses `values`.
    pub(crate) fn prepare(
        &mut self,
        values: &ArrayRef,
        rows: usize,
        escape: impl Fn(&mut Vec<u8>, &str),
    ) {
        let same = self.dictionary.as_ref().is_some_and(|known| {
            std::ptr::addr_eq(std::sync::Arc::as_ptr(known), std::sync::Arc::as_ptr(values))
        });
        if !same {
            self.dictionary = Some(ArrayRef::clone(values));
            self.rows_seen = 0;
            self.ends.clear();
            self.bytes.clear();
        }
        self.rows_seen += rows;
        let worthwhile = values.len() <= self.rows_seen.saturating_mul(MAX_ESCAPED_PER_ROW);
        if self.ends.is_empty() && worthwhile {
            self.escape_all(values, escape);
        }
    }

    fn escape_all(&mut self, values: &ArrayRef, escape: impl Fn(&mut Vec<u8>, &str)) {
        let text = match values.data_type() {
            DataType::Utf8 => Text::Small(values.as_string()),
            DataType::LargeUtf8 => Text::Large(values.as_string()),
            DataType::Utf8View => Text::View(values.as_string_view()),
            _ => return,
        };
        self.ends.reserve(text.len());
        for index in 0..text.len() {
            if let Some(value) = text.get(index) {
                escape(&mut self.bytes, value);
            }
            self.ends.push(self.bytes.len());
        }
    }

    /// Returns the escaped string of `key`, if the dictionary was escaped.
    #[inline]
    pub(crate) fn get(&self, key: usize) -> Option<&[u8]> {
        let end = *self.ends.get(key)?;
        let start = if key == 0 { 0 } else { self.ends[key - 1] };
        // Escaped strings have quotes and are never empty, so an empty entry is a null dictionary
        // value.
        (start < end).then(|| &self.bytes[start..end])
    }
}
