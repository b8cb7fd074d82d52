//! How room comes back: what is dropped asks for a checkpoint, the generation before the current
//! manifest is let go of, and closing takes no longer than it may.

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
use crate::state::context::Owed;
use crate::table::schema::TableId;

/// How long, and how often, what frees room is tried again on a full disk: writes that were under
/// way fail there, and give back what they have taken.
const PATIENCE: Duration = Duration::from_secs(2);
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// What frees room has to be logged, and even the reserve is too small for that.
fn no_room_to_free(bytes: usize) -> EngineError {
    let kib = bytes.div_ceil(1024);
    let message =
        format!("disk full: what goes takes a record of {kib} KiB, more than there is room for");
    EngineError::new(ErrorCode::DiskFull, message).with_hint(
        "drop partitions or tables, or delete rows that follow each other in time; see \
         disk.reserve",
    )
}

impl Storage {
    /// Writes a group to the log. One that frees room may take what is kept for it.
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
            if !self.space.spend(self.vfs.system()) {
                if !self.options.background || began.elapsed() >= PATIENCE {
                    return Err(no_room_to_free(group.len()));
                }
                std::thread::sleep(TRY_AGAIN);
            }
        }
    }

    /// The next checkpoint is to write this anew as well.
    pub(super) fn owe(&self, writer: &mut Writer, owed: Owed) {
        writer.owed.dead_bytes += owed.dead_bytes;
        writer.owed.rewrite_bytes += owed.rewrite_bytes;
        self.space.promise(owed.rewrite_bytes);
    }

    /// A checkpoint that was to write this anew failed.
    pub(super) fn still_owe(&self, owed: Owed) {
        let mut writer = self.writer.lock();
        writer.owed.dead_bytes += owed.dead_bytes;
        writer.owed.rewrite_bytes += owed.rewrite_bytes;
    }

    /// A checkpoint would free something: the storage's thread sees to it, at once where there is
    /// little room.
    pub(super) fn note_freed(&self) {
        if self.options.background {
            let low = self.space.is_low(self.vfs.system());
            let mut wanted = self.background.wanted.lock();
            wanted.frees.get_or_insert_with(Instant::now);
            if low {
                self.background.wake.notify_one();
            }
        }
    }

    /// Files of these tables may hold invisible data: the storage's thread looks.
    pub(crate) fn note_shrinks(&self, tables: impl IntoIterator<Item = TableId>) {
        if self.options.background {
            self.background.wanted.lock().shrinks.extend(tables);
        }
    }

    /// Removes the files of a write that failed. Where the record that names them was to be
    /// `logged`, and may be in the log after a failure of the disk, they stay until a checkpoint
    /// has taken that log's place.
    pub(crate) fn give_up_files(
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

    /// Whether there is too little room to write what grows.
    pub(crate) fn is_low(&self) -> bool {
        self.space.is_low(self.vfs.system())
    }

    /// Since when a checkpoint would free something.
    pub(crate) fn frees_since(&self) -> Option<Instant> {
        self.background.wanted.lock().frees
    }

    /// Whether files are held for the generation before the current manifest alone.
    pub(crate) fn holds_older(&self) -> bool {
        self.holds_older.load(Ordering::Relaxed)
    }

    /// Writes a manifest that says what the current one says, which becomes the generation before
    /// it: all that only the older one needed is free, files and log. Does nothing where there is
    /// no older one.
    pub fn advance_generations(&self) -> EngineResult<()> {
        let done = match self.try_advance() {
            Err(error)
                if error.code == ErrorCode::DiskFull && self.space.spend(self.vfs.system()) =>
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
        for file in writer.kept.drain(..) {
            file.doom();
        }
        let spare = writer.log.spare();
        let first_log = generations.first_log();
        let free = checkpoint::obsolete_logs(vfs, first_log, spare);
        writer.log.release(free);
        writer.log.release_spares(first_log);
        self.holds_older.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Checkpoints and releases the root, also when it fails. Later calls fail with `Closed`.
    /// Fails with `ReadOnly` after a failure: what was not durable then may be lost.
    pub fn close(&self) -> EngineResult<()> {
        self.close_until(None).map(drop)
    }

    /// The same, in about so much time: a checkpoint that takes longer is given up, and the log,
    /// which is as durable as the commit mode says, brings its rows at the next start. Answers
    /// whether there was one.
    pub fn close_within(&self, time: Duration) -> EngineResult<bool> {
        self.close_until(Some(Instant::now() + time))
    }

    fn close_until(&self, ends: Option<Instant>) -> EngineResult<bool> {
        // Also that of the storage's thread, which may be under way.
        *self.ends.lock() = ends;
        let done = match self.refuse_when_closed() {
            Ok(()) => self.last_checkpoint(),
            Err(error) if error.code == ErrorCode::Closed => Ok(true),
            Err(error) => Err(error),
        };
        self.refuse(EngineError::new(ErrorCode::Closed, "the database is closed"));
        self.background.wanted.lock().stop = true;
        self.background.wake.notify_all();
        self.lock.lock().take();
        done
    }

    fn last_checkpoint(&self) -> EngineResult<bool> {
        match self.checkpoint() {
            Ok(()) => {
                if self.options.background && self.holds_older() && !self.is_late() {
                    // What cannot be freed now is at the next start.
                    let _ = self.advance_generations();
                }
                Ok(true)
            }
            Err(error) if matches!(error.code, ErrorCode::Cancelled | ErrorCode::DiskFull) => {
                self.refuse_writes()?;
                // `nosync` promises nothing that has to be waited for.
                let late = error.code == ErrorCode::Cancelled;
                if !(late && self.options.commit_mode == CommitMode::NoSync) {
                    self.flush_locked(&mut self.writer.lock())?;
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a checkpoint should end unfinished.
    pub(super) fn is_late(&self) -> bool {
        self.ends.lock().is_some_and(|ends| Instant::now() >= ends)
    }
}
