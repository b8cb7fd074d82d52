//! A file that exists as long as it is referenced.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidemark_types::{EngineError, EngineResult};
use tidemark_vfs::{OpenMode, Vfs};

use crate::disk::Disk;
use crate::disk::layout::damaged;

/// A named immutable file. Once doomed, it is unlinked when its last reference is dropped.
#[derive(Debug)]
pub(crate) struct StoredFile {
    vfs: Arc<Disk>,
    path: String,
    doomed: AtomicBool,
    distrusted: AtomicBool,
}

impl StoredFile {
    pub(crate) fn new(vfs: Arc<Disk>, path: String) -> Arc<Self> {
        Arc::new(Self {
            vfs,
            path,
            doomed: AtomicBool::new(false),
            distrusted: AtomicBool::new(false),
        })
    }

    pub(crate) fn vfs(&self) -> &Arc<Disk> {
        &self.vfs
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// File name without the directory.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit_once('/').map_or(&self.path, |(_, name)| name)
    }

    /// Records a failed sync. The data in the page cache may never reach the disk, and no later
    /// sync reports the loss. The content must be written to another file.
    pub(crate) fn distrust(&self) {
        self.distrusted.store(true, Ordering::Release);
    }

    pub(crate) fn is_distrusted(&self) -> bool {
        self.distrusted.load(Ordering::Acquire)
    }

    /// Marks the file for removal. Only allowed once no manifest and no log references the file.
    pub(crate) fn doom(&self) {
        self.doomed.store(true, Ordering::Release);
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        if self.doomed.load(Ordering::Acquire) {
            // If the file cannot be unlinked, it is an orphan, which the next start removes.
            let _ = self.vfs.unlink(&self.path);
        }
    }
}

/// Reads a file that must exist. Returns `Damaged` if it is missing or the disk cannot read it.
pub(crate) fn read_known(vfs: &dyn Vfs, path: &str) -> EngineResult<Vec<u8>> {
    const EIO: i32 = 5;
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => damaged(path, "the file is missing"),
        _ if error.raw_os_error() == Some(EIO) => damaged(path, error),
        _ => EngineError::io(path, &error),
    };
    let file = vfs.open(path, OpenMode::Read).map_err(failed)?;
    let mut bytes = vec![0; file.len().map_err(failed)? as usize];
    let count = file.read_at(&mut bytes, 0).map_err(failed)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Writes a new file and syncs its content. Its name becomes durable when the directory is synced.
/// Removes the file if it cannot be written completely.
pub(crate) fn write_new(vfs: &dyn Vfs, path: &str, bytes: &[u8]) -> EngineResult<()> {
    let failed = |error: std::io::Error| EngineError::io(path, &error);
    let file = vfs.open(path, OpenMode::Replace).map_err(failed)?;
    let written = file.write_at(bytes, 0).and_then(|()| file.sync());
    written.inspect_err(|_| drop(vfs.unlink(path))).map_err(failed)
}

pub(crate) fn sync_dir(vfs: &dyn Vfs, path: &str) -> EngineResult<()> {
    vfs.sync_dir(path).map_err(|error| EngineError::io(path, &error))
}
