//! Join keys as dense numbers: codes of the right side's dictionary, or hashed rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, internal_datafusion_err};
use rustc_hash::FxBuildHasher;
use tidemark_storage::SymbolDictionary;
use tidemark_types::key::key_values;

/// A left key that no right row can have.
const ABSENT: u32 = u32::MAX;

/// How keys become numbers.
#[derive(Clone)]
pub(crate) enum KeyKind {
    /// No key.
    None,
    /// One symbol on either side; the left dictionary's and the right dictionary's.
    Symbol(Arc<SymbolDictionary>, Arc<SymbolDictionary>),
    /// Values of these types, compared as rows.
    Hashed(Vec<DataType>),
}

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// The keys of the right side, ready to be looked up.
pub(crate) enum KeySpace {
    None,
    /// Right code of each left code; the entry after the last is null's.
    Symbol {
        right_of_left: Vec<u32>,
        right_len: u32,
    },
    Hashed {
        types: Vec<DataType>,
        converter: RowConverter,
        ids: HashMap<Box<[u8]>, u32, FxBuildHasher>,
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
                let types: Vec<DataType> = types.iter().map(comparable).collect();
                let fields = types.iter().cloned().map(SortField::new).collect();
                let converter = RowConverter::new(fields)?;
                Self::Hashed { types, converter, ids: HashMap::default() }
            }
        })
    }

    /// Number of different keys of the right side, null included.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Symbol { right_len, .. } => *right_len as usize + 1,
            Self::Hashed { ids, .. } => ids.len(),
        }
    }

    /// Numbers of a chunk's keys; new ones are added.
    pub(crate) fn add(&mut self, side: Side, keys: &[ArrayRef]) -> Result<ScalarBuffer<u32>> {
        match (side, &self) {
            (Side::Left, Self::Symbol { right_of_left, right_len }) => {
                let codes = codes_of(keys)?;
                // Symbols of the left side alone come after the right side's and null.
                let alone = |code: i32| right_len + 1 + code as u32;
                let of = |code: i32| match right_of_left.get(code as usize) {
                    Some(&right) if right != ABSENT => right,
                    _ => alone(code),
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
                    // The same bits: codes are never negative.
                    let len = codes.len();
                    return Ok(ScalarBuffer::new(codes.values().inner().clone(), 0, len));
                }
                let null = *right_len;
                Ok(codes.iter().map(|code| code.map_or(null, |code| code as u32)).collect())
            }
            Self::Hashed { types, converter, ids } => {
                let rows = converter.convert_columns(&casted(keys, types)?)?;
                let numbers = rows.iter().map(|row| {
                    let next = ids.len() as u32;
                    let bytes = row.as_ref();
                    match ids.get(bytes) {
                        Some(&id) => id,
                        None => *ids.entry(bytes.into()).or_insert(next),
                    }
                });
                Ok(numbers.collect())
            }
        }
    }

    /// Numbers of a left batch's keys.
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
            Self::Hashed { types, converter, ids } => {
                let rows = converter.convert_columns(&casted(keys, types)?)?;
                let numbers = rows.iter().map(|row| ids.get(row.as_ref()).copied());
                Ok(numbers.map(|id| id.unwrap_or(ABSENT)).collect())
            }
        }
    }
}

fn codes_of(keys: &[ArrayRef]) -> Result<&arrow_array::Int32Array> {
    let dictionary = keys.first().and_then(|key| key.as_dictionary_opt::<Int32Type>());
    let dictionary = dictionary.ok_or_else(|| internal_datafusion_err!("expected a symbol key"))?;
    Ok(dictionary.keys())
}

/// The type in which both sides' keys are compared: texts of any kind as views.
fn comparable(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, _) | DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        other => other.clone(),
    }
}

fn casted(keys: &[ArrayRef], types: &[DataType]) -> Result<Vec<ArrayRef>> {
    keys.iter().zip(types).map(|(key, wanted)| Ok(key_values(&cast(key, wanted)?))).collect()
}
