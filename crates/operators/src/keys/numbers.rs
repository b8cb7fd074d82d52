//! Assigns IDs to the keys of one or more columns in order of first appearance.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array};
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, internal_err, resources_err};
use hashbrown::HashMap;
use tidemark_types::account;

use super::bytes::ByteNumbers;
use super::memory::{KeyMemory, MemoryCheck, Reserved};
use super::table::table_bytes;
use super::values::{Form, comparable, integers};
use super::{ABSENT, ROWS_AT_ONCE};
use crate::error::engine_error;

/// Maximum number of entries in a dense table. A larger table is allowed if it has at most
/// `ENTRIES_PER_KEY` entries per key.
const SMALL_TABLE: usize = 1 << 16;
const ENTRIES_PER_KEY: usize = 8;

/// Key IDs for one or more columns.
pub(crate) struct KeyIndex {
    columns: Vec<ColumnIndex>,
    /// For each column after the first: its number of distinct values, and the IDs of the pairs it
    /// forms with the preceding columns.
    pairs: Vec<(usize, Integers)>,
    /// Number of distinct keys.
    len: usize,
}

/// IDs of a column's values.
struct ColumnIndex {
    values: Values,
    null: u32,
    len: usize,
}

enum Values {
    Bytes(ByteNumbers),
    Integers(Integers),
}

/// IDs of integers.
enum Integers {
    /// A table with one entry per integer, starting at the minimum; used if the range is small.
    Dense {
        least: i64,
        numbers: Vec<u32>,
    },
    Hashed(HashMap<i64, u32>),
}

/// IDs of each column's dictionary strings, cached across batches.
#[derive(Default)]
pub(crate) struct KnownTexts(Vec<Option<Dictionary>>);

/// A dictionary seen in earlier rows.
struct Dictionary {
    texts: ArrayRef,
    /// Number of rows that have used the dictionary so far. A lookup table pays off once this count
    /// reaches the number of strings.
    rows: usize,
    numbers: Vec<u32>,
}

impl KeyIndex {
    /// Assigns IDs to the keys of rows that occupy `base` bytes, and also returns each row's ID.
    /// `nulls` specifies whether null equals null. Returns `None` if there is not enough memory for
    /// the IDs.
    pub(crate) fn of(
        keys: &[ArrayRef],
        nulls: bool,
        base: usize,
        memory: &Reserved<'_>,
    ) -> Result<Option<(Self, Vec<u32>)>> {
        let is_full = Cell::new(false);
        let hold = |bytes: usize| {
            account::check().map_err(engine_error)?;
            let (used, all) = (memory.memory.size(), base.saturating_add(bytes));
            if !memory.try_reserve(all.saturating_sub(used)) {
                is_full.set(true);
                return resources_err!("too many keys to keep in memory");
            }
            memory.release(memory.memory.size() - all);
            Ok(())
        };
        match Self::new(keys, nulls, &hold) {
            Err(_) if is_full.get() => Ok(None),
            numbered => numbered.map(Some),
        }
    }

    fn new(keys: &[ArrayRef], nulls: bool, hold: MemoryCheck<'_>) -> Result<(Self, Vec<u32>)> {
        let Some((first, others)) = keys.split_first() else {
            return internal_err!("a keyed join requires at least one key");
        };
        let (first, mut numbers) = ColumnIndex::new(first, nulls, hold)?;
        let mut len = first.len;
        let mut used = first.size();
        let (mut columns, mut pairs) = (vec![first], vec![]);
        for column in others {
            let (column, second) =
                ColumnIndex::new(column, nulls, &|more| hold(more.saturating_add(used)))?;
            used += column.size();
            let both = numbers.iter().zip(&second);
            let both = both.map(|(&first, &second)| pair(first, second, column.len));
            let pair = Integers::number(both, false, &|more| hold(more.saturating_add(used)))?;
            used += pair.index.size();
            (len, numbers) = (pair.len, pair.numbers);
            pairs.push((column.len, pair.index));
            columns.push(column);
        }
        Ok((Self { columns, pairs, len }, numbers))
    }

    /// Number of distinct keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the key IDs of rows.
    pub(crate) fn find(&self, keys: &[ArrayRef], known: &mut KnownTexts) -> Result<Vec<u32>> {
        known.0.resize_with(self.columns.len(), || None);
        let mut columns = self.columns.iter().zip(keys).zip(&mut known.0);
        let Some(((first, keys), known)) = columns.next() else {
            return internal_err!("a keyed join requires at least one key");
        };
        let mut numbers = first.find(keys, known)?;
        for (((column, keys), known), (width, pairs)) in columns.zip(&self.pairs) {
            let second = column.find(keys, known)?;
            let both = numbers.iter().zip(&second);
            let pair = |(&first, &second)| pair(first, second, *width).unwrap_or(NO_PAIR);
            numbers = pairs.find(both.map(pair));
        }
        Ok(numbers)
    }

    /// Approximate memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        let columns: usize = self.columns.iter().map(ColumnIndex::size).sum();
        let pairs: usize = self.pairs.iter().map(|(_, pairs)| pairs.size()).sum();
        columns + pairs
    }
}

impl ColumnIndex {
    fn new(values: &ArrayRef, nulls: bool, hold: MemoryCheck<'_>) -> Result<(Self, Vec<u32>)> {
        if Form::of(values.data_type()) == Form::Integer {
            let Numbered { index, null, len, numbers } =
                Integers::number(integers(values)?.iter(), nulls, hold)?;
            return Ok((Self { values: Values::Integers(index), null, len }, numbers));
        }
        let values = comparable(values)?;
        let without = values.logical_nulls();
        let first = without.as_ref().and_then(|own| own.iter().position(|is_valid| !is_valid));
        let mut known = ByteNumbers::new(vec![values.data_type().clone()])?;
        let numbers = known.add(&[values], without.filter(|_| !nulls), hold)?;
        let (null, len) = (first.map_or(ABSENT, |row| numbers[row]), known.len());
        Ok((Self { values: Values::Bytes(known), null, len }, numbers))
    }

    fn find(&self, keys: &ArrayRef, known: &mut Option<Dictionary>) -> Result<Vec<u32>> {
        Ok(match &self.values {
            Values::Bytes(numbers) => {
                let symbols = keys.as_dictionary_opt::<Int32Type>();
                if let Some(symbols) = symbols.filter(|_| Form::of(keys.data_type()) == Form::Text)
                {
                    return self.find_symbols(symbols.keys(), symbols.values(), known);
                }
                numbers.find(&[comparable(keys)?])?
            }
            Values::Integers(numbers) => {
                let values = integers(keys)?;
                let mut found = numbers.find(values.values().iter().copied());
                if let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) {
                    let rows = found.iter_mut().zip(nulls).filter(|(_, is_valid)| !is_valid);
                    rows.for_each(|(number, _)| *number = self.null);
                }
                found
            }
        })
    }

    /// Once a dictionary has been used by as many rows as it has strings, looks up each of its
    /// strings once. Until then, looks up only the strings in the rows.
    fn find_symbols(
        &self,
        codes: &Int32Array,
        texts: &ArrayRef,
        known: &mut Option<Dictionary>,
    ) -> Result<Vec<u32>> {
        if known.as_ref().is_none_or(|known| !Arc::ptr_eq(&known.texts, texts)) {
            *known = Some(Dictionary { texts: Arc::clone(texts), rows: 0, numbers: vec![] });
        }
        let Some(known) = known else { return internal_err!("unknown dictionary") };
        known.rows = known.rows.saturating_add(codes.len());
        if known.numbers.len() < texts.len() {
            if known.rows < texts.len() {
                let texts = Arc::clone(texts);
                let used = DictionaryArray::<Int32Type>::try_new(codes.clone(), texts)?;
                return self.find(&cast(&used, &DataType::Utf8View)?, &mut None);
            }
            known.numbers = self.find(texts, &mut None)?;
        }
        let of = |code: i32| known.numbers.get(code as usize).copied().unwrap_or(ABSENT);
        if codes.null_count() == 0 {
            return Ok(codes.values().iter().map(|&code| of(code)).collect());
        }
        Ok(codes.iter().map(|code| code.map_or(self.null, of)).collect())
    }

    fn size(&self) -> usize {
        match &self.values {
            Values::Bytes(numbers) => numbers.size(),
            Values::Integers(numbers) => numbers.size(),
        }
    }
}

/// Result of assigning IDs to integers.
struct Numbered {
    index: Integers,
    /// ID of null.
    null: u32,
    /// Number of distinct values, including null if it has an ID.
    len: usize,
    numbers: Vec<u32>,
}

impl Integers {
    fn number(
        values: impl ExactSizeIterator<Item = Option<i64>> + Clone,
        nulls: bool,
        hold: MemoryCheck<'_>,
    ) -> Result<Numbered> {
        let mut index = Self::for_values(values.clone(), hold)?;
        let (mut numbers, mut null, mut len) = (Vec::with_capacity(values.len()), ABSENT, 0);
        for (row, value) in values.enumerate() {
            if row.is_multiple_of(ROWS_AT_ONCE) {
                index.reserve(hold)?;
            }
            let number = match (value, &mut index) {
                (None, _) => &mut null,
                (Some(value), Self::Dense { least: min, numbers }) => {
                    &mut numbers[value.wrapping_sub(*min) as usize]
                }
                (Some(value), Self::Hashed(known)) => known.entry(value).or_insert(ABSENT),
            };
            if *number == ABSENT && (nulls || value.is_some()) {
                *number = len as u32;
                len += 1;
            }
            numbers.push(*number);
        }
        Ok(Numbered { index: index.without_gaps(len, hold)?, null, len, numbers })
    }

    /// Creates an empty index, which is a dense table if these values are close together.
    fn for_values(
        values: impl ExactSizeIterator<Item = Option<i64>>,
        hold: MemoryCheck<'_>,
    ) -> Result<Self> {
        let rows = values.len();
        let bounds = values.flatten().fold((i64::MAX, i64::MIN), |(min, greatest), value| {
            (min.min(value), greatest.max(value))
        });
        let entries = bounds.1.checked_sub(bounds.0).and_then(|last| usize::try_from(last).ok());
        let entries = entries.and_then(|last| last.checked_add(1));
        let Some(entries) = entries.filter(|&entries| is_worth(entries, rows)) else {
            return Ok(Self::Hashed(HashMap::new()));
        };
        hold(entries * size_of::<u32>())?;
        Ok(Self::Dense { least: bounds.0, numbers: vec![ABSENT; entries] })
    }

    /// Reserves memory and capacity for a few more rows, each with a new value.
    fn reserve(&mut self, hold: MemoryCheck<'_>) -> Result<()> {
        let Self::Hashed(known) = self else { return hold(self.size()) };
        let (len, capacity) = (known.len() + ROWS_AT_ONCE, known.capacity());
        let grown = if len > capacity { len.max(2 * capacity) } else { 0 };
        hold(known.allocation_size() + table_bytes(grown, size_of::<(i64, u32)>()))?;
        known.reserve(ROWS_AT_ONCE);
        Ok(())
    }

    /// Replaces the index's dense table with a hash table if the table has too few keys. `len` is
    /// the number of keys in the index.
    fn without_gaps(self, len: usize, hold: MemoryCheck<'_>) -> Result<Self> {
        match self {
            Self::Dense { least: min, numbers } if !is_worth(numbers.len(), len) => {
                let hashed = table_bytes(len, size_of::<(i64, u32)>());
                hold(numbers.capacity() * size_of::<u32>() + hashed)?;
                let mut known = HashMap::with_capacity(len);
                let used = numbers.iter().enumerate().filter(|(_, number)| **number != ABSENT);
                known.extend(used.map(|(at, &number)| (min.wrapping_add(at as i64), number)));
                Ok(Self::Hashed(known))
            }
            index => Ok(index),
        }
    }

    fn find(&self, values: impl Iterator<Item = i64>) -> Vec<u32> {
        match self {
            Self::Dense { least: min, numbers } => {
                let of = |value: i64| {
                    let entry = usize::try_from(value.wrapping_sub(*min) as u64).ok();
                    entry.and_then(|entry| numbers.get(entry)).copied().unwrap_or(ABSENT)
                };
                values.map(of).collect()
            }
            Self::Hashed(known) => {
                values.map(|value| known.get(&value).copied().unwrap_or(ABSENT)).collect()
            }
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Dense { numbers, .. } => numbers.capacity() * size_of::<u32>(),
            Self::Hashed(known) => known.allocation_size(),
        }
    }
}

fn is_worth(entries: usize, keys: usize) -> bool {
    entries <= SMALL_TABLE.max(keys.saturating_mul(ENTRIES_PER_KEY))
}

/// A value that no pair has.
const NO_PAIR: i64 = -1;

/// Combines two IDs into one number; the second ID must be below `width`. Returns `None` if an ID
/// is absent.
fn pair(first: u32, second: u32, width: usize) -> Option<i64> {
    let pair = u64::from(first) * width as u64 + u64::from(second);
    (first != ABSENT && second != ABSENT).then_some(pair as i64)
}
