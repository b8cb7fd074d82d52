//! What feeds of changes have in common: the announcements of commits, and how long a table is
//! followed without a feed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_storage::{Snapshot, TableId};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a table is followed without a feed, where nothing else is said.
const FOLLOWED_FOR: Duration = Duration::from_hours(7 * 24);

/// What feeds have in common while the database is open.
#[derive(Debug)]
pub(crate) struct Followers {
    /// The last transaction that was announced to them.
    pub(crate) commits: watch::Sender<u64>,
    /// When each table was followed last.
    last: Mutex<HashMap<TableId, Instant>>,
    /// How long a table is followed without a feed.
    pub(crate) retention: Duration,
}

impl Followers {
    /// Tables are followed for so many milliseconds without a feed.
    pub(crate) fn new(retention_ms: Option<u64>) -> Self {
        let retention = retention_ms.map_or(FOLLOWED_FOR, Duration::from_millis);
        Self { commits: watch::Sender::default(), last: Mutex::default(), retention }
    }

    /// A table is followed now.
    pub(crate) fn note(&self, table: TableId) {
        self.last.lock().insert(table, Instant::now());
    }

    /// Tables that no client has followed for long. Those of before the start count from there.
    pub(crate) fn forgotten(&self, snapshot: &Snapshot) -> Vec<TableId> {
        let mut last = self.last.lock();
        let followed: Vec<TableId> = snapshot.followed_tables().collect();
        last.retain(|table, _| followed.contains(table));
        let now = Instant::now();
        let is_forgotten =
            |table: &TableId| now - *last.entry(*table).or_insert(now) > self.retention;
        followed.into_iter().filter(is_forgotten).collect()
    }
}
