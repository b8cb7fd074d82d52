//! Opening a database: its root, then the work that goes on by itself.

use std::sync::Arc;

use tidemark_border::OpenOptions;
use tidemark_types::EngineResult;

use crate::changes;
use crate::database::Database;
use crate::views;

impl Database {
    /// Opens the root, recovering what a crash left, and lets views follow their tables. Blocks.
    pub fn open(options: &OpenOptions) -> EngineResult<Arc<Self>> {
        let database = Self::open_root(options)?;
        database.handle().spawn(views::follow(Arc::downgrade(&database)));
        database.handle().spawn(changes::announce_commits(Arc::downgrade(&database)));
        Ok(database)
    }
}
