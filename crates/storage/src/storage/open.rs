//! Opens a root.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tidemark_types::EngineResult;
use tidemark_vfs::Vfs;

use super::{Storage, Writer};
use crate::compaction::background;
use crate::disk::Disk;
use crate::disk::layout::LOCK;
use crate::disk::space::Space;
use crate::log::Log;
use crate::log::queue::CommitQueue;
use crate::memory::Memory;
use crate::mutation::write_locks::WriteLocks;
use crate::options::{StorageOptions, Verify};
use crate::recovery::{Recovered, recover};

/// A start that replayed this many log files requests a checkpoint. Each file costs every later
/// start a sync, and a server that is killed repeatedly adds one file per start.
const MANY_LOGS: usize = 8;

impl Storage {
    /// Opens the root: locks it, and creates it or recovers everything committed. Fails with
    /// `RootLocked` if another process holds the lock, and with `Damaged` if a file's content
    /// differs from what was written.
    pub fn open(vfs: Arc<dyn Vfs>, options: StorageOptions) -> EngineResult<Arc<Self>> {
        let vfs = Disk::new(vfs, options.verify);
        let lock = vfs.lock(LOCK)?;
        let recovered = recover(&vfs, &options)?;
        let Recovered { generations, snapshot, removed, retained_files: retained, repairs, .. } =
            recovered;
        let (next_log, next_file, obsolete_logs) =
            (recovered.next_log, recovered.next_file, recovered.obsolete_logs);
        let rewrites = recovered.pending_rewrites;
        let replayed = snapshot.lsn > generations.current.snapshot.lsn;
        // A single replayed file may remain. More files require a checkpoint, because every start
        // would add another one.
        let leaves_logs = replayed && recovered.replayed_logs > 1;
        let frees = !removed.is_empty() || recovered.pending_rewrites.is_much() || leaves_logs;
        let holds_older = recovered.has_older_files;
        let mut log = Log::new(Arc::clone(&vfs), &options, next_log, snapshot.lsn);
        log.release(obsolete_logs);
        let writer = Writer {
            log,
            frozen_lsn: 0,
            removed: removed.into_iter().map(|file| (snapshot.lsn, file)).collect(),
            retained_files: retained,
            unsynced: Vec::new(),
            pending_rewrites: recovered.pending_rewrites,
        };
        let storage = Arc::new(Self {
            vfs,
            lock: Mutex::new(Some(lock)),
            next_table: AtomicU64::new(snapshot.next_table.max(1)),
            next_file: AtomicU64::new(next_file),
            published: ArcSwap::from_pointee(snapshot),
            waiting: CommitQueue::default(),
            writer: Mutex::new(writer),
            generations: Mutex::new(generations),
            write_locks: WriteLocks::default(),
            refused: Mutex::new(None),
            suspended: Mutex::new(None),
            folded_rows: AtomicU64::new(0),
            background: Arc::default(),
            repairs,
            space: Space::new(options.disk_watermark_bytes, options.disk_reserve_bytes),
            memory: Memory::new(options.unwritten_limit_bytes, options.background),
            has_older_files: AtomicBool::new(holds_older),
            recent: Mutex::new(recovered.recent),
            ends: Mutex::default(),
            options,
        });
        storage.space.reserve(storage.vfs.system());
        if storage.options.verify == Verify::Open {
            // The result is not needed, because damage is recorded on the table.
            storage.check(None)?;
        }
        if storage.options.background {
            background::start(&storage, Arc::clone(&storage.background))?;
        }
        if recovered.replayed_logs >= MANY_LOGS || (replayed && storage.is_low()) {
            storage.request_checkpoint();
        }
        storage.space.promise(rewrites.rewrite_bytes);
        if frees {
            storage.note_freed();
        }
        storage.note_shrinks(storage.tables_to_shrink());
        Ok(storage)
    }
}
