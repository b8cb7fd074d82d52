//! Commits that a client requested. Several pending commits are merged into one transaction if they
//! use the same table definitions.

use std::collections::{HashMap, VecDeque};

use tidemark_border::AskedCommit;
use tidemark_ingest::TableRows;

/// Maximum number of commits in one transaction, because all their OK responses are sent together.
const MAX_COMMITS: usize = 1024;

/// Rows of a message that requests a commit, and of earlier messages that deferred theirs.
pub(super) struct Asked {
    pub(super) tables: Vec<TableRows>,
    pub(super) messages: u64,
    pub(super) rows: u64,
    /// Memory used by the rows.
    pub(super) bytes: usize,
    pub(super) forced: bool,
}

impl Asked {
    /// Whether its commit creates tables or adds columns.
    pub(super) fn defines(&self) -> bool {
        self.tables.iter().any(|rows| !rows.exists || rows.table.columns.len() > rows.known)
    }
}

/// The commits that form one transaction.
pub(super) struct Group {
    asked: Vec<Asked>,
    commits: Vec<AskedCommit>,
}

impl Group {
    /// Takes the commits that can form one transaction, with their rows; `None` if no commit is
    /// pending. A commit that creates tables or columns is not merged with others.
    pub(super) fn take(
        waiting: &mut VecDeque<Asked>,
        alone: bool,
    ) -> Option<(Self, Vec<TableRows>)> {
        let first = waiting.pop_front()?;
        let stays_alone = alone || first.defines();
        let mut merged = Merged::default();
        let mut asked = Vec::new();
        let mut commits = vec![merged.add(&first)];
        asked.push(first);
        while let Some(next) = waiting.front()
            && !stays_alone
            && commits.len() < MAX_COMMITS
            && merged.fits(next)
        {
            commits.push(merged.add(next));
            asked.extend(waiting.pop_front());
        }
        Some((Self { asked, commits }, merged.tables))
    }

    /// Puts the commits back, to be tried one by one.
    pub(super) fn give_back(self, waiting: &mut VecDeque<Asked>) {
        for asked in self.asked.into_iter().rev() {
            waiting.push_front(asked);
        }
    }

    /// Number of commits.
    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Number of messages of its first commit.
    pub(super) fn first_messages(&self) -> u64 {
        self.asked.first().map_or(0, |asked| asked.messages)
    }

    /// Number of messages of all its commits.
    pub(super) fn messages(&self) -> u64 {
        self.asked.iter().map(|asked| asked.messages).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.asked.iter().map(|asked| asked.bytes).sum()
    }

    pub(super) fn commits(&self) -> Vec<AskedCommit> {
        self.commits.clone()
    }
}

/// Rows of several commits, merged by table.
#[derive(Default)]
struct Merged {
    tables: Vec<TableRows>,
    places: HashMap<String, usize>,
}

impl Merged {
    /// Whether its rows use the same table definitions as the rows merged so far.
    fn fits(&self, next: &Asked) -> bool {
        let is_same = |rows: &TableRows| {
            let place = self.places.get(&rows.table.name);
            place.is_none_or(|place| self.tables[*place].table == rows.table)
        };
        !next.defines() && next.tables.iter().all(is_same)
    }

    /// Shares the cells with `asked` instead of copying them.
    fn add(&mut self, asked: &Asked) -> AskedCommit {
        let mut tables = Vec::with_capacity(asked.tables.len());
        for rows in &asked.tables {
            if let Some(place) = self.places.get(&rows.table.name) {
                self.tables[*place].chunks.extend_from_slice(&rows.chunks);
                tables.push(*place);
            } else {
                tables.push(self.tables.len());
                self.places.insert(rows.table.name.clone(), self.tables.len());
                self.tables.push(rows.clone());
            }
        }
        let Asked { messages, rows, forced, .. } = *asked;
        AskedCommit { messages, rows, tables, forced }
    }
}
