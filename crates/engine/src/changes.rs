//! One step of a feed of changes: waits for the next change of the table that a query reads, and
//! runs the query over the rows that changed.
//!
//! A feed is a loop of such steps that its protocol drives: each is an execution like any other, so
//! that rights are asked before each, a slow client is waited for between them, and nothing is held
//! for a client but what it reads just now.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_border::{
    ChangeKind, ChangedRange, ChangesOptions, ExecuteOptions, Summary, TableChange,
};
use tidemark_planner::{BoundQuery, BoundStatement, Planner};
use tidemark_storage::{
    Change, NextChange, Snapshot, TableId, TableSchema, TableSnapshot, TimeRange,
};
use tidemark_types::timestamp::{TimestampUnit, iso_text};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, timeout_at};

use crate::database::Database;
use crate::guard;
use crate::registry::Registration;
use crate::statement::{ExecuteReply, Parameters, Statement};

/// How often commits are looked for: feeds that follow many commits tell some of them together.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often tables are looked for that nobody follows any more.
const FORGET_EVERY: Duration = Duration::from_mins(1);

/// What feeds have in common while the database is open.
#[derive(Debug)]
pub(crate) struct Followers {
    /// The epoch of the newest snapshot that they were told of.
    commits: watch::Sender<u64>,
    /// When each table was followed last.
    last: Mutex<HashMap<TableId, Instant>>,
    /// How long a table is followed without a feed.
    retention: Duration,
}

impl Followers {
    pub(crate) fn new(retention: Duration) -> Self {
        Self { commits: watch::Sender::default(), last: Mutex::default(), retention }
    }

    /// Tables that nobody has followed for long. Those of before the start count from there.
    fn forgotten(&self, snapshot: &Snapshot) -> Vec<TableId> {
        let mut last = self.last.lock();
        let followed: Vec<TableId> = snapshot.followed_tables().collect();
        last.retain(|table, _| followed.contains(table));
        let now = Instant::now();
        let is_forgotten =
            |table: &TableId| now - *last.entry(*table).or_insert(now) > self.retention;
        followed.into_iter().filter(is_forgotten).collect()
    }
}

/// Wakes feeds where something was committed, as long as the database is open; and lets tables go
/// that have none.
pub(crate) async fn announce_commits(database: Weak<Database>) {
    let mut times = tokio::time::interval(LOOK_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked = Instant::now();
    loop {
        times.tick().await;
        let Some(database) = database.upgrade() else { return };
        let Ok(snapshot) = database.snapshot() else { return };
        let (epoch, followers) = (snapshot.epoch(), &database.followers);
        followers.commits.send_if_modified(|known| std::mem::replace(known, epoch) != epoch);
        if looked.elapsed() >= FORGET_EVERY.min(followers.retention) {
            looked = Instant::now();
            for table in followers.forgotten(&snapshot) {
                // Where it fails now it is tried again.
                let _ = commit(&database, Change::unfollow(table)).await;
            }
        }
    }
}

/// A query bound to a snapshot, and the table whose changes it tells.
struct Reading {
    query: Box<BoundQuery>,
    table: TableId,
    /// Of its definition.
    version: u64,
    /// Whether it holds as long as the definition does.
    is_stable: bool,
}

/// A change that was found.
enum Found {
    Nothing,
    /// These rows, of the table or of what was added to it.
    Rows(TableChange, Arc<TableSnapshot>, Vec<TimeRange>),
}

impl Statement {
    /// Answers the next change, or after a while that there was none.
    pub(crate) async fn run_change(
        &self,
        mut registration: Registration,
        parameters: Parameters,
        mut options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        let Some(asked) = options.changes.take() else {
            return Err(EngineError::internal("a step of no feed"));
        };
        let database = Arc::clone(self.database());
        let mut commits = database.followers.commits.subscribe();
        let until = Instant::now() + Duration::from_millis(asked.wait_ms);
        let mut reading: Option<Reading> = None;
        loop {
            commits.borrow_and_update();
            let snapshot = database.snapshot()?;
            let now = match reading.take().filter(|one| one.holds_in(&snapshot)) {
                Some(now) => now,
                None => self.reading(&snapshot, &parameters)?,
            };
            let table = snapshot.table_by_id(now.table).ok_or_else(unknown_table)?;
            database.followers.last.lock().insert(now.table, Instant::now());
            if snapshot.followed(now.table).is_none() && (asked.all || asked.after.is_none()) {
                commit(&database, Change::Follow(now.table)).await?;
                continue;
            }
            if let Found::Rows(change, rows, ranges) =
                find(&database, &snapshot, &table, &asked, options.skip > 0)?
            {
                registration.hold(&snapshot);
                if asked.without_rows || change.kind == ChangeKind::None {
                    return Ok(told(change));
                }
                let plan = Planner::over_rows(now.query.plan.clone(), &rows, &ranges)?;
                let query = BoundQuery { plan, ..*now.query };
                let skip = if change.commits == 1 { options.skip } else { 0 };
                let options = ExecuteOptions { skip, ..options };
                let reply = self.run_bound(query, options, registration).await?;
                return Ok(ExecuteReply { change: Some(change), ..reply });
            }
            if Instant::now() >= until {
                return Ok(told(nothing(&table, snapshot.lsn())));
            }
            drop((snapshot, table));
            reading = Some(now);
            let woken = async {
                // The sender lives as long as the database; a timeout is looked at above.
                let _ = timeout_at(until, commits.changed()).await;
                Ok(())
            };
            registration.until_stopped(woken).await?;
        }
    }

    fn reading(&self, snapshot: &Arc<Snapshot>, parameters: &Parameters) -> EngineResult<Reading> {
        let (bound, is_stable) = self.bound_again(snapshot, parameters.clone())?;
        let BoundStatement::Query(query) = bound else {
            let message = "a feed of changes follows a query";
            return Err(EngineError::new(ErrorCode::NotSupported, message));
        };
        let table = Planner::followed_table(&query.plan)?;
        let version = snapshot.table_by_id(table).map_or(0, |table| table.schema().version);
        // Its rows are not held while it waits.
        let empty = snapshot.table_by_id(table).ok_or_else(unknown_table)?.without_rows();
        let plan = Planner::over_rows(query.plan.clone(), &Arc::new(empty), &[])?;
        let query = Box::new(BoundQuery { plan, ..*query });
        Ok(Reading { query, table, version, is_stable })
    }
}

impl Reading {
    fn holds_in(&self, snapshot: &Snapshot) -> bool {
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
    asked: &ChangesOptions,
    alone: bool,
) -> EngineResult<Found> {
    let (schema, lsn) = (table.schema(), snapshot.lsn());
    if asked.all {
        let change = TableChange {
            kind: ChangeKind::Range,
            ranges: vec![ChangedRange { from: None, to: None }],
            ..nothing(table, lsn)
        };
        return Ok(Found::Rows(change, Arc::clone(table), Vec::new()));
    }
    let Some(after) = asked.after else {
        return Ok(Found::Rows(nothing(table, lsn), Arc::clone(table), Vec::new()));
    };
    Ok(match database.storage.next_change(snapshot, schema.id, after, alone)? {
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

fn told(change: TableChange) -> ExecuteReply {
    let summary = Some(Summary::default());
    ExecuteReply { summary, change: Some(change), ..ExecuteReply::default() }
}

fn shown(schema: &TableSchema, TimeRange { lo, hi }: TimeRange) -> ChangedRange {
    let unit = schema.timestamp_column().map(|column| match column.sql_type {
        SqlType::TimestampNs => TimestampUnit::Nanos,
        _ => TimestampUnit::Micros,
    });
    let text = |instant: i64| unit.map(|unit| iso_text(instant, unit));
    ChangedRange {
        from: text(lo).filter(|_| lo > i64::MIN),
        to: text(hi.saturating_sub(1)).filter(|_| hi < i64::MAX),
    }
}

fn unknown_table() -> EngineError {
    EngineError::new(ErrorCode::Replan, "the table is not there any more")
}

fn lost(schema: &TableSchema, after: u64) -> EngineError {
    let name = &schema.name;
    let message = format!(
        "the changes of table '{name}' after {after} are not known: begin anew, with from=start"
    );
    EngineError::new(ErrorCode::HistoryGone, message)
}
