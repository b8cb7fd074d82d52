//! Assigns indexes to the groups of a partial result. A group is a `(bucket, key)` pair, and groups
//! are numbered in order of first appearance.
//!
//! Symbols, and integers in a small range, index a slot table that is valid only for the current
//! bucket. Other keys are hashed together with their bucket. A single numeric key without buckets
//! has a dedicated table.

use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use hashbrown::DefaultHashBuilder;
use tidemark_kernels::{GroupSink, NumberTable, Validity};
use tidemark_storage::SymbolDictionary;

use super::accumulator::RowGroups;
use super::slots::{Digit, NO_GROUP, SlotKeys};

/// How rows are assigned to groups.
#[derive(Clone)]
pub(crate) enum KeyPlan {
    /// No key.
    None,
    /// Keys known to have few values. Each key is one digit of the slot index.
    Slots(Vec<Digit>),
    /// A single numeric key of this type, without buckets.
    Number(DataType),
    /// Any other keys, of these types.
    Hashed(Vec<DataType>),
    /// Any other keys, of these types, without buckets.
    Values(Vec<DataType>),
}

/// The groups found so far.
pub(crate) struct GroupIndex {
    /// The timestamp of each bucket. Timestamps ascend, except where clocks were set back.
    labels: Vec<i64>,
    /// The latest bucket timestamp.
    greatest: i64,
    /// Bucket of each group.
    buckets: Vec<u32>,
    /// True until a bucket reappears after a later bucket.
    monotone: bool,
    keys: Keys,
}

enum Keys {
    None,
    Slots(SlotKeys),
    Number { data_type: DataType, numbers: NumberTable },
    Hashed(HashedKeys),
}

struct HashedKeys {
    schema: SchemaRef,
    values: Box<dyn GroupValues>,
    ids: Vec<usize>,
    /// Whether the hashed values start with the bucket.
    has_bucket: bool,
}

impl GroupIndex {
    pub(crate) fn new(plan: &KeyPlan) -> Result<Self> {
        let keys = match plan {
            KeyPlan::None => Keys::None,
            KeyPlan::Slots(digits) => Keys::Slots(SlotKeys::new(digits.clone())),
            KeyPlan::Number(data_type) => {
                let numbers = NumberTable::new(DefaultHashBuilder::default().hash_one(0));
                Keys::Number { data_type: data_type.clone(), numbers }
            }
            KeyPlan::Hashed(types) => Keys::Hashed(HashedKeys::new(types, true)?),
            KeyPlan::Values(types) => Keys::Hashed(HashedKeys::new(types, false)?),
        };
        Ok(Self { labels: vec![], greatest: i64::MIN, buckets: vec![], monotone: true, keys })
    }

    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Returns the timestamp of each group's bucket.
    pub(crate) fn group_labels(&self) -> Vec<i64> {
        self.buckets.iter().map(|&bucket| self.labels[bucket as usize]).collect()
    }

    pub(crate) fn size(&self) -> usize {
        let keys = match &self.keys {
            Keys::None => 0,
            Keys::Slots(keys) => keys.size(),
            Keys::Number { numbers, .. } => numbers.size(),
            Keys::Hashed(keys) => keys.values.size() + keys.ids.capacity() * size_of::<usize>(),
        };
        keys + self.labels.capacity() * 8 + self.buckets.capacity() * 4
    }

    /// Adds a group if there is none, for an aggregate with an empty input.
    pub(crate) fn ensure_one(&mut self) {
        if self.buckets.is_empty() {
            self.labels.push(0);
            self.buckets.push(0);
        }
    }

    /// Returns the index of the bucket with this label.
    fn bucket(&mut self, label: i64) -> u32 {
        let is_last = self.labels.last() == Some(&label);
        if !is_last && !self.labels.is_empty() && label <= self.greatest {
            // At the end of daylight saving time, an hour is repeated.
            self.monotone = false;
            if let Some(index) = self.labels.iter().rposition(|&known| known == label) {
                return index as u32;
            }
        }
        if !is_last {
            self.labels.push(label);
            self.greatest = self.greatest.max(label);
        }
        (self.labels.len() - 1) as u32
    }

    /// Returns the group of each row in a batch, and the first row of each new group. The batch is
    /// divided into runs of rows in the same bucket.
    pub(crate) fn assign(
        &mut self,
        runs: &[(Range<usize>, i64)],
        keys: &[ArrayRef],
    ) -> Result<(RowGroups, Vec<u32>)> {
        match &self.keys {
            Keys::None => Ok(self.assign_unkeyed(runs)),
            Keys::Slots(_) => self.assign_slots(runs, keys),
            Keys::Number { .. } => self.assign_numbers(keys),
            Keys::Hashed(_) => self.assign_hashed(runs, keys),
        }
    }

    fn assign_unkeyed(&mut self, runs: &[(Range<usize>, i64)]) -> (RowGroups, Vec<u32>) {
        let mut new_rows = vec![];
        let groups = runs.iter().map(|(rows, label)| {
            let bucket = self.bucket(*label);
            if bucket as usize == self.buckets.len() {
                self.buckets.push(bucket);
                new_rows.push(rows.start as u32);
            }
            (rows.clone(), bucket)
        });
        (RowGroups::Runs(groups.collect()), new_rows)
    }

    fn assign_slots(
        &mut self,
        runs: &[(Range<usize>, i64)],
        keys: &[ArrayRef],
    ) -> Result<(RowGroups, Vec<u32>)> {
        let Keys::Slots(slots) = &mut self.keys else {
            return internal_err!("the group keys have no slots");
        };
        let Some(codes) = slots.codes(keys)? else {
            self.widen()?;
            return self.assign_hashed(runs, keys);
        };
        let mut sink = GroupSink::default();
        sink.groups.reserve(runs.last().map_or(0, |(rows, _)| rows.end));
        let buckets: Vec<u32> = runs.iter().map(|(_, label)| self.bucket(*label)).collect();
        let Keys::Slots(slots) = &mut self.keys else {
            return internal_err!("the group keys have no slots");
        };
        let nulls = codes.nulls().map(|nulls| Validity::new(nulls.validity(), nulls.offset()));
        let mut next = self.buckets.len() as u32;
        for ((rows, _), &bucket) in runs.iter().zip(&buckets) {
            slots.enter(bucket, &self.buckets, self.monotone);
            slots.assign(&codes.values()[rows.clone()], nulls, rows.start, &mut next, &mut sink);
            self.buckets.resize(next as usize, bucket);
        }
        slots.reuse(codes);
        Ok((RowGroups::Scattered(sink.groups), sink.new_rows))
    }

    /// Switches to hashing because a key has a value outside the known range.
    fn widen(&mut self) -> Result<()> {
        let Keys::Slots(slots) = &self.keys else { return Ok(()) };
        let (columns, labels) = (slots.columns()?, self.group_labels());
        self.keys = Keys::Hashed(HashedKeys::new(&slots.types(), true)?);
        if !labels.is_empty() {
            // The groups retain their indexes.
            self.intern(&labels, &columns)?;
        }
        Ok(())
    }

    fn assign_numbers(&mut self, keys: &[ArrayRef]) -> Result<(RowGroups, Vec<u32>)> {
        let (Keys::Number { numbers, .. }, [key]) = (&mut self.keys, keys) else {
            return internal_err!("expected an integer key");
        };
        let words = words(key)?;
        let nulls = key.nulls().filter(|nulls| nulls.null_count() > 0);
        let validity = nulls.map(|nulls| Validity::new(nulls.validity(), nulls.offset()));
        let (mut groups, mut new_rows) = (vec![], vec![]);
        numbers.assign(&words, validity, &mut groups, &mut new_rows);
        self.one_bucket();
        Ok((RowGroups::Scattered(groups), new_rows))
    }

    /// Assigns all numeric keys to the only bucket.
    fn one_bucket(&mut self) {
        if let Keys::Number { numbers, .. } = &self.keys {
            self.labels.resize(1, 0);
            self.buckets.resize(numbers.keys().len(), 0);
        }
    }

    fn assign_hashed(
        &mut self,
        runs: &[(Range<usize>, i64)],
        keys: &[ArrayRef],
    ) -> Result<(RowGroups, Vec<u32>)> {
        let rows = runs.last().map_or(0, |(rows, _)| rows.end);
        let mut bucket_of_row = Vec::with_capacity(rows);
        for (rows, label) in runs {
            bucket_of_row.resize(rows.end, *label);
        }
        let before = self.buckets.len();
        let groups = self.intern(&bucket_of_row, keys)?;
        let mut new_rows = vec![u32::MAX; self.buckets.len() - before];
        for (row, &group) in groups.iter().enumerate() {
            if let Some(first) = (group as usize).checked_sub(before)
                && new_rows[first] == u32::MAX
            {
                new_rows[first] = row as u32;
            }
        }
        Ok((RowGroups::Scattered(groups), new_rows))
    }

    /// Returns the groups of the rows with these bucket labels and keys.
    fn intern(&mut self, labels: &[i64], keys: &[ArrayRef]) -> Result<Vec<u32>> {
        let Keys::Hashed(hashed) = &mut self.keys else {
            return internal_err!("the group keys are not hashed");
        };
        let mut columns: Vec<ArrayRef> = vec![];
        if hashed.has_bucket {
            columns.push(Arc::new(Int64Array::from(labels.to_vec())));
        }
        columns.extend(keys.iter().map(Arc::clone));
        hashed.values.intern(&columns, &mut hashed.ids)?;
        let (known, total) = (self.buckets.len(), hashed.values.len());
        let ids = std::mem::take(&mut hashed.ids);
        self.buckets.resize(total, NO_GROUP);
        for (&group, &label) in ids.iter().zip(labels) {
            if group >= known && self.buckets[group] == NO_GROUP {
                self.buckets[group] = self.bucket(label);
            }
        }
        let groups = ids.iter().map(|&id| id as u32).collect();
        if let Keys::Hashed(hashed) = &mut self.keys {
            hashed.ids = ids;
        }
        Ok(groups)
    }

    /// Merges the groups of a later partial result. Returns, for each later group, the
    /// corresponding group of this index.
    pub(crate) fn absorb(&mut self, mut later: Self) -> Result<Vec<u32>> {
        if later.buckets.is_empty() {
            // A partial result without rows is not merged, because DataFusion's group values fail
            // if there is nothing to emit.
            return Ok(vec![]);
        }
        let labels = later.group_labels();
        match (&mut self.keys, &mut later.keys) {
            (Keys::None, Keys::None) => {
                let mapping = labels.iter().map(|&label| {
                    let bucket = self.bucket(label);
                    if bucket as usize == self.buckets.len() {
                        self.buckets.push(bucket);
                    }
                    bucket
                });
                Ok(mapping.collect())
            }
            (Keys::Slots(_), Keys::Slots(slots)) => {
                let keys = slots.take_keys();
                self.absorb_slots(&labels, &keys)
            }
            (Keys::Slots(_), Keys::Hashed(_)) => {
                self.widen()?;
                self.absorb(later)
            }
            (Keys::Hashed(_), Keys::Slots(_)) => {
                later.widen()?;
                self.absorb(later)
            }
            (Keys::Number { numbers, .. }, Keys::Number { numbers: later, .. }) => {
                let nulls = later.null().map(|null| {
                    (0..later.keys().len()).map(|position| position != null as usize).collect()
                });
                let nulls: Option<NullBuffer> = nulls;
                let validity =
                    nulls.as_ref().map(|nulls| Validity::new(nulls.validity(), nulls.offset()));
                let mut mapping = vec![];
                numbers.assign(later.keys(), validity, &mut mapping, &mut vec![]);
                self.one_bucket();
                Ok(mapping)
            }
            (Keys::Hashed(_), Keys::Hashed(later)) => {
                let columns = later.columns()?;
                self.intern(&labels, &columns)
            }
            _ => internal_err!("partial results have different keys"),
        }
    }

    fn absorb_slots(&mut self, labels: &[i64], keys: &[u32]) -> Result<Vec<u32>> {
        let mut mapping = Vec::with_capacity(keys.len());
        for (&label, &key) in labels.iter().zip(keys) {
            let bucket = self.bucket(label);
            let Keys::Slots(slots) = &mut self.keys else {
                return internal_err!("the group keys have no slots");
            };
            slots.enter(bucket, &self.buckets, self.monotone);
            let (group, is_new) = slots.group(key, self.buckets.len() as u32);
            if is_new {
                self.buckets.push(bucket);
            }
            mapping.push(group);
        }
        Ok(mapping)
    }

    /// Returns some groups' symbols, by key; `None` if a key is not a symbol.
    pub(crate) fn symbols_of(
        &self,
        groups: &[u32],
    ) -> Option<Vec<(Arc<SymbolDictionary>, Int32Array)>> {
        match &self.keys {
            Keys::None => Some(vec![]),
            Keys::Slots(slots) => slots.symbols_of(groups),
            Keys::Number { .. } | Keys::Hashed(_) => None,
        }
    }

    /// Returns the key columns, with one row per group.
    pub(crate) fn key_columns(&mut self) -> Result<Vec<ArrayRef>> {
        match &mut self.keys {
            Keys::None => Ok(vec![]),
            Keys::Slots(slots) => slots.columns(),
            Keys::Number { data_type, numbers } => {
                Ok(vec![of_words(numbers.keys(), numbers.null(), data_type)?])
            }
            Keys::Hashed(keys) if self.buckets.is_empty() => {
                // DataFusion's group values fail if there is nothing to emit.
                let fields = keys.schema.fields().iter().skip(usize::from(keys.has_bucket));
                Ok(fields.map(|field| new_empty_array(field.data_type())).collect())
            }
            Keys::Hashed(keys) => keys.columns(),
        }
    }
}

impl HashedKeys {
    fn new(types: &[DataType], has_bucket: bool) -> Result<Self> {
        let bucket = has_bucket.then(|| Field::new("bucket", DataType::Int64, false));
        let key = |(index, data_type): (usize, &DataType)| {
            Field::new(format!("key_{index}"), data_type.clone(), true)
        };
        let fields = bucket.into_iter().chain(types.iter().enumerate().map(key));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let values = new_group_values(Arc::clone(&schema), &GroupOrdering::None)?;
        Ok(Self { schema, values, ids: vec![], has_bucket })
    }

    /// Removes and returns the key columns.
    fn columns(&mut self) -> Result<Vec<ArrayRef>> {
        Ok(self.values.emit(EmitTo::All)?.split_off(usize::from(self.has_bucket)))
    }
}

/// Whether [`KeyPlan::Number`] supports a type.
pub(crate) fn is_number(data_type: &DataType) -> bool {
    let is_integer = data_type.is_integer() && *data_type != DataType::UInt64;
    let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
    is_integer || is_float || matches!(data_type, DataType::Timestamp(_, None))
}

/// Returns values as 64-bit words, such that equal values have equal words. Both zeros have the
/// same word.
fn words(values: &ArrayRef) -> Result<Vec<u64>> {
    if matches!(values.data_type(), DataType::Float32 | DataType::Float64) {
        let values = cast(values, &DataType::Float64)?;
        let values = values.as_primitive::<Float64Type>().values();
        let word = |&value: &f64| if value == 0.0 { 0 } else { value.to_bits() };
        return Ok(values.iter().map(word).collect());
    }
    let values = cast(values, &DataType::Int64)?;
    Ok(values.as_primitive::<Int64Type>().values().iter().map(|&value| value as u64).collect())
}

/// Converts words back to values of a type.
fn of_words(words: &[u64], null: Option<u32>, data_type: &DataType) -> Result<ArrayRef> {
    let nulls =
        null.map(|null| (0..words.len()).map(|position| position != null as usize).collect());
    let values: ArrayRef = if matches!(data_type, DataType::Float32 | DataType::Float64) {
        let values = words.iter().map(|&word| f64::from_bits(word)).collect();
        Arc::new(Float64Array::new(values, nulls))
    } else {
        Arc::new(Int64Array::new(words.iter().map(|&word| word as i64).collect(), nulls))
    };
    Ok(cast(&values, data_type)?)
}
