//! Distinct strings for many groups, stored in a single hash table. `DataFusion` allocates 33 KB
//! per group, so a batch of a few thousand groups exceeded the query memory limit.

use std::hash::BuildHasher;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, StringViewArray,
    StringViewBuilder,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::hash_utils::RandomState;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature,
};
use hashbrown::HashTable;
use tidemark_types::account;

use super::native::is_selected;
use crate::column::stopped;

/// Builds `count(DISTINCT text)`. It uses `DataFusion`'s accumulator for a single group and this
/// module's accumulator for many groups.
pub(super) fn count_texts() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(CountTexts { count: count_udaf() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CountTexts {
    count: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for CountTexts {
    fn name(&self) -> &str {
        self.count.name()
    }

    fn signature(&self) -> &Signature {
        self.count.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.count.return_type(types)
    }

    fn is_nullable(&self) -> bool {
        self.count.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.count.default_value(data_type)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.count.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.count.accumulator(args)
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.count.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(DistinctTexts::default()))
    }
}

/// Size of a string block in bytes; a longer string gets its own block.
const BLOCK_BYTES: usize = 256 << 10;
/// Number of rows between checks of the query's deadline and cancellation.
const ROWS_BETWEEN_CHECKS: usize = 1024;

/// A distinct string in a group.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Hash of the string alone, without the group.
    hash: u64,
    group: usize,
    block: u32,
    start: u32,
    length: u32,
}

impl Entry {
    /// Returns the hash that determines the entry's slot in the table.
    fn slot_hash(&self) -> u64 {
        slot_hash_of(self.hash, self.group)
    }
}

/// Mixes in the group so that the same string in many groups does not collide.
fn slot_hash_of(hash: u64, group: usize) -> u64 {
    hash ^ (group as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[derive(Default)]
struct DistinctTexts {
    found: HashTable<Entry>,
    blocks: Vec<Vec<u8>>,
    block_bytes: usize,
    counts: Vec<i64>,
    hasher: RandomState,
}

impl DistinctTexts {
    fn insert(&mut self, group: usize, text: &[u8]) -> Result<()> {
        self.insert_hashed(self.hasher.hash_one(text), group, text)
    }

    fn insert_hashed(&mut self, hash: u64, group: usize, text: &[u8]) -> Result<()> {
        let is_same = |entry: &Entry| {
            entry.hash == hash && entry.group == group && text_of(&self.blocks, entry) == text
        };
        if self.found.find(slot_hash_of(hash, group), is_same).is_some() {
            return Ok(());
        }
        if self.found.len() == self.found.capacity() {
            // The table doubles in size, and the old table stays allocated until it has been
            // copied.
            account::check_allocation(2 * self.found.allocation_size()).map_err(stopped)?;
        }
        let (block, start) = self.store(text)?;
        let entry = Entry { hash, group, block, start, length: text.len() as u32 };
        self.found.insert_unique(entry.slot_hash(), entry, Entry::slot_hash);
        self.counts[group] += 1;
        Ok(())
    }

    /// Copies a string into a block with enough free space; returns the block and the start offset.
    fn store(&mut self, text: &[u8]) -> Result<(u32, u32)> {
        let has_room = |block: &Vec<u8>| block.capacity() - block.len() >= text.len();
        if !self.blocks.last().is_some_and(has_room) {
            let bytes = text.len().max(BLOCK_BYTES);
            account::check_allocation(bytes).map_err(stopped)?;
            self.blocks.push(Vec::with_capacity(bytes));
            self.block_bytes += bytes;
        }
        let block = self.blocks.len() - 1;
        let bytes = &mut self.blocks[block];
        let start = bytes.len();
        bytes.extend_from_slice(text);
        Ok((block as u32, start as u32))
    }

    /// Removes the emitted groups' strings and renumbers the remaining groups starting at 0.
    fn forget(&mut self, emit_to: EmitTo) -> Result<()> {
        let seen = std::mem::take(&mut self.found);
        let blocks = std::mem::take(&mut self.blocks);
        self.block_bytes = 0;
        let EmitTo::First(first) = emit_to else { return Ok(()) };
        self.counts.fill(0);
        for entry in seen.into_iter().filter(|entry| entry.group >= first) {
            self.insert_hashed(entry.hash, entry.group - first, text_of(&blocks, &entry))?;
        }
        Ok(())
    }
}

fn text_of<'a>(blocks: &'a [Vec<u8>], entry: &Entry) -> &'a [u8] {
    &blocks[entry.block as usize][entry.start as usize..][..entry.length as usize]
}

/// Builds lists of strings, the intermediate state of `count`.
fn lists(lengths: impl IntoIterator<Item = usize>, texts: StringViewArray) -> Result<ArrayRef> {
    let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(texts), None)?))
}

impl GroupsAccumulator for DistinctTexts {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.counts.resize(total_num_groups, 0);
        let texts = values[0].as_string_view();
        for (row, &group) in group_indices.iter().enumerate() {
            if row.is_multiple_of(ROWS_BETWEEN_CHECKS) {
                account::check().map_err(stopped)?;
            }
            if texts.is_valid(row) && is_selected(filter, row) {
                self.insert(group, texts.value(row).as_bytes())?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let counts = emit_to.take_needed(&mut self.counts);
        self.forget(emit_to)?;
        Ok(Arc::new(Int64Array::from(counts)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let counts = emit_to.take_needed(&mut self.counts);
        let mut entries: Vec<Entry> =
            self.found.iter().filter(|entry| entry.group < counts.len()).copied().collect();
        entries.sort_unstable_by_key(|entry| entry.group);
        let mut texts = StringViewBuilder::with_capacity(entries.len());
        for entry in &entries {
            // Nothing is replaced, because the input was valid UTF-8.
            texts.append_value(String::from_utf8_lossy(text_of(&self.blocks, entry)));
        }
        let lengths = counts.iter().map(|&count| count as usize);
        let state = lists(lengths, texts.finish())?;
        self.forget(emit_to)?;
        Ok(vec![state])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.counts.resize(total_num_groups, 0);
        let lists = values[0].as_list::<i32>();
        let texts = lists.values().as_string_view();
        let offsets = lists.value_offsets();
        for (row, &group) in group_indices.iter().enumerate() {
            account::check().map_err(stopped)?;
            for at in offsets[row] as usize..offsets[row + 1] as usize {
                if texts.is_valid(at) {
                    self.insert(group, texts.value(at).as_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let texts = values[0].as_string_view();
        let required: Vec<bool> =
            (0..texts.len()).map(|row| texts.is_valid(row) && is_selected(filter, row)).collect();
        let mut retained = StringViewBuilder::with_capacity(texts.len());
        for (row, _) in required.iter().enumerate().filter(|(_, required)| **required) {
            retained.append_value(texts.value(row));
        }
        Ok(vec![lists(required.into_iter().map(usize::from), retained.finish())?])
    }

    fn size(&self) -> usize {
        self.found.allocation_size() + self.block_bytes + self.counts.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    type Model = BTreeMap<usize, BTreeSet<String>>;

    /// Generates strings of several lengths in several groups, with some nulls.
    fn rows(seed: usize) -> (ArrayRef, Vec<usize>, BooleanArray, Model) {
        let (mut texts, mut groups, mut required) = (Vec::new(), Vec::new(), Vec::new());
        let mut model = Model::new();
        for at in 0..5_000_usize {
            let mixed = (at + seed).wrapping_mul(0x9e37_79b9) >> 7;
            let (group, is_wanted) = (mixed % 37, !mixed.is_multiple_of(5));
            let text = (!mixed.is_multiple_of(11))
                .then(|| "é".repeat(mixed % 13) + &(mixed % 101).to_string());
            if let (Some(text), true) = (&text, is_wanted) {
                model.entry(group).or_default().insert(text.clone());
            }
            texts.push(text);
            groups.push(group);
            required.push(is_wanted);
        }
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter(texts));
        (texts, groups, BooleanArray::from(required), model)
    }

    fn counts(array: &ArrayRef) -> Vec<i64> {
        array.as_primitive::<arrow::datatypes::Int64Type>().values().to_vec()
    }

    fn expected(model: &Model) -> Vec<i64> {
        (0..37).map(|group| model.get(&group).map_or(0, BTreeSet::len) as i64).collect()
    }

    #[test]
    fn each_distinct_string_counts_once_per_group() {
        let (texts, groups, required, model) = rows(1);
        let (more, more_groups, more_wanted, more_model) = rows(7);
        let mut both = model.clone();
        for (group, texts) in more_model {
            both.entry(group).or_default().extend(texts);
        }

        let mut one = DistinctTexts::default();
        one.update_batch(&[Arc::clone(&texts)], &groups, Some(&required), 37).unwrap();
        one.update_batch(&[Arc::clone(&more)], &more_groups, Some(&more_wanted), 37).unwrap();
        assert!(one.size() > 0);
        // Emitting the first groups does not change the counts of the remaining groups.
        let first = counts(&one.evaluate(EmitTo::First(10)).unwrap());
        let rest = counts(&one.evaluate(EmitTo::All).unwrap());
        assert_eq!([first, rest].concat(), expected(&both));
        assert!(one.found.is_empty() && one.blocks.is_empty());

        // Merges the states of the same rows: first one list per group, then one state per row.
        let mut partial = DistinctTexts::default();
        partial.update_batch(&[texts], &groups, Some(&required), 37).unwrap();
        let mut whole = DistinctTexts::default();
        let head = partial.state(EmitTo::First(20)).unwrap();
        whole.merge_batch(&head, &(0..20).collect::<Vec<_>>(), 37).unwrap();
        let tail = partial.state(EmitTo::All).unwrap();
        whole.merge_batch(&tail, &(20..37).collect::<Vec<_>>(), 37).unwrap();
        let rows = partial.convert_to_state(&[more], Some(&more_wanted)).unwrap();
        whole.merge_batch(&rows, &more_groups, 37).unwrap();
        assert_eq!(counts(&whole.evaluate(EmitTo::All).unwrap()), expected(&both));
    }

    #[test]
    fn one_string_in_many_groups_uses_little_memory() {
        let groups: Vec<usize> = (0..100_000).collect();
        let texts: ArrayRef =
            Arc::new(StringViewArray::from_iter_values(groups.iter().map(|_| "x")));
        let mut all = DistinctTexts::default();
        all.update_batch(&[texts], &groups, None, groups.len()).unwrap();
        assert!(all.size() < 100 * groups.len(), "{} bytes", all.size());
        assert_eq!(counts(&all.evaluate(EmitTo::All).unwrap()), vec![1; groups.len()]);
    }
}
