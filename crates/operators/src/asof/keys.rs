//! Maps join keys to dense IDs: either codes from the right side's dictionary or IDs assigned to
//! distinct key values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, internal_datafusion_err};
use tidemark_storage::SymbolDictionary;
use tidemark_types::key::key_values;

use crate::keys::ABSENT;
use crate::keys::bytes::ByteNumbers;
use crate::keys::values::compared_as;

/// How key IDs are assigned.
#[derive(Clone)]
pub(crate) enum KeyKind {
    /// No key.
    None,
    /// A single symbol key, with the left and right dictionaries.
    Symbol(Arc<SymbolDictionary>, Arc<SymbolDictionary>),
    /// Keys of these types, which are compared as encoded rows.
    Hashed(Vec<DataType>),
}

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Key IDs of the right side, ready for lookups.
pub(crate) enum KeySpace {
    None,
    /// The right side's code for each code of the left side; the last entry is for null.
    Symbol {
        right_of_left: Vec<u32>,
        right_len: u32,
    },
    Hashed {
        types: Vec<DataType>,
        numbers: ByteNumbers,
    },
}

impl KeySpace {
    pub(crate) fn new(kind: &KeyKind) -> Result<Self> {
        Ok(match kind {
            KeyKind::None => Self::None,
            KeyKind::Symbol(left, right) => {
                let right_len = right.len() as u32;
                let right_code = |code: u32| {
                    if Arc::ptr_eq(left, right) {
                        return code;
                    }
                    right.lookup(left.get(code)).unwrap_or(ABSENT)
                };
                let mut right_of_left: Vec<u32> = (0..left.len() as u32).map(right_code).collect();
                right_of_left.push(right_len);
                Self::Symbol { right_of_left, right_len }
            }
            KeyKind::Hashed(types) => {
                let types: Vec<DataType> = types.iter().map(compared_as).collect();
                Self::Hashed { numbers: ByteNumbers::new(types.clone())?, types }
            }
        })
    }

    /// Number of distinct keys on the right side, including null.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Symbol { right_len, .. } => *right_len as usize + 1,
            Self::Hashed { numbers, .. } => numbers.len(),
        }
    }

    /// Returns the key IDs of a chunk and adds new keys.
    pub(crate) fn add(&mut self, side: Side, keys: &[ArrayRef]) -> Result<ScalarBuffer<u32>> {
        match (side, &self) {
            (Side::Left, Self::Symbol { right_of_left, right_len }) => {
                let codes = codes_of(keys)?;
                // Symbols that occur only on the left side get IDs after those of the right side's
                // symbols and of null.
                let unmatched = |code: i32| right_len + 1 + code as u32;
                let of = |code: i32| match right_of_left.get(code as usize) {
                    Some(&right) if right != ABSENT => right,
                    _ => unmatched(code),
                };
                Ok(codes.iter().map(|code| code.map_or(*right_len, of)).collect())
            }
            _ => self.add_right(keys),
        }
    }

    fn add_right(&mut self, keys: &[ArrayRef]) -> Result<ScalarBuffer<u32>> {
        match self {
            Self::None => Ok(ScalarBuffer::from(vec![])),
            Self::Symbol { right_len, .. } => {
                let codes = codes_of(keys)?;
                if codes.null_count() == 0 {
                    // Codes are never negative, so their buffer can be reused as the buffer of IDs.
                    let len = codes.len();
                    return Ok(ScalarBuffer::new(codes.values().inner().clone(), 0, len));
                }
                let null = *right_len;
                Ok(codes.iter().map(|code| code.map_or(null, |code| code as u32)).collect())
            }
            Self::Hashed { types, numbers } => {
                Ok(numbers.add(&casted(keys, types)?, None, &|_| Ok(()))?.into())
            }
        }
    }

    /// Returns the key IDs of a left batch.
    pub(crate) fn find_left(&self, keys: &[ArrayRef]) -> Result<Vec<u32>> {
        match self {
            Self::None => Ok(vec![]),
            Self::Symbol { right_of_left, .. } => {
                let codes = codes_of(keys)?;
                let of = |code: i32| right_of_left.get(code as usize).copied().unwrap_or(ABSENT);
                if codes.null_count() == 0 {
                    return Ok(codes.values().iter().map(|&code| of(code)).collect());
                }
                let null = right_of_left.last().copied().unwrap_or(ABSENT);
                Ok(codes.iter().map(|code| code.map_or(null, of)).collect())
            }
            Self::Hashed { types, numbers } => numbers.find(&casted(keys, types)?),
        }
    }
}

fn codes_of(keys: &[ArrayRef]) -> Result<&arrow_array::Int32Array> {
    let dictionary = keys.first().and_then(|key| key.as_dictionary_opt::<Int32Type>());
    let dictionary = dictionary.ok_or_else(|| internal_datafusion_err!("expected a symbol key"))?;
    Ok(dictionary.keys())
}

fn casted(keys: &[ArrayRef], types: &[DataType]) -> Result<Vec<ArrayRef>> {
    keys.iter().zip(types).map(|(key, data_type)| Ok(key_values(&cast(key, data_type)?))).collect()
}
