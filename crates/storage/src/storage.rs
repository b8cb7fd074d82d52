//! The storage: opening, committing, checkpointing, closing.
//!
//! States: open → closed. Open → suspended while what a failed sync took could not be written anew
//! (writes are refused, a checkpoint that succeeds ends it). Open → read-only when it is unknown
//! which manifest is current (the next start finds out).

pub(crate) mod changes;
mod durable;
pub(crate) mod hold;
mod open;
pub(crate) mod rewrite;
mod room;

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
use crate::mutation::hold::Holds;
use crate::mutation::prepare::{Prepared, frees, prepare};
use crate::options::{CommitMode, PlantedFault, StorageOptions};
use crate::recovery::listing::list_logs;
use crate::segment::{Segment, parquet_file};
use crate::snapshot::Snapshot;
use crate::state::apply::{apply, check_limits};
use crate::state::context::{ApplyContext, Owed};
use crate::state::materialized::refuse_foreign_rows;
use crate::state::op::Op;
use crate::state::recent::RecentCommits;
use crate::state::resolve::{check_expected, expiry, resolve};
use crate::table::TableSnapshot;
use crate::table::schema::TableId;

/// A group takes no more transactions once it has this many bytes.
const GROUP_BYTES: usize = 16 << 20;

/// What only the one who holds the log may touch.
#[derive(Debug)]
struct Writer {
    log: Log,
    /// Runs up to here are being written by a checkpoint.
    frozen_lsn: u64,
    /// Files that no table names since this transaction; the manifest may still.
    removed: Vec<(u64, Arc<StoredFile>)>,
    /// Files that only the generation before the current manifest needs.
    kept: Vec<Arc<StoredFile>>,
    /// Adopted segments that were never synced.
    unsynced: Vec<Arc<Segment>>,
    /// What the next checkpoint is to write anew.
    owed: Owed,
}

/// A database's tables and records on one root directory. Shared by all threads.
#[derive(Debug)]
pub struct Storage {
    vfs: Arc<Disk>,
    options: StorageOptions,
    lock: Mutex<Option<Box<dyn VfsLock>>>,
    published: ArcSwap<Snapshot>,
    waiting: CommitQueue,
    writer: Mutex<Writer>,
    /// Held by the one checkpoint that runs.
    generations: Mutex<Generations>,
    next_table: AtomicU64,
    next_file: AtomicU64,
    holds: Holds,
    /// Why nothing can be written any more.
    refused: Mutex<Option<EngineError>>,
    /// Why no writes are taken until a checkpoint succeeds.
    suspended: Mutex<Option<EngineError>>,
    /// Rows that checkpoints wrote since the start.
    folded_rows: AtomicU64,
    background: Arc<Background>,
    /// What recovery found wrong.
    repairs: Vec<String>,
    space: Space,
    memory: Memory,
    /// Whether only the generation before the current manifest needs some files.
    holds_older: AtomicBool,
    /// What the latest commits did to followed tables; written before a snapshot shows it.
    recent: Mutex<RecentCommits>,
    /// When a checkpoint under way should end unfinished.
    ends: Mutex<Option<Instant>>,
}

/// How far the log was written: its files and the bytes that count in each.
#[derive(Debug)]
pub(crate) struct LogPosition {
    pub(crate) files: Vec<(u64, u64)>,
}

/// What the background thread waits for.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub(crate) wanted: Mutex<Wanted>,
    pub(crate) wake: Condvar,
    /// How its work fares, by kind.
    pub(crate) reports: Mutex<BTreeMap<&'static str, WorkReport>>,
}

#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) checkpoint: bool,
    /// Since when a checkpoint would free something.
    pub(crate) frees: Option<Instant>,
    /// Tables whose files may hold invisible data.
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
    /// Everything committed so far. Never blocks.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// The options it was opened with.
    pub fn options(&self) -> &StorageOptions {
        &self.options
    }

    /// Rows that checkpoints wrote to segments since the start: those committed since, and those
    /// written again because they were merged or joined with them.
    pub fn folded_rows(&self) -> u64 {
        self.folded_rows.load(Ordering::Relaxed)
    }

    /// What recovery found wrong at start: damaged pointers and manifests, which it repaired, and
    /// transactions that it could not bring back, whose tables are damaged now.
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

    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }

    /// A table identifier that is not given again, for creating a table and appending to it in one
    /// commit.
    pub fn reserve_table_id(&self) -> TableId {
        self.next_table.fetch_add(1, Ordering::Relaxed)
    }

    /// Commits all changes together, and returns when they are as durable as the commit mode
    /// says and every new snapshot shows them. Commits that wait at the same time share one
    /// write and one sync.
    pub fn commit(&self, changes: Vec<Change>) -> EngineResult<CommitReceipt> {
        let prepared = self.prepare(changes)?;
        self.commit_prepared(prepared)
    }

    /// For the holder of the write lock.
    pub(crate) fn commit_past_holds(&self, changes: Vec<Change>) -> EngineResult<CommitReceipt> {
        let prepared = self.prepare(changes)?;
        self.refuse_growth(&prepared)?;
        self.commit_now(prepared)
    }

    pub(crate) fn prepare(&self, changes: Vec<Change>) -> EngineResult<Vec<Prepared>> {
        prepare(changes, &self.snapshot(), || self.reserve_table_id(), &self.options)
    }

    pub(crate) fn commit_prepared(&self, work: Vec<Prepared>) -> EngineResult<CommitReceipt> {
        if work.is_empty() {
            // Nothing is logged: a record without bytes reads like the end of the log.
            self.refuse_when_closed()?;
            let snapshot = self.snapshot();
            return Ok(CommitReceipt { lsn: snapshot.lsn, epoch: snapshot.epoch });
        }
        self.admit(&work)?;
        self.commit_now(work)
    }

    /// Waits until the transaction may be committed, or refuses it. Nothing of it is logged.
    pub(crate) fn admit(&self, work: &[Prepared]) -> EngineResult<()> {
        let tables: Vec<TableId> = work.iter().filter_map(Prepared::table).collect();
        self.holds.wait(&tables);
        self.refuse_growth(work)
    }

    /// Slows or refuses what takes room while there is little, on the disk or in memory.
    fn refuse_growth(&self, work: &[Prepared]) -> EngineResult<()> {
        if work.iter().any(Prepared::grows) {
            self.refuse_when_full()?;
        }
        Ok(())
    }

    /// Rows that only memory and the log hold, bytes of the log.
    pub fn unwritten_bytes(&self) -> u64 {
        self.memory.unwritten()
    }

    /// Tells how short the process as a whole is of memory.
    pub fn set_pressure(&self, pressure: Pressure) {
        self.memory.set_outside(pressure);
        if pressure != Pressure::None {
            parquet_file::forget_decoded();
        }
    }

    /// Sets how many bytes of columns of Parquet files the process keeps decoded.
    pub fn set_decoded_bytes(&self, most: u64) {
        parquet_file::set_decoded_bytes(most);
    }

    /// Drops the partitions whose time to live, or time in a storage policy, is over by the clock.
    /// Tables whose writers are held back wait for the next time.
    pub(crate) fn expire(&self) -> EngineResult<()> {
        let by_clock = self.options.ttl_by_clock;
        for table in self.snapshot().tables() {
            let (floors, id) =
                (crate::mutation::retire::expired(table, by_clock), table.schema().id);
            if !floors.is_empty() && !self.holds.is_held(id) {
                let action = crate::mutation::retire::PartitionAction::Drop;
                self.commit(vec![Change::Partitions { table: id, action, floors }])?;
            }
        }
        Ok(())
    }

    /// The partitions of a table that its storage policy makes Parquet files of now, by their first
    /// instants.
    pub fn due_for_parquet(&self, table: &TableSnapshot) -> Vec<i64> {
        crate::mutation::retire::due_for_parquet(table, self.options.ttl_by_clock)
    }

    /// Fails while there is too little room on the disk, and waits or fails while there is too
    /// little memory.
    pub(crate) fn refuse_when_full(&self) -> EngineResult<()> {
        self.space.refuse_when_low(self.vfs.system())?;
        self.memory.admit(|| self.request_checkpoint())
    }

    /// Fails where so many bytes more would leave too little room on the disk.
    pub(crate) fn refuse_beyond(&self, bytes: u64) -> EngineResult<()> {
        self.space.refuse_beyond(self.vfs.system(), bytes)
    }

    /// Runs while no checkpoint does.
    pub(crate) fn with_generations<T>(
        &self,
        work: impl FnOnce(&Generations) -> EngineResult<T>,
    ) -> EngineResult<T> {
        let generations = self.generations.lock();
        self.refuse_when_closed()?;
        work(&generations)
    }

    /// Everything committed so far, durable, and where the log ends that says it.
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
        let (mut written, mut refused) = (Vec::new(), Vec::new());
        let (mut any_frees, mut owed, mut steps) = (false, Owed::default(), Vec::new());
        while group.len() < GROUP_BYTES {
            let Some(ticket) = self.waiting.take() else { break };
            let mut attempt = working.clone();
            attempt.lsn += 1;
            let marks = (removed.len(), unsynced.len(), owed, steps.len());
            let mut context = ApplyContext {
                vfs: &self.vfs,
                lsn: attempt.lsn,
                frozen_lsn: writer.frozen_lsn,
                run_rows: self.options.run_rows,
                removed: &mut removed,
                unsynced: &mut unsynced,
                owed: &mut owed,
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
                    owed = marks.2;
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
                self.owe(writer, owed);
                if !removed.is_empty() || writer.owed.is_much() {
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
        // What stood in their way may be of this group: the next attempt must see it.
        for (ticket, error) in refused {
            ticket.finish(Err(error));
        }
    }

    /// Makes the changes of a transaction to the snapshot of its group, and writes them to its
    /// record. Answers the tables that it changes.
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
            let owed = context.owed.rewrite_bytes;
            apply(attempt, &op, context)?;
            if context.owed.rewrite_bytes > owed {
                self.refuse_beyond(context.owed.rewrite_bytes)?;
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
        let most = self.space.most_log(self.vfs.system(), self.options.checkpoint_log_bytes);
        let due = writer.log.bytes_since_checkpoint >= most;
        if flush || due {
            let mut wanted = self.background.wanted.lock();
            wanted.flush |= flush;
            wanted.checkpoint |= due;
            self.background.wake.notify_one();
        }
    }

    pub(crate) fn request_checkpoint(&self) {
        if self.options.background {
            self.background.wanted.lock().checkpoint = true;
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

    /// Nothing can be written any more: what is on disk is unknown until the next start.
    fn go_read_only(&self, cause: &EngineError) {
        let error = EngineError::new(
            ErrorCode::ReadOnly,
            format!("the database is read-only after a failure: {}", cause.message),
        );
        self.refuse(error.with_hint("restart the server once the disk is well again"));
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.background.wanted.lock().stop = true;
        self.background.wake.notify_all();
    }
}
