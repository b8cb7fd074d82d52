//! Sample and population variance and standard deviation.

use std::any::Any;
use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array};
use datafusion::common::Result;
use tidemark_kernels::{self as kernels, Moments};

use super::accumulator::{
    Accumulate, BatchGroups, Merging, RowGroups, column, nulls_of, same, valid_runs, values_of,
};

/// The kind of aggregate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpreadKind {
    /// Whether to return the standard deviation rather than the variance.
    root: bool,
    /// Whether to divide by the number of values minus one.
    sample: bool,
}

impl SpreadKind {
    /// Returns the kind of the aggregate with this name, as defined in `crates/functions`.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (root, sample) = match name {
            "var_pop" => (false, false),
            "var_samp" => (false, true),
            "stddev_pop" => (true, false),
            "stddev_samp" => (true, true),
            _ => return None,
        };
        Some(Self { root, sample })
    }

    fn result(self, moments: &Moments) -> Option<f64> {
        let divisor = if self.sample { moments.count - 1.0 } else { moments.count };
        let variance = (divisor > 0.0).then(|| moments.second / divisor)?;
        Some(if self.root { variance.sqrt() } else { variance }).filter(|value| value.is_finite())
    }
}

/// How far the values in each group deviate from their mean.
#[derive(Debug)]
pub(crate) struct Spread {
    kind: SpreadKind,
    moments: Vec<Moments>,
}

impl Spread {
    pub(crate) fn new(kind: SpreadKind) -> Self {
        Self { kind, moments: vec![] }
    }
}

impl Accumulate for Spread {
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()> {
        let array = column::<Float64Type>(values)?;
        let (nulls, values) = (nulls_of(array), array.values().as_ref());
        self.moments.resize(groups.total, Moments::default());
        match &groups.rows {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs {
                    let moments = &mut self.moments[*group as usize];
                    valid_runs(nulls, rows.clone(), |run| {
                        values[run].iter().for_each(|&value| moments.add(value));
                    });
                }
            }
            RowGroups::Scattered(ids) => valid_runs(nulls, 0..ids.len(), |run| {
                kernels::moments_by(&values[run.clone()], &ids[run], &mut self.moments);
            }),
        }
        Ok(())
    }

    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()> {
        let later = same::<Self>(later)?;
        self.moments.resize(merging.total, Moments::default());
        for (&group, moments) in merging.mapping.iter().zip(&later.moments) {
            self.moments[group as usize].merge(moments);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, counts: &[i64]) -> Result<ArrayRef> {
        self.moments.resize(counts.len(), Moments::default());
        let results = self.moments.iter().map(|moments| self.kind.result(moments));
        Ok(Arc::new(results.collect::<Float64Array>()))
    }

    fn size(&self) -> usize {
        self.moments.capacity() * size_of::<Moments>()
    }

    fn copy(&self, groups: &[u32]) -> Option<Box<dyn Accumulate>> {
        Some(Box::new(Self { kind: self.kind, moments: values_of(&self.moments, groups) }))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
