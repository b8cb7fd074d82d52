//! Symbols of one result, with IDs in order of appearance across all columns.

use std::hash::BuildHasher;

use arrow_array::{Array, ArrayRef};
use hashbrown::{DefaultHashBuilder, HashTable};
use tidemark_types::{EngineError, EngineResult, ErrorCode, account};

use super::varint::{push_text, push_varint};
use crate::columns::Text;

/// Size of a hash table slot in bytes.
const SLOT_BYTES: usize = 5;

/// Strings and their IDs.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    texts: Vec<u8>,
    /// End of each string.
    ends: Vec<usize>,
    /// Number of strings already sent.
    sent: usize,
}

impl Dictionary {
    fn text<'t>(texts: &'t [u8], ends: &[usize], number: usize) -> &'t [u8] {
        let start = if number == 0 { 0 } else { ends[number - 1] };
        &texts[start..ends[number]]
    }

    /// Returns a string's ID, assigning a new ID if the string has none.
    pub(super) fn intern(&mut self, text: &str) -> EngineResult<u32> {
        let hash = self.hasher.hash_one(text.as_bytes());
        let (texts, ends) = (&self.texts, &self.ends);
        let is_same = |number: &u32| Self::text(texts, ends, *number as usize) == text.as_bytes();
        if let Some(number) = self.numbers.find(hash, is_same) {
            return Ok(*number);
        }
        let number = u32::try_from(self.ends.len()).map_err(|_| {
            let message = "the result has more than 4,294,967,295 distinct symbols";
            EngineError::new(ErrorCode::ResourceLimit, message)
        })?;
        self.reserve(text.len())?;
        self.texts.extend_from_slice(text.as_bytes());
        self.ends.push(self.texts.len());
        let (texts, ends, hasher) = (&self.texts, &self.ends, &self.hasher);
        let rehash = |number: &u32| hasher.hash_one(Self::text(texts, ends, *number as usize));
        self.numbers.insert_unique(hash, number, rehash);
        Ok(number)
    }

    /// Requests memory before any buffer doubles.
    fn reserve(&mut self, bytes: usize) -> EngineResult<()> {
        if self.texts.capacity() - self.texts.len() < bytes {
            account::check_allocation(2 * self.texts.len() + bytes)?;
        }
        if self.ends.len() == self.ends.capacity() {
            account::check_allocation(2 * size_of::<usize>() * self.ends.len())?;
        }
        if self.numbers.len() == self.numbers.capacity() {
            account::check_allocation(2 * SLOT_BYTES * self.numbers.len())?;
        }
        Ok(())
    }

    /// Returns the number of bytes not yet sent.
    pub(super) fn new_bytes(&self) -> usize {
        let sent = if self.sent == 0 { 0 } else { self.ends[self.sent - 1] };
        // The length prefix of most strings is one byte.
        self.texts.len() - sent + self.ends.len() - self.sent
    }

    /// Appends new strings: first ID, count, strings.
    pub(super) fn write_new(&mut self, out: &mut Vec<u8>) {
        push_varint(out, self.sent as u64);
        push_varint(out, (self.ends.len() - self.sent) as u64);
        for number in self.sent..self.ends.len() {
            push_text(out, Self::text(&self.texts, &self.ends, number));
        }
        self.sent = self.ends.len();
    }
}

/// Marks a key that has not been looked up yet.
const UNKNOWN: u32 = u32::MAX;

/// Cached IDs for the keys of a column's array, so that each key is looked up once.
#[derive(Debug, Default)]
pub(super) struct KeyNumbers {
    /// The array's dictionary. Holding it prevents its address from being reused.
    values: Option<ArrayRef>,
    numbers: Vec<u32>,
}

impl KeyNumbers {
    /// Prepares for keys of `values`.
    pub(super) fn prepare(&mut self, values: &ArrayRef) -> EngineResult<()> {
        let same = self.values.as_ref().is_some_and(|known| {
            std::ptr::addr_eq(std::sync::Arc::as_ptr(known), std::sync::Arc::as_ptr(values))
        });
        if !same {
            account::check_allocation(size_of::<u32>() * values.len())?;
            self.values = Some(ArrayRef::clone(values));
            self.numbers.clear();
            self.numbers.resize(values.len(), UNKNOWN);
        }
        Ok(())
    }

    /// Returns a key's ID; `None` if the dictionary value is null.
    #[inline]
    pub(super) fn get(
        &mut self,
        key: i32,
        texts: &Text<'_>,
        dictionary: &mut Dictionary,
    ) -> EngineResult<Option<u32>> {
        let key = key as usize;
        match self.numbers[key] {
            UNKNOWN => {
                let Some(text) = texts.get(key) else { return Ok(None) };
                let number = dictionary.intern(text)?;
                self.numbers[key] = number;
                Ok(Some(number))
            }
            number => Ok(Some(number)),
        }
    }
}
