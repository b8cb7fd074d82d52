//! Followed tables: the data that change feeds report.
//!
//! A table is followed after a [`Change::Follow`](crate::Change::Follow). Two kinds of data are
//! stored for it, and replay rebuilds both from the log:
//!
//! - A record contains the touched time ranges and their transactions, as for a watched table, but
//!   including removed partitions. It can report changes since any position, no matter how old, as
//!   time ranges.
//! - The changes made by the latest commits are kept in memory up to a limit, and are reported
//!   commit by commit.

use tidemark_types::EngineResult;

use crate::snapshot::Snapshot;
use crate::state::context::ApplyContext;
use crate::state::op::Op;
use crate::state::recent::{Added, FollowedCommit, FollowedStep};
use crate::state::touched::{Touched, spans_of};
use crate::table::TableSnapshot;
use crate::table::records::FOLLOWED_RECORDS;
use crate::table::schema::TableId;
use crate::table::time_range::Span;

/// Approximate size in bytes of a commit in memory, excluding its cells.
const COMMIT_BYTES: usize = 256;

/// The full time range.
const EVER: Span = (i64::MIN, i64::MAX);

impl Snapshot {
    /// Returns the time ranges touched since the table was first followed; `None` if it is not
    /// followed.
    #[must_use]
    pub fn followed(&self, table: TableId) -> Option<Touched> {
        let bytes = self.record(FOLLOWED_RECORDS, &table.to_string())?;
        Touched::decode(bytes).ok()
    }

    /// The followed tables.
    pub fn followed_tables(&self) -> impl Iterator<Item = TableId> {
        self.records(FOLLOWED_RECORDS).filter_map(|(key, _)| key.parse().ok())
    }
}

fn put(snapshot: &mut Snapshot, table: TableId, touched: &Touched) {
    snapshot.put_record(FOLLOWED_RECORDS, &table.to_string(), touched.encode().into());
}

/// Starts following a table.
pub(crate) fn follow(snapshot: &mut Snapshot, table: TableId, lsn: u64) {
    if snapshot.record(FOLLOWED_RECORDS, &table.to_string()).is_none() {
        put(snapshot, table, &Touched::from(lsn));
    }
}

/// Determines which changes a step will make to the rows of a followed table.
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

/// Whether a non-empty step of this kind adds, removes or changes rows.
fn touches_rows(op: &Op) -> bool {
    match op {
        Op::Append(append) => append.rows > 0,
        Op::Adopt(adopt) => !adopt.segments.is_empty(),
        Op::Update(update) => !update.partitions.is_empty(),
        Op::Delete(delete) => !delete.partitions.is_empty(),
        _ => true,
    }
}

/// Whether a step's rows are later than all existing rows and therefore replace none of them by
/// DEDUP keys.
fn is_later(table: &TableSnapshot, op: &Op, spans: &[Span]) -> bool {
    // With several segments, one segment may replace rows of another.
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

/// Records that a transaction is lost, so any row of the table may differ.
pub(crate) fn note_lost(snapshot: &mut Snapshot, table: TableId, lsn: u64) {
    if let Some(mut touched) = snapshot.followed(table) {
        touched.add(EVER, lsn);
        put(snapshot, table, &touched);
    }
}

/// Records a step's changes after it was applied.
pub(crate) fn note(snapshot: &mut Snapshot, step: FollowedStep, context: &mut ApplyContext<'_>) {
    let Some(mut touched) = snapshot.followed(step.table) else { return };
    for span in &step.commit.spans {
        touched.add(*span, step.commit.lsn);
    }
    put(snapshot, step.table, &touched);
    context.steps.push(step);
}
