//! Interned strings of a symbol column.

use std::hash::Hasher;
use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// Interned strings of one column, in order of first appearance. Each reader has its own set.
#[derive(Debug, Default)]
pub(crate) struct SymbolTexts {
    table: HashTable<i32>,
    bytes: Vec<u8>,
    /// For each string, its end offset in `bytes`. Arrow's offsets are 32-bit.
    ends: Vec<i32>,
    /// The most recent dictionary array. Batches share it until the dictionary grows.
    values: Option<Arc<StringArray>>,
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

fn text_of<'a>(bytes: &'a [u8], ends: &[i32], key: i32) -> &'a [u8] {
    let key = key as usize;
    let start = if key == 0 { 0 } else { ends[key - 1] as usize };
    &bytes[start..ends[key] as usize]
}

impl SymbolTexts {
    /// Returns a string's key if the string is interned.
    #[inline]
    pub(crate) fn key_of(&self, text: &[u8]) -> Option<i32> {
        let (bytes, ends) = (&self.bytes, &self.ends);
        self.table.find(hash(text), |key| text_of(bytes, ends, *key) == text).copied()
    }

    /// Interns `text`, which is UTF-8, and returns its key.
    #[inline]
    pub(crate) fn intern(&mut self, text: &str) -> EngineResult<i32> {
        let (bytes, ends) = (&self.bytes, &self.ends);
        let text = text.as_bytes();
        let hashed = hash(text);
        match self.table.find(hashed, |key| text_of(bytes, ends, *key) == text) {
            Some(key) => Ok(*key),
            None => self.insert(hashed, text),
        }
    }

    #[cold]
    fn insert(&mut self, hashed: u64, text: &[u8]) -> EngineResult<i32> {
        let end = i32::try_from(self.bytes.len() + text.len()).map_err(|_| {
            EngineError::new(
                ErrorCode::ResourceLimit,
                "a symbol column in the import has more than 2 GiB of distinct values",
            )
        })?;
        let key = self.ends.len() as i32;
        self.bytes.extend_from_slice(text);
        self.ends.push(end);
        let (bytes, ends) = (&self.bytes, &self.ends);
        self.table.insert_unique(hashed, key, |key| hash(text_of(bytes, ends, *key)));
        self.values = None;
        Ok(key)
    }

    /// Builds a column from these keys and the current dictionary.
    pub(crate) fn column(
        &mut self,
        keys: Vec<i32>,
        nulls: Option<NullBuffer>,
    ) -> EngineResult<ArrayRef> {
        let values = match &self.values {
            Some(values) => Arc::clone(values),
            None => self.rebuild_values()?,
        };
        let keys = Int32Array::new(ScalarBuffer::from(keys), nulls);
        let column = DictionaryArray::try_new(keys, values).map_err(|error| unexpected(&error))?;
        Ok(Arc::new(column))
    }

    fn rebuild_values(&mut self) -> EngineResult<Arc<StringArray>> {
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        offsets.extend_from_slice(&self.ends);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let bytes = Buffer::from_slice_ref(&self.bytes);
        let values = Arc::new(
            StringArray::try_new(offsets, bytes, None).map_err(|error| unexpected(&error))?,
        );
        self.values = Some(Arc::clone(&values));
        Ok(values)
    }
}

fn unexpected(error: &arrow_schema::ArrowError) -> EngineError {
    EngineError::internal(format!("cannot assemble a column from imported symbols: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    #[test]
    fn symbol_keys_are_stable_while_the_dictionary_grows() {
        let mut texts = SymbolTexts::default();
        let first: Vec<i32> = ["a", "b", "a"].map(|text| texts.intern(text).unwrap()).into();
        assert_eq!(first, [0, 1, 0]);
        let before = texts.column(first, None).unwrap();
        assert_eq!(texts.intern("c").unwrap(), 2);
        assert_eq!(texts.intern("").unwrap(), 3);
        let after = texts.column(vec![2, 3], None).unwrap();
        assert_eq!(before.as_dictionary::<Int32Type>().values().as_string::<i32>().len(), 2);
        let values = after.as_dictionary::<Int32Type>().values().as_string::<i32>();
        assert_eq!(values.iter().flatten().collect::<Vec<_>>(), ["a", "b", "c", ""]);
    }

    use arrow_array::Array;

    #[test]
    fn many_strings_are_interned() {
        let mut texts = SymbolTexts::default();
        for round in 0..2 {
            for number in 0..10_000 {
                assert_eq!(texts.intern(&format!("s{number}")).unwrap(), number, "{round}");
            }
        }
    }
}
