//! Keys that are known to have few values before any rows are read. Each combination of keys has
//! its own slot.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt16Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, Int32Array, Int64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use tidemark_kernels::{self as kernels, GroupSink, Native, Validity, assign_groups};
use tidemark_storage::SymbolDictionary;

use super::accumulator::valid_runs;

/// Marks a slot without a group.
pub(super) const NO_GROUP: u32 = u32::MAX;

/// Maximum number of slots if all keys are symbols. Above this number, keys are hashed.
const MAX_OF_SYMBOLS: usize = 1 << 22;
/// Maximum number of slots if some keys are integers. It is lower because combinations of integers
/// may be sparser than combinations of symbols.
const MAX_OF_NUMBERS: usize = 1 << 17;

/// A key as one digit of the slot index; zero means null.
#[derive(Clone)]
pub(crate) enum Digit {
    /// A table symbol.
    Symbol(Arc<SymbolDictionary>),
    Number(DenseNumbers),
}

/// Integers in a small range.
#[derive(Clone)]
pub(crate) struct DenseNumbers {
    data_type: DataType,
    min: i64,
    /// Number of values. It is a power of two, so a single test can check whether all values in a
    /// batch are in range.
    count: usize,
}

impl DenseNumbers {
    /// Maximum distance between two values.
    pub(crate) const MAX_DISTANCE: u64 = (1 << 16) - 1;
    /// Maximum distance at which slots pay off regardless of the number of rows.
    pub(crate) const FEW: usize = 1 << 10;

    /// Returns the range from the minimum to the maximum value, if it is small.
    pub(crate) fn between(data_type: &DataType, (lowest, greatest): (i64, i64)) -> Option<Self> {
        let distance = u64::try_from(greatest.checked_sub(lowest)?).ok()?;
        let count =
            (distance <= Self::MAX_DISTANCE).then(|| (distance as usize + 1).next_power_of_two());
        Some(Self { data_type: data_type.clone(), min: lowest, count: count? })
    }

    /// Returns the codes of the values; `None` if a value is out of range.
    fn codes(&self, values: &ArrayRef, buffer: &mut Vec<i32>) -> Option<Int32Array> {
        if let Some(booleans) = values.as_boolean_opt() {
            let codes = booleans.values().iter().map(i32::from).collect();
            return Some(Int32Array::new(codes, values.nulls().cloned()));
        }
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
        let mut codes = zeros(buffer, values.len());
        let bits = match values.data_type() {
            DataType::Int8 => self.distances::<Int8Type>(values, nulls, &mut codes),
            DataType::Int16 => self.distances::<Int16Type>(values, nulls, &mut codes),
            DataType::Int32 => self.distances::<Int32Type>(values, nulls, &mut codes),
            DataType::Int64 => self.distances::<Int64Type>(values, nulls, &mut codes),
            DataType::UInt16 => self.distances::<UInt16Type>(values, nulls, &mut codes),
            _ => return None,
        };
        (bits < self.count as u64).then(|| Int32Array::new(codes.into(), nulls.cloned()))
    }

    /// Computes each value's distance from the minimum, and the bitwise OR of all distances.
    fn distances<P: ArrowPrimitiveType<Native: Native>>(
        &self,
        values: &ArrayRef,
        nulls: Option<&NullBuffer>,
        codes: &mut [i32],
    ) -> u64 {
        let (values, mut bits) = (values.as_primitive::<P>().values(), 0);
        valid_runs(nulls, 0..values.len(), |run| {
            bits |= kernels::distances(&values[run.clone()], self.min, &mut codes[run]);
        });
        bits
    }

    /// Converts codes back to values.
    fn column(&self, codes: &Int32Array) -> Result<ArrayRef> {
        let values: Int64Array = codes.unary(|code| self.min.wrapping_add(i64::from(code)));
        Ok(cast(&values, &self.data_type)?)
    }
}

impl Digit {
    /// Number of values, excluding null.
    pub(crate) fn values(&self) -> usize {
        match self {
            Self::Symbol(dictionary) => dictionary.len(),
            Self::Number(numbers) => numbers.count,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Symbol(dictionary) => {
                let values = dictionary.values().data_type().clone();
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(values))
            }
            Self::Number(numbers) => numbers.data_type.clone(),
        }
    }

    fn codes(&self, values: &ArrayRef, buffer: &mut Vec<i32>) -> Result<Option<Int32Array>> {
        let known = match self {
            Self::Symbol(dictionary) => dictionary,
            Self::Number(numbers) => return Ok(numbers.codes(values, buffer)),
        };
        let dictionary = values
            .as_dictionary_opt::<Int32Type>()
            .ok_or_else(|| internal_datafusion_err!("a symbol key has no dictionary"))?;
        if dictionary.values().len() > known.len() {
            return internal_err!("a symbol key uses a different dictionary");
        }
        Ok(Some(dictionary.keys().clone()))
    }

    fn column(&self, codes: Int32Array) -> Result<ArrayRef> {
        match self {
            Self::Symbol(dictionary) => {
                let values = dictionary.values();
                Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(codes, values)?))
            }
            Self::Number(numbers) => numbers.column(&codes),
        }
    }
}

/// Returns the number of slots; `None` on overflow.
pub(crate) fn slots_of(digits: &[Digit]) -> Option<usize> {
    digits.iter().try_fold(1_usize, |slots, digit| slots.checked_mul(digit.values() + 1))
}

/// Whether these keys fit in a slot table.
pub(crate) fn fits(digits: &[Digit]) -> bool {
    let is_symbol = |digit: &Digit| matches!(digit, Digit::Symbol(_));
    let max = if digits.iter().all(is_symbol) { MAX_OF_SYMBOLS } else { MAX_OF_NUMBERS };
    slots_of(digits).is_some_and(|slots| slots <= max)
}

/// A bucket's groups, by slot.
pub(super) struct SlotKeys {
    digits: Vec<Digit>,
    slots: Vec<u32>,
    /// Each group's combined key.
    keys: Vec<u32>,
    /// The bucket that `slots` describes.
    bucket: Option<u32>,
    /// Reusable buffer for a batch's codes.
    buffer: Vec<i32>,
}

impl SlotKeys {
    pub(super) fn new(digits: Vec<Digit>) -> Self {
        let slots = digits.iter().map(|digit| digit.values() + 1).product();
        Self { digits, slots: vec![NO_GROUP; slots], keys: vec![], bucket: None, buffer: vec![] }
    }

    pub(super) fn size(&self) -> usize {
        4 * (self.slots.len() + self.keys.capacity() + self.buffer.capacity())
    }

    pub(super) fn types(&self) -> Vec<DataType> {
        self.digits.iter().map(Digit::data_type).collect()
    }

    /// Removes and returns the groups' combined keys.
    pub(super) fn take_keys(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.keys)
    }

    /// Switches the slots to `bucket`.
    pub(super) fn enter(&mut self, bucket: u32, buckets: &[u32], monotone: bool) {
        if self.bucket == Some(bucket) {
            return;
        }
        if let Some(old) = self.bucket {
            for group in groups_of(old, buckets, monotone) {
                self.slots[self.keys[group] as usize] = NO_GROUP;
            }
        }
        for group in groups_of(bucket, buckets, monotone) {
            self.slots[self.keys[group] as usize] = group as u32;
        }
        self.bucket = Some(bucket);
    }

    /// Returns the groups of rows in the current bucket. New groups are numbered starting at
    /// `next`.
    pub(super) fn assign(
        &mut self,
        codes: &[i32],
        nulls: Option<Validity<'_>>,
        first_row: usize,
        next: &mut u32,
        sink: &mut GroupSink,
    ) {
        let found = sink.new_keys.len();
        assign_groups(codes, nulls, first_row, &mut self.slots, next, sink);
        self.keys.extend_from_slice(&sink.new_keys[found..]);
    }

    /// Returns the group of a combined key in the current bucket, and whether the key is new. A new
    /// key's group is `next`.
    pub(super) fn group(&mut self, key: u32, next: u32) -> (u32, bool) {
        let slot = &mut self.slots[key as usize];
        let is_new = *slot == NO_GROUP;
        if is_new {
            *slot = next;
            self.keys.push(key);
        }
        (*slot, is_new)
    }

    /// Returns each row's code, which is its combined key minus one. The codes of a single key are
    /// returned as they are, including nulls. In a combination of several keys, null is encoded as
    /// a digit. Returns `None` if an integer is outside the known range.
    pub(super) fn codes(&mut self, keys: &[ArrayRef]) -> Result<Option<Int32Array>> {
        if let ([key], [digit]) = (keys, self.digits.as_slice()) {
            return digit.codes(key, &mut self.buffer);
        }
        let mut combined = zeros(&mut self.buffer, keys.first().map_or(0, Array::len));
        for (key, digit) in keys.iter().zip(&self.digits) {
            let Some(codes) = digit.codes(key, &mut vec![])? else { return Ok(None) };
            let radix = digit.values() as i32 + 1;
            let numbers = combined.iter_mut().zip(codes.values());
            match codes.nulls().filter(|nulls| nulls.null_count() > 0) {
                None => numbers.for_each(|(number, code)| *number = *number * radix + code + 1),
                Some(nulls) => numbers.zip(nulls).for_each(|((number, code), is_valid)| {
                    *number = *number * radix + if is_valid { code + 1 } else { 0 };
                }),
            }
        }
        for code in &mut combined {
            *code -= 1;
        }
        Ok(Some(Int32Array::new(combined.into(), None)))
    }

    /// Reuses the code buffer returned by [`Self::codes`] for the next batch.
    pub(super) fn reuse(&mut self, codes: Int32Array) {
        let (_, codes, _) = codes.into_parts();
        // A buffer of symbol keys belongs to the table, so it cannot be reused.
        self.buffer = codes.into_inner().into_vec().unwrap_or_default();
    }

    /// Returns the key columns, with one row per group.
    pub(super) fn columns(&self) -> Result<Vec<ArrayRef>> {
        let codes = self.split(self.keys.clone());
        self.digits.iter().zip(codes).map(|(digit, codes)| digit.column(codes)).collect()
    }

    /// Returns some groups' symbols, by key; `None` if a key is an integer.
    pub(super) fn symbols_of(
        &self,
        groups: &[u32],
    ) -> Option<Vec<(Arc<SymbolDictionary>, Int32Array)>> {
        let combined = groups.iter().map(|&group| self.keys[group as usize]).collect();
        let symbol = |(digit, codes): (&Digit, Int32Array)| match digit {
            Digit::Symbol(dictionary) => Some((Arc::clone(dictionary), codes)),
            Digit::Number(_) => None,
        };
        self.digits.iter().zip(self.split(combined)).map(symbol).collect()
    }

    /// Splits combined keys into the individual keys' codes.
    fn split(&self, mut combined: Vec<u32>) -> Vec<Int32Array> {
        let mut codes = Vec::with_capacity(self.digits.len());
        for digit in self.digits.iter().rev() {
            let radix = digit.values() as u32 + 1;
            let digits = combined.iter_mut().map(|key| {
                let code = *key % radix;
                *key /= radix;
                code.checked_sub(1).map(|code| code as i32)
            });
            codes.push(digits.collect::<Int32Array>());
        }
        codes.reverse();
        codes
    }
}

/// Returns `len` zeros in a reused buffer.
fn zeros(buffer: &mut Vec<i32>, len: usize) -> Vec<i32> {
    let mut zeros = std::mem::take(buffer);
    zeros.clear();
    zeros.resize(len, 0);
    zeros
}

/// Returns the groups in a bucket. While `monotone` is true, these are the last groups, if any.
fn groups_of(bucket: u32, buckets: &[u32], monotone: bool) -> Vec<usize> {
    if !monotone {
        return (0..buckets.len()).filter(|&group| buckets[group] == bucket).collect();
    }
    let start = buckets.iter().rposition(|&other| other != bucket).map_or(0, |group| group + 1);
    (start..buckets.len()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::collections::HashMap;
    use std::ops::Range;

    use super::super::accumulator::RowGroups;
    use super::super::groups::{GroupIndex, KeyPlan};
    use super::*;
    use arrow_array::BooleanArray;

    type Key = (i64, Option<i64>, Option<bool>);

    fn index(numbers: (i64, i64)) -> GroupIndex {
        let digit =
            |data_type, bounds| Digit::Number(DenseNumbers::between(&data_type, bounds).unwrap());
        let digits = vec![digit(DataType::Int64, numbers), digit(DataType::Boolean, (0, 1))];
        GroupIndex::new(&KeyPlan::Slots(digits)).unwrap()
    }

    /// Adds rows to the index. Returns each row's key and group.
    fn assign(index: &mut GroupIndex, labels: Range<i64>, rows: &[Key]) -> Vec<(Key, u32)> {
        let mut runs = vec![];
        for (position, label) in labels.enumerate() {
            let third = rows.len() / 3;
            let end = if position == 2 { rows.len() } else { (position + 1) * third };
            if position * third < end {
                runs.push((position * third..end, label));
            }
        }
        let numbers: Int64Array = rows.iter().map(|row| row.1).collect();
        let booleans: BooleanArray = rows.iter().map(|row| row.2).collect();
        let keys: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(booleans)];
        let (groups, _) = index.assign(&runs, &keys).unwrap();
        let RowGroups::Scattered(groups) = groups else { panic!("expected one group per row") };
        let label = |row: usize| runs.iter().find(|(rows, _)| rows.contains(&row)).unwrap().1;
        let keyed = rows.iter().zip(groups).enumerate();
        keyed.map(|(row, (key, group))| ((label(row), key.1, key.2), group)).collect()
    }

    fn keys_of(index: &mut GroupIndex) -> Vec<Key> {
        let labels = index.group_labels();
        let columns = index.key_columns().unwrap();
        let (numbers, booleans) = (columns[0].as_primitive::<Int64Type>(), columns[1].as_boolean());
        let key = |(group, label): (usize, i64)| {
            let number = numbers.is_valid(group).then(|| numbers.value(group));
            (label, number, booleans.is_valid(group).then(|| booleans.value(group)))
        };
        labels.into_iter().enumerate().map(key).collect()
    }

    /// Pseudorandom numbers below a bound (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> i64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ mixed >> 31) % bound) as i64
        }
    }

    fn random() -> Random {
        let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(1);
        println!("SEED={seed}");
        Random(seed)
    }

    /// Returns an index filled from batches with numbers inside and outside the range, and the
    /// group of each key.
    fn filled(random: &mut Random, min: i64, first: i64) -> (GroupIndex, HashMap<Key, u32>) {
        let mut index = index((min, min + 30));
        let mut known: HashMap<Key, u32> = HashMap::new();
        let spread = [31, 31, 60, 2_000][random.below(4) as usize];
        for batch in 0..random.below(4) {
            let rows: Vec<Key> = (0..=random.below(300))
                .map(|_| {
                    let number = (random.below(10) > 0).then(|| min + random.below(spread));
                    (0, number, (random.below(5) > 0).then(|| random.below(2) == 1))
                })
                .collect();
            let first = first + batch * 2;
            for (key, group) in assign(&mut index, first..first + 3, &rows) {
                let next = known.len() as u32;
                assert_eq!(*known.entry(key).or_insert(next), group);
            }
        }
        (index, known)
    }

    /// Two indexes can be merged if one or both of them hash numbers outside the known range.
    #[test]
    fn array_slots_and_hash_groups_can_be_merged() {
        let mut random = random();
        for _ in 0..300 {
            let min = random.below(200) - 100;
            let (mut whole, known) = filled(&mut random, min, 0);
            let (later, later_known) = filled(&mut random, min, 5);
            let mapping = whole.absorb(later).unwrap();
            let keys = keys_of(&mut whole);
            assert!(known.iter().all(|(key, &group)| keys[group as usize] == *key));
            for (key, group) in later_known {
                assert_eq!(keys[mapping[group as usize] as usize], key);
            }
        }
    }
}
