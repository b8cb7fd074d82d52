//! Shared state of change feeds: commit announcements, and how long a table stays followed without
//! a feed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_storage::{Snapshot, TableId};
use tokio::sync::watch;
use tokio::time::Instant;

/// Default time for which a table stays followed without a feed.
const FOLLOWED_FOR: Duration = Duration::from_hours(7 * 24);

/// Shared state of all change feeds of an open database.
#[derive(Debug)]
pub(crate) struct Followers {
    /// The last announced transaction.
    pub(crate) commits: watch::Sender<u64>,
    /// When each table was last followed.
    last: Mutex<HashMap<TableId, Instant>>,
    /// How long a table stays followed without a feed.
    pub(crate) retention: Duration,
}

impl Followers {
    /// Creates the state; tables stay followed for `retention_ms` without a feed.
    pub(crate) fn new(retention_ms: Option<u64>) -> Self {
        let retention = retention_ms.map_or(FOLLOWED_FOR, Duration::from_millis);
        Self { commits: watch::Sender::default(), last: Mutex::default(), retention }
    }

    /// Records that a table is followed now.
    pub(crate) fn note(&self, table: TableId) {
        self.last.lock().insert(table, Instant::now());
    }

    /// Returns tables that no client has followed within the retention time. For tables followed
    /// before startup, the time counts from startup.
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
