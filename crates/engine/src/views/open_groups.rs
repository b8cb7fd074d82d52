//! What the aggregation of a materialized view holds between its refreshes: the groups of the
//! bucket that is still open, of the rows before a mark. The next refresh reads from the mark on.

use tidemark_catalog::{IncrementalState, IncrementalView};
use tidemark_operators::KeptGroups;
use tidemark_planner::{Buckets, IncrementalRows};
use tidemark_storage::{TimeRange, Touched};

/// The kept groups of a view.
#[derive(Debug)]
pub(super) struct OpenGroups {
    /// The transaction of the base that they are of.
    position: u64,
    /// The base's definition that they were computed with.
    version: u64,
    /// The base's last instant.
    last_time: i64,
    /// How far before its last instant the base gets rows, about: the mark is as far back.
    lateness: i64,
    /// The first instant of their buckets.
    from: i64,
    groups: KeptGroups,
}

/// A refresh, as far as kept groups are concerned.
pub(super) struct Reading<'a> {
    pub(super) view: &'a IncrementalView,
    pub(super) state: &'a IncrementalState,
    pub(super) rows: &'a IncrementalRows<Buckets>,
    pub(super) touched: Option<&'a Touched>,
    /// The buckets that are computed; none where all of them are.
    pub(super) ranges: &'a [TimeRange],
    pub(super) is_all: bool,
    pub(super) lsn: u64,
}

impl Reading<'_> {
    /// Whether groups of the view may be kept at all: its rows depend on the base alone, and
    /// nothing but the rows decides which buckets it shows.
    fn may_keep(&self) -> bool {
        let Self { view, rows, .. } = self;
        !rows.shape.is_whole
            && rows.sources.len() == 1
            && view.period.is_none()
            && view.limit_hours_or_months == 0
    }

    /// The range that is left to read where the groups are those of the rows before it.
    fn rest(&self, known: &OpenGroups, first: i64) -> Option<TimeRange> {
        let touched = self.touched?;
        let [range] = self.ranges else { return None };
        let is_put_away = touched.retired.iter().any(|one| one.lsn > known.position);
        let is_current = Some(known.position) == self.state.position
            && known.version == self.rows.base.schema().version
            && !is_put_away;
        let mark = known.groups.marked()?;
        // Where clocks change, more buckets may have to be computed together.
        let is_same = range.lo == known.from && first >= mark;
        (is_current && is_same).then_some(TimeRange { lo: mark, hi: range.hi })
    }

    /// What is read, and the groups to go on with and to leave. `new` makes some without rows.
    pub(super) fn plan(
        &self,
        known: Option<OpenGroups>,
        new: impl FnOnce() -> KeptGroups,
    ) -> Option<(Vec<TimeRange>, OpenGroups)> {
        if !self.may_keep() {
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
        // How late rows of the open bucket came, now and before.
        let (late, before) = known.as_ref().map_or((0, 0), |known| {
            let late = known.last_time.saturating_sub(first).max(0);
            (if first < known.from { 0 } else { late }, known.lateness)
        });
        // Rows that come late do so again: marks lie so far back that most are behind them.
        let lateness = late.saturating_mul(2).max(before - before / 8);
        let rest = known.as_ref().and_then(|known| self.rest(known, first));
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
    pub(super) fn groups(&self) -> &KeptGroups {
        &self.groups
    }
}
