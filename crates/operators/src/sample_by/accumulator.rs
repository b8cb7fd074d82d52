//! Aggregates that use Tidemark's own kernels: one state per group, updated batch by batch.
//!
//! Most columns have no nulls. Until a state encounters its first null, it therefore assumes that
//! every row of a group counts. From then on, it maintains separate counts.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, internal_datafusion_err};
use tidemark_kernels::{self as kernels, Native, Validity};

use arrow_schema::DataType;

/// The group of each row in a batch.
#[derive(Debug)]
pub(crate) enum RowGroups {
    /// Runs of consecutive rows in the same group, for aggregates without keys.
    Runs(Vec<(Range<usize>, u32)>),
    /// The group of each row.
    Scattered(Vec<u32>),
}

/// A batch's groups, and the row counts before it.
#[derive(Debug)]
pub(crate) struct BatchGroups<'a> {
    pub(crate) rows: RowGroups,
    /// First row of each group added by this batch, in group order.
    pub(crate) new_rows: Vec<u32>,
    /// Number of rows per group before this batch.
    pub(crate) counts: &'a [i64],
    /// Number of groups, including those added by this batch.
    pub(crate) total: usize,
}

/// An aggregate's states for all groups.
pub(crate) trait Accumulate: Send {
    /// Adds a batch's rows.
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()>;
    /// Merges later states of the same aggregate. `merging.mapping[g]` is the group of this state
    /// that corresponds to group `g` of `later`; groups that are new to this state follow in order.
    /// `merging` also contains the number of rows per group before the merge.
    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()>;
    /// Returns one value per group.
    fn finish(self: Box<Self>, counts: &[i64]) -> Result<ArrayRef>;
    /// Memory used, in bytes.
    fn size(&self) -> usize;
    /// Copies the states of some groups in the given order; `None` if they cannot be copied.
    fn copy(&self, _groups: &[u32]) -> Option<Box<dyn Accumulate>> {
        None
    }
    /// Converts the state for [`Accumulate::merge`].
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// Maps later states to earlier states.
pub(crate) struct Merging<'a> {
    /// The earlier group corresponding to each later group.
    pub(crate) mapping: &'a [u32],
    /// Number of rows per earlier group, before the merge.
    pub(crate) counts: &'a [i64],
    /// Number of rows per later group.
    pub(crate) later_counts: &'a [i64],
    /// Number of groups after the merge.
    pub(crate) total: usize,
}

pub(super) fn same<T: 'static>(later: Box<dyn Accumulate>) -> Result<Box<T>> {
    later
        .into_any()
        .downcast()
        .map_err(|_| internal_datafusion_err!("aggregate states have different types"))
}

pub(super) fn column<P: ArrowPrimitiveType>(values: &[ArrayRef]) -> Result<&PrimitiveArray<P>> {
    let found = values.first().and_then(|array| array.as_primitive_opt::<P>());
    found.ok_or_else(|| internal_datafusion_err!("unexpected argument type for an aggregate"))
}

fn validity(nulls: &NullBuffer) -> Validity<'_> {
    Validity::new(nulls.validity(), nulls.offset())
}

pub(super) fn nulls_of(array: &dyn Array) -> Option<&NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Calls `visit` with each run of valid rows inside `rows`.
pub(super) fn valid_runs(
    nulls: Option<&NullBuffer>,
    rows: Range<usize>,
    visit: impl FnMut(Range<usize>),
) {
    let mut visit = visit;
    match nulls {
        None => visit(rows),
        Some(nulls) => validity(nulls).for_each_run(rows, visit),
    }
}

/// Number of non-null values per group. If there are no separate counts, every row has a value.
#[derive(Debug, Default)]
struct NonNull {
    own: Option<Vec<i64>>,
}

impl NonNull {
    fn counted(&mut self, counts: &[i64], total: usize) -> &mut Vec<i64> {
        let own = self.own.get_or_insert_with(|| counts.to_vec());
        own.resize(total, 0);
        own
    }

    fn update(&mut self, nulls: Option<&NullBuffer>, groups: &BatchGroups<'_>) {
        if self.own.is_none() && nulls.is_none() {
            return;
        }
        count(self.counted(groups.counts, groups.total), nulls, groups);
    }

    fn merge(&mut self, later: &Self, merging: &Merging<'_>) {
        if self.own.is_none() && later.own.is_none() {
            return;
        }
        let own = self.counted(merging.counts, merging.total);
        let later = later.of(merging.later_counts);
        for (&group, count) in merging.mapping.iter().zip(later) {
            own[group as usize] += count;
        }
    }

    fn of<'a>(&'a self, counts: &'a [i64]) -> &'a [i64] {
        self.own.as_deref().unwrap_or(counts)
    }

    fn copy(&self, groups: &[u32]) -> Self {
        Self { own: self.own.as_ref().map(|own| values_of(own, groups)) }
    }

    fn nulls(&self, counts: &[i64]) -> NullBuffer {
        let own = self.of(counts);
        (0..counts.len()).map(|group| own.get(group).is_some_and(|&count| count > 0)).collect()
    }
}

/// Returns the values of some groups; groups without a value get the default.
pub(crate) fn values_of<T: Copy + Default>(values: &[T], groups: &[u32]) -> Vec<T> {
    let value = |group: &u32| values.get(*group as usize).copied().unwrap_or_default();
    groups.iter().map(value).collect()
}

fn count(counts: &mut [i64], nulls: Option<&NullBuffer>, groups: &BatchGroups<'_>) {
    match &groups.rows {
        RowGroups::Runs(runs) => {
            for (rows, group) in runs {
                let mut valid = 0;
                valid_runs(nulls, rows.clone(), |run| valid += run.len() as i64);
                counts[*group as usize] += valid;
            }
        }
        RowGroups::Scattered(ids) => valid_runs(nulls, 0..ids.len(), |run| {
            kernels::count_by(&ids[run], counts);
        }),
    }
}

/// Adds one batch to the per-group row counts.
pub(crate) fn count_rows(counts: &mut Vec<i64>, rows: &RowGroups, total: usize) {
    counts.resize(total, 0);
    match rows {
        RowGroups::Runs(runs) => {
            for (rows, group) in runs {
                counts[*group as usize] += rows.len() as i64;
            }
        }
        RowGroups::Scattered(ids) => kernels::count_by(ids, counts),
    }
}

/// `count()` and `count(x)`.
#[derive(Debug)]
pub(crate) struct Count {
    non_null: NonNull,
}

impl Count {
    pub(crate) fn new() -> Self {
        Self { non_null: NonNull::default() }
    }
}

impl Accumulate for Count {
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()> {
        // Only dictionary keys are checked for nulls, since stored symbols are canonical.
        let nulls = values.first().and_then(|array| nulls_of(array));
        self.non_null.update(nulls, groups);
        Ok(())
    }

    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()> {
        self.non_null.merge(&same::<Self>(later)?.non_null, merging);
        Ok(())
    }

    fn finish(self: Box<Self>, counts: &[i64]) -> Result<ArrayRef> {
        let mut own = self.non_null.of(counts).to_vec();
        own.resize(counts.len(), 0);
        Ok(Arc::new(PrimitiveArray::<Int64Type>::new(own.into(), None)))
    }

    fn size(&self) -> usize {
        size_of_val(self.non_null.of(&[]))
    }

    fn copy(&self, groups: &[u32]) -> Option<Box<dyn Accumulate>> {
        Some(Box::new(Self { non_null: self.non_null.copy(groups) }))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A running sum of integers or doubles. Integer sums wrap on overflow.
pub(crate) trait SumKind: Copy + Default + Send + 'static {
    fn slice<T: Native>(values: &[T]) -> Self;
    fn scatter<T: Native>(values: &[T], groups: &[u32], sums: &mut [Self]);
    fn plus(self, other: Self) -> Self;
    /// Returns the sums as a column.
    fn array(sums: Vec<Self>, nulls: NullBuffer) -> ArrayRef;
    fn to_f64(self) -> f64;
}

impl SumKind for i64 {
    fn slice<T: Native>(values: &[T]) -> Self {
        kernels::sum_integer(values)
    }

    fn scatter<T: Native>(values: &[T], groups: &[u32], sums: &mut [Self]) {
        kernels::sum_integer_by(values, groups, sums);
    }

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn array(sums: Vec<Self>, nulls: NullBuffer) -> ArrayRef {
        // A sum equal to the smallest integer is null because that integer represents null in SQL.
        let valid = sums.iter().zip(&nulls).map(|(&sum, valid)| valid && sum != Self::MIN);
        let nulls = valid.collect::<NullBuffer>();
        Arc::new(PrimitiveArray::<Int64Type>::new(sums.into(), Some(nulls)))
    }

    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl SumKind for f64 {
    fn slice<T: Native>(values: &[T]) -> Self {
        kernels::sum_float(values)
    }

    fn scatter<T: Native>(values: &[T], groups: &[u32], sums: &mut [Self]) {
        kernels::sum_float_by(values, groups, sums);
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn array(sums: Vec<Self>, nulls: NullBuffer) -> ArrayRef {
        let valid = sums.iter().zip(&nulls).map(|(sum, valid)| valid && sum.is_finite());
        let nulls = valid.collect::<NullBuffer>();
        Arc::new(PrimitiveArray::<Float64Type>::new(sums.into(), Some(nulls)))
    }

    fn to_f64(self) -> f64 {
        self
    }
}

/// `sum(x)` and `avg(x)`.
#[derive(Debug)]
pub(crate) struct Sum<P: ArrowPrimitiveType, S> {
    sums: Vec<S>,
    non_null: NonNull,
    mean: bool,
    output: DataType,
    input: std::marker::PhantomData<fn() -> P>,
}

impl<P: ArrowPrimitiveType, S> Sum<P, S> {
    pub(crate) fn new(mean: bool, output: DataType) -> Self {
        let (sums, non_null) = (vec![], NonNull::default());
        Self { sums, non_null, mean, output, input: std::marker::PhantomData }
    }
}

impl<P, S> Accumulate for Sum<P, S>
where
    P: ArrowPrimitiveType<Native: Native>,
    S: SumKind,
{
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()> {
        let array = column::<P>(values)?;
        let (nulls, values) = (nulls_of(array), array.values().as_ref());
        self.non_null.update(nulls, groups);
        self.sums.resize(groups.total, S::default());
        match &groups.rows {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs {
                    let sum = &mut self.sums[*group as usize];
                    valid_runs(nulls, rows.clone(), |run| {
                        *sum = sum.plus(S::slice(&values[run]));
                    });
                }
            }
            RowGroups::Scattered(ids) => valid_runs(nulls, 0..ids.len(), |run| {
                S::scatter(&values[run.clone()], &ids[run], &mut self.sums);
            }),
        }
        Ok(())
    }

    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()> {
        let later = same::<Self>(later)?;
        self.non_null.merge(&later.non_null, merging);
        self.sums.resize(merging.total, S::default());
        for (&group, sum) in merging.mapping.iter().zip(later.sums) {
            let own = &mut self.sums[group as usize];
            *own = own.plus(sum);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, counts: &[i64]) -> Result<ArrayRef> {
        self.sums.resize(counts.len(), S::default());
        let nulls = self.non_null.nulls(counts);
        let array = if self.mean {
            let pairs = self.sums.iter().zip(self.non_null.of(counts));
            let mut means: Vec<f64> =
                pairs.map(|(sum, &count)| sum.to_f64() / count.max(1) as f64).collect();
            means.resize(counts.len(), 0.0);
            f64::array(means, nulls)
        } else {
            S::array(self.sums, nulls)
        };
        if *array.data_type() == self.output {
            return Ok(array);
        }
        Ok(cast(&array, &self.output)?)
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<S>() + size_of_val(self.non_null.of(&[]))
    }

    fn copy(&self, groups: &[u32]) -> Option<Box<dyn Accumulate>> {
        Some(Box::new(Self {
            sums: values_of(&self.sums, groups),
            non_null: self.non_null.copy(groups),
            ..Self::new(self.mean, self.output.clone())
        }))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// `min(x)` and `max(x)`.
#[derive(Debug)]
pub(crate) struct Extreme<P: ArrowPrimitiveType> {
    best: Vec<P::Native>,
    non_null: NonNull,
    greatest: bool,
    output: DataType,
}

impl<P: ArrowPrimitiveType<Native: Native>> Extreme<P> {
    pub(crate) fn new(greatest: bool, output: DataType) -> Self {
        Self { best: vec![], non_null: NonNull::default(), greatest, output }
    }

    fn better(&self, candidate: P::Native, best: P::Native) -> bool {
        if self.greatest { candidate > best } else { candidate < best }
    }

    /// Updates groups that already have a value.
    fn update_known(&mut self, values: &[P::Native], groups: &RowGroups) {
        match groups {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs {
                    let values = &values[rows.clone()];
                    let extreme = if self.greatest {
                        kernels::maximum(values)
                    } else {
                        kernels::minimum(values)
                    };
                    if let Some(value) = extreme
                        && self.better(value, self.best[*group as usize])
                    {
                        self.best[*group as usize] = value;
                    }
                }
            }
            RowGroups::Scattered(ids) if self.greatest => {
                kernels::maximum_by(values, ids, &mut self.best);
            }
            RowGroups::Scattered(ids) => kernels::minimum_by(values, ids, &mut self.best),
        }
    }

    /// Updates a group that may not have a value yet, in which case its count is 0.
    fn update_one(&mut self, value: P::Native, group: usize, counts: &mut [i64]) {
        if counts[group] == 0 || self.better(value, self.best[group]) {
            self.best[group] = value;
        }
        counts[group] += 1;
    }
}

impl<P: ArrowPrimitiveType<Native: Native>> Accumulate for Extreme<P> {
    fn update(&mut self, values: &[ArrayRef], groups: &BatchGroups<'_>) -> Result<()> {
        let array = column::<P>(values)?;
        let (nulls, values) = (nulls_of(array), array.values().as_ref());
        if self.non_null.own.is_none() && nulls.is_none() {
            self.best.extend(groups.new_rows.iter().map(|&row| values[row as usize]));
            self.update_known(values, &groups.rows);
            return Ok(());
        }
        self.best.resize(groups.total, P::Native::default());
        let mut own = std::mem::take(self.non_null.counted(groups.counts, groups.total));
        match &groups.rows {
            RowGroups::Runs(runs) => {
                for (rows, group) in runs {
                    valid_runs(nulls, rows.clone(), |run| {
                        for &value in &values[run] {
                            self.update_one(value, *group as usize, &mut own);
                        }
                    });
                }
            }
            RowGroups::Scattered(ids) => valid_runs(nulls, 0..ids.len(), |run| {
                for (&value, &group) in values[run.clone()].iter().zip(&ids[run]) {
                    self.update_one(value, group as usize, &mut own);
                }
            }),
        }
        self.non_null.own = Some(own);
        Ok(())
    }

    fn merge(&mut self, later: Box<dyn Accumulate>, merging: &Merging<'_>) -> Result<()> {
        let later = same::<Self>(later)?;
        self.best.resize(merging.total, P::Native::default());
        let own = self.non_null.of(merging.counts);
        let counts = later.non_null.of(merging.later_counts);
        for ((&group, &value), &count) in merging.mapping.iter().zip(&later.best).zip(counts) {
            let slot = group as usize;
            let empty = own.get(slot).is_none_or(|&count| count == 0);
            if count > 0 && (empty || self.better(value, self.best[slot])) {
                self.best[slot] = value;
            }
        }
        self.non_null.merge(&later.non_null, merging);
        Ok(())
    }

    fn finish(mut self: Box<Self>, counts: &[i64]) -> Result<ArrayRef> {
        self.best.resize(counts.len(), P::Native::default());
        let nulls = self.non_null.nulls(counts);
        let array = PrimitiveArray::<P>::new(self.best.into(), Some(nulls));
        Ok(cast(&array, &self.output)?)
    }

    fn size(&self) -> usize {
        self.best.capacity() * size_of::<P::Native>() + size_of_val(self.non_null.of(&[]))
    }

    fn copy(&self, groups: &[u32]) -> Option<Box<dyn Accumulate>> {
        Some(Box::new(Self {
            best: values_of(&self.best, groups),
            non_null: self.non_null.copy(groups),
            ..Self::new(self.greatest, self.output.clone())
        }))
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
