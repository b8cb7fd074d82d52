//! Shared state of change feeds: commit announcements, and how long a table without feeds remains
//! followed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_storage::{Snapshot, TableId};
use tokio::sync::watch;
use tokio::time::Instant;

/// Default time that a table without feeds remains followed.
const FOLLOWED_FOR: Duration = Duration::from_hours(7 * 24);

/// State shared by all change feeds of an open database.
#[derive(Debug)]
pub(crate) struct Followers {
    /// The last announced transaction.
    pub(crate) commits: watch::Sender<u64>,
    /// When each table was last followed.
    last: Mutex<HashMap<TableId, Instant>>,
    /// How long a table without feeds remains followed.
    pub(crate) retention: Duration,
}

impl Followers {
    /// Creates the state. Tables without feeds remain followed for `retention_ms`.
    pub(crate) fn new(retention_ms: Option<u64>) -> Self {
        let retention = retention_ms.map_or(FOLLOWED_FOR, Duration::from_millis);
        Self { commits: watch::Sender::default(), last: Mutex::default(), retention }
    }

    /// Records that a feed follows the table now.
    pub(crate) fn note(&self, table: TableId) {
        self.last.lock().insert(table, Instant::now());
    }

    /// Returns the tables that no client has followed within the retention time. For a table last
    /// followed before startup, the retention time begins at startup.
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
