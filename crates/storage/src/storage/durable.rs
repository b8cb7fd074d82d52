//! Writes commits to disk (flush and checkpoint) and handles failed syncs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use super::{Numbers, Storage, Writer};
use crate::compaction::checkpoint::{self, Frozen};
use crate::disk::file::StoredFile;
use crate::disk::layout::LOG_BLOCK;
use crate::manifest::Generations;
use crate::options::PlantedFault;
use crate::segment::Segment;
use crate::snapshot::Snapshot;

impl Storage {
    /// Makes everything committed so far durable, in every commit mode. Rewrites data lost by a
    /// failed sync. If the rewrite fails too, writes are refused until a rewrite succeeds.
    pub fn flush(&self) -> EngineResult<()> {
        let flushed = {
            let mut writer = self.writer.lock();
            self.refuse_when_closed()?;
            self.flush_locked(&mut writer)
        };
        flushed.or_else(|cause| self.mend(&cause))
    }

    pub(super) fn flush_locked(&self, writer: &mut Writer) -> EngineResult<()> {
        let synced = self.sync_adopted(&writer.unsynced).and_then(|()| {
            writer.unsynced.clear();
            writer.log.flush()
        });
        synced.inspect_err(|_| self.request_checkpoint())
    }

    fn sync_adopted(&self, unsynced: &[Arc<Segment>]) -> EngineResult<()> {
        match self.options.planted {
            Some(PlantedFault::ResyncSegment) => checkpoint::resync(self.vfs.system(), unsynced),
            _ => checkpoint::sync_adopted(self.vfs.system(), unsynced),
        }
    }

    /// Runs a checkpoint that writes data to other files, because the kernel may have dropped pages
    /// of acknowledged commits.
    fn mend(&self, cause: &EngineError) -> EngineResult<()> {
        let mended = self.checkpoint();
        if mended.is_err() {
            self.suspend(cause);
        }
        mended
    }

    fn suspend(&self, cause: &EngineError) {
        let what = "read-only: a sync failed and its data could not be";
        let error =
            EngineError::new(ErrorCode::ReadOnly, format!("{what} rewritten: {}", cause.message))
                .with_hint("writes resume automatically when the disk accepts them");
        self.suspended.lock().get_or_insert(error);
    }

    /// Whether writes are refused until a checkpoint succeeds.
    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.lock().is_some()
    }

    /// Writes all in-memory rows to segments, and frees the log. Commits continue during the
    /// checkpoint. On a full disk, the checkpoint uses the reserve.
    pub fn checkpoint(&self) -> EngineResult<()> {
        self.checkpoint_beside(true)
    }

    /// Like [`Self::checkpoint`] with low disk space, for the crash tests.
    #[doc(hidden)]
    pub fn checkpoint_lean(&self) -> EngineResult<()> {
        self.try_checkpoint(true, true)
    }

    /// Runs a checkpoint that leaves no previous generation as a fallback.
    pub(crate) fn checkpoint_alone(&self) -> EngineResult<()> {
        self.checkpoint_beside(false)
    }

    fn checkpoint_beside(&self, another: bool) -> EngineResult<()> {
        let vfs = self.vfs.system();
        let lean = self.options.background && self.space.is_low(vfs);
        let mut done = self.try_checkpoint(another, lean);
        let full = done.as_ref().is_err_and(|error| error.code == ErrorCode::DiskFull);
        if full && (self.space.release_reserve(vfs) || !lean) {
            done = self.try_checkpoint(another, true);
        }
        if done.is_ok() {
            self.space.restore(vfs);
        }
        done
    }

    fn try_checkpoint(&self, another: bool, lean: bool) -> EngineResult<()> {
        let mut generations = self.generations.lock();
        self.refuse_when_closed()?;
        let Some(frozen) = self.freeze(&generations)? else { return Ok(()) };
        // None of the files that this checkpoint writes depends on a failed sync.
        let without_fallback = !self.sync_frozen(&frozen) || !another;
        let numbers = Numbers(&self.next_file);
        let manifested = &generations.current.snapshot;
        let (vfs, options, stop) = (&self.vfs, &self.options, &|| self.is_late());
        let job = checkpoint::Job { vfs, options, numbers: &numbers, lean, stop };
        let prepared = checkpoint::prepare(&job, &frozen, manifested)
            .inspect_err(|_| self.restore_rewrites(frozen.pending_rewrites))?;
        self.folded_rows.fetch_add(prepared.rows, Ordering::Relaxed);
        if self.options.planted == Some(PlantedFault::EarlyLogRecycle) {
            let mut writer = self.writer.lock();
            let free =
                checkpoint::obsolete_logs(self.vfs.system(), frozen.first_log, writer.log.spare());
            writer.log.release(free);
            writer.log.rotate(frozen.snapshot.lsn + 1, LOG_BLOCK)?;
        }
        let next_file = self.next_file.load(Ordering::Relaxed);
        let removed = frozen.removed.iter().cloned().chain(prepared.obsolete()).collect::<Vec<_>>();
        let named = (frozen.first_log, next_file);
        let next = match prepared.write_manifest(
            self.vfs.system(),
            &generations,
            named,
            &removed,
            without_fallback,
        ) {
            Ok(next) => next,
            Err(error) => {
                prepared.discard();
                self.restore_rewrites(frozen.pending_rewrites);
                return Err(error);
            }
        };
        let stale = match generations.switch(self.vfs.system(), next) {
            Ok(stale) => stale,
            Err(error) => {
                self.go_read_only(&error);
                return Err(error);
            }
        };
        self.install(&prepared, &frozen, removed, &generations);
        self.memory.remove(frozen.unwritten);
        self.space.keep_promise(frozen.pending_rewrites.rewrite_bytes);
        checkpoint::remove_stale(self.vfs.system(), &stale);
        Ok(())
    }

    /// Syncs data that was committed without a sync. Returns whether the previous generation and
    /// its log are now as durable as the new one.
    fn sync_frozen(&self, frozen: &Frozen) -> bool {
        let skip = self.options.planted == Some(PlantedFault::SkipAdoptedSync);
        let adopted = skip || self.sync_adopted(&frozen.unsynced).is_ok();
        if frozen.has_hole || self.options.keep_generations == 1 {
            return false;
        }
        let logged = checkpoint::sync_logs(self.vfs.system(), &frozen.unsynced_logs).is_ok();
        if !logged {
            self.writer.lock().log.lose(frozen.snapshot.lsn);
        }
        adopted && logged
    }

    /// Step 1 of a checkpoint. Returns `None` if nothing has changed since the last checkpoint.
    fn freeze(&self, generations: &Generations) -> EngineResult<Option<Frozen>> {
        let mut writer = self.writer.lock();
        let snapshot = self.snapshot();
        if snapshot.lsn == generations.current.snapshot.lsn && writer.unsynced.is_empty() {
            return Ok(None);
        }
        writer.log.begin_file(snapshot.lsn + 1)?;
        writer.log.bytes_since_checkpoint = 0;
        writer.frozen_lsn = snapshot.lsn;
        let removed = writer.removed.iter().filter(|(at, _)| *at <= snapshot.lsn);
        Ok(Some(Frozen {
            removed: removed.map(|(_, file)| Arc::clone(file)).collect(),
            unsynced: writer.unsynced.clone(),
            unsynced_logs: writer.log.unsynced().to_vec(),
            has_hole: writer.log.has_hole(),
            first_log: writer.log.next_file(),
            unwritten: self.memory.unwritten(),
            pending_rewrites: std::mem::take(&mut writer.pending_rewrites),
            snapshot,
        }))
    }

    /// Step 4 of a checkpoint. `removed` contains the files that the new manifest does not list.
    fn install(
        &self,
        prepared: &checkpoint::Prepared,
        frozen: &Frozen,
        removed: Vec<Arc<StoredFile>>,
        generations: &Generations,
    ) {
        self.note_shrinks(prepared.tables_with_dead_rows());
        let mut writer = self.writer.lock();
        let mut running = Snapshot::clone(&self.snapshot());
        let checkpoint::Installed { manifest_only, in_use } = prepared.install(&mut running);
        running.epoch += 1;
        let lsn = running.lsn;
        let old = self.published.swap(Arc::new(running));
        old.pins.superseded(&old);
        let removed = removed.into_iter().filter(|file| !in_use.contains(file.path())).collect();
        // The previous generation still needs the files that the new manifest does not list.
        let doomed = match &generations.previous {
            Some(_) => std::mem::replace(&mut writer.retained_files, removed),
            None => removed.into_iter().chain(writer.retained_files.drain(..)).collect(),
        };
        for file in &doomed {
            file.doom();
        }
        writer.removed.retain(|(at, _)| *at > frozen.snapshot.lsn);
        writer.removed.extend(manifest_only.into_iter().map(|file| (lsn, file)));
        let more = !writer.removed.is_empty() || writer.pending_rewrites.is_much();
        self.background.requests.lock().frees = more.then(Instant::now);
        self.has_older_files.store(generations.previous.is_some(), Ordering::Relaxed);
        let synced = |segment: &Arc<Segment>| {
            frozen.unsynced.iter().any(|other| Arc::ptr_eq(other, segment))
        };
        writer.unsynced.retain(|segment| !synced(segment));
        writer.log.covered(frozen.snapshot.lsn, &frozen.unsynced_logs);
        let first_log = generations.first_log();
        let free = checkpoint::obsolete_logs(self.vfs.system(), first_log, writer.log.spare());
        writer.log.release(free);
        let is_gone = |segment: &Arc<Segment>| segment.file.is_distrusted();
        if !writer.log.has_hole() && !writer.unsynced.iter().any(is_gone) {
            self.suspended.lock().take();
        }
    }
}
