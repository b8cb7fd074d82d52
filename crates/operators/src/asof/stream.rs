//! An ASOF join worker: left batches in, joined batches out.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use tidemark_kernels::{Cursor, NO_MATCH, UNKNOWN, match_keyed, match_unkeyed, unpack};

use super::node::AsofKind;
use super::plan::AsofPlan;
use super::right::RightSide;
use crate::sample_by::partial::timestamps;

/// A worker's position in the right side.
///
/// It starts at the timestamp of the worker's first left row, not at the beginning of the right
/// side. Keys whose last row is further back are searched for only when a left row needs them.
pub(crate) struct Matcher {
    plan: Arc<AsofPlan>,
    right: Arc<RightSide>,
    started: bool,
    cursor: Cursor,
    /// In joins without keys, the row before the cursor.
    before: u64,
    /// In joins with keys, the position the backward search has reached.
    back: Cursor,
    last: Vec<u64>,
    matches: Vec<u64>,
}

impl Matcher {
    pub(crate) fn new(plan: Arc<AsofPlan>, right: Arc<RightSide>) -> Self {
        let last = vec![UNKNOWN; right.space().len()];
        Self {
            plan,
            right,
            started: false,
            cursor: Cursor::default(),
            before: NO_MATCH,
            back: Cursor::default(),
            last,
            matches: vec![],
        }
    }

    /// Joins the next batch in time order.
    pub(crate) fn join(&mut self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let times = timestamps(&self.plan.left_timestamp, batch)?;
        let mut columns = batch.columns().to_vec();
        columns.extend(self.matched(&times, batch)?);
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }

    /// Returns the right-side columns for a batch. Each row of the batch is matched at its entry in
    /// `times`.
    pub(crate) fn matched(&mut self, times: &[i64], batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.matches.clear();
        if let Some(&first) = times.first() {
            self.find(times, first, batch)?;
        }
        self.right.gather(&self.matches)
    }

    /// Memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        8 * (self.last.capacity() + self.matches.capacity())
    }

    fn find(&mut self, times: &[i64], first: i64, batch: &RecordBatch) -> Result<()> {
        let right = Arc::clone(&self.right);
        let strict = self.plan.kind == AsofKind::Lt;
        if !self.started {
            let bound = first.saturating_sub(i64::from(strict));
            (self.cursor, self.before) = right.seek(bound);
            self.back = self.cursor;
            self.started = true;
        }
        let chunks = right.chunks();
        if self.plan.keys.is_empty() {
            let (cursor, before) = (&mut self.cursor, &mut self.before);
            match_unkeyed(times, &chunks, cursor, before, strict, &mut self.matches);
        } else {
            let evaluate =
                |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(batch.num_rows());
            let keys = self.plan.keys.iter().map(|(left, _)| evaluate(left));
            let keys = right.space().find_left(&keys.collect::<Result<Vec<_>>>()?)?;
            // Time only increases, so no later left row needs a right row before `oldest`.
            let oldest = self.plan.tolerance.map_or(i64::MIN, |span| first.saturating_sub(span));
            let back = &mut self.back;
            match_keyed(
                times,
                &keys,
                &chunks,
                &mut self.cursor,
                &mut self.last,
                strict,
                &mut self.matches,
                |last, key| right.look_back(back, last, key, oldest),
            );
        }
        if let Some(tolerance) = self.plan.tolerance {
            self.forget_distant(times, tolerance);
        }
        Ok(())
    }

    fn forget_distant(&mut self, times: &[i64], tolerance: i64) {
        for (found, &ts) in self.matches.iter_mut().zip(times) {
            let matched = self.right.time_of(unpack(*found));
            if matched.is_some_and(|matched| ts.saturating_sub(matched) > tolerance) {
                *found = NO_MATCH;
            }
        }
    }
}
