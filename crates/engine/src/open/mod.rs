//! Opening a database: its root, then the work that goes on by itself.

pub(crate) mod restore;

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidemark_border::OpenOptions;
use tidemark_types::EngineResult;

use crate::changes;
use crate::database::Database;

/// How often the loop asks each kind of work what is due.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Database {
    /// Opens the root, recovering what a crash left, and lets the work in the background begin.
    /// Blocks.
    pub fn open(options: &OpenOptions) -> EngineResult<Arc<Self>> {
        let database = Self::open_root(options)?;
        database.handle().spawn(begin_due(Arc::downgrade(&database)));
        database.handle().spawn(changes::announce_commits(Arc::downgrade(&database)));
        Ok(database)
    }
}

/// Begins what is due as long as the database is open.
async fn begin_due(database: Weak<Database>) {
    let mut times = tokio::time::interval(LOOK_EVERY);
    times.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let Some(database) = database.upgrade() else { return };
        let Ok(snapshot) = database.snapshot() else { return };
        for kind in &database.scheduled {
            Arc::clone(kind).begin_due(&database, &snapshot);
        }
    }
}
