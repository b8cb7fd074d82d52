//! Frees disk space: requests a checkpoint after drops, and gives up the previous generation. Also
//! closes the storage within a time limit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use super::{Storage, Writer};
use crate::compaction::checkpoint;
use crate::disk::file::StoredFile;
use crate::disk::space::Space;
use crate::log::Group;
use crate::manifest::SymbolFiles;
use crate::options::CommitMode;
use crate::state::context::PendingRewrites;
use crate::table::schema::TableId;

/// Maximum time and interval for retrying a transaction that frees space on a full disk. Meanwhile,
/// other writes in progress fail and release their space.
const PATIENCE: Duration = Duration::from_secs(2);
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// Error when even the reserve is too small to log a transaction that frees space.
fn reserve_exhausted(bytes: usize) -> EngineError {
    let kib = bytes.div_ceil(1024);
    let message = format!(
        "disk full: the statement needs {kib} KiB of log space, which is more than is left"
    );
    EngineError::new(ErrorCode::DiskFull, message).with_hint(
        "drop partitions or tables, or delete rows that are contiguous in time; see \
         disk.reserve",
    )
}

impl Storage {
    /// Writes a group to the log. A group that frees space may use the reserve.
    pub(super) fn write_group(
        &self,
        writer: &mut Writer,
        group: &mut Group,
        frees: bool,
    ) -> EngineResult<()> {
        let began = Instant::now();
        loop {
            let written = writer.log.write(group);
            let full = matches!(&written, Err(error) if error.code == ErrorCode::DiskFull);
            if !full || !frees {
                return written;
            }
            if !self.space.release_reserve(self.vfs.system()) {
                if !self.options.background || began.elapsed() >= PATIENCE {
                    return Err(reserve_exhausted(group.len()));
                }
                std::thread::sleep(TRY_AGAIN);
            }
        }
    }

    /// Adds data that the next checkpoint must rewrite.
    pub(super) fn add_rewrites(&self, writer: &mut Writer, rewrites: PendingRewrites) {
        writer.pending_rewrites.dead_bytes += rewrites.dead_bytes;
        writer.pending_rewrites.rewrite_bytes += rewrites.rewrite_bytes;
        self.space.promise(rewrites.rewrite_bytes);
    }

    /// Restores a failed checkpoint's pending rewrites so that the next checkpoint performs them.
    pub(super) fn restore_rewrites(&self, rewrites: PendingRewrites) {
        let mut writer = self.writer.lock();
        writer.pending_rewrites.dead_bytes += rewrites.dead_bytes;
        writer.pending_rewrites.rewrite_bytes += rewrites.rewrite_bytes;
    }

    /// Records that a checkpoint would free space. The background thread then runs a checkpoint,
    /// immediately if disk space is low.
    pub(super) fn note_freed(&self) {
        if self.options.background {
            let low = self.space.is_low(self.vfs.system());
            let mut requests = self.background.requests.lock();
            requests.frees.get_or_insert_with(Instant::now);
            if low {
                self.background.wake.notify_one();
            }
        }
    }

    /// Notifies the background thread that these tables' files may contain invisible data.
    pub(crate) fn note_shrinks(&self, tables: impl IntoIterator<Item = TableId>) {
        if self.options.background {
            self.background.requests.lock().shrinks.extend(tables);
        }
    }

    /// Removes a failed write's files. If the record that references them was to be `logged` and a
    /// disk error occurred, the log may or may not contain the record. In that case, the files are
    /// retained until a checkpoint replaces the log.
    pub(crate) fn abandon_files(
        &self,
        paths: impl Iterator<Item = String>,
        logged: bool,
        error: &EngineError,
    ) {
        let by_disk =
            matches!(error.code, ErrorCode::Io | ErrorCode::DiskFull | ErrorCode::ReadOnly);
        if !(logged && by_disk) {
            paths.for_each(|path| drop(self.vfs.unlink(&path)));
            return;
        }
        let files = paths.map(|path| StoredFile::new(Arc::clone(&self.vfs), path));
        let mut writer = self.writer.lock();
        let lsn = self.snapshot().lsn;
        let before = writer.removed.len();
        writer.removed.extend(files.map(|file| (lsn, file)));
        if writer.removed.len() > before {
            self.note_freed();
        }
    }

    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// Whether too little space is free for writes that grow data.
    pub(crate) fn is_low(&self) -> bool {
        self.space.is_low(self.vfs.system())
    }

    /// Time since which a checkpoint would free disk space; `None` if it would free none.
    pub(crate) fn frees_since(&self) -> Option<Instant> {
        self.background.requests.lock().frees
    }

    /// Whether files are retained only for the previous generation.
    pub(crate) fn has_older_files(&self) -> bool {
        self.has_older_files.load(Ordering::Relaxed)
    }

    /// Writes a manifest with the same content as the current manifest, which becomes the previous
    /// generation. This frees the files and log that only the older generation needed. Does nothing
    /// if no older generation exists.
    pub fn advance_generations(&self) -> EngineResult<()> {
        let done = match self.try_advance() {
            Err(error)
                if error.code == ErrorCode::DiskFull
                    && self.space.release_reserve(self.vfs.system()) =>
            {
                self.try_advance()
            }
            done => done,
        };
        if done.is_ok() {
            self.space.restore(self.vfs.system());
        }
        done
    }

    fn try_advance(&self) -> EngineResult<()> {
        let mut generations = self.generations.lock();
        self.refuse_when_closed()?;
        let vfs = self.vfs.system();
        let mut stale = Vec::new();
        if generations.previous.is_some() {
            let current = &generations.current;
            let next_file = self.next_file.load(Ordering::Relaxed).max(current.next_file);
            let (snapshot, named) = (current.snapshot.clone(), (current.first_log, next_file));
            let next =
                generations.write_next(vfs, snapshot, &SymbolFiles::new(), named, Some(vec![]))?;
            stale = generations.switch(vfs, next).inspect_err(|error| {
                self.go_read_only(error);
            })?;
        }
        checkpoint::remove_stale(vfs, &stale);
        let mut writer = self.writer.lock();
        for file in writer.retained_files.drain(..) {
            file.doom();
        }
        let spare = writer.log.spare();
        let first_log = generations.first_log();
        let free = checkpoint::obsolete_logs(vfs, first_log, spare);
        writer.log.release(free);
        writer.log.release_spares(first_log);
        self.has_older_files.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Checkpoints and releases the root, even if the checkpoint fails. Later calls fail with
    /// `Closed`. Fails with `ReadOnly` after a failure, because data that was not durable at that
    /// time may be lost.
    pub fn close(&self) -> EngineResult<()> {
        self.close_until(None).map(drop)
    }

    /// Closes the storage within approximately this time, and aborts a checkpoint that takes
    /// longer. The next start then recovers the rows from the log, which is as durable as the
    /// commit mode requires. Returns whether the checkpoint completed.
    pub fn close_within(&self, time: Duration) -> EngineResult<bool> {
        self.close_until(Some(Instant::now() + time))
    }

    fn close_until(&self, ends: Option<Instant>) -> EngineResult<bool> {
        // The time limit also applies to a checkpoint that is running on the background thread.
        *self.ends.lock() = ends;
        let done = match self.refuse_when_closed() {
            Ok(()) => self.last_checkpoint(),
            Err(error) if error.code == ErrorCode::Closed => Ok(true),
            Err(error) => Err(error),
        };
        self.refuse(EngineError::new(ErrorCode::Closed, "the database is closed"));
        self.background.requests.lock().stop = true;
        self.background.wake.notify_all();
        self.lock.lock().take();
        done
    }

    fn last_checkpoint(&self) -> EngineResult<bool> {
        match self.checkpoint() {
            Ok(()) => {
                if self.options.background && self.has_older_files() && !self.is_late() {
                    // Space that cannot be freed now is freed at the next start.
                    let _ = self.advance_generations();
                }
                Ok(true)
            }
            Err(error) if matches!(error.code, ErrorCode::Cancelled | ErrorCode::DiskFull) => {
                self.refuse_writes()?;
                // `nosync` promises no durability, so there is nothing to wait for.
                let late = error.code == ErrorCode::Cancelled;
                if !(late && self.options.commit_mode == CommitMode::NoSync) {
                    self.flush_locked(&mut self.writer.lock())?;
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a running checkpoint should stop even though it is unfinished.
    pub(super) fn is_late(&self) -> bool {
        self.ends.lock().is_some_and(|ends| Instant::now() >= ends)
    }
}
