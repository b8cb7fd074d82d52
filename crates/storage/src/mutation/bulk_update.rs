//! Bulk updates: an UPDATE or a column type change that affects more rows than should be in memory
//! at once.
//!
//! New cells arrive in row order. Each partition is written to new segments in portions, with old
//! and new cells together. A portion ends when it has the maximum number of rows per segment, or
//! [`PORTION_BYTES`] of new cells. Before each portion, the query is checked for cancellation. One
//! record then replaces the whole content of the partitions with the new segments, as a conversion
//! does. A crash before that record leaves files that nothing references.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::ArrayRef;
use tidemark_types::{EngineError, EngineResult, SqlType, account};

use crate::disk::file::sync_dir;
use crate::disk::layout::{TABLES, table_dir};
use crate::mutation::cells::check_type;
use crate::mutation::change::{Change, CommitReceipt};
use crate::mutation::convert::Conversion;
use crate::storage::rewrite::Rows;
use crate::storage::write_lock::WriteLock;

use crate::mutation::prepare::{Prepared, StagedSegments};
use crate::mutation::update::{UpdatedCells, row_ranges, updated};
use crate::segment::SegmentMeta;
use crate::segment::column::{ColumnData, without_nulls};
use crate::state::resolve::resolve_replace;
use crate::storage::Storage;
use crate::table::merge::SourceRange;
use crate::table::partition::Partition;
use crate::table::schema::TableSchema;
use crate::table::symbols::SymbolStore;
use crate::table::upsert::UpsertKeys;
use crate::table::{TableSnapshot, row_position};

/// Size in bytes of new cells at which a portion is written, even if it has few rows.
const PORTION_BYTES: usize = 64 << 20;

/// New cells being written into a table. Dropping this value aborts the update.
#[derive(Debug)]
pub struct BulkUpdate {
    storage: Arc<Storage>,
    base: Arc<TableSnapshot>,
    /// Definition that takes effect together with the cells, if any.
    replace: Option<TableSchema>,
    /// Definition that the cells belong to.
    schema: TableSchema,
    /// Positions of the changed columns in that definition.
    columns: Vec<usize>,
    /// Dictionary of each changed symbol column, and the greatest key used so far.
    symbols: BTreeMap<u32, (Arc<SymbolStore>, i32)>,
    last_row: i64,
    open: Option<OpenPartition>,
    pending: Pending,
    partitions: Vec<(i64, Vec<SegmentMeta>)>,
    /// Whether the update's files have been moved into the table or discarded.
    ended: bool,
}

/// The partition being written.
#[derive(Debug)]
struct OpenPartition {
    ordinal: usize,
    floor: i64,
    partition: Arc<Partition>,
    rows: u64,
    /// Number of rows already in new segments.
    written: u64,
}

/// New cells for the next portion.
#[derive(Debug, Default)]
struct Pending {
    rows: Vec<u64>,
    cells: Vec<Vec<ColumnData>>,
    bytes: usize,
}

/// An update whose segments are written but not visible yet. Dropping this value aborts the update.
#[derive(Debug)]
pub struct WrittenUpdate(BulkUpdate);

impl WrittenUpdate {
    /// Commits all cells and the new definition in one transaction. Only one record is written, so
    /// the duration does not depend on the number of rows.
    pub fn commit(self) -> EngineResult<CommitReceipt> {
        self.0.commit()
    }
}

impl WriteLock {
    /// Starts an update of the cells in `columns`. These are positions in `replace`, the table's
    /// next definition, or in the definition of `base` if there is no new definition. Fails with
    /// `Replan`, here or at the end, if the table differs from `base`.
    pub fn begin_update(
        &self,
        base: Arc<TableSnapshot>,
        replace: Option<TableSchema>,
        columns: Vec<usize>,
    ) -> EngineResult<BulkUpdate> {
        let storage = Arc::clone(self.storage());
        let schema = match &replace {
            Some(schema) => resolve_replace(&storage.snapshot(), schema.clone())?,
            None => TableSchema::clone(base.schema()),
        };
        let mut symbols = BTreeMap::new();
        for &index in &columns {
            let column = schema.columns.get(index);
            let column = column.ok_or_else(|| EngineError::internal("no such column"))?;
            if column.sql_type == SqlType::Symbol {
                let known = base.head.symbols.get(&column.id);
                let store = known.map(|known| Arc::clone(known.store())).unwrap_or_default();
                symbols.insert(column.id, (store, -1));
            }
        }
        let cells = columns.iter().map(|_| Vec::new()).collect();
        Ok(BulkUpdate {
            storage,
            base,
            replace,
            schema,
            columns,
            symbols,
            last_row: -1,
            open: None,
            pending: Pending { cells, ..Pending::default() },
            partitions: Vec::new(),
            ended: false,
        })
    }
}

impl BulkUpdate {
    /// Adds new cells, one per row and column. The rows must be ascending and follow all previously
    /// added rows.
    pub fn push(&mut self, rows: &[i64], values: &[ArrayRef]) -> EngineResult<()> {
        let ascending = rows.is_sorted_by(|a, b| a < b);
        if !ascending || rows.first().is_some_and(|&row| row <= self.last_row) {
            return Err(EngineError::internal("the rows of an update are not in ascending order"));
        }
        let cells = self.cells(rows.len(), values)?;
        let mut start = 0;
        while start < rows.len() {
            let (ordinal, row) = row_position(rows[start]);
            let end = self.portion_of(ordinal)?;
            if row >= end {
                self.write_portion(end)?;
                continue;
            }
            let in_portion = |&row: &i64| {
                let (other, row) = row_position(row);
                other == ordinal && row < end
            };
            let len = rows[start..].partition_point(in_portion);
            self.pending
                .rows
                .extend(rows[start..start + len].iter().map(|&row| row_position(row).1));
            for (pending, cells) in self.pending.cells.iter_mut().zip(&cells) {
                let cells = cells.slice(start, len);
                self.pending.bytes += cells.byte_size();
                pending.push(cells);
            }
            start += len;
            if self.pending.bytes >= PORTION_BYTES {
                let (_, last) = row_position(rows[start - 1]);
                self.write_portion(last + 1)?;
            }
        }
        self.last_row = rows.last().copied().unwrap_or(self.last_row);
        Ok(())
    }

    fn cells(&mut self, rows: usize, values: &[ArrayRef]) -> EngineResult<Vec<ColumnData>> {
        if values.len() != self.columns.len() || values.iter().any(|cells| cells.len() != rows) {
            return Err(EngineError::internal("the values of an update do not match its rows"));
        }
        let mut all = Vec::with_capacity(values.len());
        for (&index, values) in self.columns.iter().zip(values) {
            let column = &self.schema.columns[index];
            check_type(column, values, self.storage.options())?;
            let array = without_nulls(column.sql_type, values);
            all.push(match self.symbols.get_mut(&column.id) {
                Some((store, max_key)) => {
                    let cells = ColumnData::keys(store.intern_column(&array)?)?;
                    if let ColumnData::Keys(keys) = &cells {
                        *max_key = keys.max_key().max(*max_key);
                    }
                    cells
                }
                None => ColumnData::new(column.sql_type, array)?,
            });
        }
        Ok(all)
    }

    /// Opens the partition, and returns the end of its current portion.
    fn portion_of(&mut self, ordinal: usize) -> EngineResult<u64> {
        if self.open.as_ref().is_some_and(|open| open.ordinal != ordinal) {
            self.close_partition()?;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => self.open_partition(ordinal)?,
        };
        let end = self.end_of_portion(&open);
        self.open = Some(open);
        Ok(end)
    }

    fn end_of_portion(&self, open: &OpenPartition) -> u64 {
        (open.written + self.storage.options().segment_rows as u64).min(open.rows)
    }

    fn open_partition(&mut self, ordinal: usize) -> EngineResult<OpenPartition> {
        let partitions = self.base.partitions();
        let found = partitions.get(ordinal);
        let (floor, partition) = found.ok_or_else(|| EngineError::internal("no such row"))?;
        // The key columns are about to change. Rows that the old keys replaced must not reappear.
        let rekeyed = |index: &usize| partition.upserts_by(self.schema.columns[*index].id);
        let settled = if self.columns.iter().any(rekeyed) {
            Arc::new(partition.resolved(self.base.schema())?)
        } else {
            Arc::clone(partition)
        };
        let timestamp = self.base.schema().timestamp_column();
        let rows = settled.view(timestamp)?.iter().map(|fragment| fragment.rows.len() as u64).sum();
        self.partitions.push((*floor, Vec::new()));
        Ok(OpenPartition { ordinal, floor: *floor, partition: settled, rows, written: 0 })
    }

    /// Writes the partition's remaining rows, which have no new cells.
    fn close_partition(&mut self) -> EngineResult<()> {
        while let Some(open) = self.open.as_ref().filter(|open| open.written < open.rows) {
            let end = self.end_of_portion(open);
            self.write_portion(end)?;
        }
        self.open = None;
        Ok(())
    }

    /// Writes the open partition's rows before `end`, with their new cells.
    fn write_portion(&mut self, end: u64) -> EngineResult<()> {
        account::check()?;
        self.storage.refuse_when_full()?;
        let Some(mut open) = self.open.take() else {
            return Err(EngineError::internal("no partition is open"));
        };
        if end == open.written {
            return Err(EngineError::internal("a row is beyond the end of its partition"));
        }
        let partition = self.take_pending(open.floor)?;
        let timestamp = self.base.schema().timestamp_column();
        let changed = if partition.rows.is_empty() {
            Arc::clone(&open.partition)
        } else {
            Arc::new(updated(&open.partition, timestamp, &partition, open.partition.changed)?)
        };
        let rows = Rows::of(timestamp, &changed)?;
        let order = rows.between(open.written, end);
        let meta = self.storage.write_native(&self.schema, open.floor, &rows, &order)?;
        if let Some((_, metas)) = self.partitions.last_mut() {
            metas.push(SegmentMeta { lsn: open.partition.last_lsn(), ..meta });
        }
        open.written = end;
        self.open = Some(open);
        Ok(())
    }

    fn take_pending(&mut self, floor: i64) -> EngineResult<UpdatedCells> {
        let cells = self.columns.iter().map(|_| Vec::new()).collect();
        let pending = std::mem::replace(&mut self.pending, Pending { cells, ..Pending::default() });
        let mut columns = Vec::with_capacity(self.columns.len());
        for (&index, cells) in self.columns.iter().zip(&pending.cells) {
            let column = &self.schema.columns[index];
            let whole = cells.iter().enumerate();
            let whole: Vec<SourceRange> = whole
                .map(|(source, cells)| SourceRange { source, start: 0, len: cells.len() })
                .collect();
            if !whole.is_empty() {
                let cells = ColumnData::gather(column.sql_type, cells, &whole)?;
                columns.push((column.id, column.sql_type, cells));
            }
        }
        Ok(UpdatedCells { floor, rows: row_ranges(pending.rows.into_iter()), columns })
    }

    /// Writes the remaining rows; no more cells follow.
    pub fn close(mut self) -> EngineResult<WrittenUpdate> {
        self.close_partition()?;
        if !self.partitions.is_empty() {
            let vfs = self.storage.vfs().system();
            sync_dir(vfs, &table_dir(self.schema.id))?;
            sync_dir(vfs, TABLES)?;
        }
        Ok(WrittenUpdate(self))
    }

    fn commit(mut self) -> EngineResult<CommitReceipt> {
        if self.partitions.is_empty() && self.replace.is_none() {
            return self.storage.commit_prepared(Vec::new());
        }
        let committed = self.storage.commit_now(self.changes());
        if let Err(error) = &committed {
            self.storage.abandon_files(self.paths(), true, error);
        }
        self.ended = true;
        committed
    }

    fn paths(&self) -> impl Iterator<Item = String> {
        let directory = table_dir(self.schema.id);
        let metas = self.partitions.iter().flat_map(|(_, metas)| metas);
        metas.map(move |meta| format!("{directory}/{}", meta.name))
    }

    fn changes(&self) -> Vec<Prepared> {
        let mut changes = Vec::new();
        let mut schema_version = self.base.schema().version;
        if let Some(schema) = &self.replace {
            changes.push(Prepared::Other(Change::ReplaceSchema(schema.clone())));
            schema_version += 1;
        }
        if self.symbols.values().any(|(_, max_key)| *max_key >= 0) {
            let symbols = self.symbols.iter();
            changes.push(Prepared::Adopt(StagedSegments {
                table: self.schema.id,
                segments: Vec::new(),
                synced: true,
                columns: self.schema.columns.clone(),
                upsert: UpsertKeys::of(&self.schema),
                symbols: symbols.map(|(id, (store, max))| (*id, Arc::clone(store), *max)).collect(),
            }));
        }
        if !self.partitions.is_empty() {
            let (base, partitions) = (Arc::clone(&self.base), self.partitions.clone());
            changes.push(Prepared::Convert(Conversion { base, schema_version, partitions }));
        }
        changes
    }
}

impl Drop for BulkUpdate {
    fn drop(&mut self) {
        if !self.ended {
            self.paths().for_each(|path| drop(self.storage.vfs().unlink(&path)));
        }
    }
}
