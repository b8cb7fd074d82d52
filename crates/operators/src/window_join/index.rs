//! Aggregates over many ranges of one right column, computed without reading the individual ranges.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use datafusion::arrow::compute::{cast, take};
use datafusion::common::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use tidemark_kernels::{
    Combine, GreatestDouble, GreatestInteger, LeastDouble, LeastInteger, RangeTree, SumOfDoubles,
};

use crate::sample_by::edge::EdgeKind;

/// Positions of the right rows for one left row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// An aggregate over a single column.
pub(crate) trait RangeAggregate: Send + Sync {
    /// Returns one value per window.
    fn over(&self, windows: &[Window]) -> Result<ArrayRef>;
    /// Memory used, in bytes.
    fn size(&self) -> usize;
}

/// Kind of an aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Count,
    Sum,
    Mean,
    Least,
    Greatest,
    Edge(EdgeKind),
}

/// Returns an aggregate's kind, if an index can compute it.
pub(crate) fn kind_of(
    aggregate: &AggregateFunctionExpr,
    argument: Option<&DataType>,
) -> Option<Kind> {
    if aggregate.is_distinct() || !aggregate.order_bys().is_empty() {
        return None;
    }
    let output = aggregate.field().data_type().clone();
    let (name, argument) = match (aggregate.fun().name(), argument) {
        ("count", _) if output == DataType::Int64 => return Some(Kind::Count),
        (name, argument) => (name, argument?),
    };
    let integer = argument.is_signed_integer();
    let floating = matches!(argument, DataType::Float32 | DataType::Float64);
    let ordered = integer
        || floating
        || matches!(argument, DataType::Timestamp(_, None) | DataType::UInt16 | DataType::UInt32);
    match name {
        "sum" if integer && output == DataType::Int64 => Some(Kind::Sum),
        "sum" if floating && output.is_floating() => Some(Kind::Sum),
        "avg" if (integer || floating) && output == DataType::Float64 => Some(Kind::Mean),
        "min" if ordered => Some(Kind::Least),
        "max" if ordered => Some(Kind::Greatest),
        "first" | "last" | "first_not_null" | "last_not_null" if *argument == output => {
            let last = name.starts_with("last");
            Some(Kind::Edge(EdgeKind { last, not_null: name.ends_with("not_null") }))
        }
        _ => None,
    }
}

/// Builds the index for an aggregate over a column; without a column, the aggregate counts rows.
pub(crate) fn build(
    kind: Kind,
    column: Option<&ArrayRef>,
    output: DataType,
) -> Result<Box<dyn RangeAggregate>> {
    let (Some(column), false) = (column, kind == Kind::Count) else {
        return Ok(Box::new(Counts::of(column)));
    };
    let floating = column.data_type().is_floating();
    Ok(match kind {
        Kind::Count => Box::new(Counts::of(Some(column))),
        Kind::Sum if !floating => Box::new(IntegerSum::of(&integers(column)?)),
        Kind::Sum => doubles::<SumOfDoubles>(column, output, false)?,
        Kind::Mean => doubles::<SumOfDoubles>(column, output, true)?,
        Kind::Least if floating => doubles::<LeastDouble>(column, output, false)?,
        Kind::Greatest if floating => doubles::<GreatestDouble>(column, output, false)?,
        Kind::Least => extreme::<LeastInteger>(column, output)?,
        Kind::Greatest => extreme::<GreatestInteger>(column, output)?,
        Kind::Edge(kind) => Box::new(Edges::of(kind, column)),
    })
}

fn integers(column: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Running count of non-null values.
#[derive(Debug)]
struct Counts {
    /// Count before each row; `None` if no value is null.
    before: Option<Vec<u32>>,
}

impl Counts {
    fn of(column: Option<&ArrayRef>) -> Self {
        let nulls = column.and_then(Array::logical_nulls);
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Self { before: nulls.map(|nulls| running(&nulls)) }
    }

    fn of_window(&self, window: &Window) -> u32 {
        match &self.before {
            None => (window.end - window.start) as u32,
            Some(before) => before[window.end] - before[window.start],
        }
    }

    fn nulls(&self, windows: &[Window]) -> NullBuffer {
        windows.iter().map(|window| self.of_window(window) > 0).collect()
    }

    fn bytes(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.capacity() * 4)
    }
}

fn running(nulls: &NullBuffer) -> Vec<u32> {
    let mut count = 0;
    let mut before = Vec::with_capacity(nulls.len() + 1);
    before.push(count);
    for valid in nulls {
        count += u32::from(valid);
        before.push(count);
    }
    before
}

impl RangeAggregate for Counts {
    fn over(&self, windows: &[Window]) -> Result<ArrayRef> {
        let counts = windows.iter().map(|window| i64::from(self.of_window(window)));
        Ok(Arc::new(Int64Array::from_iter_values(counts)))
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

/// Integer sums wrap, so the difference between two running sums is exact.
#[derive(Debug)]
struct IntegerSum {
    before: Vec<i64>,
    counts: Counts,
}

impl IntegerSum {
    fn of(column: &Int64Array) -> Self {
        let counted: ArrayRef = Arc::new(column.clone());
        let mut sum = 0_i64;
        let mut before = Vec::with_capacity(column.len() + 1);
        before.push(sum);
        for value in column {
            sum = sum.wrapping_add(value.unwrap_or(0));
            before.push(sum);
        }
        Self { before, counts: Counts::of(Some(&counted)) }
    }
}

impl RangeAggregate for IntegerSum {
    fn over(&self, windows: &[Window]) -> Result<ArrayRef> {
        let sums = windows.iter().map(|window| {
            let sum = self.before[window.end].wrapping_sub(self.before[window.start]);
            // A sum equal to the smallest integer is null because that integer represents null in
            // SQL.
            (self.counts.of_window(window) > 0 && sum != i64::MIN).then_some(sum)
        });
        Ok(Arc::new(sums.collect::<Int64Array>()))
    }

    fn size(&self) -> usize {
        self.before.capacity() * 8 + self.counts.bytes()
    }
}

/// Sums, means and extremes of doubles.
struct Doubles<C: Combine<Value = f64>> {
    tree: RangeTree<C>,
    counts: Counts,
    mean: bool,
    output: DataType,
}

fn doubles<C: Combine<Value = f64>>(
    column: &ArrayRef,
    output: DataType,
    mean: bool,
) -> Result<Box<dyn RangeAggregate>> {
    let values = cast(column, &DataType::Float64)?;
    let values = values.as_primitive::<Float64Type>();
    let tree = RangeTree::new(values.iter().map(|value| value.unwrap_or(C::NEUTRAL)).collect());
    Ok(Box::new(Doubles::<C> { tree, counts: Counts::of(Some(column)), mean, output }))
}

impl<C: Combine<Value = f64>> RangeAggregate for Doubles<C> {
    fn over(&self, windows: &[Window]) -> Result<ArrayRef> {
        let values = windows.iter().map(|window| {
            let count = self.counts.of_window(window);
            let total = self.tree.over(window.start, window.end);
            let value = if self.mean { total / f64::from(count) } else { total };
            (count > 0 && value.is_finite()).then_some(value)
        });
        let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
        Ok(cast(&values, &self.output)?)
    }

    fn size(&self) -> usize {
        self.tree.size() + self.counts.bytes()
    }
}

/// Extremes of integers, timestamps and codes.
struct Extremes<C: Combine<Value = i64>> {
    tree: RangeTree<C>,
    counts: Counts,
    output: DataType,
}

fn extreme<C: Combine<Value = i64>>(
    column: &ArrayRef,
    output: DataType,
) -> Result<Box<dyn RangeAggregate>> {
    let values = integers(column)?;
    let tree = RangeTree::new(values.iter().map(|value| value.unwrap_or(C::NEUTRAL)).collect());
    Ok(Box::new(Extremes::<C> { tree, counts: Counts::of(Some(column)), output }))
}

impl<C: Combine<Value = i64>> RangeAggregate for Extremes<C> {
    fn over(&self, windows: &[Window]) -> Result<ArrayRef> {
        let values = windows.iter().map(|window| self.tree.over(window.start, window.end));
        let values = Int64Array::new(values.collect(), Some(self.counts.nulls(windows)));
        Ok(cast(&values, &self.output)?)
    }

    fn size(&self) -> usize {
        self.tree.size() + self.counts.bytes()
    }
}

/// First and last values.
struct Edges {
    kind: EdgeKind,
    column: ArrayRef,
    /// For each row, the nearest row with a value, counting the row itself: the next such row for
    /// `first`, the previous one for `last`.
    valid: Option<Vec<u32>>,
}

const NONE: u32 = u32::MAX;

impl Edges {
    fn of(kind: EdgeKind, column: &ArrayRef) -> Self {
        let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let nulls = nulls.filter(|_| kind.not_null);
        let valid = nulls.map(|nulls| {
            let mut found = vec![NONE; nulls.len()];
            let mut near = NONE;
            let mut note = |row: usize| {
                if nulls.is_valid(row) {
                    near = row as u32;
                }
                found[row] = near;
            };
            if kind.last {
                (0..nulls.len()).for_each(&mut note);
            } else {
                (0..nulls.len()).rev().for_each(&mut note);
            }
            found
        });
        Self { kind, column: Arc::clone(column), valid }
    }

    fn row(&self, window: &Window) -> Option<u32> {
        if window.start >= window.end {
            return None;
        }
        let edge = if self.kind.last { window.end - 1 } else { window.start };
        let row = self.valid.as_ref().map_or(edge as u32, |valid| valid[edge]);
        let inside = (window.start..window.end).contains(&(row as usize));
        (row != NONE && inside).then_some(row)
    }
}

impl RangeAggregate for Edges {
    fn over(&self, windows: &[Window]) -> Result<ArrayRef> {
        let rows: UInt32Array = windows.iter().map(|window| self.row(window)).collect();
        Ok(take(&self.column, &rows, None)?)
    }

    fn size(&self) -> usize {
        self.column.get_array_memory_size()
            + self.valid.as_ref().map_or(0, |valid| valid.capacity() * 4)
    }
}
