//! One step of a change feed: waits for the next change to the table that a query reads, and runs
//! the query over the changed rows.
//!
//! The protocol runs a feed as a loop of such steps. Each step is a normal execution, so
//! permissions are checked again. A slow client delays only its own next step. Between steps the
//! server retains nothing for the client.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidemark_border::{
    ChangeKind, ChangedRange, ChangesOptions, ExecuteOptions, Summary, TableChange,
};
use tidemark_planner::{BoundQuery, BoundStatement, Planner};
use tidemark_storage::{
    Change, NextChange, Snapshot, TableId, TableSchema, TableSnapshot, TimeRange,
};
use tidemark_types::timestamp::{TimestampUnit, iso_text};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};
use tokio::time::{Instant, MissedTickBehavior, timeout_at};

use crate::database::Database;
use crate::runtime::guard;
use crate::runtime::registry::Registration;
use crate::statement::{ExecuteReply, Parameters, Statement};

/// Interval between commit announcements. On a busy table, an announcement covers several commits.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(10);
/// Increase in the announcement interval per waiting feed. This increase limits the CPU use of many
/// feeds to a fraction of a core.
const INTERVAL_PER_FEED: Duration = Duration::from_millis(1);

/// Interval between checks for tables that clients no longer follow.
const FORGET_EVERY: Duration = Duration::from_mins(1);

/// Announces commits to waiting feeds while the database is open. Also unfollows tables that no
/// feed has followed recently.
pub(crate) async fn announce_commits(database: Weak<Database>) {
    let mut times = tokio::time::interval(ANNOUNCE_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut looked, mut announced) = (Instant::now(), Instant::now());
    loop {
        times.tick().await;
        let Some(database) = database.upgrade() else { return };
        let Ok(snapshot) = database.snapshot() else { return };
        let (lsn, followers) = (snapshot.lsn(), &database.followers);
        let waiting = u32::try_from(followers.commits.receiver_count()).unwrap_or(u32::MAX);
        if announced.elapsed() >= INTERVAL_PER_FEED * waiting {
            let is_new = |known: &mut u64| std::mem::replace(known, lsn) != lsn;
            if followers.commits.send_if_modified(is_new) {
                announced = Instant::now();
            }
        }
        if looked.elapsed() >= FORGET_EVERY.min(followers.retention) {
            looked = Instant::now();
            for table in followers.forgotten(&snapshot) {
                // A failed commit is retried at the next check.
                let _ = commit(&database, Change::unfollow(table)).await;
            }
        }
    }
}

/// A query bound to a snapshot, and the table whose changes the query reports.
struct Reading {
    query: Box<BoundQuery>,
    table: TableId,
    /// The table's schema version.
    version: u64,
    /// Whether the binding remains valid until the table's schema version changes.
    is_stable: bool,
}

/// The next change to a table.
enum Found {
    Nothing,
    /// A change and its rows: either the table's rows in these time ranges, or the added rows.
    Rows(TableChange, Arc<TableSnapshot>, Vec<TimeRange>),
}

impl Statement {
    /// Returns the next change, or reports that none occurred within the wait time.
    pub(crate) async fn run_change(
        &self,
        mut registration: Registration,
        parameters: Parameters,
        mut options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        let Some(feed_options) = options.changes.take() else {
            return Err(EngineError::internal("the change feed options are missing"));
        };
        let database = Arc::clone(self.database());
        let mut commits = database.followers.commits.subscribe();
        let until = Instant::now() + Duration::from_millis(feed_options.wait_ms);
        let mut reading: Option<Reading> = None;
        loop {
            let announced = *commits.borrow_and_update();
            let snapshot = database.snapshot()?;
            let now = match reading.take().filter(|one| one.is_valid_in(&snapshot)) {
                Some(now) => now,
                None => self.reading(&snapshot, &parameters)?,
            };
            let table = snapshot.table_by_id(now.table).ok_or_else(unknown_table)?;
            database.followers.note(now.table);
            if snapshot.followed(now.table).is_none()
                && (feed_options.all || feed_options.after.is_none())
            {
                commit(&database, Change::Follow(now.table)).await?;
                continue;
            }
            // A feed that has already reported the last commit waits for the next announcement.
            let is_due = feed_options.wait_ms == 0
                || feed_options.after.is_none_or(|after| after < announced);
            let found = if is_due {
                find(&database, &snapshot, &table, &feed_options, options.skip > 0)?
            } else {
                Found::Nothing
            };
            if let Found::Rows(change, rows, ranges) = found {
                registration.pin(&snapshot);
                if feed_options.without_rows || change.kind == ChangeKind::None {
                    return Ok(reported(change));
                }
                let plan = Planner::over_rows(now.query.plan.clone(), &rows, &ranges)?;
                let query = BoundQuery { plan, ..*now.query };
                let skip = if change.commits == 1 { options.skip } else { 0 };
                let options = ExecuteOptions { skip, ..options };
                let reply = self.run_bound(query, None, options, registration).await?;
                return Ok(ExecuteReply { change: Some(change), ..reply });
            }
            if Instant::now() >= until {
                let reported_upto = feed_options.after.filter(|_| !is_due);
                return Ok(reported(nothing(&table, reported_upto.unwrap_or(snapshot.lsn()))));
            }
            drop((snapshot, table));
            reading = Some(now);
            let woken = async {
                // The channel closes only when the database does. The caller checks for a timeout.
                let _ = timeout_at(until, commits.changed()).await;
                Ok(())
            };
            registration.until_stopped(woken).await?;
        }
    }

    fn reading(&self, snapshot: &Arc<Snapshot>, parameters: &Parameters) -> EngineResult<Reading> {
        let (bound, is_stable) = self.bound_again(snapshot, parameters.clone())?;
        let BoundStatement::Query(query) = bound else {
            let message = "a change feed requires a query";
            return Err(EngineError::new(ErrorCode::NotSupported, message));
        };
        let table = Planner::followed_table(&query.plan)?;
        let version = snapshot.table_by_id(table).map_or(0, |table| table.schema().version);
        // A snapshot without rows, so that the waiting feed does not pin the table's files.
        let empty = snapshot.table_by_id(table).ok_or_else(unknown_table)?.without_rows();
        let plan = Planner::over_rows(query.plan.clone(), &Arc::new(empty), &[])?;
        let query = Box::new(BoundQuery { plan, ..*query });
        Ok(Reading { query, table, version, is_stable })
    }
}

impl Reading {
    fn is_valid_in(&self, snapshot: &Snapshot) -> bool {
        let table = snapshot.table_by_id(self.table);
        self.is_stable && table.is_some_and(|table| table.schema().version == self.version)
    }
}

async fn commit(database: &Arc<Database>, change: Change) -> EngineResult<()> {
    let storage = Arc::clone(&database.storage);
    let commit = move || storage.commit(vec![change]).map(|_| ());
    guard::run_blocking("commit", commit).await
}

fn find(
    database: &Database,
    snapshot: &Snapshot,
    table: &Arc<TableSnapshot>,
    feed_options: &ChangesOptions,
    separate: bool,
) -> EngineResult<Found> {
    let (schema, lsn) = (table.schema(), snapshot.lsn());
    if feed_options.all {
        let change = TableChange {
            kind: ChangeKind::Range,
            ranges: vec![ChangedRange { from: None, to: None }],
            ..nothing(table, lsn)
        };
        return Ok(Found::Rows(change, Arc::clone(table), Vec::new()));
    }
    let Some(after) = feed_options.after else {
        return Ok(Found::Rows(nothing(table, lsn), Arc::clone(table), Vec::new()));
    };
    Ok(match database.storage.next_change(snapshot, schema.id, after, separate)? {
        NextChange::Nothing => Found::Nothing,
        NextChange::Lost => return Err(lost(schema, after)),
        NextChange::Added(added) => {
            let (lo, last) = added.bounds;
            let range = TimeRange { lo, hi: last.saturating_add(1) };
            let change = TableChange {
                kind: ChangeKind::Rows,
                commits: added.commits,
                rows: Some(added.rows),
                ranges: vec![shown(schema, range)],
                ..nothing(table, added.txn)
            };
            Found::Rows(change, added.table, Vec::new())
        }
        NextChange::Touched(ranges) => {
            let shown = ranges.iter().map(|range| shown(schema, *range)).collect();
            let change =
                TableChange { kind: ChangeKind::Range, ranges: shown, ..nothing(table, lsn) };
            Found::Rows(change, Arc::clone(table), ranges)
        }
    })
}

fn nothing(table: &TableSnapshot, txn: u64) -> TableChange {
    let (kind, table) = (ChangeKind::None, table.schema().name.clone());
    TableChange { kind, table, txn, commits: 0, rows: None, ranges: Vec::new() }
}

fn reported(change: TableChange) -> ExecuteReply {
    let summary = Some(Summary::default());
    ExecuteReply { summary, change: Some(change), ..ExecuteReply::default() }
}

fn shown(schema: &TableSchema, TimeRange { lo, hi }: TimeRange) -> ChangedRange {
    let unit = schema.timestamp_column().map(|column| match column.sql_type {
        SqlType::TimestampNs => TimestampUnit::Nanos,
        _ => TimestampUnit::Micros,
    });
    let text = |timestamp: i64| unit.map(|unit| iso_text(timestamp, unit));
    ChangedRange {
        from: text(lo).filter(|_| lo > i64::MIN),
        to: text(hi.saturating_sub(1)).filter(|_| hi < i64::MAX),
    }
}

fn unknown_table() -> EngineError {
    EngineError::new(ErrorCode::Replan, "the table no longer exists")
}

fn lost(schema: &TableSchema, after: u64) -> EngineError {
    let name = &schema.name;
    let message = format!(
        "changes to table '{name}' after {after} are no longer available: restart with from=start"
    );
    EngineError::new(ErrorCode::HistoryGone, message)
}
