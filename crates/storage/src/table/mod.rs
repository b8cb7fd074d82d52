//! A table within one snapshot, and the slices that a scan reads.

pub(crate) mod damage;
pub(crate) mod merge;
pub(crate) mod partition;
pub(crate) mod pending;
pub(crate) mod records;
pub(crate) mod row_source;
pub(crate) mod schema;
pub(crate) mod sharded;
pub(crate) mod symbols;
pub(crate) mod time_range;
pub(crate) mod upsert;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, Int64Array};
use arrow_buffer::ScalarBuffer;
use tidemark_types::{EngineError, EngineResult, SqlType};

use crate::disk::file::StoredFile;
use crate::disk::layout::damaged;
use crate::segment::column::{self, ColumnData};
use crate::segment::key_rows::LastRow;
use crate::segment::zone::Zone;
use crate::table::partition::{Fragment, Partition};
use crate::table::row_source::RowSource;
use crate::table::schema::TableSchema;
use crate::table::symbols::SymbolDictionary;
use crate::table::time_range::TimeRange;

/// Number of bits in a row identifier that store the row number within a partition. The other bits
/// store the partition.
const ROW_BITS: u32 = 40;

fn row_id(partition: usize, row: u64) -> i64 {
    ((partition as i64) << ROW_BITS) | row as i64
}

/// A row's partition and its position in the partition.
pub(crate) fn row_position(row_id: i64) -> (usize, u64) {
    ((row_id >> ROW_BITS) as usize, (row_id & ((1 << ROW_BITS) - 1)) as u64)
}

/// Definition and dictionaries used to interpret a table's rows; shared by all slices of a
/// snapshot.
#[derive(Debug, Clone)]
pub(crate) struct TableHead {
    pub(crate) schema: Arc<TableSchema>,
    /// Dictionaries of the symbol columns, by column identifier.
    pub(crate) symbols: HashMap<u32, Arc<SymbolDictionary>>,
    /// Identifier of the next new column.
    pub(crate) next_column: u32,
}

/// All partitions in time order.
type PartitionList = Arc<Vec<(i64, Arc<Partition>)>>;

/// Partitions by their start timestamps.
pub(crate) type PartitionMap = BTreeMap<i64, Arc<Partition>>;

/// A table within one snapshot.
#[derive(Debug, Clone)]
pub struct TableSnapshot {
    pub(crate) head: Arc<TableHead>,
    /// Partitions as of the last checkpoint or bulk write.
    pub(crate) cold: Arc<PartitionMap>,
    /// Partitions that small commits have changed since the last checkpoint or bulk write. They
    /// hide the cold partitions that they replace. There are few of them, so a commit copies only a
    /// few partitions, however many the table has.
    pub(crate) hot: PartitionMap,
    /// Partitions that are retained but invisible.
    pub(crate) detached: Arc<PartitionMap>,
    /// Number of rows in all runs and segments, including rows that later rows replace.
    pub(crate) rows: u64,
    pub(crate) listed: OnceLock<PartitionList>,
}

impl TableSnapshot {
    pub(crate) fn empty(head: TableHead) -> Self {
        Self {
            head: Arc::new(head),
            cold: Arc::default(),
            hot: PartitionMap::new(),
            detached: Arc::default(),
            rows: 0,
            listed: OnceLock::new(),
        }
    }

    /// Returns the same table without rows.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self {
            head: Arc::clone(&self.head),
            cold: Arc::default(),
            hot: PartitionMap::new(),
            detached: Arc::default(),
            rows: 0,
            listed: OnceLock::new(),
        }
    }

    /// The table's definition.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.head.schema
    }

    /// Number of rows. With DEDUP keys, counting has to read the keys where runs and segments have
    /// overlapped since the last checkpoint. In all other cases, the number is already known.
    pub fn row_count(&self) -> EngineResult<u64> {
        let timestamp = self.schema().timestamp_column();
        let replaced = self.hot.values().map(|partition| partition.replaced(timestamp));
        Ok(self.rows - replaced.sum::<EngineResult<u64>>()?)
    }

    /// First and last designated timestamp; `None` if there are no rows or no such column.
    pub fn time_bounds(&self) -> Option<(i64, i64)> {
        self.schema().timestamp?;
        let partitions = self.partitions();
        let first = partitions.iter().find_map(|(_, partition)| partition.bounds())?;
        let last = partitions.iter().rev().find_map(|(_, partition)| partition.bounds())?;
        Some((first.0, last.1))
    }

    /// Returns all rows as slices in time order, or in arrival order without a designated
    /// timestamp. Rows with equal timestamps keep their arrival order.
    pub fn slices(&self) -> EngineResult<Vec<Slice>> {
        let mut slices = Vec::new();
        for (ordinal, (_, partition)) in self.partitions().iter().enumerate() {
            let mut row = row_id(ordinal, 0);
            for fragment in partition.view(self.schema().timestamp_column())?.iter() {
                slices.push(self.slice(fragment, row));
                row += fragment.rows.len() as i64;
            }
        }
        Ok(slices)
    }

    /// Returns the rows of all detached partitions.
    pub fn detached_slices(&self) -> EngineResult<Vec<Slice>> {
        let mut slices = Vec::new();
        for partition in self.detached.values() {
            let view = partition.view(self.schema().timestamp_column())?;
            slices.extend(view.iter().map(|fragment| self.slice(fragment, row_id(0, 0))));
        }
        Ok(slices)
    }

    /// Returns the rows within `ranges`, which are ascending and disjoint. Reads no other
    /// partitions, runs or segments. Without a designated timestamp, all rows are returned.
    pub fn slices_in(&self, ranges: &[TimeRange]) -> EngineResult<Vec<Slice>> {
        let Some(timestamp) = self.schema().timestamp_column() else { return self.slices() };
        let mut slices = Vec::new();
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(slices) };
        let partitions = self.partitions();
        // Skips partitions before and after the ranges by binary search.
        let start = partitions.partition_point(|(floor, _)| *floor <= first.lo).saturating_sub(1);
        let end = partitions.partition_point(|(floor, _)| *floor < last.hi).max(start);
        for (ordinal, (floor, partition)) in (start..).zip(&partitions[start..end]) {
            let ranges = &ranges[ranges.partition_point(|range| range.hi <= *floor)..];
            if ranges.first().is_none_or(|range| range.lo > self.schema().partition_ceil(*floor)) {
                continue;
            }
            let mut row = row_id(ordinal, 0);
            for fragment in partition.view(Some(timestamp))?.iter() {
                self.cut(fragment, row, ranges, &mut slices)?;
                row += fragment.rows.len() as i64;
            }
        }
        Ok(slices)
    }

    /// Latest transaction that added rows; `None` if there are no rows.
    pub fn last_transaction(&self) -> Option<u64> {
        self.partitions().iter().map(|(_, partition)| partition.last_lsn()).max()
    }

    /// Returns the transactions whose rows are in the table's runs and segments, oldest first. If a
    /// checkpoint or a merge has combined the rows of several transactions, they are attributed to
    /// the latest one.
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        let mut found: BTreeMap<u64, TransactionInfo> = BTreeMap::new();
        for (_, partition) in self.partitions().iter() {
            for source in partition.sources() {
                let (lsn, bounds, rows) = (source.lsn(), source.bounds(), source.rows() as u64);
                let known = found.entry(lsn).or_insert(TransactionInfo { lsn, bounds, rows: 0 });
                known.rows += rows;
                known.bounds.0 = known.bounds.0.min(bounds.0);
                known.bounds.1 = known.bounds.1.max(bounds.1);
            }
        }
        found.into_values().collect()
    }

    /// Returns the dictionary of the symbol column at this position.
    pub fn symbols(&self, column: usize) -> EngineResult<Arc<SymbolDictionary>> {
        self.head.symbols(column).map(Arc::clone)
    }

    /// Returns the partitions that contain rows: name, first and last timestamp, row count. If a
    /// damaged file hides which rows DEDUP keys replace, the replaced rows are counted as well.
    pub fn partition_list(&self) -> Vec<PartitionInfo> {
        self.partitions().iter().filter_map(|(f, p)| self.partition_info(*f, p)).collect()
    }

    /// Returns the detached partitions, as [`Self::partition_list`] does.
    pub fn detached_list(&self) -> Vec<PartitionInfo> {
        self.detached.iter().filter_map(|(f, p)| self.partition_info(*f, p)).collect()
    }

    fn partition_info(&self, floor: i64, partition: &Partition) -> Option<PartitionInfo> {
        let timestamp = self.schema().timestamp_column();
        Some(PartitionInfo {
            name: self.schema().partition_name(floor),
            floor,
            bounds: partition.bounds()?,
            rows: partition.rows() - partition.replaced(timestamp).unwrap_or(0),
            segments: partition.segments.len(),
            runs: partition.runs.len(),
            overlap: partition.overlap(),
            disk_bytes: partition.segments.iter().map(|segment| segment.meta.file_len).sum(),
            parquet: partition.segments.iter().any(|segment| segment.is_parquet()),
            parquet_bytes: partition
                .segments
                .iter()
                .filter(|segment| segment.is_parquet())
                .map(|segment| segment.meta.file_len)
                .sum(),
        })
    }

    pub(crate) fn partitions(&self) -> PartitionList {
        Arc::clone(self.listed.get_or_init(|| {
            let hidden = |floor: &i64| self.hot.contains_key(floor);
            let cold = self.cold.iter().filter(|(floor, _)| !hidden(floor));
            let mut all: Vec<_> =
                cold.chain(&self.hot).map(|(floor, p)| (*floor, Arc::clone(p))).collect();
            all.sort_by_key(|(floor, _)| *floor);
            Arc::new(all)
        }))
    }

    pub(crate) fn partition(&self, floor: i64) -> Option<&Arc<Partition>> {
        self.hot.get(&floor).or_else(|| self.cold.get(&floor))
    }

    /// Whether both tables have identical runs and segments under the same definition.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        let same_maps = |a: &PartitionMap, b: &PartitionMap| {
            let pairs = || a.iter().zip(b.iter());
            a.len() == b.len() && pairs().all(|(a, b)| a.0 == b.0 && Arc::ptr_eq(a.1, b.1))
        };
        Arc::ptr_eq(&self.head, &other.head)
            && same_maps(&self.hot, &other.hot)
            && same_maps(&self.cold, &other.cold)
            && same_maps(&self.detached, &other.detached)
    }

    /// All partitions, visible or detached.
    pub(crate) fn all_partitions(&self) -> Vec<Arc<Partition>> {
        let seen = self.partitions();
        seen.iter().map(|(_, partition)| partition).chain(self.detached.values()).cloned().collect()
    }

    /// Partitions with this start timestamp, visible or detached.
    pub(crate) fn all_partitions_at(&self, floor: i64) -> Vec<Arc<Partition>> {
        self.partition(floor).into_iter().chain(self.detached.get(&floor)).cloned().collect()
    }

    pub(crate) fn collect_segment_files(&self, files: &mut Vec<Arc<StoredFile>>) {
        files.extend(
            self.all_partitions()
                .iter()
                .flat_map(|partition| partition.files().collect::<Vec<_>>()),
        );
    }

    /// Returns a slice of the fragment, beginning at the row with the identifier `row`.
    fn slice(&self, fragment: &Fragment, row: i64) -> Slice {
        Slice {
            head: Arc::clone(&self.head),
            source: fragment.source.clone(),
            rows: fragment.rows.clone(),
            bounds: fragment.bounds,
            first_row: row,
        }
    }

    fn cut(
        &self,
        fragment: &Fragment,
        row: i64,
        ranges: &[TimeRange],
        slices: &mut Vec<Slice>,
    ) -> EngineResult<()> {
        let Some(timestamp) = self.schema().timestamp_column() else { return Ok(()) };
        let (min, max) = fragment.bounds;
        for range in ranges.iter().filter(|range| range.lo <= max && range.hi > min) {
            if range.lo <= min && range.hi > max {
                slices.push(self.slice(fragment, row));
                return Ok(());
            }
            let times = fragment.source.timestamps(timestamp)?;
            let times = &times[fragment.rows.clone()];
            let start = times.partition_point(|&ts| ts < range.lo);
            let end = times.partition_point(|&ts| ts < range.hi);
            if start < end {
                let mut slice = self.slice(fragment, row + start as i64);
                slice.rows = fragment.rows.start + start..fragment.rows.start + end;
                slice.bounds = (times[start], times[end - 1]);
                slices.push(slice);
            }
        }
        Ok(())
    }
}

impl TableHead {
    fn symbols(&self, column: usize) -> EngineResult<&Arc<SymbolDictionary>> {
        let found = self.schema.columns.get(column).and_then(|column| self.symbols.get(&column.id));
        found
            .ok_or_else(|| EngineError::internal(format!("column {column} is not a SYMBOL column")))
    }
}

/// A transaction's remaining rows in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionInfo {
    /// Transaction number.
    pub lsn: u64,
    /// First and last designated timestamp; both are zero if there is no such column.
    pub bounds: (i64, i64),
    /// Number of rows, including rows that later rows replaced.
    pub rows: u64,
}

/// A partition for SHOW PARTITIONS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Name, such as `2024-01-31` or `default`.
    pub name: String,
    /// Start of the partition in the timestamp's unit; the smallest integer for PARTITION BY NONE.
    pub floor: i64,
    /// First and last timestamp.
    pub bounds: (i64, i64),
    /// Number of rows.
    pub rows: u64,
    /// Number of segments, which are on disk.
    pub segments: usize,
    /// Number of sorted runs, which remain in memory until the next checkpoint.
    pub runs: usize,
    /// Maximum number of segments and runs that overlap at one timestamp. Readers must merge them.
    pub overlap: usize,
    /// Size of the segments in bytes.
    pub disk_bytes: u64,
    /// Whether some of the partition's rows are in Parquet files.
    pub parquet: bool,
    /// Size of the partition's Parquet files, in bytes.
    pub parquet_bytes: u64,
}

/// Consecutive rows of a table that are stored together.
#[derive(Debug, Clone)]
pub struct Slice {
    head: Arc<TableHead>,
    source: RowSource,
    rows: Range<usize>,
    bounds: (i64, i64),
    /// Identifier of the slice's first row.
    first_row: i64,
}

impl Slice {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether cells are read in place, so reading cells one by one is no more expensive than
    /// reading many at once.
    pub fn is_plain(&self) -> bool {
        !matches!(&self.source, RowSource::Segment(segment) if segment.is_parquet())
    }

    /// Identifier of the slice's first row.
    pub(crate) fn first_row(&self) -> i64 {
        self.first_row
    }

    /// First and last timestamp; both are zero without a designated timestamp.
    pub fn time_bounds(&self) -> (i64, i64) {
        self.bounds
    }

    /// Identifiers of the rows for an [`Update`](crate::Update). They are valid only in this
    /// snapshot.
    pub fn row_ids(&self, rows: Range<usize>) -> Int64Array {
        let first = self.first_row + rows.start as i64;
        Int64Array::from_iter_values(first..first + rows.len() as i64)
    }

    /// Returns the columns at these positions of the schema, for `rows` relative to the start of
    /// the slice. The position after the last column selects the row identifiers. Nothing is
    /// copied.
    pub fn columns(&self, projection: &[usize], rows: Range<usize>) -> EngineResult<Vec<ArrayRef>> {
        if rows.start > rows.end || rows.end > self.rows() {
            return Err(EngineError::internal(format!(
                "rows {}..{} are outside a slice of {} rows",
                rows.start,
                rows.end,
                self.rows()
            )));
        }
        let offset = self.rows.start + rows.start;
        let cells = |&index: &usize| -> EngineResult<ArrayRef> {
            if index == self.head.schema.columns.len() {
                return Ok(Arc::new(self.row_ids(rows.clone())));
            }
            self.column(index, offset, rows.len())
        };
        projection.iter().map(cells).collect()
    }

    fn column(&self, index: usize, offset: usize, len: usize) -> EngineResult<ArrayRef> {
        let column = self.head.schema.columns.get(index);
        let column = column.ok_or_else(|| EngineError::internal(format!("no column {index}")))?;
        match self.source.column(column)?.slice(offset, len) {
            ColumnData::Plain(array) => Ok(array),
            ColumnData::Keys(keys) => {
                debug_assert_eq!(column.sql_type, SqlType::Symbol);
                let values = self.head.symbols(index)?.sound()?;
                let array = keys.dictionary(values);
                // The transaction that added the symbol is lost, or the file is damaged.
                let lost = |error| damaged(&format!("column '{}'", column.name), error);
                Ok(Arc::new(array.map_err(lost)?))
            }
        }
    }

    /// Returns the minimum and maximum of a column for blocks of `rows`, relative to the start of
    /// the slice; `None` if they are unknown.
    pub fn zones(
        &self,
        column: usize,
        rows: Range<usize>,
    ) -> Option<Vec<(Range<usize>, Option<Zone>)>> {
        let RowSource::Segment(segment) = &self.source else { return None };
        let target = self.head.schema.columns.get(column)?;
        let first = self.rows.start;
        let mut zones = segment.zones(target, first + rows.start..first + rows.end)?;
        for (rows, _) in &mut zones {
            *rows = rows.start - first..rows.end - first;
        }
        Some(zones)
    }

    /// Returns the last of `rows` in which a symbol column has one of `keys`, if it is known. Rows
    /// are relative to the start of the slice. If the row is unknown, the reader searches `step`
    /// rows next. Rows that are searched often become known.
    pub fn last_row(
        &self,
        column: usize,
        keys: &[i32],
        rows: Range<usize>,
        step: usize,
    ) -> LastRow {
        let unknown = LastRow::Before(rows.end);
        let Some(target) = self.head.schema.columns.get(column) else { return unknown };
        let Ok(ColumnData::Keys(cells)) = self.source.column(target) else { return unknown };
        let Some(known) = &cells.rows else { return unknown };
        let first = self.rows.start;
        let own = first + rows.start..first + rows.end;
        match known.last_of(cells.keys(), cells.max_key(), keys, own, step) {
            LastRow::Nowhere => LastRow::Nowhere,
            LastRow::At(row) => LastRow::At(row - first),
            LastRow::Before(row) => LastRow::Before(row - first),
        }
    }

    /// Designated timestamps of all rows, ascending.
    pub fn timestamps(&self) -> EngineResult<ScalarBuffer<i64>> {
        let timestamp = self.head.schema.timestamp_column();
        let timestamp =
            timestamp.ok_or_else(|| EngineError::internal("no designated timestamp"))?;
        let cells = self.source.column(timestamp)?.slice(self.rows.start, self.rows());
        column::timestamps(cells.array())
    }
}
