//! The storage: opening, committing, checkpointing, closing.
//!
//! States: open → closed. Open → suspended while data lost by a failed sync cannot be rewritten
//! (writes are refused; a successful checkpoint ends this). Open → read-only when it is unknown
//! which manifest is current (the next start determines it).

pub(crate) mod changes;
mod durable;
mod free_space;
mod open;
pub(crate) mod rewrite;
pub(crate) mod write_lock;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::{Condvar, Mutex};
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::VfsLock;

use crate::compaction::checkpoint::FileNumbers;
use crate::compaction::report::WorkReport;
use crate::disk::Disk;
use crate::disk::file::StoredFile;
use crate::disk::space::Space;
use crate::log::codec::Encoder;
use crate::log::queue::CommitQueue;
use crate::log::record::encode_op;
use crate::log::{Group, Log};
use crate::manifest::Generations;
use crate::memory::{Memory, Pressure};
use crate::mutation::change::{Change, CommitReceipt};
use crate::mutation::prepare::{Prepared, frees, prepare};
use crate::mutation::write_locks::WriteLocks;
use crate::options::{CommitMode, PlantedFault, StorageOptions};
use crate::recovery::listing::list_logs;
use crate::segment::{Segment, parquet_file};
use crate::snapshot::Snapshot;
use crate::state::apply::{apply, check_limits};
use crate::state::context::{ApplyContext, PendingRewrites};
use crate::state::materialized::refuse_foreign_rows;
use crate::state::op::Op;
use crate::state::recent::RecentCommits;
use crate::state::resolve::{check_expected, expiry, resolve};
use crate::table::TableSnapshot;
use crate::table::schema::TableId;

/// Size in bytes at which a group stops accepting transactions.
const GROUP_BYTES: usize = 16 << 20;

/// State that only the log lock's holder may access.
#[derive(Debug)]
struct Writer {
    log: Log,
    /// Runs up to this transaction are being written by a checkpoint.
    frozen_lsn: u64,
    /// Files that no table references, with the transaction that removed the last reference. The
    /// manifest may still list them.
    removed: Vec<(u64, Arc<StoredFile>)>,
    /// Files that only the previous generation needs.
    retained_files: Vec<Arc<StoredFile>>,
    /// Adopted segments that were never synced.
    unsynced: Vec<Arc<Segment>>,
    /// Data that the next checkpoint must rewrite.
    pending_rewrites: PendingRewrites,
}

/// Tables and records of a database in one root directory. Shared by all threads.
#[derive(Debug)]
pub struct Storage {
    vfs: Arc<Disk>,
    options: StorageOptions,
    lock: Mutex<Option<Box<dyn VfsLock>>>,
    published: ArcSwap<Snapshot>,
    waiting: CommitQueue,
    writer: Mutex<Writer>,
    /// Locked by the running checkpoint.
    generations: Mutex<Generations>,
    next_table: AtomicU64,
    next_file: AtomicU64,
    write_locks: WriteLocks,
    /// Error with which all writes fail permanently, if any.
    refused: Mutex<Option<EngineError>>,
    /// Error with which writes fail until a checkpoint succeeds, if any.
    suspended: Mutex<Option<EngineError>>,
    /// Number of rows written by checkpoints since startup.
    folded_rows: AtomicU64,
    background: Arc<Background>,
    /// Problems that recovery found.
    repairs: Vec<String>,
    space: Space,
    memory: Memory,
    /// Whether some files are needed only by the previous generation.
    has_older_files: AtomicBool,
    /// Changes that the latest commits made to followed tables; updated before the commits are
    /// visible in a snapshot.
    recent: Mutex<RecentCommits>,
    /// Time at which a running checkpoint should stop even if it is unfinished.
    ends: Mutex<Option<Instant>>,
}

/// End of the written log: its files, and the number of valid bytes in each file.
#[derive(Debug)]
pub(crate) struct LogPosition {
    pub(crate) files: Vec<(u64, u64)>,
}

/// Requests to the background thread.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub(crate) requests: Mutex<BackgroundRequests>,
    pub(crate) wake: Condvar,
    /// Status of the thread's work, by kind.
    pub(crate) reports: Mutex<BTreeMap<&'static str, WorkReport>>,
}

#[derive(Debug, Default)]
pub(crate) struct BackgroundRequests {
    pub(crate) checkpoint: bool,
    /// Time since which a checkpoint would free disk space; `None` if it would free none.
    pub(crate) frees: Option<Instant>,
    /// Tables whose files may contain invisible data.
    pub(crate) shrinks: BTreeSet<TableId>,
    pub(crate) flush: bool,
    pub(crate) stop: bool,
}

struct Numbers<'a>(&'a AtomicU64);

impl FileNumbers for Numbers<'_> {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Storage {
    /// Returns the latest committed state. Never blocks.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// Options that the storage was opened with.
    pub fn options(&self) -> &StorageOptions {
        &self.options
    }

    /// Number of rows that checkpoints have written to segments since startup: new rows, and older
    /// rows merged or combined with them.
    pub fn folded_rows(&self) -> u64 {
        self.folded_rows.load(Ordering::Relaxed)
    }

    /// Problems that recovery found at startup: damaged pointers and manifests, which it repaired,
    /// and transactions that it could not recover, whose tables are now damaged.
    pub fn repairs(&self) -> &[String] {
        &self.repairs
    }

    pub(crate) fn vfs(&self) -> &Arc<Disk> {
        &self.vfs
    }

    pub(crate) fn next_file_number(&self) -> u64 {
        Numbers(&self.next_file).next()
    }

    pub(crate) fn background(&self) -> &Background {
        &self.background
    }

    pub(crate) fn write_locks(&self) -> &WriteLocks {
        &self.write_locks
    }

    /// Reserves a unique table identifier, to create a table and append to it in one commit.
    pub fn reserve_table_id(&self) -> TableId {
        self.next_table.fetch_add(1, Ordering::Relaxed)
    }

    /// Commits all changes together. Returns when they are as durable as the commit mode requires
    /// and visible in every new snapshot. Commits that wait at the same time share one write and
    /// one sync.
    pub fn commit(&self, changes: Vec<Change>) -> EngineResult<CommitReceipt> {
        let prepared = self.prepare(changes)?;
        self.commit_prepared(prepared)
    }

    /// Commits on behalf of the holder of a table's write lock, without waiting for that lock.
    pub(crate) fn commit_as_lock_holder(
        &self,
        changes: Vec<Change>,
    ) -> EngineResult<CommitReceipt> {
        let prepared = self.prepare(changes)?;
        self.refuse_growth(&prepared)?;
        self.commit_now(prepared)
    }

    pub(crate) fn prepare(&self, changes: Vec<Change>) -> EngineResult<Vec<Prepared>> {
        prepare(changes, &self.snapshot(), || self.reserve_table_id(), &self.options)
    }

    pub(crate) fn commit_prepared(&self, work: Vec<Prepared>) -> EngineResult<CommitReceipt> {
        if work.is_empty() {
            // An empty record is not logged, because it would look like the end of the log.
            self.refuse_when_closed()?;
            let snapshot = self.snapshot();
            return Ok(CommitReceipt { lsn: snapshot.lsn, epoch: snapshot.epoch });
        }
        self.admit(&work)?;
        self.commit_now(work)
    }

    /// Waits until the transaction may be committed, or refuses it. Logs nothing.
    pub(crate) fn admit(&self, work: &[Prepared]) -> EngineResult<()> {
        let tables: Vec<TableId> = work.iter().filter_map(Prepared::table).collect();
        self.write_locks.wait(&tables);
        self.refuse_growth(work)
    }

    /// Slows or refuses writes that grow data while disk space or memory is low.
    fn refuse_growth(&self, work: &[Prepared]) -> EngineResult<()> {
        if work.iter().any(Prepared::grows) {
            self.refuse_when_full()?;
        }
        Ok(())
    }

    /// Size in bytes of the log records whose rows no checkpoint has written to segments yet.
    pub fn unwritten_bytes(&self) -> u64 {
        self.memory.unwritten()
    }

    /// Reports process-wide memory pressure.
    pub fn set_pressure(&self, pressure: Pressure) {
        self.memory.set_outside(pressure);
        if pressure != Pressure::None {
            parquet_file::forget_decoded();
        }
    }

    /// Sets the maximum size, in bytes, of the decoded Parquet columns that the process caches.
    pub fn set_decoded_bytes(&self, max: u64) {
        parquet_file::set_decoded_bytes(max);
    }

    /// Drops partitions that have expired by the clock, under their time to live or a storage
    /// policy. Tables with blocked writers are skipped until the next time.
    pub(crate) fn expire(&self) -> EngineResult<()> {
        let by_clock = self.options.ttl_by_clock;
        for table in self.snapshot().tables() {
            let (floors, id) =
                (crate::mutation::retire::expired(table, by_clock), table.schema().id);
            if !floors.is_empty() && !self.write_locks.is_locked(id) {
                let action = crate::mutation::retire::PartitionAction::Drop;
                self.commit(vec![Change::Partitions { table: id, action, floors }])?;
            }
        }
        Ok(())
    }

    /// Start timestamps of the table's partitions that its storage policy now converts to Parquet.
    pub fn due_for_parquet(&self, table: &TableSnapshot) -> Vec<i64> {
        crate::mutation::retire::due_for_parquet(table, self.options.ttl_by_clock)
    }

    /// Fails while disk space is low, and waits or fails while memory is low.
    pub(crate) fn refuse_when_full(&self) -> EngineResult<()> {
        self.space.refuse_when_low(self.vfs.system())?;
        self.memory.admit(|| self.request_checkpoint())
    }

    /// Fails if writing this many bytes would leave too little disk space.
    pub(crate) fn check_free_space(&self, bytes: u64) -> EngineResult<()> {
        self.space.check_free(self.vfs.system(), bytes)
    }

    /// Runs `work` while no checkpoint runs.
    pub(crate) fn with_generations<T>(
        &self,
        work: impl FnOnce(&Generations) -> EngineResult<T>,
    ) -> EngineResult<T> {
        let generations = self.generations.lock();
        self.refuse_when_closed()?;
        work(&generations)
    }

    /// Makes everything committed so far durable. Returns a snapshot of that state, and the end of
    /// the log.
    pub(crate) fn log_position(&self) -> EngineResult<(Arc<Snapshot>, LogPosition)> {
        let mut writer = self.writer.lock();
        self.flush_locked(&mut writer)?;
        let mut files = Vec::new();
        for number in list_logs(self.vfs.system())? {
            let current = writer.log.position().filter(|(current, _)| *current == number);
            files.push(current.unwrap_or((number, u64::MAX)));
        }
        Ok((self.snapshot(), LogPosition { files }))
    }

    pub(crate) fn commit_now(&self, work: Vec<Prepared>) -> EngineResult<CommitReceipt> {
        self.waiting.commit(work, || self.lead(&mut self.writer.lock()))
    }

    /// Writes one group of waiting transactions.
    fn lead(&self, writer: &mut Writer) {
        if self.options.commit_mode == CommitMode::Sync {
            self.waiting.gather();
        }
        let mut working = Snapshot::clone(&self.snapshot());
        let mut group = Group::new(working.lsn + 1);
        let (mut removed, mut unsynced) = (Vec::new(), Vec::new());
        let (mut any_frees, mut written, mut refused) = (false, Vec::new(), Vec::new());
        let (mut rewrites, mut steps) = (PendingRewrites::default(), Vec::new());
        while group.len() < GROUP_BYTES {
            let Some(ticket) = self.waiting.take() else { break };
            let mut attempt = working.clone();
            attempt.lsn += 1;
            let marks = (removed.len(), unsynced.len(), rewrites, steps.len());
            let mut context = ApplyContext {
                vfs: &self.vfs,
                lsn: attempt.lsn,
                frozen_lsn: writer.frozen_lsn,
                run_rows: self.options.run_rows,
                removed: &mut removed,
                unsynced: &mut unsynced,
                pending_rewrites: &mut rewrites,
                steps: &mut steps,
            };
            let work = ticket.take_work();
            let frees = frees(&work);
            let staged = self.refuse_writes().and_then(|()| {
                group.record(|out| self.stage(work, &mut attempt, &mut context, out))
            });
            match staged {
                Ok(()) => {
                    any_frees |= frees;
                    written.push((attempt.lsn, ticket));
                    working = attempt;
                }
                Err(error) => {
                    removed.truncate(marks.0);
                    unsynced.truncate(marks.1);
                    rewrites = marks.2;
                    steps.truncate(marks.3);
                    refused.push((ticket, error));
                }
            }
        }
        if !group.is_empty() {
            let outcome = self.write_group(writer, &mut group, any_frees);
            if outcome.is_ok() {
                self.memory.add(group.len() as u64);
                working.epoch += 1;
                let lsn = working.lsn;
                let removed: Vec<_> = removed.into_iter().map(|file| (lsn, file)).collect();
                self.add_rewrites(writer, rewrites);
                if !removed.is_empty() || writer.pending_rewrites.is_much() {
                    self.note_freed();
                }
                self.recent.lock().add(steps);
                self.publish(writer, working, removed);
                writer.unsynced.append(&mut unsynced);
                self.wake_if_due(writer);
            }
            let epoch = self.snapshot().epoch;
            for (lsn, ticket) in written {
                ticket.finish(outcome.clone().map(|()| CommitReceipt { lsn, epoch }));
            }
        }
        // Reported last, so that the next attempt already sees the conflicting change.
        for (ticket, error) in refused {
            ticket.finish(Err(error));
        }
    }

    /// Applies a transaction's changes to the group's snapshot, and writes them to the
    /// transaction's record. Returns the tables that the transaction changes.
    fn stage(
        &self,
        work: Vec<Prepared>,
        attempt: &mut Snapshot,
        context: &mut ApplyContext<'_>,
        out: &mut Encoder,
    ) -> EngineResult<BTreeSet<TableId>> {
        let by_clock = self.options.ttl_by_clock;
        let forget = self.options.planted == Some(PlantedFault::ForgetSymbols);
        let mut tables = BTreeSet::new();
        refuse_foreign_rows(attempt, &work)?;
        for change in work {
            if matches!(change, Prepared::Other(Change::Expect { .. })) {
                check_expected(attempt, &change)?;
                continue;
            }
            let op = resolve(attempt, change)?;
            encode_op(&op, out, forget)?;
            tables.extend(op.table());
            let rewrites = context.pending_rewrites.rewrite_bytes;
            apply(attempt, &op, context)?;
            if context.pending_rewrites.rewrite_bytes > rewrites {
                self.check_free_space(context.pending_rewrites.rewrite_bytes)?;
            }
            if let Op::ReplaceSchema(schema) = &op {
                self.note_shrinks([schema.id]);
            }
            check_limits(attempt, &op, &self.options)?;
            if let Some(expiry) = expiry(attempt, &op, by_clock) {
                encode_op(&expiry, out, forget)?;
                apply(attempt, &expiry, context)?;
            }
        }
        Ok(tables)
    }

    fn publish(
        &self,
        writer: &mut Writer,
        snapshot: Snapshot,
        removed: Vec<(u64, Arc<StoredFile>)>,
    ) {
        self.next_table.fetch_max(snapshot.next_table, Ordering::Relaxed);
        let old = self.published.swap(Arc::new(snapshot));
        old.pins.superseded(&old);
        if self.options.planted == Some(PlantedFault::EarlyUnlink) {
            for (_, file) in &removed {
                file.doom();
            }
            return;
        }
        writer.removed.extend(removed);
    }

    fn wake_if_due(&self, writer: &Writer) {
        let flush = self.options.commit_mode == CommitMode::Async;
        if !self.options.background {
            return;
        }
        let max = self.space.max_log_bytes(self.vfs.system(), self.options.checkpoint_log_bytes);
        let due = writer.log.bytes_since_checkpoint >= max;
        if flush || due {
            let mut requests = self.background.requests.lock();
            requests.flush |= flush;
            requests.checkpoint |= due;
            self.background.wake.notify_one();
        }
    }

    pub(crate) fn request_checkpoint(&self) {
        if self.options.background {
            self.background.requests.lock().checkpoint = true;
            self.background.wake.notify_one();
        }
    }

    fn refuse_when_closed(&self) -> EngineResult<()> {
        match &*self.refused.lock() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    pub(crate) fn refuse_writes(&self) -> EngineResult<()> {
        self.refuse_when_closed()?;
        match &*self.suspended.lock() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn refuse(&self, error: EngineError) {
        self.refused.lock().get_or_insert(error);
    }

    /// Refuses all further writes, because the state on disk is unknown until the next start.
    fn go_read_only(&self, cause: &EngineError) {
        let error = EngineError::new(
            ErrorCode::ReadOnly,
            format!("the database is read-only after a failure: {}", cause.message),
        );
        self.refuse(error.with_hint("repair the disk, then restart the server"));
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.background.requests.lock().stop = true;
        self.background.wake.notify_all();
    }
}
