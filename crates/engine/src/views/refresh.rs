//! One refresh of a materialized view: the buckets that changed, computed and committed with the
//! transaction up to which they are right.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::logical_expr::LogicalPlan;
use tidemark_border::StatementContext;
use tidemark_catalog::{LiveView, MaterializedState, MaterializedView};
use tidemark_operators::KeptGroups;
use tidemark_planner::{MaterializedRows, Planner};
use tidemark_storage::{Change, Snapshot, TableSnapshot, TimeRange, Touched};
use tidemark_types::bounded::{Stop, Stoppable};
use tidemark_types::calendar::{MICROS_PER_HOUR, add_months};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use super::bases;
use super::due::{Done, Due, closed_until};
use super::live_state::REBUILT;
use super::open_groups::{OpenGroups, Reading};
use super::progress::Refresher;
use crate::database::Database;
use crate::database::physical::physical_plan;
use crate::execution::source::BatchSource;
use crate::ingest::stage::write_all;
use crate::ingest::writer::Writer;
use crate::runtime::cancel::StatementStop;
use crate::runtime::guard;
use crate::runtime::registry::{Registration, now_micros};

/// Numbers of the queries that refresh: no client's query has one of them, and JavaScript reads
/// them exactly.
static NEXT_QUERY: AtomicU64 = AtomicU64::new(1 << 52);

/// Ranges that are computed apart, at most: more of them become longer ones.
const MOST_RANGES: usize = 256;

/// One refresh under way.
struct Refresh<'a> {
    database: &'a Arc<Database>,
    refresher: &'a Refresher,
    snapshot: &'a Arc<Snapshot>,
    view: &'a MaterializedView,
    state: MaterializedState,
    /// What was touched of the base; none where it is not watched.
    touched: Option<Arc<Touched>>,
    began_micros: i64,
}

/// Brings a view up to the snapshot; answers whether there was anything to commit. What its query
/// does not find any more makes the view invalid; other errors are the caller's to wait for.
pub(super) async fn refresh(
    database: &Arc<Database>,
    refresher: &Refresher,
    snapshot: &Arc<Snapshot>,
    view: &MaterializedView,
    state: MaterializedState,
    what: &Due,
    began_micros: i64,
) -> EngineResult<Done> {
    let touched = refresher.bases.touched(snapshot, view.base);
    let work = Refresh { database, refresher, snapshot, view, state, touched, began_micros };
    let by_names = *what == Due::Rebuild;
    let context = database.bind_context(&view.owner.name);
    match Planner::materialized_rows(view, snapshot, &context, by_names) {
        Ok(rows) => work.compute(rows, what).await,
        Err(error) if is_lasting(&error) => {
            work.invalidate(error.message).await.map(|()| Done::Again)
        }
        Err(error) => Err(error),
    }
}

/// Whether the query will fail until a table or the view is changed.
pub(super) fn is_lasting(error: &EngineError) -> bool {
    matches!(
        error.code,
        ErrorCode::ColumnNotFound
            | ErrorCode::TableNotFound
            | ErrorCode::TypeMismatch
            | ErrorCode::NotSupported
            | ErrorCode::Syntax
    )
}

impl Refresh<'_> {
    async fn invalidate(self, reason: String) -> EngineResult<()> {
        let state = MaterializedState { invalid: Some(reason), request: None, ..self.state };
        let table = self.view.table;
        let changes = vec![MaterializedState::expect(self.snapshot, table), state.put(table)?];
        let storage = Arc::clone(&self.database.storage);
        guard::run_blocking("commit", move || storage.commit(changes).map(|_| ())).await
    }

    async fn compute(self, rows: MaterializedRows, what: &Due) -> EngineResult<Done> {
        let table = self.snapshot.table_by_id(self.view.table);
        let table = table.ok_or_else(|| EngineError::internal("a view without its table"))?;
        let scale = if rows.buckets.nanoseconds { 1_000 } else { 1 };
        let closed = closed_until(self.view, &rows.buckets, now_micros());
        let closed = if closed == i64::MAX {
            closed
        } else {
            // A bucket that the end of a period cuts is shown when it is over.
            let closed = closed.saturating_mul(scale);
            rows.buckets.around(closed, closed).0
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

    /// What was touched since the view's position; `None` where that is not known.
    fn changed(&self) -> Option<Vec<(i64, i64)>> {
        self.touched.as_ref()?.after(self.state.position?)
    }

    /// Whether the view has to be computed as a whole: where it is asked for, where it is not
    /// known what changed, and where it shows periods that are not over.
    fn is_full(&self, rows: &MaterializedRows, what: &Due, closed: i64) -> bool {
        let shows_later = self.state.shown_until.is_none_or(|until| until > closed);
        match what {
            Due::Full | Due::Rebuild => true,
            Due::Range(..) => rows.is_whole,
            Due::Changed => {
                rows.base.schema().id != self.view.base
                    || (closed != i64::MAX && shows_later)
                    || self.changed().is_none_or(|spans| rows.is_whole && !spans.is_empty())
            }
        }
    }

    /// Whether there is nothing to say either, such as that a request was done.
    fn is_nothing(&self, what: &Due) -> bool {
        let last = self.touched.as_ref().map_or(0, |touched| touched.last);
        let is_shown = self.state.position.is_some_and(|position| position >= last);
        let leaves_out = self.view.period.is_some();
        *what == Due::Changed && self.state.request.is_none() && (is_shown || leaves_out)
    }

    /// The whole buckets that have to be computed: ascending, apart. `None` where that is not
    /// known.
    fn ranges(
        &self,
        rows: &MaterializedRows,
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
        // A row of the view speaks for all of its bucket, whose last rows may be those that went.
        let shown = table.time_bounds();
        let shown = shown.map(|(first, last)| (first, rows.buckets.around(last, last).1 - 1));
        let bounds = [rows.base.time_bounds(), shown].into_iter().flatten();
        let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some(bounds) = bounds else { return Some(Vec::new()) };
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
            let (lo, hi) = rows.buckets.around(from, to);
            let (lo, hi) = (lo.max(first), hi.min(closed));
            match ranges.last_mut() {
                _ if lo >= hi => {}
                Some(last) if lo <= last.hi => last.hi = last.hi.max(hi),
                _ => ranges.push(TimeRange { lo, hi }),
            }
        }
        Some(fewer(ranges))
    }

    /// The first instant that late rows still change, in the base's unit.
    fn first_shown(&self, rows: &MaterializedRows) -> i64 {
        let now = now_micros();
        let limit = match self.view.limit_hours_or_months {
            0 => return i64::MIN,
            hours if hours > 0 => now.saturating_sub(hours.saturating_mul(MICROS_PER_HOUR)),
            months => add_months(now, months),
        };
        let limit = limit.saturating_mul(if rows.buckets.nanoseconds { 1_000 } else { 1 });
        rows.buckets.around(limit, limit).0
    }

    /// Live views over a view that is computed anew do not follow it any more.
    fn end_live_views(&self, writer: &mut Writer) -> EngineResult<()> {
        for other in MaterializedView::all(self.snapshot) {
            let is_over = other.base == self.view.table;
            if !is_over || !LiveView::is(self.snapshot, other.table) {
                continue;
            }
            let state = MaterializedState::of(self.snapshot, other.table);
            writer.with(MaterializedState::expect(self.snapshot, other.table));
            let invalid = Some(REBUILT.to_owned());
            writer.with(MaterializedState { invalid, ..state }.put(other.table)?);
        }
        Ok(())
    }

    async fn commit(
        self,
        rows: MaterializedRows,
        table: &Arc<TableSnapshot>,
        what: &Due,
        (ranges, is_full, closed): (Vec<TimeRange>, bool, i64),
    ) -> EngineResult<()> {
        let id = self.view.table;
        let text = format!("REFRESH MATERIALIZED VIEW {}", table.schema().name);
        let mut writer = Writer::new(self.database);
        writer.with(MaterializedState::expect(self.snapshot, id));
        if is_full {
            writer.with(Change::Truncate(id));
        } else if !ranges.is_empty() {
            writer.with(Change::Clear { table: id, ranges: ranges.clone() });
        }
        let base = rows.base.schema().id;
        let lsn = self.snapshot.lsn();
        let is_behind = matches!(what, Due::Range(..));
        let position = if is_behind { self.state.position } else { Some(lsn) };
        let through = match position {
            Some(position) => self.refresher.consumed(self.snapshot, base, (id, position)),
            None => 0,
        };
        let known = self.touched.as_deref().filter(|_| base == self.view.base);
        if let Some(watch) = bases::watch(base, known, through) {
            writer.with(watch);
        }
        if is_full {
            let base_name = rows.base.schema().name.clone();
            let sources = rows.sources.clone();
            let view = MaterializedView { base, base_name, sources, ..self.view.clone() };
            if view != *self.view {
                writer.with(view.put()?);
            }
        }
        let shown_until = (closed != i64::MAX).then_some(closed);
        let state = MaterializedState {
            position,
            shown_until: if is_behind { self.state.shown_until } else { shown_until },
            invalid: if is_full { None } else { self.state.invalid.clone() },
            request: None,
            started_micros: Some(self.began_micros),
            finished_micros: Some(now_micros()),
            ..MaterializedState::default()
        };
        writer.with(state.put(id)?);
        if is_full && self.state.position.is_some() {
            self.end_live_views(&mut writer)?;
        }
        let (plan, open) = self.planned(rows, &ranges, is_full, is_behind)?;
        let user = &self.view.owner.name;
        let filling = Filling { database: self.database, user, text };
        fill(filling, writer, &plan, table).await?;
        if let Some(open) = open {
            self.refresher.keep_groups(id, open);
        }
        Ok(())
    }

    /// The plan of the rows in some buckets, and the groups that it goes on with and leaves.
    fn planned(
        &self,
        rows: MaterializedRows,
        ranges: &[TimeRange],
        is_full: bool,
        is_behind: bool,
    ) -> EngineResult<(LogicalPlan, Option<OpenGroups>)> {
        let is_all = is_full && ranges.is_empty();
        let base = rows.base.schema().id;
        let read = |plan, ranges: &[TimeRange]| {
            if is_all { Ok(plan) } else { Planner::within_times(plan, base, ranges) }
        };
        // What is kept is of the view's position, which stays.
        if is_behind {
            return Ok((read(rows.plan, ranges)?, None));
        }
        let known = self.refresher.take_groups(self.view.table).filter(|_| !is_full);
        let reading = Reading {
            view: self.view,
            state: &self.state,
            rows: &rows,
            touched: self.touched.as_deref(),
            ranges,
            is_all,
            lsn: self.snapshot.lsn(),
        };
        let new = || KeptGroups::new(&self.refresher.memory);
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

/// For whom rows are computed, and how the list of queries names that.
pub(super) struct Filling<'a> {
    pub(super) database: &'a Arc<Database>,
    pub(super) user: &'a str,
    pub(super) text: String,
}

/// Runs a query whose rows are committed to a table with what the writer has; answers how many.
pub(super) async fn fill(
    Filling { database, user, text }: Filling<'_>,
    writer: Writer,
    plan: &LogicalPlan,
    table: &TableSnapshot,
) -> EngineResult<u64> {
    let user = user.to_owned();
    let of = StatementContext { user, text, ..StatementContext::default() };
    let query = NEXT_QUERY.fetch_add(1, Ordering::Relaxed);
    let query = database.registry.register(Some(query), &Arc::new(of), None)?;
    let work = write(database, writer, plan, table, &query);
    let stop: Arc<dyn Stop> =
        Arc::new(StatementStop { token: query.token.clone(), deadline: query.deadline });
    let work = Stoppable::new(stop, Box::pin(query.work.of(work)));
    query.until_stopped(work).await
}

async fn write(
    database: &Arc<Database>,
    mut writer: Writer,
    plan: &LogicalPlan,
    table: &TableSnapshot,
    query: &Registration,
) -> EngineResult<u64> {
    let faults = tidemark_vfs::faults();
    let place = writer.table(table.schema());
    let plan = physical_plan(database, plan).await?;
    let _turn = database.turn(plan.as_ref(), query).await?;
    let source = BatchSource::start(&plan, &database.task_context(query)?)?;
    let written = write_all(writer, place, source, None, (&query.token, faults)).await?;
    Ok(written)
}

/// No more ranges than are worth it: those with the least time between them become one.
pub(super) fn fewer(mut ranges: Vec<TimeRange>) -> Vec<TimeRange> {
    while ranges.len() > MOST_RANGES {
        let gaps = ranges.windows(2).map(|pair| pair[1].lo.saturating_sub(pair[0].hi));
        let mut gaps: Vec<i64> = gaps.collect();
        let (_, middle, _) = gaps.select_nth_unstable(ranges.len() - MOST_RANGES);
        let middle = *middle;
        let mut kept: Vec<TimeRange> = Vec::with_capacity(MOST_RANGES);
        for range in ranges {
            match kept.last_mut() {
                Some(last) if range.lo.saturating_sub(last.hi) <= middle => last.hi = range.hi,
                _ => kept.push(range),
            }
        }
        ranges = kept;
    }
    ranges
}
