//! Dictionary keys that are checked once and are then valid for any dictionary that is long enough.

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array};

/// A key that is not in the dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyOutOfRange {
    /// The offending key.
    pub key: i32,
}

impl std::fmt::Display for KeyOutOfRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "symbol key {} is not in the dictionary", self.key)
    }
}

impl std::error::Error for KeyOutOfRange {}

/// Symbol keys whose valid slots were all checked against zero and `max`.
///
/// Arrow's safe constructor checks every key against the dictionary each time a dictionary array is
/// built, which a scan would do for every batch. Here, the keys are checked once per chunk.
#[derive(Debug, Clone)]
pub struct CheckedKeys {
    keys: Int32Array,
    max: i32,
}

impl CheckedKeys {
    /// Checks the keys. No valid slot may be negative.
    pub fn new(keys: Int32Array) -> Result<Self, KeyOutOfRange> {
        let (mut min, mut max) = (0_i32, -1_i32);
        if keys.null_count() == 0 {
            for &key in keys.values() {
                min = min.min(key);
                max = max.max(key);
            }
        } else {
            for key in keys.iter().flatten() {
                min = min.min(key);
                max = max.max(key);
            }
        }
        if min < 0 { Err(KeyOutOfRange { key: min }) } else { Ok(Self { keys, max }) }
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &Int32Array {
        &self.keys
    }

    /// Greatest key of a valid slot; -1 if there is no valid slot. After [`Self::slice`], this is
    /// only an upper bound.
    #[must_use]
    pub fn max_key(&self) -> i32 {
        self.max
    }

    /// Rows `offset..offset + len`, without copying.
    #[must_use]
    pub fn slice(&self, offset: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(offset, len), max: self.max }
    }

    /// Builds the dictionary array from the keys and their strings.
    pub fn dictionary(
        &self,
        values: &ArrayRef,
    ) -> Result<DictionaryArray<Int32Type>, KeyOutOfRange> {
        if i64::from(self.max) >= values.len() as i64 {
            return Err(KeyOutOfRange { key: self.max });
        }
        // SAFETY: `new` proved every valid key to be in `0..=max`, `slice` can only drop keys,
        // and `max < values.len()` was checked above. That is what the safe constructor checks.
        Ok(unsafe { DictionaryArray::new_unchecked(self.keys.clone(), ArrayRef::clone(values)) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;

    #[test]
    fn negative_and_out_of_range_keys_are_refused() {
        assert!(CheckedKeys::new(Int32Array::from(vec![0, -1])).is_err());
        let keys = CheckedKeys::new(Int32Array::from(vec![Some(1), None, Some(0)])).unwrap();
        let short: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let enough: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        assert_eq!(keys.dictionary(&short).unwrap_err(), KeyOutOfRange { key: 1 });
        assert_eq!(keys.slice(1, 2).dictionary(&enough).unwrap().len(), 2);
    }
}
