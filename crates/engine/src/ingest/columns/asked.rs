//! Commits that the client of a connection asked for. Those that wait at the same time become one
//! transaction, as far as they agree on their tables.

use std::collections::{HashMap, VecDeque};

use tidemark_border::AskedCommit;
use tidemark_ingest::TableRows;

/// Commits of one transaction, at most: all of their OKs are sent at once.
const MAX_COMMITS: usize = 1024;

/// The rows of a message that asks for a commit, and of those before it that waited for it.
pub(super) struct Asked {
    pub(super) tables: Vec<TableRows>,
    pub(super) messages: u64,
    pub(super) rows: u64,
    /// What the rows take in memory.
    pub(super) bytes: usize,
    pub(super) forced: bool,
}

impl Asked {
    /// Whether its commit changes what tables there are, or their columns.
    pub(super) fn defines(&self) -> bool {
        self.tables.iter().any(|rows| !rows.exists || rows.table.columns.len() > rows.known)
    }
}

/// What is one transaction.
pub(super) struct Group {
    asked: Vec<Asked>,
    commits: Vec<AskedCommit>,
}

impl Group {
    /// Takes what can be one transaction, and its rows; none where nothing waits. What defines a
    /// table stays by itself.
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

    /// Gives it back, to be tried one by one.
    pub(super) fn give_back(self, waiting: &mut VecDeque<Asked>) {
        for asked in self.asked.into_iter().rev() {
            waiting.push_front(asked);
        }
    }

    /// How many commits it is.
    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    /// Messages of its first commit.
    pub(super) fn first_messages(&self) -> u64 {
        self.asked.first().map_or(0, |asked| asked.messages)
    }

    /// Messages of all.
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

/// Rows of several commits, table by table.
#[derive(Default)]
struct Merged {
    tables: Vec<TableRows>,
    places: HashMap<String, usize>,
}

impl Merged {
    /// Whether its rows are for the tables as the others found them.
    fn fits(&self, next: &Asked) -> bool {
        let is_same = |rows: &TableRows| {
            let place = self.places.get(&rows.table.name);
            place.is_none_or(|place| self.tables[*place].table == rows.table)
        };
        !next.defines() && next.tables.iter().all(is_same)
    }

    /// The cells are shared with `asked`, not copied.
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
