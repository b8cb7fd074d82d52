//! `first`, `last` and their `_not_null` variants, for numbers and symbols.

use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray};
use arrow_buffer::NullBuffer;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use tidemark_kernels::{self as kernels, Native};

use super::accumulator::{Accumulate, BatchGroups, Merging, RowGroups, values_of};
use arrow_schema::DataType;

/// Which row of a group to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgeKind {
    /// Whether to return the last row rather than the first.
    pub(crate) last: bool,
    /// Whether to ignore null rows.
    pub(crate) not_null: bool,
}

/// The first or last value in each group. Batches and partial results arrive in time order.
#[derive(Debug)]
pub(crate) struct Edge<P: ArrowPrimitiveType> {
    kind: EdgeKind,
    values: Vec<P::Native>,
    valid: Vec<bool>,
    /// Strings of a symbol column.
    dictionary: Option<ArrayRef>,
    output: DataType,
}

impl<P: ArrowPrimitiveType<Native: Native>> Edge<P> {
    pub(crate) fn new(kind: EdgeKind, output: DataType) -> Self {
        Self { kind, values: vec![], valid: vec![], dictionary: None, output }
    }

    fn resize(&mut self, total: usize) {
        self.values.resize(total, P::Native::default());
        self.valid.resize(total, false);
    }

    fn set(&mut self, group: usize, value: P::Native, valid: bool) {
        self.values[group] = value;
        self.valid[group] = valid;
    }

    /// Returns a column as numbers: either its values or the keys of a symbol column.
    fn numbers(&mut self, values: &[ArrayRef]) -> Result<PrimitiveArray<P>> {
        let Some(array) = values.first() else {
            return internal_err!("first or last requires an argument");
        };
        let keys = array.as_any_dictionary_opt();
        if let Some(dictionary) = keys {
            let texts = dictionary.values();
            let known = self.dictionary.get_or_insert_with(|| Arc::clone(texts));
            // A snapshot has one dictionary per column; this kernel is not planned for other
            // inputs.
            if !Arc::ptr_eq(known, texts) && known.to_data() != texts.to_data() {
                return internal_err!("a symbol column has two dictionaries");
            }
        }
        let numbers: &dyn Array = keys.map_or(array.as_ref(), |dictionary| dictionary.keys());
        numbers
            .as_primitive_opt::<P>()
            .cloned()
            .ok_or_else(|| internal_datafusion_err!("unexpected argument type for first or last"))
    }

    fn update_first(&mut self, array: &PrimitiveArray<P>, groups: &BatchGroups<'_>) {
        let before = groups.total - groups.new_rows.len();
        for (index, &row) in groups.new_rows.iter().enumerate() {
            let row = row as usize;
            self.set(before + index, array.values()[row], array.is_valid(row));
        }
    }

    fn update_last(&mut self, array: &PrimitiveArray<P>, groups: &BatchGroups<'_>) {
        match &groups.rows {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs.iter().filter(|(rows, _)| !rows.is_empty()) {
                    let row = rows.end - 1;
                    self.set(*group as usize, array.values()[row], array.is_valid(row));
                }
            }
            RowGroups::Scattered(ids) => {
                kernels::last_by(array.values(), ids, &mut self.values);
                if array.null_count() == 0 {
                    for &group in ids {
                        self.valid[group as usize] = true;
                    }
                } else {
                    for (row, &group) in ids.iter().enumerate() {
                        self.valid[group as usize] = array.is_valid(row);
                    }
                }
            }
        }
    }

    fn update_not_null(&mut self, array: &PrimitiveArray<P>, groups: &BatchGroups<'_>) {
        let last = self.kind.last;
        let mut visit = |row: usize, group: u32| {
            let group = group as usize;
            if array.is_valid(row) && (last || !self.valid[group]) {
                self.set(group, array.values()[row], true);
            }
        };
        match &groups.rows {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs {
                    let found = if last {
                        rows.clone().rev().find(|&row| array.is_valid(row))
                    } else {
                        rows.clone().find(|&row| array.is_valid(row))
                    };
                    if let Some(row) = found {
                        visit(row, *group);
                    }
                }
            }
            RowGroups::Scattered(ids) => {
                ids.iter().enumerate().for_each(|(row, &group)| visit(row, group));
            }
        }
    }
}

impl<P: ArrowPrimitiveType<Native: Native>> Accumulate for Edge<P> {
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()> {
        let array = self.numbers(values)?;
        self.resize(groups.total);
        match self.kind {
            EdgeKind { not_null: true, .. } => self.update_not_null(&array, groups),
            EdgeKind { last: true, .. } => self.update_last(&array, groups),
            EdgeKind { last: false, .. } => self.update_first(&array, groups),
        }
        Ok(())
    }

    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()> {
        let Ok(later) = later.into_any().downcast::<Self>() else {
            return internal_err!("aggregate states have different types");
        };
        self.resize(merging.total);
        if self.dictionary.is_none() {
            self.dictionary = later.dictionary;
        }
        for (index, &group) in merging.mapping.iter().enumerate().take(later.values.len()) {
            let slot = group as usize;
            let known = merging.counts.get(slot).is_some_and(|&count| count > 0);
            let take = match self.kind {
                EdgeKind { last: true, not_null: true } => later.valid[index],
                EdgeKind { last: true, not_null: false } => true,
                EdgeKind { last: false, not_null: true } => !self.valid[slot],
                EdgeKind { last: false, not_null: false } => !known,
            };
            if take {
                self.set(slot, later.values[index], later.valid[index]);
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, counts: &[i64]) -> Result<ArrayRef> {
        self.resize(counts.len());
        let nulls = NullBuffer::from(self.valid);
        let array = PrimitiveArray::<P>::new(self.values.into(), Some(nulls));
        let DataType::Dictionary(_, text) = &self.output else {
            return Ok(Arc::new(array.with_data_type(self.output)));
        };
        let dictionary =
            self.dictionary.unwrap_or_else(|| arrow_array::new_empty_array(text.as_ref()));
        let array: ArrayRef = Arc::new(array);
        let keys = array.as_primitive::<Int32Type>().clone();
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, dictionary)?))
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<P::Native>() + self.valid.capacity()
    }

    /// Symbol states are not copied because the dictionary may differ in the next execution.
    fn copy(&self, groups: &[u32]) -> Option<Box<dyn Accumulate>> {
        let is_symbol = matches!(self.output, DataType::Dictionary(..));
        let copy = || -> Box<dyn Accumulate> {
            Box::new(Self {
                values: values_of(&self.values, groups),
                valid: values_of(&self.valid, groups),
                ..Self::new(self.kind, self.output.clone())
            })
        };
        (!is_symbol).then(copy)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
