//! Aggregation state that a materialized view retains between refreshes: the open bucket's groups
//! for rows before a watermark. The next refresh reads from the watermark on.

use tidemark_catalog::{IncrementalState, IncrementalView};
use tidemark_operators::GroupCache;
use tidemark_planner::{Buckets, IncrementalRows};
use tidemark_storage::{TimeRange, Touched};

/// A view's retained groups.
#[derive(Debug)]
pub(super) struct OpenGroups {
    /// The base transaction that the groups correspond to.
    position: u64,
    /// The base's schema version when the groups were computed.
    version: u64,
    /// The base's last timestamp.
    last_time: i64,
    /// Approximate distance from the base's last timestamp within which late rows still arrive. The
    /// watermark lags by this distance.
    lateness: i64,
    /// First timestamp of the groups' buckets.
    from: i64,
    groups: GroupCache,
}

/// Inputs to a refresh that may use retained groups.
pub(super) struct Reading<'a> {
    pub(super) view: &'a IncrementalView,
    pub(super) state: &'a IncrementalState,
    pub(super) rows: &'a IncrementalRows<Buckets>,
    pub(super) touched: Option<&'a Touched>,
    /// The buckets to compute; empty if all buckets are computed.
    pub(super) ranges: &'a [TimeRange],
    pub(super) is_all: bool,
    pub(super) lsn: u64,
}

impl Reading<'_> {
    /// Whether the view's groups may be retained. This requires that its rows depend only on the
    /// base, and that only the rows determine which buckets are shown.
    fn are_cacheable(&self) -> bool {
        let Self { view, rows, .. } = self;
        !rows.shape.crosses_buckets
            && rows.sources.len() == 1
            && view.period.is_none()
            && view.limit_hours_or_months == 0
    }

    /// Returns the range that remains to be read, if the groups include all rows before that range.
    fn unread_range(&self, known: &OpenGroups, first: i64) -> Option<TimeRange> {
        let touched = self.touched?;
        let [range] = self.ranges else { return None };
        let is_put_away = touched.retired.iter().any(|one| one.lsn > known.position);
        let is_current = Some(known.position) == self.state.position
            && known.version == self.rows.base.schema().version
            && !is_put_away;
        let mark = known.groups.marked()?;
        // After a clock change, the range to compute may begin before the retained groups do.
        let is_same = range.lo == known.from && first >= mark;
        (is_current && is_same).then_some(TimeRange { lo: mark, hi: range.hi })
    }

    /// Returns the ranges to read, and the groups to resume from and to retain afterwards. `new`
    /// creates empty groups.
    pub(super) fn plan(
        &self,
        known: Option<OpenGroups>,
        new: impl FnOnce() -> GroupCache,
    ) -> Option<(Vec<TimeRange>, OpenGroups)> {
        if !self.are_cacheable() {
            return None;
        }
        let (_, last) = self.rows.base.time_bounds()?;
        let open = self.ranges.last().copied();
        let open = open.or(self.is_all.then_some(TimeRange { lo: i64::MIN, hi: i64::MAX }))?;
        if last < open.lo || last >= open.hi {
            return None;
        }
        let changed = self.touched.zip(self.state.position);
        let changed = changed.and_then(|(touched, position)| touched.after(position));
        let first = changed.and_then(|spans| spans.first().map(|span| span.0)).unwrap_or(last);
        // How late the open bucket's rows arrived, in this and earlier refreshes.
        let (late, before) = known.as_ref().map_or((0, 0), |known| {
            let late = known.last_time.saturating_sub(first).max(0);
            (if first < known.from { 0 } else { late }, known.lateness)
        });
        // Late rows tend to recur, so the watermark lags far enough to cover most of them.
        let lateness = late.saturating_mul(2).max(before - before / 8);
        let rest = known.as_ref().and_then(|known| self.unread_range(known, first));
        let read_from = rest.map_or(open.lo, |rest| rest.lo);
        let mark = last.saturating_sub(lateness).max(read_from);
        let (from, _) = self.rows.shape.spec.around(mark, mark);
        if from < open.lo {
            return None;
        }
        let groups = match (&rest, known) {
            (Some(_), Some(known)) => known.groups,
            _ => new(),
        };
        let read = rest.map_or_else(|| self.ranges.to_vec(), |rest| vec![rest]);
        groups.mark_at(mark, from);
        let (position, version) = (self.lsn, self.rows.base.schema().version);
        Some((read, OpenGroups { position, version, last_time: last, lateness, from, groups }))
    }
}

impl OpenGroups {
    pub(super) fn groups(&self) -> &GroupCache {
        &self.groups
    }
}
