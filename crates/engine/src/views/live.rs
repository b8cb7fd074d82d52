//! One refresh of a live view: the rows that changed, computed and committed with the transaction
//! up to which they are right.
//!
//! A row of the base that came, went or changed reaches some way into later rows of the view
//! ([`tidemark_planner::LiveReach`]): all of that is computed again and put in the place of what
//! is there, so that late rows, changes and deletions need no rules of their own. Rows that only
//! follow at the end go on from the state that the functions had after the last one, which is kept
//! in memory from one refresh to the next; those that come late go on from an earlier state.

use std::sync::Arc;

use tidemark_catalog::{LiveView, MaterializedState, MaterializedView};
use tidemark_operators::KeptWindows;
use tidemark_planner::{LiveRepair, LiveRows, Misfit, Planner};
use tidemark_storage::{Change, Snapshot, TimeRange, Touched};
use tidemark_types::{EngineError, EngineResult, SqlType};

use super::bases;
use super::due::Done;
use super::live_state::Kept;
use super::progress::Refresher;
use super::refresh::{Filling, fewer, fill, is_lasting};
use crate::database::Database;
use crate::ingest::writer::Writer;
use crate::runtime::guard;
use crate::runtime::registry::now_micros;

/// Stretches that the base put away and that show rows again, at most.
const MOST_REVIVED: usize = 1_024;

/// First and last instant.
type Span = (i64, i64);

/// One refresh under way.
struct LiveRefresh<'a> {
    database: &'a Arc<Database>,
    refresher: &'a Refresher,
    snapshot: &'a Arc<Snapshot>,
    view: &'a MaterializedView,
    live: LiveView,
    state: MaterializedState,
    touched: Option<Arc<Touched>>,
    began_micros: i64,
}

/// What is read and what is written.
struct Work {
    /// Ranges of the base that are read.
    read: Vec<TimeRange>,
    /// Ranges of the view whose rows are computed.
    shown: Vec<TimeRange>,
    /// Ranges of the view that they are put in the place of.
    cleared: Vec<TimeRange>,
    /// What was touched of stretches that the base put away.
    revived: Vec<Span>,
    /// The state of the functions to go on from.
    resumed: Option<Kept>,
    /// Whether rows that are shown are put in the place of others.
    is_repair: bool,
    /// Whether all there is is computed.
    is_full: bool,
}

/// A state of the functions to go on from.
struct Resumed {
    kept: Kept,
    /// The first instant that is read.
    from: i64,
    /// Whether rows that are shown are put in the place of others.
    is_repair: bool,
}

/// Brings a view up to the snapshot; answers whether there was anything to commit.
pub(super) async fn refresh(
    database: &Arc<Database>,
    refresher: &Refresher,
    snapshot: &Arc<Snapshot>,
    view: &MaterializedView,
    state: MaterializedState,
    began_micros: i64,
) -> EngineResult<Done> {
    let live = LiveView::of(snapshot, view.table);
    let live = live.ok_or_else(|| EngineError::internal("a live view without its record"))?;
    let touched = refresher.bases.touched(snapshot, view.base);
    let work =
        LiveRefresh { database, refresher, snapshot, view, live, state, touched, began_micros };
    if work.state.invalid.is_some() {
        return work.revive().await;
    }
    if let Some(Misfit::Differs(difference)) = Planner::live_misfit(view, &work.live, snapshot) {
        return work.invalidate(difference).await.map(|()| Done::Again);
    }
    let context = database.bind_context(&view.owner.name);
    match Planner::live_rows(view, snapshot, &context, false) {
        Ok(rows) => work.compute(rows).await,
        Err(error) if is_lasting(&error) => {
            work.invalidate(error.message).await.map(|()| Done::Again)
        }
        Err(error) => Err(error),
    }
}

impl LiveRefresh<'_> {
    async fn put(self, state: MaterializedState, more: Vec<Change>) -> EngineResult<()> {
        let table = self.view.table;
        let mut changes = vec![MaterializedState::expect(self.snapshot, table), state.put(table)?];
        changes.extend(more);
        let storage = Arc::clone(&self.database.storage);
        guard::run_blocking("commit", move || storage.commit(changes).map(|_| ())).await
    }

    async fn invalidate(self, reason: String) -> EngineResult<()> {
        let state = MaterializedState { invalid: Some(reason), ..self.state.clone() };
        self.put(state, Vec::new()).await
    }

    /// Lets a view follow again whose base has all it reads again, or says what differs.
    async fn revive(self) -> EngineResult<Done> {
        match Planner::live_misfit(self.view, &self.live, self.snapshot) {
            Some(Misfit::Missing) => return Ok(Done::Nothing),
            Some(Misfit::Differs(difference)) => {
                return self.invalidate(difference).await.map(|()| Done::Again);
            }
            None => {}
        }
        let context = self.database.bind_context(&self.view.owner.name);
        let rows = match Planner::live_rows(self.view, self.snapshot, &context, true) {
            Ok(rows) => rows,
            Err(error) if is_lasting(&error) => {
                let is_known = self.state.invalid.as_deref() == Some(&error.message);
                return if is_known {
                    Err(error)
                } else {
                    self.invalidate(error.message).await.map(|()| Done::Again)
                };
            }
            Err(error) => return Err(error),
        };
        let target = self.touched.as_ref().map(|touched| touched.last);
        let view = MaterializedView { sources: rows.sources, ..self.view.clone() };
        let state = MaterializedState { invalid: None, seed_target: target, ..self.state.clone() };
        let put = view.put()?;
        self.put(state, vec![put]).await.map(|()| Done::Again)
    }

    async fn compute(self, rows: LiveRows) -> EngineResult<Done> {
        let last = self.touched.as_ref().map_or(0, |touched| touched.last);
        let is_shown = self.state.position.is_some_and(|position| position >= last);
        if is_shown && self.state.seed_target.is_none() {
            return Ok(Done::Nothing);
        }
        let work = self.work(&rows);
        let is_first = work.is_full || (work.resumed.is_some() && !work.is_repair);
        self.commit(rows, work).await?;
        Ok(if is_first { Done::Once } else { Done::Again })
    }

    /// The stretches that the base put away, and of them those whose rows came since then.
    fn retired(&self) -> (Vec<Span>, Vec<Span>) {
        let Some(touched) = &self.touched else { return (Vec::new(), Vec::new()) };
        let span = |stretch: &tidemark_storage::TouchedStretch| (stretch.first, stretch.last);
        let all = touched.retired.iter().map(span).collect();
        let position = self.state.position.unwrap_or(0);
        let again = touched.retired.iter().filter(|stretch| stretch.lsn > position).map(span);
        let revived = without(&self.state.revived, &again.collect::<Vec<_>>());
        (all, revived)
    }

    fn work(&self, rows: &LiveRows) -> Work {
        let bound = self.live.first_instant();
        let all = TimeRange { lo: bound, hi: i64::MAX };
        let (retired, revived) = self.retired();
        let changed = self.touched.as_ref().zip(self.state.position);
        let changed = changed.and_then(|(touched, position)| touched.after(position));
        let Some(changed) = changed else {
            // What was put away before the first refresh shows nothing that could be kept.
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
        if let Some(Resumed { kept, from, is_repair }) = self.resumable(rows, first) {
            let read = TimeRange { lo: from.max(bound), hi: i64::MAX };
            work.shown.push(read);
            if is_repair {
                work.shown[0].lo = first;
                work.cleared = TimeRange::difference(&work.shown, &frozen);
            }
            work.read.push(read);
            work.is_repair = is_repair;
            work.resumed = Some(kept);
            return work;
        }
        let shown = changed.into_iter().map(|(first, last)| {
            let until = rows.reach.until(last);
            TimeRange { lo: first, hi: if until == i64::MAX { until } else { until + 1 } }
        });
        let shown = fewer(TimeRange::union(shown.collect()));
        let needs = |range: &TimeRange| TimeRange {
            lo: rows.reach.since(range.lo).max(bound),
            hi: range.hi,
        };
        let read = TimeRange::union(shown.iter().map(needs).collect());
        let cleared = TimeRange::difference(&shown, &frozen);
        Work { read, shown, cleared, ..work }
    }

    /// What was touched, where base or view has rows at all, and at or after the first instant.
    fn within_data(&self, rows: &LiveRows, changed: Vec<Span>, bound: i64) -> Vec<Span> {
        let table = self.snapshot.table_by_id(self.view.table);
        let shown = table.and_then(|table| table.time_bounds());
        let bounds = [rows.base.time_bounds(), shown].into_iter().flatten();
        let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some(bounds) = bounds else { return Vec::new() };
        let clamp = |(first, last): Span| (first.max(bounds.0).max(bound), last.min(bounds.1));
        changed.into_iter().map(clamp).filter(|(first, last)| first <= last).collect()
    }

    /// The kept state that no row at or after `first` is in, but for those of the base's last
    /// instant.
    fn resumable(&self, rows: &LiveRows, first: i64) -> Option<Resumed> {
        let kept = self.refresher.take_kept(self.view.table)?;
        let touched = self.touched.as_ref()?;
        let is_current = Some(kept.position) == self.state.position
            && kept.version == rows.base.schema().version
            && rows.reach.is_one_pass();
        if !is_current {
            return None;
        }
        let mut put_away = touched.retired.iter().filter(|one| one.lsn > kept.begun);
        if put_away.next().is_some() {
            // Earlier states have rows that a repair leaves out.
            kept.windows.forget_marks();
        }
        let is_in_order = touched.disordered <= kept.position || first == i64::MAX;
        if !is_in_order || first < kept.windows.end() {
            // Where it does not reach to the end, what lies behind stays.
            let last = rows.base.time_bounds()?.1;
            let reaches_end = rows.reach.until(first) >= last;
            let from = reaches_end.then(|| kept.windows.rewind(first)).flatten();
            let from = from.filter(|from| *from > rows.reach.since(first))?;
            return Some(Resumed { kept, from, is_repair: true });
        }
        // Rows of the last instant that were put away are not there to be passed over.
        let last = kept.windows.end();
        let is_gone = touched
            .retired
            .iter()
            .any(|one| one.lsn > kept.position && (one.first..=one.last).contains(&last));
        if is_gone {
            kept.windows.forget_last();
        }
        Some(Resumed { kept, from: last, is_repair: false })
    }

    async fn commit(self, rows: LiveRows, work: Work) -> EngineResult<()> {
        let id = self.view.table;
        let table = self.snapshot.table_by_id(id);
        let table = table.ok_or_else(|| EngineError::internal("a view without its table"))?;
        let base = rows.base.schema().id;
        let lsn = self.snapshot.lsn();
        let mut writer = Writer::new(self.database);
        writer.with(MaterializedState::expect(self.snapshot, id));
        if work.is_full {
            writer.with(Change::Truncate(id));
        } else if !work.cleared.is_empty() {
            writer.with(Change::Clear { table: id, ranges: work.cleared.clone() });
        }
        let through = self.refresher.consumed(self.snapshot, base, (id, lsn));
        let known = self.touched.as_deref().filter(|_| base == self.view.base);
        if let Some(watch) = bases::watch(base, known, through) {
            writer.with(watch);
        }
        let is_repair = work.is_repair;
        let is_resumed = work.resumed.is_some();
        if is_repair {
            let repair = repair_of(&rows, &work);
            self.refresher.note_repair(id, repair);
        }
        let state = MaterializedState {
            position: Some(lsn),
            seed_target: None,
            revived: work.revived,
            started_micros: Some(self.began_micros),
            finished_micros: Some(now_micros()),
            ..self.state.clone()
        };
        writer.with(state.put(id)?);
        let last_time = rows.base.time_bounds().map_or(i64::MIN, |bounds| bounds.1);
        let reads_on =
            work.read.last().is_some_and(|range| range.lo <= last_time && range.hi > last_time);
        let keeps = rows.reach.is_one_pass() && reads_on;
        // Only there it is known that functions have seen all they look back at.
        let first_shown = match work.shown.last() {
            Some(range) if !rows.reach.is_endless() => range.lo,
            _ => i64::MIN,
        };
        let (windows, begun) = match work.resumed {
            Some(kept) => (Some(kept.windows), kept.begun),
            None => (keeps.then(|| KeptWindows::marking(first_shown, &self.refresher.memory)), lsn),
        };
        let mut plan = rows.within(&work.read, &work.shown)?;
        if let Some(windows) = &windows {
            plan =
                windows.in_plan(plan).map_err(|error| EngineError::internal(error.to_string()))?;
        }
        let filling = Filling {
            database: self.database,
            user: &self.view.owner.name,
            text: format!("REFRESH LIVE VIEW {}", table.schema().name),
        };
        let written = fill(filling, writer, &plan, &table).await?;
        if is_repair {
            self.refresher.repaired(id, written, is_resumed);
        }
        if let Some(windows) = windows.filter(|windows| windows.settle(last_time)) {
            let version = rows.base.schema().version;
            let kept = Kept { position: lsn, begun, version, windows };
            self.refresher.keep(id, kept);
        }
        Ok(())
    }
}

/// What a repair tells of itself.
fn repair_of(rows: &LiveRows, work: &Work) -> LiveRepair {
    let column = rows.base.schema().timestamp_column();
    let is_nanos = column.is_some_and(|column| column.sql_type == SqlType::TimestampNs);
    let micros = |at: i64| if is_nanos { at.div_euclid(1_000) } else { at };
    let inner = |at: &i64| *at != i64::MIN && *at != i64::MAX;
    let is_local = !rows.reach.is_endless();
    let is_resumed = work.resumed.is_some();
    let high = work.shown.last().map(|range| range.hi).filter(inner);
    LiveRepair {
        is_under_way: true,
        first_micros: work.shown.first().map(|range| micros(range.lo)),
        low_micros: work.read.first().map(|range| range.lo).filter(inner).map(micros),
        high_micros: high.map(|at| micros(at - 1)),
        plan: Some(rows.reach.plan()),
        disposition: Some(match (is_local, is_resumed) {
            (_, true) => "resume from anchor",
            (true, false) => "localized rebuild",
            (false, false) => "boundary rebuild",
        }),
        denial: (!is_local && !is_resumed).then_some("results depend on all rows before"),
    }
}

/// Stretches as ranges; neighbours are one.
fn ranges(spans: &[Span]) -> Vec<TimeRange> {
    let range = |(first, last): &Span| TimeRange { lo: *first, hi: last.saturating_add(1) };
    TimeRange::union(spans.iter().map(range).collect())
}

/// Ranges as stretches.
fn spans(ranges: &[TimeRange]) -> Vec<Span> {
    ranges.iter().map(|range| (range.lo, range.hi.saturating_sub(1))).collect()
}

/// Stretches, but for what others cover.
fn without(some: &[Span], others: &[Span]) -> Vec<Span> {
    spans(&TimeRange::difference(&ranges(some), &ranges(others)))
}

/// No more stretches than are remembered: neighbours become one.
fn fewer_spans(mut spans: Vec<Span>) -> Vec<Span> {
    while spans.len() > MOST_REVIVED {
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
    fn stretches_are_those_of_their_instants() {
        let covers = |spans: &[Span], at: i64| spans.iter().any(|one| one.0 <= at && at <= one.1);
        let left = without(&[(0, 9), (10, 19), (30, 30)], &[(5, 12), (30, 40)]);
        assert_eq!(left, vec![(0, 4), (13, 19)]);
        let many: Vec<Span> = (0..5_000).map(|at| (at * 10, at * 10)).collect();
        let fewer = fewer_spans(many.clone());
        assert_eq!(fewer.len(), MOST_REVIVED);
        assert!(many.iter().all(|(at, _)| covers(&fewer, *at)));
    }
}
