//! Checkpoint: writes in-memory rows to segments, lists the segments in a new manifest, and frees
//! the log that precedes it.
//!
//! Each step requires the previous one to be durable, in every commit mode:
//! 1. freeze: continue the log in a new file, and take the snapshot that will be written
//! 2. write and sync new segments and dictionaries, then sync their directories
//! 3. write and sync the manifest, then its directory entry; write and sync the pointer, then
//!    rename it and sync the rename
//! 4. only then: replace the runs in the running state with the segments, doom files that no
//!    manifest lists, and free log files before the new one

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, Vfs, VfsFile};

use crate::compaction::fold::{Output, plan_fold};
use crate::disk::Disk;
use crate::disk::file::{StoredFile, sync_dir};
use crate::disk::layout::{LOG, TABLES, TRASH, log_file, manifest, segment_name, table_dir};
use crate::manifest::{Generations, NextManifest, SymbolFiles, symbols_path};
use crate::options::StorageOptions;
use crate::segment::gather::Gathered;
use crate::segment::symbol_file::write_symbols;
use crate::segment::writer::{Columns, write_segment};
use crate::segment::{Segment, SegmentMeta};
use crate::snapshot::{Snapshot, put_table, table_of};
use crate::state::context::PendingRewrites;
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::row_source::RowSource;
use crate::table::schema::{TableId, TableSchema};

/// Provides the numbers for new file names.
pub(crate) trait FileNumbers {
    fn next(&self) -> u64;
}

/// State that a checkpoint makes durable.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) snapshot: Arc<Snapshot>,
    /// Files that are no longer used by any table.
    pub(crate) removed: Vec<Arc<StoredFile>>,
    /// Adopted segments that were never synced.
    pub(crate) unsynced: Vec<Arc<Segment>>,
    /// Unsynced log files of the previous generation. The previous generation is the fallback if
    /// the new one is damaged, so it must be equally durable.
    pub(crate) unsynced_logs: Vec<Arc<dyn VfsFile>>,
    /// Whether a sync of the previous generation's log failed.
    pub(crate) has_hole: bool,
    /// The log file where replay of the new manifest starts.
    pub(crate) first_log: u64,
    /// Number of log bytes that contain the rows that this checkpoint writes to segments.
    pub(crate) unwritten: u64,
    /// Data that this checkpoint rewrites.
    pub(crate) pending_rewrites: PendingRewrites,
}

/// A partition in which segments have replaced the runs.
#[derive(Debug)]
struct Folded {
    table: TableId,
    floor: i64,
    /// Whether the partition is detached.
    detached: bool,
    before: Arc<Partition>,
    after: Arc<Partition>,
}

/// A checkpoint's output.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The state as of the freeze, with segments in place of the runs.
    pub(crate) snapshot: Snapshot,
    folded: Vec<Folded>,
    symbol_files: SymbolFiles,
    /// Number of rows written.
    pub(crate) rows: u64,
    /// Files to remove if the manifest does not become current.
    created: Vec<Arc<StoredFile>>,
}

/// Syncs adopted segments that were not synced yet. After a failed sync, the kernel marks lost
/// pages as written, so a successful retry means nothing. A segment whose sync failed is therefore
/// no longer trusted, and the next checkpoint writes its rows to another file.
pub(crate) fn sync_adopted(vfs: &dyn Vfs, unsynced: &[Arc<Segment>]) -> EngineResult<()> {
    let mut outcome = Ok(());
    let mut synced = Vec::with_capacity(unsynced.len());
    for segment in unsynced {
        let path = segment.file.path();
        let sync = || vfs.open(path, OpenMode::Write).and_then(|file| file.sync());
        let failed = if segment.file.is_distrusted() {
            Some(EngineError::new(ErrorCode::Io, format!("{path}: sync failed")))
        } else {
            sync().err().map(|error| EngineError::io(path, &error))
        };
        match failed {
            None => synced.push(segment),
            Some(error) => {
                segment.file.distrust();
                outcome = outcome.and(Err(error));
            }
        }
    }
    let named = sync_directories(vfs, synced.iter().map(|segment| segment.file.path()));
    if named.is_err() {
        for segment in &synced {
            segment.file.distrust();
        }
    }
    outcome.and(named)
}

/// Faulty variant of [`sync_adopted`] that retries a failed sync; injected by the crash tests.
pub(crate) fn resync(vfs: &dyn Vfs, unsynced: &[Arc<Segment>]) -> EngineResult<()> {
    let sync = |path: &str| vfs.open(path, OpenMode::Write).and_then(|file| file.sync());
    for segment in unsynced {
        let _ = sync(segment.file.path()).or_else(|_| sync(segment.file.path()));
    }
    sync_directories(vfs, unsynced.iter().map(|segment| segment.file.path()))
}

/// Syncs the previous generation's log. If that fails, this log can never become durable.
pub(crate) fn sync_logs(vfs: &dyn Vfs, unsynced: &[Arc<dyn VfsFile>]) -> EngineResult<()> {
    for file in unsynced {
        file.sync().map_err(|error| EngineError::io(LOG, &error))?;
    }
    if unsynced.is_empty() { Ok(()) } else { sync_dir(vfs, LOG) }
}

/// Syncs the table directories so that the names of the new files are durable.
fn sync_directories<'a>(vfs: &dyn Vfs, paths: impl Iterator<Item = &'a str>) -> EngineResult<()> {
    let directories: BTreeSet<&str> =
        paths.filter_map(|path| path.rsplit_once('/')).map(|(directory, _)| directory).collect();
    for directory in &directories {
        sync_dir(vfs, directory)?;
    }
    if directories.is_empty() { Ok(()) } else { sync_dir(vfs, TABLES) }
}

/// Context for a checkpoint's writes.
pub(crate) struct Job<'a> {
    pub(crate) vfs: &'a Arc<Disk>,
    pub(crate) options: &'a StorageOptions,
    pub(crate) numbers: &'a dyn FileNumbers,
    /// Whether disk space is low. If so, only data that must change is rewritten.
    pub(crate) lean: bool,
    /// Whether the checkpoint should stop early.
    pub(crate) stop: &'a dyn Fn() -> bool,
}

impl Job<'_> {
    fn refuse_when_stopped(&self) -> EngineResult<()> {
        if (self.stop)() {
            let message = "the checkpoint was cancelled: the database is closing";
            return Err(EngineError::new(ErrorCode::Cancelled, message));
        }
        Ok(())
    }
}

/// Step 2: writes and syncs all of the in-memory data in `frozen`.
pub(crate) fn prepare(
    job: &Job<'_>,
    frozen: &Frozen,
    manifested: &Snapshot,
) -> EngineResult<Prepared> {
    let snapshot = Snapshot::clone(&frozen.snapshot);
    let mut prepared = Prepared { snapshot, ..Prepared::default() };
    let written = write_tables(job, &frozen.snapshot, manifested, &mut prepared).and_then(|()| {
        let created = prepared.created.iter().map(|file| file.path());
        sync_directories(job.vfs.system(), created)
    });
    match written {
        Ok(()) => Ok(prepared),
        Err(error) => {
            prepared.discard();
            Err(error)
        }
    }
}

fn write_tables(
    job: &Job<'_>,
    frozen: &Snapshot,
    manifested: &Snapshot,
    prepared: &mut Prepared,
) -> EngineResult<()> {
    let changed = frozen.tables().filter(|table| {
        let known = manifested.tables.get(&table.schema().id);
        known.is_none_or(|known| !Arc::ptr_eq(known, table))
    });
    for table in changed {
        write_table(job, table, prepared)?;
    }
    Ok(())
}

fn write_table(job: &Job<'_>, table: &TableSnapshot, prepared: &mut Prepared) -> EngineResult<()> {
    let vfs = job.vfs;
    let id = table.schema().id;
    let directory = table_dir(id);
    let unwritten = table.detached.iter().filter(|(_, partition)| !partition.is_written());
    let unwritten: Vec<_> = unwritten.collect();
    if !table.hot.is_empty() || !unwritten.is_empty() || !table.head.symbols.is_empty() {
        vfs.create_dir(&directory).map_err(|error| EngineError::io(&directory, &error))?;
    }
    let mut new = table_of(&prepared.snapshot, id)?;
    let hot = table.hot.iter().map(|(floor, before)| (floor, before, false));
    let detached = unwritten.into_iter().map(|(floor, before)| (floor, before, true));
    for (floor, before, detached) in hot.chain(detached) {
        job.refuse_when_stopped()?;
        let segments = fold_sound(job, table, *floor, before, prepared)?;
        let after = Arc::new(Partition::new(segments, Vec::new(), before.changed));
        if !detached {
            new.rows = new.rows - before.rows() + after.rows();
        }
        let partitions = if detached { &mut new.detached } else { &mut new.cold };
        Arc::make_mut(partitions).insert(*floor, Arc::clone(&after));
        let before = Arc::clone(before);
        prepared.folded.push(Folded { table: id, floor: *floor, detached, before, after });
    }
    new.hot.clear();
    put_table(&mut prepared.snapshot, new);
    for (column, dictionary) in &table.head.symbols {
        let path = || symbols_path(id, *column, job.numbers.next());
        let files = write_symbols(vfs, dictionary.store(), dictionary.len() as u32, path)?;
        if let Some(files) = files {
            prepared.created.extend(files.last().map(|file| Arc::clone(&file.file)));
            prepared.symbol_files.insert((id, *column), files);
        }
    }
    Ok(())
}

/// Like [`fold`], but if a segment is damaged, retains all segments and folds only the runs, so
/// that other tables are still checkpointed.
fn fold_sound(
    job: &Job<'_>,
    table: &TableSnapshot,
    floor: i64,
    partition: &Partition,
    prepared: &mut Prepared,
) -> EngineResult<Vec<Arc<Segment>>> {
    let created = prepared.created.len();
    let faults = tidemark_vfs::faults();
    let folded = fold(job, table, floor, partition, prepared);
    // If reading the mapping has faulted since, a copy taken from the mapping may differ from the
    // data that was written.
    let bad = || partition.segments.iter().find_map(|segment| segment.known_damage());
    let bad = if tidemark_vfs::faults() == faults { None } else { bad() };
    match bad.map_or(folded, Err) {
        Err(error) if error.code == ErrorCode::Damaged && !partition.segments.is_empty() => {
            prepared.created.drain(created..).for_each(|file| file.doom());
            let runs = Partition::new(Vec::new(), partition.runs.clone(), partition.changed);
            let stored = partition.segments.iter().map(|segment| segment.as_stored());
            let mut segments: Vec<_> = stored.collect();
            segments.extend(fold(job, table, floor, &runs, prepared)?);
            Ok(segments)
        }
        folded => folded,
    }
}

/// Returns the segments that replace a partition's runs and segments.
fn fold(
    job: &Job<'_>,
    table: &TableSnapshot,
    floor: i64,
    partition: &Partition,
    prepared: &mut Prepared,
) -> EngineResult<Vec<Arc<Segment>>> {
    let vfs = job.vfs;
    let schema = table.schema();
    let mut segments = Vec::new();
    let copies = copies_of_distrusted(partition)?;
    let partition = copies.as_ref().unwrap_or(partition);
    let rows = job.options.segment_rows;
    for output in plan_fold(partition, schema.timestamp_column(), rows, job.lean)? {
        match output {
            Output::Unchanged(segment) => segments.push(segment),
            Output::Written { sources, order, bounds, lsn } => {
                job.refuse_when_stopped()?;
                let name = segment_name(&schema.partition_name(floor), job.numbers.next());
                let directory = table_dir(schema.id);
                let path = format!("{directory}/{name}");
                prepared.created.push(StoredFile::new(Arc::clone(vfs), path.clone()));
                let rows = Gathered::new(&schema.columns, &sources, &order);
                let meta = SegmentMeta { name, bounds, lsn, ..write(vfs, &path, schema, &rows)? };
                prepared.rows += meta.rows;
                segments.push(Segment::new(vfs, &directory, meta));
            }
        }
    }
    // The sort is stable: segments of one transaction keep their order, which decides the order of
    // rows with equal timestamps.
    segments.sort_by_key(|segment| segment.meta.lsn);
    Ok(segments)
}

/// Returns the partition with in-memory copies in place of the segments whose sync failed; `None`
/// if no sync failed.
fn copies_of_distrusted(partition: &Partition) -> EngineResult<Option<Partition>> {
    if !partition.segments.iter().any(|segment| segment.file.is_distrusted()) {
        return Ok(None);
    }
    let copied = partition.segments.iter().map(|segment| {
        if segment.file.is_distrusted() {
            segment.in_memory().map(Arc::new).inspect_err(|error| {
                if error.code == ErrorCode::Damaged {
                    segment.mark_damaged(error.clone());
                }
            })
        } else {
            Ok(Arc::clone(segment))
        }
    });
    let segments = copied.collect::<EngineResult<_>>()?;
    Ok(Some(Partition::new(segments, partition.runs.clone(), partition.changed)))
}

/// Writes and syncs a segment. The caller sets its name, bounds and transaction.
fn write(
    vfs: &Arc<Disk>,
    path: &str,
    schema: &TableSchema,
    rows: &Gathered<'_, RowSource>,
) -> EngineResult<SegmentMeta> {
    let columns: Vec<_> = schema.columns.iter().map(|c| (c.id, c.sql_type)).collect();
    let written = write_segment(vfs.system(), path, &columns, rows)?;
    written.file.sync().map_err(|error| EngineError::io(path, &error))?;
    Ok(SegmentMeta {
        name: String::new(),
        file_len: written.len,
        footer_crc: written.footer_crc,
        rows: rows.rows() as u64,
        bounds: (0, 0),
        lsn: 0,
    })
}

impl Prepared {
    /// Removes the files written so far, which no manifest lists.
    pub(crate) fn discard(self) {
        for file in &self.created {
            file.doom();
        }
    }

    /// Tables whose new files still contain deleted rows.
    pub(crate) fn tables_with_dead_rows(&self) -> BTreeSet<TableId> {
        let dead = |folded: &&Folded| folded.after.segments.iter().any(|s| s.dead().is_some());
        self.folded.iter().filter(dead).map(|folded| folded.table).collect()
    }

    /// Files that the new manifest replaces.
    pub(crate) fn obsolete(&self) -> Vec<Arc<StoredFile>> {
        let mut obsolete = Vec::new();
        for folded in &self.folded {
            let retained: HashSet<&str> = folded.after.segments.iter().map(path_of).collect();
            let before = folded.before.segments.iter();
            let removed = before.filter(|segment| !retained.contains(segment.file.path()));
            obsolete.extend(removed.map(|segment| Arc::clone(&segment.file)));
        }
        for ((table, column), files) in &self.symbol_files {
            let Some(table) = self.snapshot.tables.get(table) else { continue };
            let Some(dictionary) = table.head.symbols.get(column) else { continue };
            let retained: HashSet<&str> = files.iter().map(|file| file.file.path()).collect();
            let old = dictionary.store().symbol_files().into_iter();
            let removed = old.filter(|file| !retained.contains(file.file.path()));
            obsolete.extend(removed.map(|file| file.file));
        }
        obsolete
    }

    /// First half of step 3. After an error the old manifest remains current.
    pub(crate) fn write_manifest(
        &self,
        vfs: &dyn Vfs,
        generations: &Generations,
        named: (u64, u64),
        removed: &[Arc<StoredFile>],
        without_fallback: bool,
    ) -> EngineResult<NextManifest> {
        let snapshot = self.snapshot.clone();
        let below = |file: &Arc<StoredFile>| {
            let name = file.path().strip_prefix(TABLES)?.strip_prefix('/')?;
            Some(name.to_owned())
        };
        let retained = (!without_fallback).then(|| removed.iter().filter_map(below).collect());
        generations.write_next(vfs, snapshot, &self.symbol_files, named, retained)
    }

    /// Step 4: in the running state, replaces the frozen runs with the segments. A table or
    /// partition that changed in any other way since the freeze keeps its state.
    pub(crate) fn install(&self, running: &mut Snapshot) -> Installed {
        let mut installed = Installed::default();
        // Each table is taken out of the state only once, regardless of how many partitions were
        // folded.
        for folded in self.folded.chunk_by(|a, b| a.table == b.table) {
            let id = folded.first().map_or(0, |folded| folded.table);
            let mut table = table_of(running, id).ok();
            let mut is_changed = false;
            for folded in folded {
                if table.as_mut().is_some_and(|table| install_partition(table, folded)) {
                    is_changed = true;
                    continue;
                }
                // The partition keeps its old files until a later checkpoint writes it.
                let retained = table.as_ref().map(|table| table.all_partitions_at(folded.floor));
                let retained = retained.unwrap_or_default();
                let segments = retained.iter().flat_map(|partition| &partition.segments);
                installed.in_use.extend(segments.map(|segment| segment.file.path().to_owned()));
                let known: HashSet<&str> = folded.before.segments.iter().map(path_of).collect();
                let new = folded.after.segments.iter();
                let new = new.filter(|segment| !known.contains(segment.file.path()));
                installed.manifest_only.extend(new.map(|segment| Arc::clone(&segment.file)));
            }
            if let Some(table) = table.filter(|_| is_changed) {
                put_table(running, table);
            }
        }
        // The running state shares each table that has not changed since the freeze with the
        // manifest, so that the next edit skips these tables.
        for table in self.snapshot.tables() {
            let id = table.schema().id;
            let same = running.tables.get(&id).is_some_and(|other| other.same_content(table));
            if same {
                running.tables.insert(id, Arc::clone(table));
            }
        }
        for ((table, column), files) in &self.symbol_files {
            let Some(table) = self.snapshot.tables.get(table) else { continue };
            let Some(dictionary) = table.head.symbols.get(column) else { continue };
            dictionary.store().set_symbol_files(files.clone());
            let running = running.tables.get(&table.schema().id);
            if running.is_none_or(|running| !running.head.symbols.contains_key(column)) {
                let files = files.iter().map(|file| Arc::clone(&file.file));
                installed.manifest_only.extend(files);
            }
        }
        installed
    }
}

/// Files to remove later, after a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Installed {
    /// Files that only the new manifest lists; removed after the next checkpoint.
    pub(crate) manifest_only: Vec<Arc<StoredFile>>,
    /// Paths of files that the running state uses but the new manifest does not list.
    pub(crate) in_use: HashSet<String>,
}

fn path_of(segment: &Arc<Segment>) -> &str {
    segment.file.path()
}

fn install_partition(table: &mut TableSnapshot, folded: &Folded) -> bool {
    if folded.detached {
        let current = table.detached.get(&folded.floor);
        if !current.is_some_and(|current| Arc::ptr_eq(current, &folded.before)) {
            return false; // Attached or dropped meanwhile.
        }
        Arc::make_mut(&mut table.detached).insert(folded.floor, Arc::clone(&folded.after));
        return true;
    }
    let Some(current) = table.partition(folded.floor).cloned() else { return false };
    let before = &folded.before;
    let prefix_of = |new: &Partition| {
        new.runs.len() >= before.runs.len()
            && new.segments.len() >= before.segments.len()
            && before.runs.iter().zip(&new.runs).all(|(a, b)| Arc::ptr_eq(a, b))
            && before.segments.iter().zip(&new.segments).all(|(a, b)| Arc::ptr_eq(a, b))
    };
    if !prefix_of(&current) {
        return false; // Truncated or updated meanwhile.
    }
    let newer = current.segments[before.segments.len()..].iter().cloned();
    let segments: Vec<_> = folded.after.segments.iter().cloned().chain(newer).collect();
    let runs = current.runs[before.runs.len()..].to_vec();
    table.rows = table.rows - before.rows() + folded.after.rows();
    Arc::make_mut(&mut table.cold).insert(folded.floor, Arc::clone(&folded.after));
    if runs.is_empty() && segments.len() == folded.after.segments.len() {
        table.hot.remove(&folded.floor);
    } else {
        let new = Partition::new(segments, runs, current.changed);
        table.hot.insert(folded.floor, Arc::new(new));
    }
    true
}

/// Removes manifests that no generation needs, and files that recovery moved to the trash.
pub(crate) fn remove_stale(vfs: &dyn Vfs, stale: &[u64]) {
    for number in stale {
        let _ = vfs.unlink(&manifest(*number));
    }
    for entry in vfs.list(TRASH).unwrap_or_default() {
        let _ = vfs.unlink(&format!("{TRASH}/{}", entry.name));
    }
}

/// Log files that a manifest starting at `first_log` does not need.
pub(crate) fn obsolete_logs(vfs: &dyn Vfs, first_log: u64, spare: &[u64]) -> Vec<u64> {
    let entries = vfs.list(LOG).unwrap_or_default();
    let numbers = entries.iter().filter_map(|entry| crate::disk::layout::log_number(&entry.name));
    let mut free: Vec<u64> =
        numbers.filter(|number| *number < first_log && !spare.contains(number)).collect();
    free.sort_unstable();
    debug_assert!(free.iter().all(|number| log_file(*number) < log_file(first_log)));
    free
}
