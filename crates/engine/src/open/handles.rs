//! Handles on open databases. All handles of a process on the same root share one database, because
//! the root admits only one process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_border::OpenOptions;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::database::Database;

/// Databases that are open in this process, by canonical root. The lock is held while a database
/// is opened or closed, so that another handle on its root waits.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Shared>>> = LazyLock::new(Mutex::default);

struct Shared {
    database: Weak<Database>,
    options: OpenOptions,
    handles: usize,
}

/// A handle on an open database. Closing the last handle on a root closes the database.
pub struct Handle {
    database: Arc<Database>,
    root: PathBuf,
    is_closed: AtomicBool,
}

impl Handle {
    /// Opens a root, or shares the database if this process has already opened it. Fails if any
    /// option differs from the options of the open database. A handle without options accepts
    /// whatever options are in effect.
    pub fn open(options: &OpenOptions) -> EngineResult<Self> {
        let mut open = OPEN.lock();
        if let Ok(root) = options.root.canonicalize()
            && let Some(shared) = open.get_mut(&root)
            && let Some(database) = shared.database.upgrade()
            && database.check_open().is_ok()
        {
            check_same(options, &shared.options)?;
            shared.handles += 1;
            return Ok(Self { database, root, is_closed: AtomicBool::new(false) });
        }
        let database = Database::open(options)?;
        let root = options.root.canonicalize().map_err(|error| {
            EngineError::io(format_args!("cannot use {}", options.root.display()), &error)
        })?;
        let (weak, options) = (Arc::downgrade(&database), options.clone());
        open.insert(root.clone(), Shared { database: weak, options, handles: 1 });
        Ok(Self { database, root, is_closed: AtomicBool::new(false) })
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Closes the handle; the last one closes the database, see [`Database::close`]. Blocks.
    pub fn close(&self, within: Duration) -> EngineResult<()> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let mut open = OPEN.lock();
        let Some(shared) = open.get_mut(&self.root) else { return self.database.close(within) };
        shared.handles -= 1;
        if shared.handles > 0 {
            return Ok(());
        }
        open.remove(&self.root);
        self.database.close(within)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // The entry remains in the list, because a running statement may keep the database open.
        if let Some(shared) = OPEN.lock().get_mut(&self.root) {
            shared.handles -= 1;
        }
    }
}

fn check_same(wanted: &OpenOptions, given: &OpenOptions) -> EngineResult<()> {
    let rootless = |options: &OpenOptions| OpenOptions { root: PathBuf::new(), ..options.clone() };
    let wanted = rootless(wanted);
    if wanted == OpenOptions::default() || wanted == rootless(given) {
        return Ok(());
    }
    let root = given.root.display();
    let message = format!("'{root}' is already open in this process with other options");
    Err(EngineError::new(ErrorCode::InvalidValue, message)
        .with_hint("open it with the same options, or only with its root"))
}
