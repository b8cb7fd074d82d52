//! Commits that a client has requested. Several pending commits form one transaction if they use
//! the same table definitions.

use std::collections::{HashMap, VecDeque};

use tidemark_border::RequestedCommit;
use tidemark_ingest::TableRows;

/// Maximum number of commits in one transaction. The number is limited because all their OK
/// responses are sent together.
const MAX_COMMITS: usize = 1024;

/// Rows of a message that requests a commit, including rows of earlier messages that deferred their
/// commit.
pub(super) struct CommitRequest {
    pub(super) tables: Vec<TableRows>,
    pub(super) messages: u64,
    pub(super) rows: u64,
    /// Memory used by the rows.
    pub(super) bytes: usize,
    pub(super) forced: bool,
}

impl CommitRequest {
    /// Whether the commit creates tables or adds columns.
    pub(super) fn defines(&self) -> bool {
        self.tables.iter().any(|rows| !rows.exists || rows.table.columns.len() > rows.known)
    }
}

/// Requested commits that run as one transaction.
pub(super) struct Group {
    requests: Vec<CommitRequest>,
    commits: Vec<RequestedCommit>,
}

impl Group {
    /// Takes the pending commits that can form one transaction, with their rows; `None` if no
    /// commit is pending. A commit that creates tables or columns is not combined with others.
    pub(super) fn take(
        waiting: &mut VecDeque<CommitRequest>,
        is_single: bool,
    ) -> Option<(Self, Vec<TableRows>)> {
        let first = waiting.pop_front()?;
        let stays_alone = is_single || first.defines();
        let mut merged = Merged::default();
        let mut request = Vec::new();
        let mut commits = vec![merged.add(&first)];
        request.push(first);
        while let Some(next) = waiting.front()
            && !stays_alone
            && commits.len() < MAX_COMMITS
            && merged.fits(next)
        {
            commits.push(merged.add(next));
            request.extend(waiting.pop_front());
        }
        Some((Self { requests: request, commits }, merged.tables))
    }

    /// Returns the commits to the queue, to be retried one by one.
    pub(super) fn requeue(self, waiting: &mut VecDeque<CommitRequest>) {
        for request in self.requests.into_iter().rev() {
            waiting.push_front(request);
        }
    }

    /// Number of commits.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Number of messages in the first commit.
    pub(super) fn first_messages(&self) -> u64 {
        self.requests.first().map_or(0, |request| request.messages)
    }

    /// Number of messages in all commits.
    pub(super) fn messages(&self) -> u64 {
        self.requests.iter().map(|request| request.messages).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.requests.iter().map(|request| request.bytes).sum()
    }

    pub(super) fn commits(&self) -> Vec<RequestedCommit> {
        self.commits.clone()
    }
}

/// Rows from several commits, merged by table.
#[derive(Default)]
struct Merged {
    tables: Vec<TableRows>,
    positions: HashMap<String, usize>,
}

impl Merged {
    /// Whether the next commit's rows use the same table definitions as the rows merged so far.
    fn fits(&self, next: &CommitRequest) -> bool {
        let is_same = |rows: &TableRows| {
            let table = self.positions.get(&rows.table.name);
            table.is_none_or(|table| self.tables[*table].table == rows.table)
        };
        !next.defines() && next.tables.iter().all(is_same)
    }

    /// Adds a commit's rows. Shares the cells with the request instead of copying them.
    fn add(&mut self, request: &CommitRequest) -> RequestedCommit {
        let mut tables = Vec::with_capacity(request.tables.len());
        for rows in &request.tables {
            if let Some(table) = self.positions.get(&rows.table.name) {
                self.tables[*table].chunks.extend_from_slice(&rows.chunks);
                tables.push(*table);
            } else {
                tables.push(self.tables.len());
                self.positions.insert(rows.table.name.clone(), self.tables.len());
                self.tables.push(rows.clone());
            }
        }
        let CommitRequest { messages, rows, forced, .. } = *request;
        RequestedCommit { messages, rows, tables, forced }
    }
}
