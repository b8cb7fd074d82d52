//! What the latest commits did to followed tables, in memory within a bound.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tidemark_types::SqlType;

use crate::segment::column::ColumnData;
use crate::table::schema::TableId;
use crate::table::time_range::Span;

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
    pub(crate) table: TableId,
    pub(crate) commit: FollowedCommit,
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
    /// What it takes in memory, roughly.
    pub(crate) bytes: usize,
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
            if let Some(last) = commits.back_mut().filter(|last| last.lsn == commit.lsn) {
                Arc::make_mut(last).join(commit);
            } else {
                commits.push_back(Arc::new(commit));
                self.order.push_back(table);
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

    /// A transaction is lost: what came up to it is not known as a whole.
    pub(crate) fn lose(&mut self, lsn: u64) {
        *self = Self::since(lsn.max(self.since), self.most_bytes);
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
