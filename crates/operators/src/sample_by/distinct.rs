//! `count_distinct(symbol)`: a bitmap of keys per group.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use tidemark_kernels::Validity;

use super::accumulator::{Accumulate, BatchGroups, Merging, RowGroups};

/// Keys found in each group. All batches have the same dictionary.
#[derive(Debug)]
pub(crate) struct DistinctSymbols {
    found: Vec<Vec<u64>>,
    /// Number of keys in the dictionary.
    symbols: usize,
    /// For an aggregate without GROUP BY keys, whether its only group already contains every symbol
    /// key.
    complete: bool,
}

impl DistinctSymbols {
    /// Creates states for a symbol with this many keys.
    pub(crate) fn new(symbols: usize) -> Self {
        Self { found: vec![], symbols, complete: false }
    }

    fn is_complete(&self) -> bool {
        let [only] = self.found.as_slice() else { return false };
        only.iter().map(|word| word.count_ones() as usize).sum::<usize>() == self.symbols
    }

    fn add(&mut self, group: usize, codes: &[i32]) {
        let Some(&greatest) = codes.iter().max() else { return };
        let words = &mut self.found[group];
        let needed = greatest.max(0) as usize / 64 + 1;
        if words.len() < needed {
            words.resize(needed, 0);
        }
        for &code in codes {
            let code = code as usize;
            words[code / 64] |= 1 << (code % 64);
        }
    }
}

impl Accumulate for DistinctSymbols {
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()> {
        if self.complete && groups.total == 1 {
            return Ok(());
        }
        let symbols = values.first().and_then(|array| array.as_dictionary_opt::<Int32Type>());
        let symbols = symbols.ok_or_else(|| internal_datafusion_err!("expected a symbol"))?;
        let codes = symbols.keys().values();
        let nulls = symbols.keys().nulls().filter(|nulls| nulls.null_count() > 0);
        let valid_runs = |rows: Range<usize>, visit: &mut dyn FnMut(Range<usize>)| match nulls {
            None => visit(rows),
            Some(nulls) => {
                Validity::new(nulls.validity(), nulls.offset()).for_each_run(rows, visit);
            }
        };
        self.found.resize_with(groups.total, Vec::new);
        match &groups.rows {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs {
                    valid_runs(rows.clone(), &mut |run| {
                        self.add(*group as usize, &codes[run]);
                    });
                }
            }
            RowGroups::Scattered(ids) => valid_runs(0..ids.len(), &mut |run| {
                for row in run {
                    self.add(ids[row] as usize, &codes[row..=row]);
                }
            }),
        }
        self.complete = self.is_complete();
        Ok(())
    }

    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()> {
        let Ok(later) = later.into_any().downcast::<Self>() else {
            return internal_err!("aggregate states have different types");
        };
        self.found.resize_with(merging.total, Vec::new);
        for (&group, words) in merging.mapping.iter().zip(&later.found) {
            let own = &mut self.found[group as usize];
            if own.len() < words.len() {
                own.resize(words.len(), 0);
            }
            own.iter_mut().zip(words).for_each(|(own, word)| *own |= word);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, counts: &[i64]) -> Result<ArrayRef> {
        self.found.resize_with(counts.len(), Vec::new);
        let ones = |words: &Vec<u64>| words.iter().map(|word| i64::from(word.count_ones())).sum();
        Ok(Arc::new(Int64Array::from_iter_values(self.found.iter().map(ones))))
    }

    fn size(&self) -> usize {
        let words: usize = self.found.iter().map(Vec::capacity).sum();
        words * 8 + self.found.capacity() * size_of::<Vec<u64>>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
