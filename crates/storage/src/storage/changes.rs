//! The sequence of changes to a followed table.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidemark_types::EngineResult;

use super::Storage;
use crate::segment::Segment;
use crate::segment::column;
use crate::snapshot::Snapshot;
use crate::state::apply::partition_rows;
use crate::state::recent::{Added, FollowedCommit};
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::row_source::Run;
use crate::table::schema::TableId;
use crate::table::time_range::{Span, TimeRange};

/// Maximum number of rows in small commits that are reported together.
const MAX_MERGED_ROWS: u64 = 64 << 10;
/// Maximum number of ranges collected from single commits. The stored record has the same limit.
const MAX_SPANS: usize = 1_024;

/// The next change to a table after a position.
#[derive(Debug)]
pub enum NextChange {
    /// No change yet.
    Nothing,
    /// The change can no longer be reported, because the position does not exist or the table was
    /// not followed at that position.
    Lost,
    /// Added rows.
    Added(AddedRows),
    /// Time ranges, ascending and disjoint, in which rows changed. The snapshot contains their
    /// current rows.
    Touched(Vec<TimeRange>),
}

/// Rows added by one or several commits, in commit order.
#[derive(Debug)]
pub struct AddedRows {
    /// The last commit's transaction.
    pub txn: u64,
    /// Number of commits.
    pub commits: usize,
    /// Number of rows.
    pub rows: u64,
    /// First and last timestamp; the full time range in a table without a designated timestamp.
    pub bounds: (i64, i64),
    /// The table, reduced to these rows.
    pub table: Arc<TableSnapshot>,
}

impl Storage {
    /// Returns the table's next change after transaction `after`, up to the snapshot. With
    /// `is_separate`, each commit is reported separately.
    pub fn next_change(
        &self,
        snapshot: &Snapshot,
        table: TableId,
        after: u64,
        is_separate: bool,
    ) -> EngineResult<NextChange> {
        let (Some(followed), Some(table)) = (snapshot.followed(table), snapshot.table_by_id(table))
        else {
            return Ok(NextChange::Lost);
        };
        if after < followed.since || after > snapshot.lsn() {
            return Ok(NextChange::Lost);
        }
        if followed.last <= after {
            return Ok(NextChange::Nothing);
        }
        let (leading, spans) = self.recent_commits(snapshot, &table, after, is_separate);
        if let (Some(last), Some(rows)) = (leading.last(), rows_of(&table, &leading)?) {
            let bounds = leading.iter().map(|commit| commit.bounds());
            let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            return Ok(NextChange::Added(AddedRows {
                txn: last.lsn,
                commits: leading.len(),
                rows: leading.iter().map(|commit| commit.rows).sum(),
                bounds: bounds.unwrap_or_default(),
                table: Arc::new(rows),
            }));
        }
        let spans = spans.or_else(|| followed.after(after)).unwrap_or_default();
        Ok(NextChange::Touched(ranges_of(spans)))
    }

    /// Returns the next commits that only added rows and can be reported together. Also returns the
    /// ranges touched by all commits in memory, unless some are missing.
    fn recent_commits(
        &self,
        snapshot: &Snapshot,
        table: &TableSnapshot,
        after: u64,
        is_separate: bool,
    ) -> (Vec<Arc<FollowedCommit>>, Option<Vec<Span>>) {
        let recent = self.recent.lock();
        let Some(commits) = recent.between(table.schema().id, after, snapshot.lsn()) else {
            return (Vec::new(), None);
        };
        let mut leading = Leading::new(table, is_separate);
        let (mut spans, mut changes) = (Vec::new(), false);
        for commit in commits {
            changes |= commit.added.is_none();
            leading.offer(commit);
            if spans.len() <= MAX_SPANS {
                spans.extend_from_slice(&commit.spans);
            }
        }
        let spans = (spans.len() <= MAX_SPANS).then_some(spans);
        (leading.finish(changes), spans)
    }
}

/// Collects commits whose combined rows are in commit order.
struct Leading {
    commits: Vec<Arc<FollowedCommit>>,
    rows: u64,
    schema_version: u64,
    has_times: bool,
    is_separate: bool,
    is_over: bool,
}

impl Leading {
    fn new(table: &TableSnapshot, is_separate: bool) -> Self {
        let (schema_version, has_times) =
            (table.schema().version, table.schema().timestamp.is_some());
        Self {
            commits: Vec::new(),
            rows: 0,
            schema_version,
            has_times,
            is_separate,
            is_over: false,
        }
    }

    fn offer(&mut self, commit: &Arc<FollowedCommit>) {
        self.is_over |= commit.added.is_none();
        if let Some(last) = self.commits.last() {
            let in_order = !self.has_times || commit.bounds().0 >= last.bounds().1;
            let is_alone = self.is_separate || has_segments(last) || has_segments(commit);
            let is_much = self.rows + commit.rows > MAX_MERGED_ROWS;
            self.is_over |= is_alone || is_much || !in_order;
            self.is_over |= commit.schema_version != last.schema_version;
        }
        if !self.is_over {
            self.rows += commit.rows;
            self.commits.push(Arc::clone(commit));
        }
    }

    /// `changes` specifies whether changes other than added rows follow. If so, added rows are
    /// reported only if none are in segments and all have the current table definition. Without
    /// these conditions, the report could show cells of other columns or lack rows.
    fn finish(self, changes: bool) -> Vec<Arc<FollowedCommit>> {
        let is_as_it_was = |commit: &Arc<FollowedCommit>| {
            !has_segments(commit) && commit.schema_version == self.schema_version
        };
        if changes && !self.commits.iter().all(is_as_it_was) {
            return Vec::new();
        }
        self.commits
    }
}

fn has_segments(commit: &FollowedCommit) -> bool {
    commit.added.iter().flatten().any(|added| matches!(added, Added::Segments(_)))
}

/// Returns a table with only the rows that the commits added; `None` if a segment has since been
/// merged with other segments.
fn rows_of(
    table: &TableSnapshot,
    commits: &[Arc<FollowedCommit>],
) -> EngineResult<Option<TableSnapshot>> {
    type SegmentsAndRuns = (Vec<Arc<Segment>>, Vec<Arc<Run>>);
    let mut partitions: BTreeMap<i64, SegmentsAndRuns> = BTreeMap::new();
    let mut rows = 0;
    for commit in commits {
        rows += commit.rows;
        for added in commit.added.iter().flatten() {
            match added {
                Added::Cells(count, columns) => {
                    for (floor, run) in runs_of(table, *count, columns, commit.lsn)? {
                        partitions.entry(floor).or_default().1.push(Arc::new(run));
                    }
                }
                Added::Segments(names) => {
                    for (floor, name) in names {
                        let known = table.partition(*floor);
                        let mut segments = known.iter().flat_map(|known| &known.segments);
                        let Some(segment) = segments.find(|one| one.meta.name == *name) else {
                            return Ok(None);
                        };
                        let own = Arc::new(segment.settled());
                        partitions.entry(*floor).or_default().0.push(own);
                    }
                }
            }
        }
    }
    let last = commits.last().map_or(0, |commit| commit.lsn);
    let partition =
        |(floor, (segments, runs))| (floor, Arc::new(Partition::new(segments, runs, last)));
    let hot = partitions.into_iter().map(partition).collect();
    Ok(Some(TableSnapshot { hot, rows, ..table.without_rows() }))
}

/// Splits the rows of one step at partition boundaries.
fn runs_of(
    table: &TableSnapshot,
    rows: usize,
    columns: &[(u32, tidemark_types::SqlType, column::ColumnData)],
    lsn: u64,
) -> EngineResult<Vec<(i64, Run)>> {
    let timestamp = table.schema().timestamp_column();
    let times = timestamp.and_then(|one| columns.iter().find(|(id, ..)| *id == one.id));
    let times = times.map(|(_, _, cells)| column::timestamps(cells.array())).transpose()?;
    let cuts = partition_rows(table.schema(), times.as_deref(), rows);
    let run = |(floor, rows): (i64, std::ops::Range<usize>)| {
        let cells = columns
            .iter()
            .map(|(id, sql_type, cells)| (*id, *sql_type, cells.slice(rows.start, rows.len())));
        let bounds = times.as_ref().map_or((0, 0), |t| (t[rows.start], t[rows.end - 1]));
        let (columns, rows) = (cells.collect(), rows.len());
        (floor, Run { rows, columns, bounds, last_lsn: lsn, upsert: None })
    };
    Ok(cuts.into_iter().map(run).collect())
}

/// Sorts the ranges and merges overlapping ones.
fn ranges_of(mut spans: Vec<Span>) -> Vec<TimeRange> {
    spans.sort_unstable();
    let mut ranges: Vec<TimeRange> = Vec::with_capacity(spans.len());
    for (lo, last) in spans {
        let hi = last.saturating_add(1);
        match ranges.last_mut() {
            Some(open) if lo <= open.hi => open.hi = open.hi.max(hi),
            _ => ranges.push(TimeRange { lo, hi }),
        }
    }
    ranges
}
