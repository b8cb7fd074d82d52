//! One refresh of a view: computes the changed rows and commits them together with the transaction
//! that they reflect. Materialized and live views differ in how they select rows and in their
//! inputs; see `buckets.rs` and `live.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::logical_expr::LogicalPlan;
use tidemark_border::StatementContext;
use tidemark_catalog::{IncrementalState, IncrementalView};
use tidemark_planner::{IncrementalRows, Planner, ViewShape};
use tidemark_storage::{Change, Snapshot, TableId, TableSnapshot, TimeRange, Touched};
use tidemark_types::bounded::{Stop, Stoppable};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use super::bases;
use super::due::{Done, Due};
use super::progress::Refresher;
use crate::database::Database;
use crate::database::physical::physical_plan;
use crate::execution::source::BatchSource;
use crate::ingest::stage::write_all;
use crate::ingest::writer::Writer;
use crate::runtime::cancel::StatementStop;
use crate::runtime::guard;
use crate::runtime::registry::{Registration, now_micros};

/// Ids of refresh queries. They never equal the ids of client queries, and JavaScript numbers
/// represent them exactly.
static NEXT_QUERY: AtomicU64 = AtomicU64::new(1 << 52);

/// Maximum number of ranges that are computed separately. If there are more ranges, some are
/// merged.
const MAX_RANGES: usize = 256;

/// First and last timestamp. Both are inclusive.
pub(super) type Span = (i64, i64);

/// A running refresh.
pub(super) struct Refresh<'a> {
    pub(super) database: &'a Arc<Database>,
    pub(super) refresher: &'a Refresher,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) view: &'a IncrementalView,
    pub(super) state: IncrementalState,
    /// Changes to the base; `None` if the base is not watched.
    pub(super) touched: Option<Arc<Touched>>,
    pub(super) began_micros: i64,
}

/// Rows and state that a refresh writes.
pub(super) struct Filling {
    pub(super) plan: LogicalPlan,
    /// The base table that the plan reads.
    pub(super) base: TableId,
    /// Whether the rows replace all existing rows.
    pub(super) is_full: bool,
    /// View ranges that the rows replace, unless `is_full` is set.
    pub(super) cleared: Vec<TimeRange>,
    /// The view's state after the refresh, except for the refresh times.
    pub(super) state: IncrementalState,
    pub(super) more: Vec<Change>,
}

impl Refresh<'_> {
    /// Brings the view up to date with the snapshot. If a name in its query no longer resolves, the
    /// view becomes invalid. After any other error the caller waits and retries.
    pub(super) async fn run(self, what: &Due) -> EngineResult<Done> {
        match &self.view.live {
            None => self.refresh_buckets(what).await,
            Some(live) => self.refresh_live(live).await,
        }
    }

    /// Returns the rows of the view's query; `None` if the view has become invalid instead.
    pub(super) async fn rows<S: ViewShape>(
        &self,
        by_names: bool,
    ) -> EngineResult<Option<IncrementalRows<S>>> {
        let context = self.database.bind_context(&self.view.owner.name);
        let error = match Planner::view_rows(self.view, self.snapshot, &context, by_names) {
            Ok(rows) => return Ok(Some(rows)),
            Err(error) => error,
        };
        // A live view that is already invalid for this reason is retried and retains the reason.
        let is_known =
            self.view.live.is_some() && self.state.invalid.as_ref() == Some(&error.message);
        if !is_lasting(&error) || is_known {
            return Err(error);
        }
        self.invalidate(error.message).await.map(|()| None)
    }

    /// Commits a new state, optionally together with a related change.
    pub(super) async fn put(
        &self,
        state: IncrementalState,
        more: Option<Change>,
    ) -> EngineResult<()> {
        let table = self.view.table;
        let mut changes = vec![IncrementalState::expect(self.snapshot, table), state.put(table)?];
        changes.extend(more);
        let storage = Arc::clone(&self.database.storage);
        guard::run_blocking("commit", move || storage.commit(changes).map(|_| ())).await
    }

    pub(super) async fn invalidate(&self, reason: String) -> EngineResult<()> {
        let invalid = Some(reason);
        self.put(IncrementalState { invalid, request: None, ..self.state.clone() }, None).await
    }

    /// Returns the view's table.
    pub(super) fn table(&self) -> EngineResult<Arc<TableSnapshot>> {
        let table = self.snapshot.table_by_id(self.view.table);
        table.ok_or_else(|| EngineError::internal("the view's table does not exist"))
    }

    /// Returns the changes since the view's position; `None` if they are unknown.
    pub(super) fn changed(&self) -> Option<Vec<Span>> {
        self.touched.as_ref()?.after(self.state.position?)
    }

    /// Whether the view reflects the last transaction that changed its base.
    pub(super) fn is_shown(&self) -> bool {
        let last = self.touched.as_ref().map_or(0, |touched| touched.last);
        self.state.position.is_some_and(|position| position >= last)
    }

    /// Commits a plan's rows together with their state; returns the number of rows.
    pub(super) async fn fill(
        &self,
        table: &Arc<TableSnapshot>,
        filling: Filling,
    ) -> EngineResult<u64> {
        let Filling { plan, base, is_full, cleared, state, more } = filling;
        let id = self.view.table;
        let mut writer = Writer::new(self.database);
        writer.with(IncrementalState::expect(self.snapshot, id));
        if is_full {
            writer.with(Change::Truncate(id));
        } else if !cleared.is_empty() {
            writer.with(Change::Clear { table: id, ranges: cleared });
        }
        let consumed = |position| self.refresher.consumed(self.snapshot, base, (id, position));
        let through = state.position.map_or(0, consumed);
        let known = self.touched.as_deref().filter(|_| base == self.view.base);
        if let Some(watch) = bases::watch(base, known, through) {
            writer.with(watch);
        }
        let state = IncrementalState {
            started_micros: Some(self.began_micros),
            finished_micros: Some(now_micros()),
            ..state
        };
        writer.with(state.put(id)?);
        for change in more {
            writer.with(change);
        }
        let user = self.view.owner.name.clone();
        let form = self.view.form().name().to_uppercase();
        let text = format!("REFRESH {form} {}", table.schema().name);
        let of = StatementContext { user, text, ..StatementContext::default() };
        let query = NEXT_QUERY.fetch_add(1, Ordering::Relaxed);
        let query = self.database.registry.register(Some(query), &Arc::new(of), None)?;
        let work = write(self.database, writer, &plan, table, &query);
        let stop: Arc<dyn Stop> =
            Arc::new(StatementStop { token: query.token.clone(), deadline: query.deadline });
        let work = Stoppable::new(stop, Box::pin(query.work.of(work)));
        query.until_stopped(work).await
    }
}

/// Whether the query will fail until a table or the view is changed.
fn is_lasting(error: &EngineError) -> bool {
    matches!(
        error.code,
        ErrorCode::ColumnNotFound
            | ErrorCode::TableNotFound
            | ErrorCode::TypeMismatch
            | ErrorCode::NotSupported
            | ErrorCode::Syntax
    )
}

/// Returns time bounds that enclose both the base and the view.
pub(super) fn bounds(base: &TableSnapshot, shown: Option<Span>) -> Option<Span> {
    let bounds = [base.time_bounds(), shown].into_iter().flatten();
    bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

async fn write(
    database: &Arc<Database>,
    mut writer: Writer,
    plan: &LogicalPlan,
    table: &TableSnapshot,
    query: &Registration,
) -> EngineResult<u64> {
    let faults = tidemark_vfs::faults();
    let target = writer.table(table.schema());
    let plan = physical_plan(database, plan).await?;
    let _turn = database.admit(plan.as_ref(), query).await?;
    let source = BatchSource::start(&plan, &database.task_context(query)?)?;
    let written = write_all(writer, target, source, None, (&query.token, faults)).await?;
    Ok(written)
}

/// Merges ranges across the smallest gaps until at most `MAX_RANGES` ranges remain.
pub(super) fn fewer(mut ranges: Vec<TimeRange>) -> Vec<TimeRange> {
    while ranges.len() > MAX_RANGES {
        let gaps = ranges.windows(2).map(|pair| pair[1].lo.saturating_sub(pair[0].hi));
        let mut gaps: Vec<i64> = gaps.collect();
        let (_, middle, _) = gaps.select_nth_unstable(ranges.len() - MAX_RANGES);
        let middle = *middle;
        let mut joined: Vec<TimeRange> = Vec::with_capacity(MAX_RANGES);
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.lo.saturating_sub(last.hi) <= middle => last.hi = range.hi,
                _ => joined.push(range),
            }
        }
        ranges = joined;
    }
    ranges
}
