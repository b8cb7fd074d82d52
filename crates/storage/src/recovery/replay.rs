//! Replay: applies the log to the manifest's snapshot.
//!
//! The log normally ends with a torn group, followed by arbitrary bytes. However, if a later group
//! reports a missing transaction as durable, the log is damaged. Replay then skips that transaction
//! and marks the tables it changed, or all existing tables if those are unknown.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::disk::Disk;
use crate::disk::file::{StoredFile, sync_dir};
use crate::disk::layout::{LOG, TABLES, damaged, log_file, table_dir};
use crate::log::reader::{FoundGroup, FoundRecord, LogFile};
use crate::log::record::decode_ops;
use crate::mutation::delete::DeleteOp;
use crate::mutation::update::UpdateOp;
use crate::options::{PlantedFault, StorageOptions};
use crate::recovery::listing::{Listings, check_file};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use crate::state::apply::apply;
use crate::state::context::{ApplyContext, PendingRewrites};
use crate::state::followed;
use crate::state::op::{Adopt, Op};
use crate::state::recent::RecentCommits;
use crate::table::schema::TableId;

pub(crate) struct Replay<'a> {
    pub(crate) vfs: &'a Arc<Disk>,
    pub(crate) options: &'a StorageOptions,
    pub(crate) listings: &'a Listings,
    pub(crate) snapshot: Snapshot,
    /// Descriptions of the transactions that could not be replayed.
    pub(crate) lost: Vec<String>,
    /// Files that the manifest lists but replayed transactions removed.
    pub(crate) removed: Vec<Arc<StoredFile>>,
    unsynced: Vec<Arc<Segment>>,
    /// Data that the next checkpoint must rewrite.
    pub(crate) pending_rewrites: PendingRewrites,
    /// Replayed changes to followed tables.
    pub(crate) recent: RecentCommits,
    /// Last transaction that any group reports as durable.
    claimed_lsn: u64,
    /// First transaction whose unsynced segments did not survive, if any. The log ends before this
    /// transaction.
    stopped: Option<u64>,
    /// Whether replay must leave the root unchanged.
    read_only: bool,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(
        vfs: &'a Arc<Disk>,
        options: &'a StorageOptions,
        listings: &'a Listings,
        snapshot: Snapshot,
    ) -> Self {
        let recent = RecentCommits::since(snapshot.lsn, options.recent_changes_bytes);
        Self {
            vfs,
            options,
            listings,
            snapshot,
            lost: Vec::new(),
            removed: Vec::new(),
            unsynced: Vec::new(),
            pending_rewrites: PendingRewrites::default(),
            recent,
            claimed_lsn: 0,
            stopped: None,
            read_only: false,
        }
    }

    /// Disables syncs, for a root that is only inspected.
    pub(crate) fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Applies all transactions after the manifest, and makes them durable.
    pub(crate) fn run(&mut self, logs: &[u64], first_log: u64) -> EngineResult<()> {
        let mut files = Vec::new();
        for &number in logs.iter().filter(|&&number| number >= first_log) {
            // The log may exist only in the page cache. After a failed sync it may never leave the
            // cache. New commits build on the log, so it is made durable before it is read.
            self.settle(&log_file(number))?;
            let (after, planted) = (self.snapshot.lsn, self.options.planted);
            files.extend(LogFile::scan(self.vfs.system(), number, after, planted)?);
        }
        self.claimed_lsn = files.iter().map(LogFile::claimed_lsn).max().unwrap_or(0);
        for (index, file) in files.iter().enumerate() {
            // Number of the first transaction in any later file.
            let void = files[index + 1..].iter().map(|later| later.first_lsn).min();
            let void = void.filter(|_| self.options.planted != Some(PlantedFault::IgnoreVoid));
            for group in &file.groups {
                self.group(file, group, void.unwrap_or(u64::MAX))?;
            }
        }
        if self.is_claimed(self.claimed_lsn) {
            self.lose_upto(self.claimed_lsn + 1);
        }
        self.make_names_durable()
    }

    /// Whether a transaction was certainly durable and has not been replayed yet.
    fn is_claimed(&self, lsn: u64) -> bool {
        let lenient = self.options.planted.is_some();
        lsn > self.snapshot.lsn && lsn <= self.claimed_lsn && self.stopped.is_none() && !lenient
    }

    /// Applies a group's records whose transaction numbers are below `void`.
    fn group(&mut self, file: &LogFile, group: &FoundGroup, void: u64) -> EngineResult<()> {
        let lenient = self.options.planted == Some(PlantedFault::IgnoreLogSequence);
        let header = &group.header;
        let first = header.first_lsn.max(self.snapshot.lsn + 1);
        if self.stopped.is_some() || first >= header.end_lsn() || (first >= void && !lenient) {
            return Ok(());
        }
        if first > self.snapshot.lsn + 1 && !lenient {
            if !self.is_claimed(first - 1) {
                return Ok(()); // After a torn end.
            }
            self.lose_upto(first);
        } else if group.after_hole && !lenient && !self.is_claimed(header.end_lsn() - 1) {
            return Ok(()); // Nothing is ever written after a torn end.
        }
        let (frame, records) = file.read(group)?;
        let torn = records.is_empty() || records.iter().any(|record| record.bytes.is_none());
        if torn && !self.is_claimed(header.end_lsn() - 1) {
            return Ok(());
        }
        if records.is_empty() {
            self.lose_upto(header.end_lsn().min(void));
            return Ok(());
        }
        for (lsn, record) in (header.first_lsn..).zip(&records) {
            let expected = self.snapshot.lsn + 1;
            let lsn = if lenient && lsn > expected { expected } else { lsn };
            if lsn == expected && lsn < void && self.stopped.is_none() {
                self.record(file.number, &frame, record)?;
            }
        }
        Ok(())
    }

    /// Skips missing transactions below `end`. The tables that they changed are unknown.
    fn lose_upto(&mut self, end: u64) {
        let first = self.snapshot.lsn + 1;
        let what = format!("{LOG}: transactions {first} to {} cannot be read", end - 1);
        let tables: Vec<TableId> = self.snapshot.tables.iter().map(|(id, _)| *id).collect();
        self.note(tables.into_iter(), what, end - 1);
        self.snapshot.lsn = end - 1;
    }

    fn record(&mut self, file: u64, frame: &[u8], record: &FoundRecord) -> EngineResult<()> {
        let lsn = self.snapshot.lsn + 1;
        let path = log_file(file);
        let Some(bytes) = &record.bytes else {
            let what = damaged(&path, format!("transaction {lsn} cannot be read")).message;
            self.note(record.tables.iter().copied(), what, lsn);
            self.snapshot.lsn = lsn;
            return Ok(());
        };
        match decode_ops(&frame[bytes.clone()]) {
            Ok(ops) => self.transaction(&path, &ops),
            Err(error) if record.tables.is_empty() => Err(damaged(&path, error.reason())),
            Err(error) => {
                let what = damaged(&path, error.reason()).message;
                self.note(record.tables.iter().copied(), what, lsn);
                self.snapshot.lsn = lsn;
                Ok(())
            }
        }
    }

    /// Records that changes to these tables are missing, from transactions up to `lsn`.
    fn note(&mut self, tables: impl Iterator<Item = TableId>, what: String, lsn: u64) {
        for table in tables {
            self.snapshot.note_lost(table, &what);
            followed::note_lost(&mut self.snapshot, table, lsn);
        }
        self.recent.lose(lsn);
        self.lost.push(what);
    }

    fn transaction(&mut self, path: &str, ops: &[Op]) -> EngineResult<()> {
        let lsn = self.snapshot.lsn + 1;
        if !self.is_claimed(lsn) && !self.unsynced_files_survived(ops)? {
            self.stopped = Some(lsn);
            return Ok(());
        }
        let mut steps = Vec::new();
        for op in ops {
            if let Op::Update(UpdateOp { table, .. }) | Op::Delete(DeleteOp { table, .. }) = op
                && self.snapshot.is_missing_records(*table)
            {
                continue; // Its row positions are no longer valid.
            }
            if self.is_of_lost_definition(op) {
                continue; // Its cells would appear in other columns, or not at all.
            }
            let mut context = ApplyContext {
                vfs: self.vfs,
                lsn,
                frozen_lsn: 0,
                run_rows: self.options.run_rows,
                removed: &mut self.removed,
                unsynced: &mut self.unsynced,
                pending_rewrites: &mut self.pending_rewrites,
                steps: &mut steps,
            };
            match (apply(&mut self.snapshot, op, &mut context), op.table()) {
                (Ok(()), _) => {}
                // The transaction depends on a lost transaction, or does not fit the current state.
                (Err(error), Some(table)) if error.code != ErrorCode::Io => {
                    let what = format!("transaction {lsn} cannot be applied: {}", error.reason());
                    self.note([table].into_iter(), damaged(path, what).message, lsn);
                }
                (Err(error), _) => return Err(damaged(path, error.reason())),
            }
            if let Op::Adopt(adopt) = op {
                self.mark_missing(adopt);
            }
        }
        self.recent.add(steps);
        self.snapshot.lsn = lsn;
        Ok(())
    }

    /// Whether the rows have columns that differ from the table's because a change to its
    /// definition was lost.
    fn is_of_lost_definition(&self, op: &Op) -> bool {
        let table = op.table().filter(|table| self.snapshot.is_missing_records(*table));
        let Some(table) = table.and_then(|table| self.snapshot.tables.get(&table)) else {
            return false;
        };
        let columns = &table.schema().columns;
        let is_known = |id: &u32| columns.iter().any(|column| column.id == *id);
        match op {
            Op::Append(append) => {
                append.columns.len() != columns.len()
                    || !append.columns.iter().all(|(id, ..)| is_known(id))
            }
            Op::Adopt(adopt) => adopt.segments.iter().any(|(_, meta)| {
                let segment = Segment::new(self.vfs, &table_dir(adopt.table), meta.clone());
                segment.column_ids().is_ok_and(|ids| !ids.iter().all(is_known))
            }),
            _ => false,
        }
    }

    /// Whether all unsynced segments that a transaction adopted have survived. The segments are
    /// read completely, and the log ends before the first transaction whose segments did not
    /// survive.
    fn unsynced_files_survived(&self, ops: &[Op]) -> EngineResult<bool> {
        let trusted = self.options.planted == Some(PlantedFault::TrustAdoptedSegments);
        for op in ops {
            let Op::Adopt(adopt) = op else { continue };
            if adopt.synced {
                continue;
            }
            let directory = table_dir(adopt.table);
            for (_, meta) in &adopt.segments {
                let path = format!("{directory}/{}", meta.name);
                let there = check_file(self.listings, &path, meta.file_len).is_ok();
                if there {
                    self.settle(&path)?;
                }
                let segment = Segment::new(self.vfs, &directory, meta.clone());
                if !there || (!trusted && segment.verify().is_err()) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Marks segments whose files are missing or incomplete.
    fn mark_missing(&self, adopt: &Adopt) {
        let Some(table) = self.snapshot.tables.get(&adopt.table) else { return };
        let directory = table_dir(adopt.table);
        for (floor, meta) in &adopt.segments {
            let path = format!("{directory}/{}", meta.name);
            let Err(error) = check_file(self.listings, &path, meta.file_len) else { continue };
            let partition = table.partition(*floor);
            let mut segments = partition.iter().flat_map(|partition| &partition.segments);
            if let Some(segment) = segments.find(|segment| segment.meta.name == meta.name) {
                segment.mark_damaged(error);
            }
        }
    }

    fn trusts_cache(&self) -> bool {
        self.read_only || self.options.planted == Some(PlantedFault::NoResyncAfterReplay)
    }

    fn settle(&self, path: &str) -> EngineResult<()> {
        if self.trusts_cache() {
            return Ok(());
        }
        self.vfs.settle(path).map_err(|error| EngineError::io(path, &error))
    }

    /// Makes the names of replayed files as durable as the files' content.
    fn make_names_durable(&self) -> EngineResult<()> {
        if self.trusts_cache() {
            return Ok(());
        }
        let paths = self.unsynced.iter().map(|segment| segment.file.path());
        let directories: BTreeSet<_> = paths.filter_map(|path| path.rsplit_once('/')).collect();
        for (directory, _) in &directories {
            sync_dir(self.vfs.system(), directory)?;
        }
        sync_dir(self.vfs.system(), TABLES)?;
        sync_dir(self.vfs.system(), LOG)
    }
}
