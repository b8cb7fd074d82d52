//! Changes that the latest commits made to followed tables, kept in memory up to a limit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tidemark_types::SqlType;

use crate::segment::column::ColumnData;
use crate::table::schema::TableId;
use crate::table::time_range::Span;

/// Rows that one step added.
#[derive(Debug, Clone)]
pub(crate) enum Added {
    /// Number of rows, which are ascending in time, and their cells by column.
    Cells(usize, Vec<(u32, SqlType, ColumnData)>),
    /// The partitions' start timestamps, and the segments' names.
    Segments(Vec<(i64, String)>),
}

/// Changes that a step makes to the rows of a followed table.
#[derive(Debug)]
pub(crate) struct FollowedStep {
    pub(crate) table: TableId,
    pub(crate) commit: FollowedCommit,
}

/// Changes that a transaction makes to the rows of a followed table.
#[derive(Debug, Clone)]
pub(crate) struct FollowedCommit {
    pub(crate) lsn: u64,
    /// Version of the table's definition.
    pub(crate) schema_version: u64,
    /// Touched time ranges.
    pub(crate) spans: Vec<Span>,
    /// Number of added rows.
    pub(crate) rows: u64,
    /// The added rows; `None` if the transaction also changed other rows.
    pub(crate) added: Option<Vec<Added>>,
    /// Approximate size in memory, in bytes.
    pub(crate) bytes: usize,
}

impl FollowedCommit {
    /// First and last touched timestamp.
    pub(crate) fn bounds(&self) -> Span {
        let first = self.spans.iter().map(|span| span.0).min().unwrap_or(i64::MAX);
        let last = self.spans.iter().map(|span| span.1).max().unwrap_or(i64::MIN);
        (first, last)
    }

    /// Adds another step of the same transaction.
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

/// Changes that the latest commits made to followed tables.
#[derive(Debug)]
pub(crate) struct RecentCommits {
    max_bytes: usize,
    bytes: usize,
    /// All commits after this transaction are present.
    since: u64,
    tables: HashMap<TableId, VecDeque<Arc<FollowedCommit>>>,
    /// Tables of all commits, oldest first.
    order: VecDeque<TableId>,
}

impl RecentCommits {
    /// Creates an empty list of the commits after a transaction.
    pub(crate) fn since(since: u64, most_bytes: usize) -> Self {
        let (tables, order) = (HashMap::new(), VecDeque::new());
        Self { max_bytes: most_bytes, bytes: 0, since, tables, order }
    }

    /// Adds the changes made by steps, in order. Removes the oldest commits if the list exceeds its
    /// limit.
    pub(crate) fn add(&mut self, steps: Vec<FollowedStep>) {
        for FollowedStep { table, commit } in steps {
            let commits = self.tables.entry(table).or_default();
            self.bytes += commit.bytes;
            if let Some(last) = commits.back_mut().filter(|last| last.lsn == commit.lsn) {
                Arc::make_mut(last).join(commit);
            } else {
                commits.push_back(Arc::new(commit));
                self.order.push_back(table);
            }
        }
        while self.bytes > self.max_bytes {
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

    /// Records that a transaction is lost, so the commits up to this transaction are no longer
    /// complete.
    pub(crate) fn lose(&mut self, lsn: u64) {
        *self = Self::since(lsn.max(self.since), self.max_bytes);
    }

    /// Returns a table's commits after one transaction and up to another, in order; `None` if some
    /// of them were removed.
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
