//! Bulk writes: rows go to segments in a staging directory; one record adopts them all.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};
use tidemark_vfs::Vfs;

use crate::change::{BulkTarget, Change, CommitReceipt};
use crate::checkpoint::Gathered;
use crate::column::{self, ColumnData};
use crate::file::sync_dir;
use crate::fold::{Output, plan_fold};
use crate::layout::{STAGE, TABLES, segment_name, table_dir};
use crate::limits::check_columns;
use crate::options::{CommitMode, PlantedFault};
use crate::partition::{Partition, clusters, one_run};
use crate::piece::{Piece, Run};
use crate::prepare::{Prepared, StagedSegments, no_such_table, sorted_rows};
use crate::recovery::remove_tree;
use crate::schema::TableSchema;
use crate::segment::{Segment, SegmentMeta};
use crate::segment_writer::write_segment;
use crate::snapshot::Snapshot;
use crate::state::{partition_rows, resolve_create};
use crate::storage::Storage;
use crate::symbols::SymbolStore;
use crate::upsert::UpsertKeys;

/// Rows of one partition still in memory.
#[derive(Debug, Default)]
struct StagedPartition {
    runs: Vec<Arc<Run>>,
    bytes: usize,
}

/// A bulk write under way. Dropping it gives it up.
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
    /// The newest timestamp so far.
    newest: i64,
    runs: u64,
    segments: Vec<(i64, SegmentMeta)>,
    /// Staged files, to be synced together at the end.
    files: Vec<Arc<dyn tidemark_vfs::VfsFile>>,
}

impl Storage {
    /// Starts a bulk write: nothing is seen before it is finished, nothing stays when it is not.
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
                resolve_create(&without, reserved(schema))?
            }
        };
        let stores = |column: u32| {
            let known = existing.as_ref().and_then(|table| table.head.symbols.get(&column));
            known.map_or_else(Arc::<SymbolStore>::default, |known| Arc::clone(known.store()))
        };
        BulkWriter::new(Arc::clone(self), target, schema, stores)
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
            runs: 0,
            segments: Vec::new(),
            files: Vec::new(),
        })
    }

    /// The definition that batches must fit.
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// Adds rows: the columns in the definition's order, the rows in any order.
    pub fn push(&mut self, batch: RecordBatch) -> EngineResult<()> {
        self.storage.refuse_when_full()?;
        let rows = sorted_rows(&self.schema, &batch, self.storage.options())?;
        drop(batch); // sorting copied the columns that it moved
        let mut columns = Vec::with_capacity(rows.columns.len());
        for (column, array) in self.schema.columns.iter().zip(rows.columns) {
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
            columns.push((column.id, column.sql_type, cells));
        }
        let times = match self.schema.timestamp {
            Some(index) => Some(column::timestamps(columns[index].2.array())?),
            None => None,
        };
        for (floor, range) in partition_rows(&self.schema, times.as_deref(), rows.count) {
            let columns: Vec<_> = columns
                .iter()
                .map(|(id, sql_type, cells)| {
                    (*id, *sql_type, cells.slice(range.start, range.len()))
                })
                .collect();
            let bounds = times.as_ref().map_or((0, 0), |t| (t[range.start], t[range.end - 1]));
            self.newest = self.newest.max(bounds.1);
            self.runs += 1;
            let (last_lsn, upsert) = (self.runs, self.upsert.clone());
            self.stage(floor, Run { rows: range.len(), columns, bounds, last_lsn, upsert });
        }
        if self.is_full(1) {
            self.shed()?;
        }
        Ok(())
    }

    fn is_full(&self, share: usize) -> bool {
        let most_rows = usize::try_from(self.schema.max_uncommitted_rows).unwrap_or(usize::MAX);
        self.bytes > self.storage.options().bulk_memory_bytes / share
            || self.rows > most_rows.max(1) / share
    }

    /// Writes the largest partitions until half of the memory is free. Rows within the lag of the
    /// newest one stay, as long as that frees enough: others may still come between them.
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

    /// Takes a partition's rows out of memory, but for those from `keep_from` on.
    fn take_partition(
        &mut self,
        floor: i64,
        keep_from: Option<i64>,
    ) -> EngineResult<Vec<Arc<Run>>> {
        let Some(staged) = self.partitions.remove(&floor) else { return Ok(Vec::new()) };
        self.bytes -= staged.bytes;
        self.rows -= staged.runs.iter().map(|run| run.rows).sum::<usize>();
        let Some((timestamp, from)) = self.schema.timestamp_column().zip(keep_from) else {
            return Ok(staged.runs);
        };
        let (mut older, mut younger) = (Vec::new(), Vec::new());
        for run in staged.runs {
            let [before, after] = run.split(timestamp, from)?;
            older.extend(before);
            younger.extend(after.map(Piece::Run));
        }
        if !younger.is_empty() {
            // Copied, so that the memory of the others is free.
            let kept = one_run(&younger, &self.schema, timestamp)?;
            let kept = Run { upsert: self.upsert.clone(), ..kept };
            self.stage(floor, kept);
        }
        Ok(older)
    }

    fn stage(&mut self, floor: i64, run: Run) {
        let bytes = run.columns.iter().map(|(_, _, cells)| cells.byte_size()).sum::<usize>();
        self.rows += run.rows;
        self.bytes += bytes;
        let staged = self.partitions.entry(floor).or_default();
        staged.runs.push(Arc::new(run));
        staged.bytes += bytes;
    }

    fn write_partition(&mut self, floor: i64, keep_from: Option<i64>) -> EngineResult<()> {
        let runs = self.take_partition(floor, keep_from)?;
        if runs.is_empty() {
            return Ok(());
        }
        let partition = Partition::new(Vec::new(), runs);
        let timestamp = self.schema.timestamp_column();
        let columns: Vec<_> = self.schema.columns.iter().map(|c| (c.id, c.sql_type)).collect();
        let limit = self.storage.options().segment_rows;
        for output in plan_fold(&partition, timestamp, limit)? {
            let Output::Written { pieces, order, bounds, .. } = output else {
                return Err(EngineError::internal("a staged partition has no segments"));
            };
            let number = self.storage.next_file_number();
            let name = segment_name(&self.schema.partition_name(floor), number);
            let path = format!("{}/{name}", self.directory);
            let rows = Gathered { schema: &self.schema.columns, pieces: &pieces, order: &order };
            let written = write_segment(self.storage.vfs().system(), &path, &columns, &rows)?;
            if self.storage.options().commit_mode == CommitMode::Sync {
                self.files.push(written.file);
            }
            let meta = SegmentMeta {
                name,
                file_len: written.len,
                footer_crc: written.footer_crc,
                rows: order.iter().map(|stretch| stretch.len as u64).sum(),
                bounds,
                lsn: 0,
            };
            self.segments.push((floor, meta));
        }
        Ok(())
    }

    /// Commits all rows at once.
    pub fn finish(mut self) -> EngineResult<CommitReceipt> {
        let floors: Vec<i64> = self.partitions.keys().copied().collect();
        for floor in floors {
            self.write_partition(floor, None)?;
        }
        let synced = self.storage.options().commit_mode == CommitMode::Sync;
        let early = self.storage.options().planted == Some(PlantedFault::AdoptBeforeMove);
        let committed = if early {
            let committed = self.storage.commit_prepared(self.changes(synced));
            committed.and_then(|receipt| self.move_to_table(synced).map(|()| receipt))
        } else {
            let moved = self.move_to_table(synced);
            moved.and_then(|()| self.storage.commit_prepared(self.changes(synced)))
        };
        match committed {
            Ok(receipt) => {
                if self.has_overlaps() {
                    self.storage.request_checkpoint();
                }
                Ok(receipt)
            }
            Err(error) => {
                self.take_back(&error);
                Err(match error.code {
                    ErrorCode::Replan => EngineError::new(
                        ErrorCode::TableNotFound,
                        format!("table '{}' was dropped meanwhile", self.schema.name),
                    ),
                    _ => error,
                })
            }
        }
    }

    /// Gives the write up; nothing of it stays.
    pub fn abort(self) {}

    /// Puts the segments where the record will expect them. Until it is logged they are orphans.
    fn move_to_table(&mut self, synced: bool) -> EngineResult<()> {
        if self.segments.is_empty() {
            return Ok(());
        }
        let vfs = Arc::clone(self.storage.vfs());
        for file in self.files.drain(..) {
            file.sync().map_err(|error| EngineError::io(&self.directory, &error))?;
        }
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

    /// Whether a partition got segments that overlap in time, which a checkpoint should join.
    fn has_overlaps(&self) -> bool {
        if self.schema.timestamp.is_none() {
            return false;
        }
        let mut by_floor: BTreeMap<i64, Vec<Piece>> = BTreeMap::new();
        for (floor, meta) in &self.segments {
            let upsert = self.upsert.clone();
            let segment = Segment::upserting(self.storage.vfs(), "", meta.clone(), upsert);
            by_floor.entry(*floor).or_default().push(Piece::Segment(segment));
        }
        by_floor.values().any(|pieces| clusters(pieces).len() < pieces.len())
    }

    /// Removes the segments of a write that was refused. After a failure of the disk the record
    /// may be in the log all the same: then they stay, and the next start decides.
    fn take_back(&self, error: &EngineError) {
        let vfs: &dyn Vfs = self.storage.vfs().system();
        if !matches!(error.code, ErrorCode::Io | ErrorCode::DiskFull | ErrorCode::ReadOnly) {
            let directory = table_dir(self.schema.id);
            for (_, meta) in &self.segments {
                let _ = vfs.unlink(&format!("{directory}/{}", meta.name));
            }
            let _ = vfs.remove_dir(&directory);
        }
    }
}

impl Drop for BulkWriter {
    fn drop(&mut self) {
        // After a commit the directory is empty.
        remove_tree(self.storage.vfs().system(), &self.directory);
    }
}
