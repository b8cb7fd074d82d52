//! Followed tables: what feeds of their changes tell.
//!
//! A table is followed from a [`Change::Follow`](crate::Change::Follow) on. Of it two things are
//! kept. A record has the stretches of time that were touched, and by which transaction, as one of
//! a watched table has them, but with what went by whole partitions: it answers for any position,
//! however old, in stretches of time. And memory has what the latest commits did, within a bound:
//! so far back changes are told commit by commit. Replay makes both anew from the log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tidemark_types::{EngineResult, SqlType};

use crate::segment::column::ColumnData;
use crate::snapshot::Snapshot;
use crate::state::context::ApplyContext;
use crate::state::op::Op;
use crate::state::touched::{Span, Touched, spans_of};
use crate::table::TableSnapshot;
use crate::table::records::FOLLOWED_RECORDS;
use crate::table::schema::TableId;

/// What a commit takes in memory beside its cells, roughly.
const COMMIT_BYTES: usize = 256;

/// All time.
const EVER: Span = (i64::MIN, i64::MAX);

/// Rows that one step added.
#[derive(Debug, Clone)]
pub(crate) enum Added {
    /// So many, ascending in time: their cells by column.
    Cells(usize, Vec<(u32, SqlType, ColumnData)>),
    /// Segments: the first instants of their partitions, and their names.
    Segments(Vec<(i64, String)>),
}

/// What a step does to the rows of a followed table.
#[derive(Debug)]
pub(crate) struct FollowedStep {
    table: TableId,
    commit: FollowedCommit,
}

/// What a transaction did to the rows of a followed table.
#[derive(Debug, Clone)]
pub(crate) struct FollowedCommit {
    pub(crate) lsn: u64,
    /// Of the table's definition.
    pub(crate) schema_version: u64,
    /// Stretches of time that it touched.
    pub(crate) spans: Vec<Span>,
    /// How many rows it added.
    pub(crate) rows: u64,
    /// Which; `None` where it did something else, too.
    pub(crate) added: Option<Vec<Added>>,
    bytes: usize,
}

impl FollowedCommit {
    /// First and last instant that it touched.
    pub(crate) fn bounds(&self) -> Span {
        let first = self.spans.iter().map(|span| span.0).min().unwrap_or(i64::MAX);
        let last = self.spans.iter().map(|span| span.1).max().unwrap_or(i64::MIN);
        (first, last)
    }

    /// Another step of the same transaction.
    fn join(&mut self, later: Self) {
        self.schema_version = later.schema_version;
        self.spans.extend(later.spans);
        self.rows += later.rows;
        self.bytes += later.bytes;
        match (&mut self.added, later.added) {
            (Some(added), Some(more)) => added.extend(more),
            (added, _) => *added = None,
        }
    }
}

impl Snapshot {
    /// What was touched of a table since it is followed; `None` where it is not.
    #[must_use]
    pub fn followed(&self, table: TableId) -> Option<Touched> {
        let bytes = self.record(FOLLOWED_RECORDS, &table.to_string())?;
        Touched::decode(bytes).ok()
    }

    /// The tables that are followed.
    pub fn followed_tables(&self) -> impl Iterator<Item = TableId> {
        self.records(FOLLOWED_RECORDS).filter_map(|(key, _)| key.parse().ok())
    }
}

fn put(snapshot: &mut Snapshot, table: TableId, touched: &Touched) {
    snapshot.put_record(FOLLOWED_RECORDS, &table.to_string(), touched.encode().into());
}

/// Begins to follow a table.
pub(crate) fn follow(snapshot: &mut Snapshot, table: TableId, lsn: u64) {
    if snapshot.record(FOLLOWED_RECORDS, &table.to_string()).is_none() {
        put(snapshot, table, &Touched::from(lsn));
    }
}

/// What a step will do to the rows of a followed table; before it is applied.
pub(crate) fn step(snapshot: &Snapshot, op: &Op, lsn: u64) -> EngineResult<Option<FollowedStep>> {
    let Some(id) = op.table() else { return Ok(None) };
    if snapshot.record(FOLLOWED_RECORDS, &id.to_string()).is_none() {
        return Ok(None);
    }
    let Some(mut spans) = spans_of(snapshot, op, id)? else { return Ok(None) };
    let Some(table) = snapshot.table_by_id(id) else { return Ok(None) };
    let has_times = table.schema().timestamp.is_some();
    if !has_times && touches_rows(op) {
        spans = vec![EVER];
    }
    if spans.is_empty() {
        return Ok(None);
    }
    let (rows, added) = match op {
        Op::Append(append) => {
            (append.rows as u64, Some(Added::Cells(append.rows, append.columns.clone())))
        }
        Op::Adopt(adopt) => {
            let names = adopt.segments.iter().map(|(floor, meta)| (*floor, meta.name.clone()));
            let rows = adopt.segments.iter().map(|(_, meta)| meta.rows).sum();
            (rows, Some(Added::Segments(names.collect())))
        }
        _ => (0, None),
    };
    let replaces = !table.schema().dedup_keys.is_empty() && !is_later(&table, op, &spans);
    let added = added.filter(|_| !replaces).map(|added| vec![added]);
    let bytes = COMMIT_BYTES
        + size_of::<Span>() * spans.len()
        + added.iter().flatten().map(bytes_of).sum::<usize>();
    let schema_version = table.schema().version;
    let commit = FollowedCommit { lsn, schema_version, spans, rows, added, bytes };
    Ok(Some(FollowedStep { table: id, commit }))
}

/// Whether a step makes rows come, go or change, if it does anything.
fn touches_rows(op: &Op) -> bool {
    match op {
        Op::Append(append) => append.rows > 0,
        Op::Adopt(adopt) => !adopt.segments.is_empty(),
        Op::Update(update) => !update.parts.is_empty(),
        Op::Delete(delete) => !delete.parts.is_empty(),
        _ => true,
    }
}

/// Whether rows are later than all that are there, so that DEDUP keys replace none.
fn is_later(table: &TableSnapshot, op: &Op, spans: &[Span]) -> bool {
    // Of several segments one may replace rows of another.
    let is_one = !matches!(op, Op::Adopt(adopt) if adopt.segments.len() > 1);
    let ends = [table.hot.last_key_value(), table.cold.last_key_value()];
    let last = ends.into_iter().flatten().max_by_key(|(floor, _)| **floor);
    let last = last
        .map_or(i64::MIN, |(_, partition)| partition.bounds().map_or(i64::MAX, |(_, last)| last));
    is_one && spans.iter().all(|(first, _)| *first > last)
}

fn bytes_of(added: &Added) -> usize {
    match added {
        Added::Cells(_, columns) => columns.iter().map(|(_, _, cells)| cells.byte_size()).sum(),
        Added::Segments(segments) => {
            segments.iter().map(|(_, name)| size_of::<(i64, String)>() + name.len()).sum()
        }
    }
}

/// Notes what a step did; after it was applied.
pub(crate) fn note(snapshot: &mut Snapshot, step: FollowedStep, context: &mut ApplyContext<'_>) {
    let Some(mut touched) = snapshot.followed(step.table) else { return };
    for span in &step.commit.spans {
        touched.add(*span, step.commit.lsn);
    }
    put(snapshot, step.table, &touched);
    context.steps.push(step);
}

/// What the latest commits did to followed tables.
#[derive(Debug)]
pub(crate) struct RecentCommits {
    most_bytes: usize,
    bytes: usize,
    /// All later ones are there.
    since: u64,
    tables: HashMap<TableId, VecDeque<Arc<FollowedCommit>>>,
    /// The tables of all commits, oldest first.
    order: VecDeque<TableId>,
}

impl RecentCommits {
    /// None, of those after a transaction.
    pub(crate) fn since(since: u64, most_bytes: usize) -> Self {
        let (tables, order) = (HashMap::new(), VecDeque::new());
        Self { most_bytes, bytes: 0, since, tables, order }
    }

    /// Takes in what steps did, in their order. The oldest commits go where they are too many.
    pub(crate) fn add(&mut self, steps: Vec<FollowedStep>) {
        for FollowedStep { table, commit } in steps {
            let commits = self.tables.entry(table).or_default();
            self.bytes += commit.bytes;
            match commits.back_mut().filter(|last| last.lsn == commit.lsn) {
                Some(last) => Arc::make_mut(last).join(commit),
                None => {
                    commits.push_back(Arc::new(commit));
                    self.order.push_back(table);
                }
            }
        }
        while self.bytes > self.most_bytes {
            let Some(table) = self.order.pop_front() else { break };
            let Some(commits) = self.tables.get_mut(&table) else { continue };
            if let Some(oldest) = commits.pop_front() {
                self.bytes -= oldest.bytes;
                self.since = self.since.max(oldest.lsn);
            }
            if commits.is_empty() {
                self.tables.remove(&table);
            }
        }
    }

    /// The commits to a table after one transaction and up to another, in their order; `None`
    /// where some of them are not there any more.
    pub(crate) fn between(
        &self,
        table: TableId,
        after: u64,
        upto: u64,
    ) -> Option<impl Iterator<Item = &Arc<FollowedCommit>>> {
        if after < self.since {
            return None;
        }
        let commits = self.tables.get(&table);
        let start = commits.map_or(0, |all| all.partition_point(|commit| commit.lsn <= after));
        let later = commits.into_iter().flat_map(move |all| all.range(start..));
        Some(later.take_while(move |commit| commit.lsn <= upto))
    }
}
