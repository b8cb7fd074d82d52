//! Selects the rows of a live view that must be computed because they changed.
//!
//! A row that is added, removed or changed in the base affects later view rows within a certain
//! distance ([`tidemark_planner::LiveReach`]). All affected rows are recomputed and replaced, so
//! late rows, changes and deletions need no special rules. For rows appended at the end, the window
//! functions resume from their state after the last row, which stays in memory between refreshes.
//! For late rows, they resume from an earlier state.

use tidemark_catalog::{IncrementalState, IncrementalView, LiveView};
use tidemark_operators::WindowCache;
use tidemark_planner::{IncrementalRows, LiveReach, LiveRepair, Misfit, Planner};
use tidemark_storage::TimeRange;
use tidemark_types::{EngineError, EngineResult, SqlType};

use super::due::Done;
use super::live_state::WindowState;
use super::refresh::{Filling, Refresh, Span, bounds, fewer};

/// Base ranges that a refresh reads, and view ranges that it computes and replaces.
const MAX_REVIVED: usize = 1_024;

type LiveViewRows = IncrementalRows<LiveReach>;

/// Ranges of the base to read.
struct Work {
    /// Base ranges to read.
    read: Vec<TimeRange>,
    /// View ranges to compute.
    shown: Vec<TimeRange>,
    /// View ranges to replace.
    cleared: Vec<TimeRange>,
    /// Ranges that the base retired and in which rows have changed since.
    revived: Vec<Span>,
    /// The window function state to resume from, if any.
    resumed: Option<WindowState>,
    /// Whether the refresh replaces already visible rows.
    is_repair: bool,
    /// Whether the refresh computes all rows.
    is_full: bool,
}

/// A window function state to resume from.
struct Resumed {
    window_state: WindowState,
    /// First timestamp to read.
    from: i64,
    /// Whether the refresh replaces already visible rows.
    is_repair: bool,
}

impl Refresh<'_> {
    pub(super) async fn refresh_live(self, live: &LiveView) -> EngineResult<Done> {
        let is_invalid = self.state.invalid.is_some();
        match Planner::live_misfit(self.view, self.snapshot) {
            Some(Misfit::Differs(difference)) => {
                return self.invalidate(difference).await.map(|()| Done::Again);
            }
            Some(Misfit::Missing) if is_invalid => return Ok(Done::Nothing),
            Some(Misfit::Missing) | None => {}
        }
        let Some(rows) = self.rows(is_invalid).await? else { return Ok(Done::Again) };
        if is_invalid {
            self.revive(rows).await
        } else {
            self.follow(rows, live.first_timestamp()).await
        }
    }

    /// Revives an invalid view whose base again contains everything that the view reads.
    async fn revive(self, rows: LiveViewRows) -> EngineResult<Done> {
        let seed_target = self.touched.as_ref().map(|touched| touched.last);
        let view = IncrementalView { sources: rows.sources, ..self.view.clone() };
        let state = IncrementalState { invalid: None, seed_target, ..self.state.clone() };
        self.put(state, Some(view.put()?)).await.map(|()| Done::Again)
    }

    /// Computes the changed rows. `bound` is the first timestamp that the view shows.
    async fn follow(self, rows: LiveViewRows, bound: i64) -> EngineResult<Done> {
        if self.is_shown() && self.state.seed_target.is_none() {
            return Ok(Done::Nothing);
        }
        let work = self.work(&rows, bound);
        let is_first = work.is_full || (work.resumed.is_some() && !work.is_repair);
        self.replace(rows, work).await?;
        Ok(if is_first { Done::Once } else { Done::Again })
    }

    /// Returns the time ranges that the base retired, and the parts of these ranges to which rows
    /// have since been added.
    fn retired(&self) -> (Vec<Span>, Vec<Span>) {
        let Some(touched) = &self.touched else { return (Vec::new(), Vec::new()) };
        let span = |range: &tidemark_storage::TouchedRange| (range.first, range.last);
        let all = touched.retired.iter().map(span).collect();
        let position = self.state.position.unwrap_or(0);
        let again = touched.retired.iter().filter(|range| range.lsn > position).map(span);
        let revived = without(&self.state.revived, &again.collect::<Vec<_>>());
        (all, revived)
    }

    fn work(&self, rows: &LiveViewRows, bound: i64) -> Work {
        let all = TimeRange { lo: bound, hi: i64::MAX };
        let (retired, revived) = self.retired();
        let Some(changed) = self.changed() else {
            // Ranges that were retired before the first refresh contain no view rows to preserve.
            let is_first = self.state.position.is_none();
            let frozen = if is_first { Vec::new() } else { without(&retired, &revived) };
            let cleared = TimeRange::difference(&[all], &ranges(&frozen));
            let revived = if is_first { retired } else { revived };
            return Work {
                read: vec![all],
                shown: vec![all],
                cleared,
                revived,
                resumed: None,
                is_repair: !is_first,
                is_full: is_first,
            };
        };
        let changed = self.within_data(rows, changed, bound);
        let news = TimeRange::intersection(&ranges(&changed), &ranges(&retired));
        let frozen = ranges(&without(&retired, &revived));
        let revived = TimeRange::union([ranges(&revived), news].concat());
        let revived = fewer_spans(spans(&revived));
        let first = changed.first().map_or(i64::MAX, |span| span.0);
        let is_repair = !changed.is_empty();
        let mut work = Work {
            read: vec![],
            shown: vec![],
            cleared: vec![],
            revived,
            resumed: None,
            is_repair,
            is_full: false,
        };
        if let Some(Resumed { window_state: state, from, is_repair }) = self.resumable(rows, first)
        {
            let read = TimeRange { lo: from.max(bound), hi: i64::MAX };
            work.shown.push(read);
            if is_repair {
                work.shown[0].lo = first;
                work.cleared = TimeRange::difference(&work.shown, &frozen);
            }
            work.read.push(read);
            work.is_repair = is_repair;
            work.resumed = Some(state);
            return work;
        }
        let shown = changed.into_iter().map(|(first, last)| {
            let until = rows.shape.until(last);
            TimeRange { lo: first, hi: if until == i64::MAX { until } else { until + 1 } }
        });
        let shown = fewer(TimeRange::union(shown.collect()));
        let needs = |range: &TimeRange| TimeRange {
            lo: rows.shape.since(range.lo).max(bound),
            hi: range.hi,
        };
        let read = TimeRange::union(shown.iter().map(needs).collect());
        let cleared = TimeRange::difference(&shown, &frozen);
        Work { read, shown, cleared, ..work }
    }

    /// Restricts the changed ranges to the time bounds of the base and the view. Also omits
    /// timestamps before `bound`.
    fn within_data(&self, rows: &LiveViewRows, changed: Vec<Span>, bound: i64) -> Vec<Span> {
        let table = self.snapshot.table_by_id(self.view.table);
        let shown = table.and_then(|table| table.time_bounds());
        let Some(bounds) = bounds(&rows.base, shown) else { return Vec::new() };
        let clamp = |(first, last): Span| (first.max(bounds.0).max(bound), last.min(bounds.1));
        changed.into_iter().map(clamp).filter(|(first, last)| first <= last).collect()
    }

    /// Takes the retained state. If it includes rows after `first`, rewinds it to an earlier state;
    /// `None` if that is impossible.
    fn resumable(&self, rows: &LiveViewRows, first: i64) -> Option<Resumed> {
        let state =
            self.refresher.with(self.view.table, |progress| progress.window_state.take())??;
        let touched = self.touched.as_ref()?;
        let is_current = Some(state.position) == self.state.position
            && state.version == rows.base.schema().version
            && rows.shape.is_one_pass();
        if !is_current {
            return None;
        }
        let mut put_away = touched.retired.iter().filter(|one| one.lsn > state.begun);
        if put_away.next().is_some() {
            // The earlier states include rows that the base has since retired, so these states must
            // not be used for a repair.
            state.windows.forget_marks();
        }
        let is_in_order = touched.disordered <= state.position || first == i64::MAX;
        if !is_in_order || first < state.windows.end() {
            // Resumes only if the change affects all rows from `first` to the last row. If it
            // affects fewer rows, the view's later rows remain valid.
            let last = rows.base.time_bounds()?.1;
            let reaches_end = rows.shape.until(first) >= last;
            let from = reaches_end.then(|| state.windows.rewind(first)).flatten();
            let from = from.filter(|from| *from > rows.shape.since(first))?;
            return Some(Resumed { window_state: state, from, is_repair: true });
        }
        // If the rows at the last timestamp were retired, they no longer exist and must not be
        // skipped.
        let last = state.windows.end();
        let is_gone = touched
            .retired
            .iter()
            .any(|one| one.lsn > state.position && (one.first..=one.last).contains(&last));
        if is_gone {
            state.windows.forget_last();
        }
        Some(Resumed { window_state: state, from: last, is_repair: false })
    }

    async fn replace(self, rows: LiveViewRows, work: Work) -> EngineResult<()> {
        let id = self.view.table;
        let table = self.table()?;
        let lsn = self.snapshot.lsn();
        let (is_repair, is_resumed) = (work.is_repair, work.resumed.is_some());
        if is_repair {
            let repair = repair_of(&rows, &work);
            self.refresher.with(id, |progress| progress.live.repair = repair);
        }
        let last_time = rows.base.time_bounds().map_or(i64::MIN, |bounds| bounds.1);
        let reads_on =
            work.read.last().is_some_and(|range| range.lo <= last_time && range.hi > last_time);
        let keeps = rows.shape.is_one_pass() && reads_on;
        // From this timestamp on, the functions have certainly read their entire lookback.
        let first_shown = match work.shown.last() {
            Some(range) if !rows.shape.is_endless() => range.lo,
            _ => i64::MIN,
        };
        let (windows, begun) = match work.resumed {
            Some(window_state) => (Some(window_state.windows), window_state.begun),
            None => (keeps.then(|| WindowCache::marking(first_shown, &self.refresher.memory)), lsn),
        };
        let mut plan = rows.within(&work.read, &work.shown, table.schema())?;
        if let Some(windows) = &windows {
            plan =
                windows.in_plan(plan).map_err(|error| EngineError::internal(error.to_string()))?;
        }
        let state = IncrementalState {
            position: Some(lsn),
            seed_target: None,
            revived: work.revived,
            ..self.state.clone()
        };
        let filling = Filling {
            plan,
            base: rows.base.schema().id,
            is_full: work.is_full,
            cleared: work.cleared,
            state,
            more: Vec::new(),
        };
        let written = self.fill(&table, filling).await?;
        let windows = windows.filter(|windows| windows.settle(last_time));
        let version = rows.base.schema().version;
        self.refresher.with(id, |progress| {
            if is_repair {
                let live = &mut progress.live;
                let counted =
                    if is_resumed { &mut live.resumed_rows } else { &mut live.repaired_rows };
                *counted += written as i64;
                live.resumes += i64::from(is_resumed);
            }
            if let Some(windows) = windows {
                progress.window_state =
                    Some(WindowState { position: lsn, begun, version, windows });
            }
        });
        Ok(())
    }
}

/// Returns the repair report.
fn repair_of(rows: &LiveViewRows, work: &Work) -> LiveRepair {
    let column = rows.base.schema().timestamp_column();
    let is_nanos = column.is_some_and(|column| column.sql_type == SqlType::TimestampNs);
    let micros = |at: i64| if is_nanos { at.div_euclid(1_000) } else { at };
    let inner = |at: &i64| *at != i64::MIN && *at != i64::MAX;
    let is_local = !rows.shape.is_endless();
    let is_resumed = work.resumed.is_some();
    let high = work.shown.last().map(|range| range.hi).filter(inner);
    LiveRepair {
        is_under_way: true,
        first_micros: work.shown.first().map(|range| micros(range.lo)),
        low_micros: work.read.first().map(|range| range.lo).filter(inner).map(micros),
        high_micros: high.map(|at| micros(at - 1)),
        plan: Some(rows.shape.plan()),
        disposition: Some(match (is_local, is_resumed) {
            (_, true) => "resume from anchor",
            (true, false) => "localized rebuild",
            (false, false) => "boundary rebuild",
        }),
        denial: (!is_local && !is_resumed).then_some("results depend on all earlier rows"),
    }
}

/// Converts spans to ranges and merges adjacent ranges.
fn ranges(spans: &[Span]) -> Vec<TimeRange> {
    let range = |(first, last): &Span| TimeRange { lo: *first, hi: last.saturating_add(1) };
    TimeRange::union(spans.iter().map(range).collect())
}

/// Converts ranges to spans.
fn spans(ranges: &[TimeRange]) -> Vec<Span> {
    ranges.iter().map(|range| (range.lo, range.hi.saturating_sub(1))).collect()
}

/// Subtracts `others` from `some`.
fn without(some: &[Span], others: &[Span]) -> Vec<Span> {
    spans(&TimeRange::difference(&ranges(some), &ranges(others)))
}

/// Merges the nearest spans until at most `MAX_REVIVED` spans remain.
fn fewer_spans(mut spans: Vec<Span>) -> Vec<Span> {
    while spans.len() > MAX_REVIVED {
        let gap = |pair: &[Span]| pair[1].0.saturating_sub(pair[0].1);
        let nearest = spans.windows(2).enumerate().min_by_key(|(_, pair)| gap(pair));
        let Some((index, _)) = nearest else { break };
        let next = spans.remove(index + 1);
        spans[index].1 = next.1;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_spans_still_cover_every_timestamp() {
        let covers = |spans: &[Span], at: i64| spans.iter().any(|one| one.0 <= at && at <= one.1);
        let left = without(&[(0, 9), (10, 19), (30, 30)], &[(5, 12), (30, 40)]);
        assert_eq!(left, vec![(0, 4), (13, 19)]);
        let many: Vec<Span> = (0..5_000).map(|at| (at * 10, at * 10)).collect();
        let fewer = fewer_spans(many.clone());
        assert_eq!(fewer.len(), MAX_REVIVED);
        assert!(many.iter().all(|(at, _)| covers(&fewer, *at)));
    }
}
