//! Selects the buckets of a materialized view that must be computed because they changed.

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use tidemark_catalog::{IncrementalState, IncrementalView};
use tidemark_operators::GroupCache;
use tidemark_planner::{Buckets, IncrementalRows, Planner};
use tidemark_storage::{Change, TableSnapshot, TimeRange};
use tidemark_types::calendar::{MICROS_PER_HOUR, add_months};
use tidemark_types::{EngineError, EngineResult};

use super::due::{Done, Due, closed_until};
use super::live_state::REBUILT;
use super::open_groups::{OpenGroups, Reading};
use super::refresh::{Filling, Refresh, bounds, fewer};
use crate::runtime::registry::now_micros;

type BucketRows = IncrementalRows<Buckets>;

impl Refresh<'_> {
    pub(super) async fn refresh_buckets(self, what: &Due) -> EngineResult<Done> {
        match self.rows(*what == Due::Rebuild).await? {
            Some(rows) => self.compute(rows, what).await,
            None => Ok(Done::Again),
        }
    }

    async fn compute(self, rows: BucketRows, what: &Due) -> EngineResult<Done> {
        let table = self.table()?;
        let scale = if rows.shape.spec.nanoseconds { 1_000 } else { 1 };
        let closed = closed_until(self.view, &rows.shape.spec, now_micros());
        let closed = if closed == i64::MAX {
            closed
        } else {
            // A bucket that extends past the end of a period is shown only after the bucket has
            // ended.
            let closed = closed.saturating_mul(scale);
            rows.shape.spec.around(closed, closed).0
        };
        let is_full = self.is_full(&rows, what, closed);
        let ranges = match self.ranges(&rows, &table, what, closed).filter(|_| !is_full) {
            Some(ranges) => ranges,
            None if closed == i64::MAX => Vec::new(),
            None => vec![TimeRange { lo: i64::MIN, hi: closed }],
        };
        if ranges.is_empty() && !is_full && self.is_nothing(what) {
            return Ok(Done::Nothing);
        }
        self.commit(rows, &table, what, (ranges, is_full, closed)).await?;
        Ok(Done::Again)
    }

    /// Whether the entire view must be computed, because a client requested it, the changes are
    /// unknown, or the view shows periods that have not ended.
    fn is_full(&self, rows: &BucketRows, what: &Due, closed: i64) -> bool {
        let shows_later = self.state.shown_until.is_none_or(|until| until > closed);
        match what {
            Due::Full | Due::Rebuild => true,
            Due::Range(..) => rows.shape.crosses_buckets,
            Due::Changed => {
                rows.base.schema().id != self.view.base
                    || (closed != i64::MAX && shows_later)
                    || self
                        .changed()
                        .is_none_or(|spans| rows.shape.crosses_buckets && !spans.is_empty())
            }
        }
    }

    /// True if there is nothing to record, not even the completion of a request.
    fn is_nothing(&self, what: &Due) -> bool {
        let leaves_out = self.view.period.is_some();
        *what == Due::Changed && self.state.request.is_none() && (self.is_shown() || leaves_out)
    }

    /// Returns the complete buckets to compute, disjoint and in ascending order; `None` if they are
    /// unknown.
    fn ranges(
        &self,
        rows: &BucketRows,
        table: &TableSnapshot,
        what: &Due,
        closed: i64,
    ) -> Option<Vec<TimeRange>> {
        let mut spans: Vec<(i64, i64)> = Vec::new();
        match *what {
            Due::Range(from, to) => spans.push((from, to.saturating_sub(1).max(from))),
            Due::Full | Due::Rebuild | Due::Changed => {
                spans = self.changed()?;
                if let Some(until) = self.state.shown_until.filter(|until| *until < closed) {
                    spans.push((until, closed - 1));
                }
            }
        }
        // A view row represents its entire bucket, so it must be recomputed even if the bucket's
        // last rows were deleted.
        let shown = table.time_bounds();
        let shown = shown.map(|(first, last)| (first, rows.shape.spec.around(last, last).1 - 1));
        let Some(bounds) = bounds(&rows.base, shown) else { return Some(Vec::new()) };
        let first = match what {
            Due::Changed => self.first_shown(rows),
            Due::Full | Due::Rebuild | Due::Range(..) => i64::MIN,
        };
        let mut ranges: Vec<TimeRange> = Vec::new();
        spans.sort_unstable();
        for (from, to) in spans {
            let (from, to) = (from.max(bounds.0), to.min(bounds.1));
            if from > to {
                continue;
            }
            let (lo, hi) = rows.shape.spec.around(from, to);
            let (lo, hi) = (lo.max(first), hi.min(closed));
            match ranges.last_mut() {
                _ if lo >= hi => {}
                Some(last) if lo <= last.hi => last.hi = last.hi.max(hi),
                _ => ranges.push(TimeRange { lo, hi }),
            }
        }
        Some(fewer(ranges))
    }

    /// Returns the timestamp, in the base's unit, before which late rows are ignored.
    fn first_shown(&self, rows: &BucketRows) -> i64 {
        let now = now_micros();
        let limit = match self.view.limit_hours_or_months {
            0 => return i64::MIN,
            hours if hours > 0 => now.saturating_sub(hours.saturating_mul(MICROS_PER_HOUR)),
            months => add_months(now, months),
        };
        let limit = limit.saturating_mul(if rows.shape.spec.nanoseconds { 1_000 } else { 1 });
        rows.shape.spec.around(limit, limit).0
    }

    /// Invalidates the live views over this view, because the entire view is recomputed.
    fn end_live_views(&self, changes: &mut Vec<Change>) -> EngineResult<()> {
        for other in IncrementalView::all(self.snapshot) {
            if other.base != self.view.table || other.live.is_none() {
                continue;
            }
            let state = IncrementalState::of(self.snapshot, other.table);
            let invalid = Some(REBUILT.to_owned());
            changes.push(IncrementalState::expect(self.snapshot, other.table));
            changes.push(IncrementalState { invalid, ..state }.put(other.table)?);
        }
        Ok(())
    }

    async fn commit(
        self,
        rows: BucketRows,
        table: &Arc<TableSnapshot>,
        what: &Due,
        (ranges, is_full, closed): (Vec<TimeRange>, bool, i64),
    ) -> EngineResult<()> {
        let base = rows.base.schema().id;
        let is_behind = matches!(what, Due::Range(..));
        let mut more = Vec::new();
        if is_full {
            let base_name = rows.base.schema().name.clone();
            let sources = rows.sources.clone();
            let view = IncrementalView { base, base_name, sources, ..self.view.clone() };
            if view != *self.view {
                more.push(view.put()?);
            }
            if self.state.position.is_some() {
                self.end_live_views(&mut more)?;
            }
        }
        let shown_until = (closed != i64::MAX).then_some(closed);
        let state = IncrementalState {
            position: if is_behind { self.state.position } else { Some(self.snapshot.lsn()) },
            shown_until: if is_behind { self.state.shown_until } else { shown_until },
            invalid: if is_full { None } else { self.state.invalid.clone() },
            ..IncrementalState::default()
        };
        let (plan, open) = self.planned(rows, &ranges, is_full, is_behind)?;
        self.fill(table, Filling { plan, base, is_full, cleared: ranges, state, more }).await?;
        if let Some(open) = open {
            self.refresher.with(self.view.table, |progress| progress.groups = Some(open));
        }
        Ok(())
    }

    /// Returns the plan for the rows of some buckets. Also returns the aggregation state to resume
    /// from and to retain.
    fn planned(
        &self,
        rows: BucketRows,
        ranges: &[TimeRange],
        is_full: bool,
        is_behind: bool,
    ) -> EngineResult<(LogicalPlan, Option<OpenGroups>)> {
        let is_all = is_full && ranges.is_empty();
        let base = rows.base.schema().id;
        let read = |plan, ranges: &[TimeRange]| {
            if is_all { Ok(plan) } else { Planner::within_times(plan, base, ranges) }
        };
        // The retained groups are valid for the view's position, which a refresh of a range does
        // not change.
        if is_behind {
            return Ok((read(rows.plan, ranges)?, None));
        }
        let known = self.refresher.with(self.view.table, |progress| progress.groups.take());
        let known = known.flatten().filter(|_| !is_full);
        let reading = Reading {
            view: self.view,
            state: &self.state,
            rows: &rows,
            touched: self.touched.as_deref(),
            ranges,
            is_all,
            lsn: self.snapshot.lsn(),
        };
        let new = || GroupCache::new(&self.refresher.memory);
        if let Some((rest, open)) = reading.plan(known, new) {
            let plan = open.groups().in_plan(read(rows.plan.clone(), &rest)?);
            let plan = plan.map_err(|error| EngineError::internal(error.to_string()))?;
            if let Some(plan) = plan {
                return Ok((plan, Some(open)));
            }
        }
        Ok((read(rows.plan, ranges)?, None))
    }
}
