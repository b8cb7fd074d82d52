//! Bulk writes: rows are written to segments in a staging directory, and one record adopts all of
//! these segments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use arrow_array::{ArrayRef, RecordBatch};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};
use tidemark_vfs::VfsFile;

use crate::compaction::fold::split;
use crate::disk::file::sync_dir;
use crate::disk::layout::{STAGE, TABLES, segment_name, table_dir};
use crate::limits::check_columns;
use crate::mutation::change::{BulkTarget, Change, CommitReceipt};
use crate::mutation::prepare::{Prepared, StagedSegments, checked_rows, sorted_rows};
use crate::mutation::staged::{self, Placing, StagedRows};
use crate::options::{CommitMode, PlantedFault};
use crate::recovery::listing::remove_tree;
use crate::segment::column::{self, ColumnData};
use crate::segment::gather::Gathered;
use crate::segment::writer::write_segment;
use crate::segment::{Segment, SegmentMeta};
use crate::snapshot::{Snapshot, no_such_table};
use crate::state::resolve::resolve_create;
use crate::storage::Storage;
use crate::table::partition::clusters;
use crate::table::row_source::RowSource;
use crate::table::schema::TableSchema;
use crate::table::symbols::SymbolStore;
use crate::table::upsert::UpsertKeys;

/// In-memory rows of one partition, in arrival order.
#[derive(Debug, Default)]
struct StagedPartition {
    rows: Vec<StagedRows>,
    bytes: usize,
}

impl StagedPartition {
    fn row_count(&self) -> usize {
        self.rows.iter().map(StagedRows::rows).sum()
    }
}

/// Files that are synced one by one while the next files are written.
#[derive(Debug, Default)]
struct Syncs {
    /// Thread that syncs the files; ends with the last file or at the first failure.
    running: Option<SyncThread>,
    /// Files to sync at the end if no thread syncs them.
    files: Vec<Arc<dyn VfsFile>>,
}

#[derive(Debug)]
struct SyncThread {
    files: Sender<Arc<dyn VfsFile>>,
    thread: JoinHandle<std::io::Result<()>>,
}

impl Syncs {
    fn add(&mut self, file: Arc<dyn VfsFile>, storage: &Storage) {
        if self.running.is_none() && storage.options().background {
            let (files, come) = channel::<Arc<dyn VfsFile>>();
            let sync_all = move || come.into_iter().try_for_each(|file| file.sync());
            let thread = std::thread::Builder::new().name("tidemark-sync".into()).spawn(sync_all);
            self.running = thread.ok().map(|thread| SyncThread { files, thread });
        }
        match &self.running {
            // Ignores the send error: if the thread has ended, its own failure is reported.
            Some(running) => drop(running.files.send(file)),
            None => self.files.push(file),
        }
    }

    fn end(&mut self) -> std::io::Result<()> {
        if let Some(SyncThread { files, thread }) = self.running.take() {
            drop(files);
            thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a sync panicked")))?;
        }
        self.files.drain(..).try_for_each(|file| file.sync())
    }
}

/// A bulk write in progress. Dropping this value aborts the write.
#[derive(Debug)]
pub struct BulkWriter {
    storage: Arc<Storage>,
    target: BulkTarget,
    schema: TableSchema,
    /// Dictionary of each symbol column and the greatest key used so far.
    symbols: BTreeMap<u32, (Arc<SymbolStore>, i32)>,
    upsert: Option<Arc<UpsertKeys>>,
    directory: String,
    partitions: BTreeMap<i64, StagedPartition>,
    bytes: usize,
    rows: usize,
    /// Newest timestamp so far.
    newest: i64,
    segments: Vec<(i64, SegmentMeta)>,
    syncs: Syncs,
}

impl Storage {
    /// Starts a bulk write. Its rows become visible when the write finishes and are discarded
    /// otherwise.
    pub fn begin_bulk(self: &Arc<Self>, target: BulkTarget) -> EngineResult<BulkWriter> {
        self.refuse_writes()?;
        self.refuse_when_full()?;
        let snapshot = self.snapshot();
        if let BulkTarget::Existing(id) = target {
            snapshot.refuse_damaged(id)?;
        }
        let reserved =
            |schema: &TableSchema| TableSchema { id: self.reserve_table_id(), ..schema.clone() };
        let mut existing = None;
        let schema = match &target {
            BulkTarget::Existing(id) => {
                let table = snapshot.table_by_id(*id).ok_or_else(|| no_such_table(*id))?;
                let schema = TableSchema::clone(table.schema());
                existing = Some(table);
                schema
            }
            BulkTarget::Create(schema) => {
                check_columns(schema.columns.len(), &schema.name, self.options())?;
                resolve_create(&snapshot, reserved(schema))?
            }
            BulkTarget::Replace { old, schema } => {
                check_columns(schema.columns.len(), &schema.name, self.options())?;
                let mut without = Snapshot::clone(&snapshot);
                let old = snapshot.table_by_id(*old).ok_or_else(|| no_such_table(*old))?;
                let name = identifier::fold(&old.schema().name);
                without.names.remove(name.as_str());
                let schema = TableSchema { in_place_of: old.schema().identity(), ..schema.clone() };
                resolve_create(&without, reserved(&schema))?
            }
        };
        let stores = |column: u32| {
            let known = existing.as_ref().and_then(|table| table.head.symbols.get(&column));
            known.map_or_else(Arc::<SymbolStore>::default, |known| Arc::clone(known.store()))
        };
        BulkWriter::new(Arc::clone(self), target, schema, stores)
    }
}

impl Storage {
    /// Commits bulk writes to different tables, together with their related changes, in one
    /// transaction. The changes are applied first.
    pub fn commit_bulk(
        &self,
        mut writers: Vec<BulkWriter>,
        changes: Vec<Change>,
    ) -> EngineResult<CommitReceipt> {
        writers.iter_mut().try_for_each(BulkWriter::write_remaining)?;
        let synced = self.options().commit_mode == CommitMode::Sync;
        let is_alone = changes.is_empty() && writers.len() == 1;
        let mut work = self.prepare(changes)?;
        work.extend(writers.iter().flat_map(|writer| writer.changes(synced)));
        let mut logged = self.options().planted == Some(PlantedFault::AdoptBeforeMove);
        let mut moved = || writers.iter_mut().try_for_each(|writer| writer.move_to_table(synced));
        let committed = if logged {
            let committed = self.commit_prepared(work);
            committed.and_then(|receipt| moved().map(|()| receipt))
        } else {
            moved().and_then(|()| self.admit(&work)).and_then(|()| {
                logged = true;
                self.commit_now(work)
            })
        };
        match committed {
            Ok(receipt) => {
                if writers.iter().any(BulkWriter::has_overlaps) {
                    self.request_checkpoint();
                }
                Ok(receipt)
            }
            Err(error) => {
                for writer in &writers {
                    writer.remove_segments(logged, &error);
                }
                Err(match (error.code, writers.as_slice()) {
                    (ErrorCode::Replan, [writer]) if is_alone => EngineError::new(
                        ErrorCode::TableNotFound,
                        format!("table '{}' was dropped concurrently", writer.schema.name),
                    ),
                    _ => error,
                })
            }
        }
    }
}

impl BulkWriter {
    pub(crate) fn new(
        storage: Arc<Storage>,
        target: BulkTarget,
        schema: TableSchema,
        stores: impl Fn(u32) -> Arc<SymbolStore>,
    ) -> EngineResult<Self> {
        let directory = format!("{STAGE}/{:016x}", storage.vfs().entropy());
        let created = storage.vfs().create_dir(&directory);
        created.map_err(|error| EngineError::io(&directory, &error))?;
        let symbols = schema.columns.iter().filter(|c| c.sql_type == SqlType::Symbol);
        let symbols = symbols.map(|column| (column.id, (stores(column.id), -1))).collect();
        Ok(Self {
            storage,
            target,
            upsert: UpsertKeys::of(&schema),
            schema,
            symbols,
            directory,
            partitions: BTreeMap::new(),
            bytes: 0,
            rows: 0,
            newest: i64::MIN,
            segments: Vec::new(),
            syncs: Syncs::default(),
        })
    }

    /// Table definition that batches must match.
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// Adds rows. The columns are in definition order; the rows can be in any order.
    pub fn push(&mut self, batch: RecordBatch) -> EngineResult<()> {
        self.storage.refuse_when_full()?;
        let rows = match self.upsert {
            Some(_) => sorted_rows(&self.schema, &batch, self.storage.options())?,
            None => checked_rows(&self.schema, &batch, self.storage.options())?,
        };
        drop(batch); // Sorting has copied the columns that it moved.
        let count = rows.count;
        let columns = self.cells(rows.columns)?;
        let times = match self.schema.timestamp {
            Some(index) => Some(column::timestamps(columns[index].array())?),
            None => None,
        };
        for rows in staged::ascending(&self.schema, columns, times, count)? {
            self.stage_batch(rows)?;
        }
        if self.is_full(1) {
            self.shed()?;
        }
        Ok(())
    }

    /// Converts columns to their stored form: symbols become keys.
    fn cells(&mut self, arrays: Vec<ArrayRef>) -> EngineResult<Arc<[ColumnData]>> {
        let mut columns = Vec::with_capacity(arrays.len());
        for (column, array) in self.schema.columns.iter().zip(arrays) {
            let cells = match self.symbols.get_mut(&column.id) {
                Some((store, max_key)) => {
                    let cells = ColumnData::keys(store.intern_column(&array)?)?;
                    if let ColumnData::Keys(keys) = &cells {
                        *max_key = keys.max_key().max(*max_key);
                    }
                    cells
                }
                None => ColumnData::new(column.sql_type, array)?,
            };
            columns.push(cells);
        }
        Ok(columns.into())
    }

    /// Stages the rows of a batch. If most of them belong to one partition, that partition
    /// references the batch. The few rows of other partitions are copied, so that they do not keep
    /// the whole batch in memory.
    fn stage_batch(&mut self, batch: StagedRows) -> EngineResult<()> {
        self.newest = self.newest.max(batch.newest());
        let all = batch.rows();
        for (floor, rows) in batch.by_partition(&self.schema) {
            if rows.rows() * 2 > all {
                self.stage(floor, rows);
            } else {
                self.stage_copied(floor, &[rows])?;
            }
        }
        Ok(())
    }

    fn stage_copied(&mut self, floor: i64, rows: &[StagedRows]) -> EngineResult<()> {
        self.stage(floor, staged::copied(rows, &self.schema, self.upsert.as_ref())?);
        Ok(())
    }

    fn stage(&mut self, floor: i64, rows: StagedRows) {
        let bytes = rows.memory_bytes();
        self.rows += rows.rows();
        self.bytes += bytes;
        let staged = self.partitions.entry(floor).or_default();
        staged.rows.push(rows);
        staged.bytes += bytes;
    }

    fn is_full(&self, max_bytes: usize) -> bool {
        let most_rows = usize::try_from(self.schema.max_uncommitted_rows).unwrap_or(usize::MAX);
        self.bytes > self.storage.options().bulk_memory_bytes / max_bytes
            || self.rows > most_rows.max(1) / max_bytes
    }

    /// Writes the largest partitions until half of the memory is free. If writing other rows frees
    /// enough memory, rows within the lag of the newest row remain in memory, because late rows may
    /// still arrive between them.
    fn shed(&mut self) -> EngineResult<()> {
        let lag = self.newest.saturating_sub(self.schema.o3_max_lag());
        for keep_from in [Some(lag), None] {
            let mut by_size: Vec<(usize, i64)> =
                self.partitions.iter().map(|(floor, staged)| (staged.bytes, *floor)).collect();
            by_size.sort_unstable();
            while self.is_full(2) {
                let Some((_, floor)) = by_size.pop() else { break };
                self.write_partition(floor, keep_from)?;
            }
        }
        Ok(())
    }

    /// Removes a partition's rows before `keep_from` from memory and returns them. Removes none if
    /// most rows would remain.
    fn take_partition(
        &mut self,
        floor: i64,
        keep_from: Option<i64>,
    ) -> EngineResult<Vec<StagedRows>> {
        let (mut older, mut younger) = (Vec::new(), Vec::new());
        if let Some((from, staged)) = keep_from.zip(self.partitions.get(&floor)) {
            for rows in &staged.rows {
                let [before, after] = rows.split(from);
                older.extend(Some(before).filter(|rows| rows.rows() > 0));
                younger.extend(Some(after).filter(|rows| rows.rows() > 0));
            }
            let rows_of = |rows: &[StagedRows]| rows.iter().map(StagedRows::rows).sum::<usize>();
            if rows_of(&younger) > rows_of(&older) {
                return Ok(Vec::new());
            }
        }
        let Some(staged) = self.partitions.remove(&floor) else { return Ok(Vec::new()) };
        self.bytes -= staged.bytes;
        self.rows -= staged.row_count();
        if younger.is_empty() {
            return Ok(staged.rows);
        }
        self.stage_copied(floor, &younger)?;
        Ok(older)
    }

    fn write_partition(&mut self, floor: i64, keep_from: Option<i64>) -> EngineResult<()> {
        let sources = self.take_partition(floor, keep_from)?;
        let order = staged::common_order(&sources, &self.schema, self.upsert.as_ref())?;
        let columns: Vec<_> = self.schema.columns.iter().map(|c| (c.id, c.sql_type)).collect();
        let bytes: usize = sources.iter().map(StagedRows::memory_bytes).sum();
        self.storage.check_free_space(bytes as u64)?;
        let mut placing = Placing::of(&sources);
        for portion in split(order, self.storage.options().segment_rows) {
            let (order, bounds) = placing.next(&portion);
            let number = self.storage.next_file_number();
            let name = segment_name(&self.schema.partition_name(floor), number);
            let path = format!("{}/{name}", self.directory);
            let rows = Gathered::new(&self.schema.columns, &sources, &order);
            let written = write_segment(self.storage.vfs().system(), &path, &columns, &rows)?;
            if self.storage.options().commit_mode == CommitMode::Sync {
                self.syncs.add(written.file, &self.storage);
            }
            let meta = SegmentMeta {
                name,
                file_len: written.len,
                footer_crc: written.footer_crc,
                rows: order.iter().map(|range| range.len as u64).sum(),
                bounds,
                lsn: 0,
            };
            self.segments.push((floor, meta));
        }
        Ok(())
    }

    /// Commits all rows in one transaction.
    pub fn finish(self) -> EngineResult<CommitReceipt> {
        let storage = Arc::clone(&self.storage);
        storage.commit_bulk(vec![self], Vec::new())
    }

    /// Aborts the write and discards its rows.
    pub fn abort(self) {}

    fn write_remaining(&mut self) -> EngineResult<()> {
        let floors: Vec<i64> = self.partitions.keys().copied().collect();
        floors.into_iter().try_for_each(|floor| self.write_partition(floor, None))
    }

    /// Moves the segments to the paths in the record. They are orphans until the record is logged.
    fn move_to_table(&mut self, synced: bool) -> EngineResult<()> {
        if self.segments.is_empty() {
            return Ok(());
        }
        let vfs = Arc::clone(self.storage.vfs());
        self.syncs.end().map_err(|error| EngineError::io(&self.directory, &error))?;
        let directory = table_dir(self.schema.id);
        vfs.create_dir(&directory).map_err(|error| EngineError::io(&directory, &error))?;
        for (_, meta) in &self.segments {
            let (from, to) =
                (format!("{}/{}", self.directory, meta.name), format!("{directory}/{}", meta.name));
            vfs.rename(&from, &to).map_err(|error| EngineError::io(to, &error))?;
        }
        if synced {
            sync_dir(vfs.system(), &directory)?;
            sync_dir(vfs.system(), TABLES)?;
        }
        Ok(())
    }

    fn changes(&self, synced: bool) -> Vec<Prepared> {
        let mut changes = Vec::new();
        match &self.target {
            BulkTarget::Existing(_) => {}
            BulkTarget::Create(_) => {
                changes.push(Prepared::Other(Change::CreateTable(self.schema.clone())));
            }
            BulkTarget::Replace { old, .. } => {
                changes.push(Prepared::Other(Change::DropTable(*old)));
                changes.push(Prepared::Other(Change::CreateTable(self.schema.clone())));
            }
        }
        let symbols = self.symbols.iter();
        changes.push(Prepared::Adopt(StagedSegments {
            table: self.schema.id,
            segments: self.segments.clone(),
            synced,
            columns: self.schema.columns.clone(),
            upsert: self.upsert.clone(),
            symbols: symbols.map(|(id, (store, max))| (*id, Arc::clone(store), *max)).collect(),
        }));
        changes
    }

    /// Whether a partition received segments that overlap in time, which a checkpoint should merge.
    fn has_overlaps(&self) -> bool {
        if self.schema.timestamp.is_none() {
            return false;
        }
        let mut by_floor: BTreeMap<i64, Vec<RowSource>> = BTreeMap::new();
        for (floor, meta) in &self.segments {
            let upsert = self.upsert.clone();
            let segment = Segment::upserting(self.storage.vfs(), "", meta.clone(), upsert);
            by_floor.entry(*floor).or_default().push(RowSource::Segment(segment));
        }
        by_floor.values().any(|sources| clusters(sources).len() < sources.len())
    }

    /// Removes a refused write's segments.
    fn remove_segments(&self, logged: bool, error: &EngineError) {
        let directory = table_dir(self.schema.id);
        let paths = self.segments.iter().map(|(_, meta)| format!("{directory}/{}", meta.name));
        self.storage.abandon_files(paths, logged, error);
        // The directory remains if it contains other files.
        let _ = self.storage.vfs().remove_dir(&directory);
    }
}

impl Drop for BulkWriter {
    fn drop(&mut self) {
        // After a commit the directory is empty.
        remove_tree(self.storage.vfs().system(), &self.directory);
    }
}
