//! CHECKPOINT CREATE: copies the database within the root in seconds, without blocking other work.
//!
//! Immutable files are hard-linked instead of copied. The manifest is that of the last checkpoint,
//! and the log is copied up to the time of the call. The copy is a complete root. To restore it,
//! start the database on the copy itself or on a duplicate.

use std::collections::BTreeSet;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, Vfs};

use crate::disk::file::{read_known, sync_dir, write_new};
use crate::disk::layout::{
    BACKUP, BACKUP_NEW, CURRENT, DB, FORMAT, LOCK, LOG, REPLACED, RESTORE, TABLES, log_file,
    manifest,
};
use crate::manifest::Generations;
use crate::options::PlantedFault;
use crate::snapshot::Snapshot;
use crate::storage::{LogPosition, Storage};

/// The copy's directory below the root.
pub const BACKUP_FOLDER: &str = BACKUP;
/// Number of log file bytes copied per step.
const COPY_BYTES: usize = 4 << 20;

impl Storage {
    /// Creates the copy in `.checkpoint` below the root. Fails if a copy exists; release that copy
    /// first.
    pub fn create_backup(&self) -> EngineResult<()> {
        let vfs = self.vfs().system();
        if self.has_backup()? {
            return Err(EngineError::new(ErrorCode::InvalidValue, "a checkpoint already exists")
                .with_hint("run CHECKPOINT RELEASE to remove it"));
        }
        remove_all(vfs, BACKUP_NEW)?;
        // The log copy would occupy disk space that transactions need in order to free space.
        self.space().refuse_when_low(vfs)?;
        // After the checkpoint, the log to be copied is short, and all earlier data is in segments.
        self.checkpoint()?;
        let copied = self.with_generations(|generations| {
            let (snapshot, position) = self.log_position()?;
            let planted = self.options().planted;
            copy_root(vfs, generations, &snapshot, &position, planted)
        });
        let done = copied.and_then(|()| {
            let renamed = vfs.rename(BACKUP_NEW, BACKUP);
            renamed.map_err(|error| EngineError::io(BACKUP, &error))?;
            sync_dir(vfs, "")
        });
        if done.is_err() {
            let _ = remove_all(vfs, BACKUP_NEW);
        }
        done
    }

    /// Removes the copy, if it exists.
    pub fn release_backup(&self) -> EngineResult<()> {
        let vfs = self.vfs().system();
        if self.has_backup()? {
            // After the rename, the copy no longer counts as existing, even if its removal is
            // incomplete.
            remove_all(vfs, BACKUP_NEW)?;
            let renamed = vfs.rename(BACKUP, BACKUP_NEW);
            renamed.map_err(|error| EngineError::io(BACKUP, &error))?;
            if self.options().planted != Some(PlantedFault::RemoveBackupInPlace) {
                sync_dir(vfs, "")?;
            }
        }
        remove_all(vfs, BACKUP_NEW)
    }

    /// Whether a copy exists.
    pub fn has_backup(&self) -> EngineResult<bool> {
        has(self.vfs().system(), "", BACKUP)
    }
}

/// Replaces the database with the copy if the file `_restore` requests it, and moves the replaced
/// database to `db.replaced`. Returns whether it was replaced. An interrupted restore continues at
/// the next start, because the copy is not touched before the database is moved away, and
/// `_restore` is removed last. Fails with `RootLocked` while the root is in use.
pub fn restore_if_requested(vfs: &dyn Vfs) -> EngineResult<bool> {
    if !has(vfs, "", RESTORE)? {
        return Ok(false);
    }
    let _lock = vfs.lock(LOCK)?;
    let copy = format!("{BACKUP}/{DB}");
    let failed = |error: std::io::Error| EngineError::io("cannot restore the checkpoint", &error);
    if has(vfs, "", BACKUP)? && has(vfs, BACKUP, DB)? {
        if has(vfs, "", DB)? {
            remove_all(vfs, REPLACED)?;
            vfs.rename(DB, REPLACED).map_err(failed)?;
            sync_dir(vfs, "")?;
        }
        vfs.rename(&copy, DB).map_err(failed)?;
        sync_dir(vfs, BACKUP)?;
    } else if !has(vfs, "", DB)? {
        let message = "found '_restore', but no '.checkpoint' to restore";
        return Err(EngineError::new(ErrorCode::InvalidValue, message));
    }
    // Also needed if an earlier start was interrupted at this point.
    sync_dir(vfs, "")?;
    remove_all(vfs, BACKUP)?;
    vfs.unlink(RESTORE).map_err(failed)?;
    sync_dir(vfs, "")?;
    Ok(true)
}

fn has(vfs: &dyn Vfs, directory: &str, name: &str) -> EngineResult<bool> {
    let entries = vfs
        .list(directory)
        .map_err(|error| EngineError::io("cannot list the root directory", &error))?;
    Ok(entries.iter().any(|entry| entry.name == name))
}

fn copy_root(
    vfs: &dyn Vfs,
    generations: &Generations,
    snapshot: &Snapshot,
    position: &LogPosition,
    planted: Option<PlantedFault>,
) -> EngineResult<()> {
    let mut directories = BTreeSet::new();
    let mut create = |path: &str| {
        let copy = format!("{BACKUP_NEW}/{path}");
        vfs.create_dir(&copy).map_err(|error| EngineError::io(&copy, &error))?;
        directories.insert(copy);
        EngineResult::Ok(())
    };
    for path in [LOG, TABLES] {
        create(path)?;
    }
    let manifested = &generations.current;
    let mut files = BTreeSet::new();
    for table in snapshot.tables().chain(manifested.snapshot.tables()) {
        let mut named = Vec::new();
        table.collect_segment_files(&mut named);
        let symbols = table.head.symbols.values();
        named.extend(symbols.flat_map(|dictionary| dictionary.store().files()));
        files.extend(named.iter().map(|file| file.path().to_owned()));
    }
    for path in &files {
        if let Some((directory, _)) = path.rsplit_once('/') {
            create(directory)?;
        }
        link(vfs, path)?;
    }
    for number in &manifested.chain {
        link(vfs, &manifest(*number))?;
    }
    for &(number, len) in position.files.iter().filter(|(n, _)| *n >= manifested.first_log) {
        copy_log(vfs, &log_file(number), len)?;
    }
    write_new(vfs, &format!("{BACKUP_NEW}/{FORMAT}"), &read_known(vfs, FORMAT)?)?;
    write_new(vfs, &format!("{BACKUP_NEW}/{CURRENT}"), &read_known(vfs, CURRENT)?)?;
    if planted == Some(PlantedFault::ForgetBackupNames) {
        return Ok(());
    }
    for directory in &directories {
        sync_dir(vfs, directory)?;
    }
    sync_dir(vfs, &format!("{BACKUP_NEW}/{DB}"))?;
    sync_dir(vfs, BACKUP_NEW)
}

fn link(vfs: &dyn Vfs, path: &str) -> EngineResult<()> {
    let linked = vfs.link(path, &format!("{BACKUP_NEW}/{path}"));
    linked.map_err(|error| EngineError::io(path, &error))
}

fn copy_log(vfs: &dyn Vfs, path: &str, len: u64) -> EngineResult<()> {
    let failed = |error: std::io::Error| EngineError::io(path, &error);
    let from = vfs.open(path, OpenMode::Read).map_err(failed)?;
    let to = vfs.open(&format!("{BACKUP_NEW}/{path}"), OpenMode::CreateNew).map_err(failed)?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < len {
        let want = COPY_BYTES.min((len - at) as usize);
        let count = from.read_at(&mut buffer[..want], at).map_err(failed)?;
        if count == 0 {
            break;
        }
        to.write_at(&buffer[..count], at).map_err(failed)?;
        at += count as u64;
    }
    to.sync().map_err(failed)
}

/// Removes a directory with its content, if it exists.
fn remove_all(vfs: &dyn Vfs, path: &str) -> EngineResult<()> {
    let failed = |error: std::io::Error| EngineError::io(path, &error);
    let entries = match vfs.list(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let child = format!("{path}/{}", entry.name);
        if entry.is_dir {
            remove_all(vfs, &child)?;
        } else {
            vfs.unlink(&child).map_err(failed)?;
        }
    }
    vfs.remove_dir(path).map_err(failed)
}
