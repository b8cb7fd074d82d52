//! Numbers the groups of a partial result: `(bucket, key)` pairs in order of first appearance.
//!
//! Symbol keys index a table of slots that is valid for the current bucket only; other keys are
//! hashed together with their bucket.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, new_empty_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use tidemark_kernels::{GroupSink, Validity, assign_groups};
use tidemark_storage::SymbolDictionary;

use super::accumulator::RowGroups;

const NO_GROUP: u32 = u32::MAX;

/// How rows find their groups.
#[derive(Clone)]
pub(crate) enum KeyPlan {
    /// No key.
    None,
    /// Symbol keys of tables: `(dictionary, slots)`, combined as digits of one number.
    Symbols(Vec<Arc<SymbolDictionary>>),
    /// Anything else, of these types.
    Hashed(Vec<DataType>),
}

/// Slots that are worth a table; above, keys are hashed.
pub(crate) const MAX_SLOTS: usize = 1 << 22;

/// The groups found so far.
pub(crate) struct GroupIndex {
    /// Timestamp of each bucket, ascending but for buckets met again.
    labels: Vec<i64>,
    /// Bucket of each group.
    buckets: Vec<u32>,
    /// Whether no bucket was met again after a later one.
    monotone: bool,
    keys: Keys,
}

enum Keys {
    None,
    Symbols(SymbolKeys),
    Hashed { schema: SchemaRef, values: Box<dyn GroupValues>, ids: Vec<usize> },
}

struct SymbolKeys {
    dictionaries: Vec<Arc<SymbolDictionary>>,
    slots: Vec<u32>,
    /// Combined key of each group.
    keys: Vec<u32>,
    /// The bucket that `slots` describes.
    bucket: Option<u32>,
    combined: Vec<i32>,
}

impl KeyPlan {
    /// Whether a table of slots serves these dictionaries.
    pub(crate) fn fits(dictionaries: &[Arc<SymbolDictionary>]) -> bool {
        let slots = dictionaries
            .iter()
            .try_fold(1_usize, |slots, dictionary| slots.checked_mul(dictionary.len() + 1));
        slots.is_some_and(|slots| slots <= MAX_SLOTS)
    }
}

impl GroupIndex {
    pub(crate) fn new(plan: &KeyPlan) -> Result<Self> {
        let keys = match plan {
            KeyPlan::None => Keys::None,
            KeyPlan::Symbols(dictionaries) => Keys::Symbols(SymbolKeys::new(dictionaries.clone())),
            KeyPlan::Hashed(types) => {
                let schema = hash_schema(types);
                let values = new_group_values(Arc::clone(&schema), &GroupOrdering::None)?;
                Keys::Hashed { schema, values, ids: vec![] }
            }
        };
        Ok(Self { labels: vec![], buckets: vec![], monotone: true, keys })
    }

    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Timestamp of each group's bucket.
    pub(crate) fn group_labels(&self) -> Vec<i64> {
        self.buckets.iter().map(|&bucket| self.labels[bucket as usize]).collect()
    }

    pub(crate) fn size(&self) -> usize {
        let keys = match &self.keys {
            Keys::None => 0,
            Keys::Symbols(symbols) => 4 * (symbols.slots.len() + symbols.keys.capacity()),
            Keys::Hashed { values, ids, .. } => values.size() + ids.capacity() * size_of::<usize>(),
        };
        keys + self.labels.capacity() * 8 + self.buckets.capacity() * 4
    }

    /// Adds one group for an aggregate over no rows.
    pub(crate) fn ensure_one(&mut self) {
        if self.buckets.is_empty() {
            self.labels.push(0);
            self.buckets.push(0);
        }
    }

    /// The number of the bucket with this label.
    fn bucket(&mut self, label: i64) -> u32 {
        match self.labels.last() {
            Some(&last) if last == label => {}
            Some(&last) if last > label => {
                // The repeated hour at the end of daylight saving.
                self.monotone = false;
                if let Some(index) = self.labels.iter().rposition(|&known| known == label) {
                    return index as u32;
                }
                self.labels.push(label);
            }
            _ => self.labels.push(label),
        }
        (self.labels.len() - 1) as u32
    }

    /// Groups of one batch, cut into runs of one bucket each, and each new group's first row.
    pub(crate) fn assign(
        &mut self,
        runs: &[(Range<usize>, i64)],
        keys: &[ArrayRef],
    ) -> Result<(RowGroups, Vec<u32>)> {
        match &self.keys {
            Keys::None => Ok(self.assign_unkeyed(runs)),
            Keys::Symbols(_) => self.assign_symbols(runs, keys),
            Keys::Hashed { .. } => self.assign_hashed(runs, keys),
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

    fn assign_symbols(
        &mut self,
        runs: &[(Range<usize>, i64)],
        keys: &[ArrayRef],
    ) -> Result<(RowGroups, Vec<u32>)> {
        let mut sink = GroupSink::default();
        sink.groups.reserve(runs.last().map_or(0, |(rows, _)| rows.end));
        let buckets: Vec<u32> = runs.iter().map(|(_, label)| self.bucket(*label)).collect();
        let Keys::Symbols(symbols) = &mut self.keys else {
            return internal_err!("keys are not symbols");
        };
        let single = symbols.codes(keys)?;
        let validity = single
            .as_ref()
            .and_then(|codes| codes.nulls())
            .map(|nulls| (nulls.validity().to_vec(), nulls.offset()));
        let validity = validity.as_ref().map(|(bytes, offset)| Validity::new(bytes, *offset));
        let combined = std::mem::take(&mut symbols.combined);
        let codes: &[i32] = single.as_ref().map_or(&combined, |codes| codes.values());
        let mut next = self.buckets.len() as u32;
        for ((rows, _), &bucket) in runs.iter().zip(&buckets) {
            symbols.enter(bucket, &self.buckets, self.monotone);
            let found = sink.new_keys.len();
            assign_groups(
                &codes[rows.clone()],
                validity,
                rows.start,
                &mut symbols.slots,
                &mut next,
                &mut sink,
            );
            symbols.keys.extend_from_slice(&sink.new_keys[found..]);
            self.buckets.resize(next as usize, bucket);
        }
        symbols.combined = combined;
        Ok((RowGroups::Scattered(sink.groups), sink.new_rows))
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

    /// Groups of rows with these bucket labels and keys.
    fn intern(&mut self, labels: &[i64], keys: &[ArrayRef]) -> Result<Vec<u32>> {
        let Keys::Hashed { values, ids, .. } = &mut self.keys else {
            return internal_err!("keys are not hashed");
        };
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(labels.to_vec()))];
        columns.extend(keys.iter().map(Arc::clone));
        values.intern(&columns, ids)?;
        let (known, total) = (self.buckets.len(), values.len());
        let ids = std::mem::take(ids);
        self.buckets.resize(total, NO_GROUP);
        for (&group, &label) in ids.iter().zip(labels) {
            if group >= known && self.buckets[group] == NO_GROUP {
                self.buckets[group] = self.bucket(label);
            }
        }
        let groups = ids.iter().map(|&id| id as u32).collect();
        if let Keys::Hashed { ids: reused, .. } = &mut self.keys {
            *reused = ids;
        }
        Ok(groups)
    }

    /// Takes in the groups of a later partial; the number here of each of its groups.
    pub(crate) fn absorb(&mut self, mut later: Self) -> Result<Vec<u32>> {
        if later.buckets.is_empty() {
            // A partition without rows; DataFusion's values fail where they have none to emit.
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
            (Keys::Symbols(_), Keys::Symbols(symbols)) => {
                let keys = std::mem::take(&mut symbols.keys);
                self.absorb_symbols(&labels, &keys)
            }
            (Keys::Hashed { .. }, Keys::Hashed { values, .. }) => {
                let columns = values.emit(EmitTo::All)?;
                self.intern(&labels, columns.get(1..).unwrap_or_default())
            }
            _ => internal_err!("partials with different keys"),
        }
    }

    fn absorb_symbols(&mut self, labels: &[i64], keys: &[u32]) -> Result<Vec<u32>> {
        let mut mapping = Vec::with_capacity(keys.len());
        for (&label, &key) in labels.iter().zip(keys) {
            let bucket = self.bucket(label);
            let Keys::Symbols(symbols) = &mut self.keys else {
                return internal_err!("keys are not symbols");
            };
            symbols.enter(bucket, &self.buckets, self.monotone);
            let slot = &mut symbols.slots[key as usize];
            if *slot == NO_GROUP {
                *slot = self.buckets.len() as u32;
                symbols.keys.push(key);
                self.buckets.push(bucket);
            }
            mapping.push(*slot);
        }
        Ok(mapping)
    }

    /// The key columns, one row per group.
    pub(crate) fn key_columns(&mut self) -> Result<Vec<ArrayRef>> {
        match &mut self.keys {
            Keys::None => Ok(vec![]),
            Keys::Symbols(symbols) => symbols.columns(),
            Keys::Hashed { schema, .. } if self.buckets.is_empty() => {
                // Where there are no rows DataFusion's values have none to emit.
                let keys = schema.fields().iter().skip(1);
                Ok(keys.map(|field| new_empty_array(field.data_type())).collect())
            }
            Keys::Hashed { values, .. } => Ok(values.emit(EmitTo::All)?.split_off(1)),
        }
    }
}

impl SymbolKeys {
    fn new(dictionaries: Vec<Arc<SymbolDictionary>>) -> Self {
        let slots = dictionaries.iter().map(|dictionary| dictionary.len() + 1).product();
        Self {
            dictionaries,
            slots: vec![NO_GROUP; slots],
            keys: vec![],
            bucket: None,
            combined: vec![],
        }
    }

    /// Makes the slots those of `bucket`.
    fn enter(&mut self, bucket: u32, buckets: &[u32], monotone: bool) {
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

    /// The codes of a single key; for several keys `combined` gets them, null as code -1.
    fn codes(&mut self, keys: &[ArrayRef]) -> Result<Option<Int32Array>> {
        if let [key] = keys {
            return Ok(Some(self.keys_of(key, 0)?));
        }
        self.combined.clear();
        self.combined.resize(keys.first().map_or(0, Array::len), 0);
        for (index, key) in keys.iter().enumerate() {
            let codes = self.keys_of(key, index)?;
            let radix = self.dictionaries[index].len() as i32 + 1;
            for (row, digit) in self.combined.iter_mut().enumerate() {
                let code = if codes.is_null(row) { 0 } else { codes.value(row) + 1 };
                *digit = *digit * radix + code;
            }
        }
        // The kernel adds one for null, which is a digit already.
        self.combined.iter_mut().for_each(|code| *code -= 1);
        Ok(None)
    }

    fn keys_of(&self, array: &ArrayRef, index: usize) -> Result<Int32Array> {
        let dictionary = array
            .as_dictionary_opt::<Int32Type>()
            .ok_or_else(|| internal_datafusion_err!("a symbol key without dictionary"))?;
        if dictionary.values().len() > self.dictionaries[index].len() {
            return internal_err!("a symbol key with a foreign dictionary");
        }
        Ok(dictionary.keys().clone())
    }

    fn columns(&self) -> Result<Vec<ArrayRef>> {
        let mut rest = self.keys.clone();
        let mut columns = Vec::with_capacity(self.dictionaries.len());
        for dictionary in self.dictionaries.iter().rev() {
            let radix = dictionary.len() as u32 + 1;
            let codes: Int32Array = rest
                .iter_mut()
                .map(|key| {
                    let digit = *key % radix;
                    *key /= radix;
                    digit.checked_sub(1).map(|code| code as i32)
                })
                .collect();
            let array = DictionaryArray::<Int32Type>::try_new(codes, dictionary.values())?;
            columns.push(Arc::new(array) as ArrayRef);
        }
        columns.reverse();
        Ok(columns)
    }
}

/// Groups of a bucket. As long as no bucket was met again they are the last ones, or none.
fn groups_of(bucket: u32, buckets: &[u32], monotone: bool) -> Vec<usize> {
    if !monotone {
        return (0..buckets.len()).filter(|&group| buckets[group] == bucket).collect();
    }
    let start = buckets.iter().rposition(|&other| other != bucket).map_or(0, |group| group + 1);
    (start..buckets.len()).collect()
}

fn hash_schema(types: &[DataType]) -> SchemaRef {
    let mut fields = vec![Field::new("bucket", DataType::Int64, false)];
    let keys = types.iter().enumerate();
    fields.extend(
        keys.map(|(index, data_type)| Field::new(format!("key_{index}"), data_type.clone(), true)),
    );
    Arc::new(Schema::new(fields))
}
