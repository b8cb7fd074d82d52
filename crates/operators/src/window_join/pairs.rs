//! Pairs of a left row and a right row in its window. Conditions on both sides, and aggregates
//! without an index, are evaluated for a limited number of pairs at a time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array,
    new_null_array,
};
use datafusion::arrow::compute::{concat, filter_record_batch, take};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_expr::PhysicalExpr;

use super::index::Window;
use super::plan::{Computed, WindowPlan};
use super::side::WindowSide;
use crate::sample_by::accumulator::{Accumulate, BatchGroups, RowGroups, count_rows};
use crate::sample_by::fallback::state_of;

/// Maximum number of pairs processed per step.
const MAX_PAIRS: usize = 16 * 1024;
/// Number of rows examined in the first step of the backward search for the prevailing row.
const FIRST_STEP: usize = 64;
const NO_GROUP: u32 = u32::MAX;

/// Right rows for one left row: its window and, separately, the prevailing row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) before: Option<usize>,
    pub(crate) window: Window,
}

/// Iterates over a batch's pairs.
struct Walk<'a> {
    spans: &'a [Span],
    row: usize,
    /// Number of pairs already returned for `row`.
    seen: usize,
}

impl<'a> Walk<'a> {
    fn new(spans: &'a [Span]) -> Self {
        Self { spans, row: 0, seen: 0 }
    }

    /// Returns the next pairs as left rows and right positions, both ascending.
    fn next(&mut self) -> Option<(Vec<u32>, Vec<usize>)> {
        let (mut left, mut right) = (vec![], vec![]);
        while let Some(span) = self.spans.get(self.row)
            && left.len() < MAX_PAIRS
        {
            if self.seen == 0 {
                right.extend(span.before);
            }
            let already = self.seen.saturating_sub(usize::from(span.before.is_some()));
            let start = span.window.start + already;
            let end = span.window.end.min(start + MAX_PAIRS - left.len());
            right.extend(start..end);
            self.seen += right.len() - left.len();
            left.resize(right.len(), self.row as u32);
            if end >= span.window.end {
                (self.row, self.seen) = (self.row + 1, 0);
            }
        }
        (!left.is_empty()).then_some((left, right))
    }
}

/// Returns the pairs as a batch; columns that no expression reads are null.
fn pair_batch(
    plan: &WindowPlan,
    side: &WindowSide,
    batch: &RecordBatch,
    (left, right): (&[u32], &[usize]),
) -> Result<RecordBatch> {
    let width = batch.num_columns();
    let left_rows = UInt32Array::from(left.to_vec());
    let right_rows: Vec<u64> = right.iter().map(|&position| side.row(position)).collect();
    let columns = plan.pair_schema.fields().iter().enumerate().map(|(index, field)| {
        if !plan.paired.contains(&index) {
            return Ok(new_null_array(field.data_type(), left.len()));
        }
        match index.checked_sub(width) {
            None => Ok(take(batch.column(index), &left_rows, None)?),
            Some(index) => side.right().gather_column(index, &right_rows),
        }
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(left.len()));
    let schema = Arc::clone(&plan.pair_schema);
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// Returns the pairs that satisfy the condition.
fn mask(filter: &Arc<dyn PhysicalExpr>, pairs: &RecordBatch) -> Result<BooleanArray> {
    let mask = filter.evaluate(pairs)?.into_array(pairs.num_rows())?;
    let mask = mask.as_boolean_opt().cloned();
    mask.ok_or_else(|| internal_datafusion_err!("a join condition is not BOOLEAN"))
}

/// For each window start, finds the newest right row that satisfies the condition and is not after
/// the window start. `starts` contains the first position after each window start. The search
/// proceeds backward in increasing steps.
pub(crate) async fn find_prevailing(
    plan: &WindowPlan,
    side: &WindowSide,
    batch: &RecordBatch,
    (first, starts): (&[usize], &[usize]),
) -> Result<Vec<Option<usize>>> {
    let mut found: Vec<Option<usize>> = vec![None; starts.len()];
    let Some(filter) = &plan.filter else { return Ok(found) };
    let mut ends = starts.to_vec();
    let mut step = FIRST_STEP;
    loop {
        let spans: Vec<Span> = (0..starts.len())
            .map(|row| {
                let end = if found[row].is_some() { first[row] } else { ends[row] };
                let start = end.saturating_sub(step).max(first[row]);
                Span { before: None, window: Window { start, end } }
            })
            .collect();
        let mut walk = Walk::new(&spans);
        let mut any = false;
        while let Some((left, right)) = walk.next() {
            any = true;
            tokio::task::coop::consume_budget().await;
            let pairs = pair_batch(plan, side, batch, (&left, &right))?;
            let mask = mask(filter, &pairs)?;
            for (pair, (&row, &position)) in left.iter().zip(&right).enumerate() {
                if mask.is_valid(pair) && mask.value(pair) {
                    found[row as usize] = Some(position);
                }
            }
        }
        if !any {
            return Ok(found);
        }
        for (end, span) in ends.iter_mut().zip(&spans) {
            *end = span.window.start;
        }
        step = (step * 4).min(MAX_PAIRS);
    }
}

/// Computes the aggregates over pairs, with one value per left row; `None` for indexed aggregates.
pub(crate) async fn aggregate(
    plan: &WindowPlan,
    side: &WindowSide,
    batch: &RecordBatch,
    spans: &[Span],
) -> Result<Vec<Option<ArrayRef>>> {
    let mut states = fresh(plan)?;
    let mut groups = Groups { of_row: vec![NO_GROUP; spans.len()], counts: vec![] };
    let mut walk = Walk::new(spans);
    while let Some((left, right)) = walk.next() {
        tokio::task::coop::consume_budget().await;
        let mut left = left;
        let mut pairs = pair_batch(plan, side, batch, (&left, &right))?;
        if let Some(filter) = &plan.filter {
            let mask = mask(filter, &pairs)?;
            pairs = filter_record_batch(&pairs, &mask)?;
            let mut retained = mask.iter();
            left.retain(|_| retained.next().flatten() == Some(true));
        }
        groups.update(&left, &pairs, plan, &mut states)?;
    }
    groups.finish(plan, states)
}

type States = Vec<Option<Box<dyn Accumulate>>>;

fn fresh(plan: &WindowPlan) -> Result<States> {
    let states = plan.aggregates.iter().map(|aggregate| {
        if matches!(aggregate.computed, Computed::Indexed(_)) {
            return Ok(None);
        }
        let aggregate = &aggregate.plan;
        let argument = aggregate.arguments.first();
        let argument =
            argument.map(|argument| argument.data_type(&plan.pair_schema)).transpose()?;
        let filtered = aggregate.filter.is_some();
        state_of(&aggregate.function, argument.as_ref(), filtered, None).map(Some)
    });
    states.collect()
}

/// Groups of pairs, one for each left row that has a pair.
struct Groups {
    of_row: Vec<u32>,
    /// Number of pairs per group.
    counts: Vec<i64>,
}

impl Groups {
    fn update(
        &mut self,
        left: &[u32],
        pairs: &RecordBatch,
        plan: &WindowPlan,
        states: &mut States,
    ) -> Result<()> {
        let (mut runs, mut new_rows) = (vec![], vec![]);
        let mut total = self.counts.len();
        let mut start = 0;
        for same in left.chunk_by(|one, other| one == other) {
            let group = &mut self.of_row[same[0] as usize];
            if *group == NO_GROUP {
                *group = total as u32;
                total += 1;
                new_rows.push(start as u32);
            }
            runs.push((start..start + same.len(), *group));
            start += same.len();
        }
        if start == 0 {
            return Ok(());
        }
        let rows = RowGroups::Runs(runs);
        let groups = BatchGroups { rows, new_rows, counts: &self.counts, total };
        for (aggregate, state) in plan.aggregates.iter().zip(states) {
            let Some(state) = state else { continue };
            let arguments = aggregate.plan.arguments.iter().chain(&aggregate.plan.filter);
            let values = arguments.map(|expr| expr.evaluate(pairs)?.into_array(pairs.num_rows()));
            state.update(&values.collect::<Result<Vec<_>>>()?, &groups)?;
        }
        let rows = groups.rows;
        count_rows(&mut self.counts, &rows, total);
        Ok(())
    }

    /// Returns each aggregate's value for each left row. For rows without pairs, it is the
    /// aggregate's value for an empty input.
    fn finish(self, plan: &WindowPlan, states: States) -> Result<Vec<Option<ArrayRef>>> {
        let groups = self.counts.len() as u32;
        let rows: UInt32Array = self.of_row.iter().map(|&group| Some(group.min(groups))).collect();
        let mut columns = Vec::with_capacity(states.len());
        for ((aggregate, state), empty) in plan.aggregates.iter().zip(states).zip(fresh(plan)?) {
            let (Some(state), Some(mut empty)) = (state, empty) else {
                columns.push(None);
                continue;
            };
            let arguments = aggregate.plan.arguments.iter().chain(&aggregate.plan.filter);
            let none = arguments
                .map(|expr| Ok(new_empty_array(&expr.data_type(&plan.pair_schema)?)))
                .collect::<Result<Vec<_>>>()?;
            let nothing = BatchGroups {
                rows: RowGroups::Runs(vec![]),
                new_rows: vec![],
                counts: &[],
                total: 1,
            };
            empty.update(&none, &nothing)?;
            let nothing = empty.finish(&[0])?;
            let all = if groups == 0 {
                nothing
            } else {
                concat(&[state.finish(&self.counts)?.as_ref(), nothing.as_ref()])?
            };
            columns.push(Some(take(&all, &rows, None)?));
        }
        Ok(columns)
    }
}
