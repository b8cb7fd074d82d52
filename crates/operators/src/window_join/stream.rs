//! A WINDOW JOIN worker: left batches in, batches with aggregates out.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use super::index::Window;
use super::pairs::{self, Span};
use super::plan::{BoundPlan, Computed, WindowPlan};
use super::side::WindowSide;
use crate::sample_by::partial::timestamps;

/// A worker's position in the right side.
pub(crate) struct Worker {
    plan: Arc<WindowPlan>,
    side: Arc<WindowSide>,
    schema: SchemaRef,
    /// Bounds of each key's last window. If all windows have the same length, the searches for
    /// later left rows start at these bounds.
    hints: Vec<Window>,
}

/// Distances of one bound from a batch's timestamps.
enum Distances {
    Same(Option<i64>),
    Each(Int64Array),
}

impl Distances {
    fn of(bound: &BoundPlan, batch: &RecordBatch) -> Result<Self> {
        if bound.is_constant() {
            return Ok(Self::Same(bound.constant()));
        }
        let values = match bound.distance.evaluate(batch)? {
            ColumnarValue::Array(values) => values,
            scalar @ ColumnarValue::Scalar(_) => scalar.into_array(batch.num_rows())?,
        };
        let values = values.as_primitive::<Int64Type>();
        Ok(Self::Each(values.iter().map(|value| value.map(|value| bound.signed(value))).collect()))
    }

    fn at(&self, row: usize) -> Option<i64> {
        match self {
            Self::Same(distance) => *distance,
            Self::Each(values) => values.is_valid(row).then(|| values.value(row)),
        }
    }
}

impl Worker {
    pub(crate) fn new(plan: Arc<WindowPlan>, side: Arc<WindowSide>, schema: SchemaRef) -> Self {
        let hints = (0..side.keys()).map(|key| side.of_key(key as u32));
        let hints = hints.map(|rows| Window { start: rows.start, end: rows.start }).collect();
        Self { plan, side, schema, hints }
    }

    /// Joins the next batch in time order.
    pub(crate) async fn join(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let plan = Arc::clone(&self.plan);
        let spans = match &plan.filter {
            Some(_) => self.filtered_spans(batch).await?,
            None => self.spans(batch, plan.include_prevailing)?,
        };
        let windows: Vec<Window> = spans.iter().map(|span| span.window).collect();
        let mut columns = batch.columns().to_vec();
        let pairwise = plan.aggregates.iter().any(|one| matches!(one.computed, Computed::Pairs));
        let mut computed = if pairwise {
            pairs::aggregate(&plan, &self.side, batch, &spans).await?
        } else {
            vec![None; plan.aggregates.len()]
        };
        for (number, computed) in computed.iter_mut().enumerate() {
            let column = match (computed.take(), self.side.index(number)) {
                (Some(column), _) => column,
                (None, Some(index)) => index.over(&windows)?,
                (None, None) => continue,
            };
            columns.push(self.shaped(column, batch.num_columns() + number)?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    fn shaped(&self, column: ArrayRef, index: usize) -> Result<ArrayRef> {
        let data_type = self.schema.field(index).data_type();
        if column.data_type() == data_type { Ok(column) } else { Ok(cast(&column, data_type)?) }
    }

    /// Returns a batch's windows. With `prevailing`, each window includes its prevailing row.
    fn spans(&mut self, batch: &RecordBatch, prevailing: bool) -> Result<Vec<Span>> {
        let plan = Arc::clone(&self.plan);
        let times = timestamps(&plan.left_timestamp, batch)?;
        let evaluate =
            |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(batch.num_rows());
        let keys = plan.keys.iter().map(|(left, _)| evaluate(left));
        let keys = self.side.right().space().find_left(&keys.collect::<Result<Vec<_>>>()?)?;
        let (low, high) = (Distances::of(&plan.low, batch)?, Distances::of(&plan.high, batch)?);
        let moving = matches!((&low, &high), (Distances::Same(_), Distances::Same(_)));
        let mut spans = Vec::with_capacity(times.len());
        for (row, &ts) in times.iter().enumerate() {
            let key = if plan.keys.is_empty() { 0 } else { keys[row] };
            let of_key = self.side.of_key(key);
            let ends = low.at(row).zip(high.at(row)).filter(|_| of_key.start < of_key.end);
            let Some((low, high)) = ends else {
                spans.push(Span { before: None, window: Window::default() });
                continue;
            };
            let (low, high) = (ts.saturating_add(low), ts.saturating_add(high));
            let from = if moving {
                self.hints[key as usize]
            } else {
                Window { start: of_key.start, end: of_key.start }
            };
            let start = self.side.at_or_after(of_key, from.start, low);
            let end = self.side.after(of_key, from.end.max(start), high);
            if moving {
                self.hints[key as usize] = Window { start, end };
            }
            let at_low = start < of_key.end && self.side.time(start) == low;
            let before = prevailing && !at_low && start > of_key.start;
            let window = Window { start: start - usize::from(before), end };
            spans.push(Span { before: None, window });
        }
        Ok(spans)
    }

    /// Like [`Self::spans`], but for a prevailing row that must satisfy a condition on both sides.
    async fn filtered_spans(&mut self, batch: &RecordBatch) -> Result<Vec<Span>> {
        let mut spans = self.spans(batch, false)?;
        if !self.plan.include_prevailing {
            return Ok(spans);
        }
        let (plan, side) = (Arc::clone(&self.plan), Arc::clone(&self.side));
        let times = timestamps(&plan.left_timestamp, batch)?;
        let low = Distances::of(&plan.low, batch)?;
        let evaluate =
            |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(batch.num_rows());
        let keys = plan.keys.iter().map(|(left, _)| evaluate(left));
        let keys = side.right().space().find_left(&keys.collect::<Result<Vec<_>>>()?)?;
        let (mut first, mut starts) = (vec![], vec![]);
        let mut lows = vec![];
        for (row, &ts) in times.iter().enumerate() {
            let of_key = side.of_key(if plan.keys.is_empty() { 0 } else { keys[row] });
            let low = low.at(row).map(|low| ts.saturating_add(low));
            first.push(of_key.start);
            starts.push(low.map_or(of_key.start, |low| side.after(of_key, of_key.start, low)));
            lows.push(low.unwrap_or(i64::MIN));
        }
        let found = pairs::find_prevailing(&plan, &side, batch, (&first, &starts)).await?;
        for ((span, found), low) in spans.iter_mut().zip(found).zip(lows) {
            // A row exactly at the window's start is already part of the window.
            span.before = found.filter(|&position| side.time(position) < low);
        }
        Ok(spans)
    }
}
