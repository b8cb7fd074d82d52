//! CONVERT PARTITION: writes the same rows to other files.
//!
//! New files are written into the table's directory and synced. Then one record replaces the whole
//! content of the partitions with these files; a crash before that leaves files that nothing
//! references. Meanwhile, writers of the table wait, but readers do not. Later rows are stored in
//! native segments next to the Parquet files and merged on read. A Parquet file with updated rows
//! becomes native at the next checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::compaction::fold::split;
use crate::disk::file::{sync_dir, write_new};
use crate::disk::layout::{TABLES, parquet_name, segment_name, table_dir};
use crate::mutation::convert::{Conversion, PartitionFormat};
use crate::mutation::prepare::Prepared;
use crate::segment::SegmentMeta;
use crate::segment::gather::Gathered;
use crate::segment::parquet_file::{PARQUET_ROWS, ParquetEncoder};
use crate::segment::writer::write_segment;
use crate::snapshot::no_such_table;
use crate::storage::Storage;
use crate::table::TableSnapshot;
use crate::table::merge::SourceRange;
use crate::table::partition::Partition;
use crate::table::row_source::RowSource;
use crate::table::schema::{ColumnSchema, TableId, TableSchema};

/// Rows encoded per batch.
const BATCH_ROWS: usize = 64 << 10;
/// Maximum number of attempts. An attempt fails if it meets a commit that was in progress when the
/// writers were blocked, but there are few of these.
const ATTEMPTS: usize = 4;

impl Storage {
    /// Converts the partitions that start at `floors` to another format, all of them or none.
    /// Partitions that already have this format are left unchanged. Fails with `InvalidValue` if a
    /// partition does not exist.
    pub fn convert_partitions(
        self: &Arc<Self>,
        table: TableId,
        floors: &[i64],
        to: PartitionFormat,
    ) -> EngineResult<()> {
        let _hold = self.lock_writes(table);
        let floors: BTreeSet<i64> = floors.iter().copied().collect();
        for _ in 0..ATTEMPTS {
            match self.try_convert(table, &floors, to, false) {
                Err(error) if error.code == ErrorCode::Replan => {}
                done => return done,
            }
        }
        Err(EngineError::new(
            ErrorCode::Replan,
            "the table changed concurrently: retry the statement",
        ))
    }

    /// Rewrites a partition in this format. Fails with `Replan` if it has been changed in the
    /// meantime.
    pub(crate) fn rewrite_partition(
        self: &Arc<Self>,
        table: TableId,
        floor: i64,
        to: PartitionFormat,
    ) -> EngineResult<()> {
        let _hold = self.lock_writes(table);
        self.try_convert(table, &BTreeSet::from([floor]), to, true)
    }

    /// With `anew`, also rewrites partitions that already have the format.
    fn try_convert(
        &self,
        table: TableId,
        floors: &BTreeSet<i64>,
        to: PartitionFormat,
        anew: bool,
    ) -> EngineResult<()> {
        self.refuse_when_full()?;
        let base = self.snapshot().table_by_id(table).ok_or_else(|| no_such_table(table))?;
        let mut files = Vec::new();
        let written = self.write_files(&base, floors, (to, anew), &mut files);
        let names: Vec<String> = files
            .iter()
            .flat_map(|(_, metas)| metas.iter().map(|meta| meta.name.clone()))
            .collect();
        let done = written.map_err(|error| (error, false)).and_then(|()| {
            if files.is_empty() {
                return Ok(());
            }
            let schema_version = base.schema().version;
            let conversion = Conversion { base, schema_version, partitions: files };
            let committed = self.commit_now(vec![Prepared::Convert(conversion)]);
            committed.map(drop).map_err(|error| (error, true))
        });
        if let Err((error, logged)) = &done {
            let paths = names.iter().map(|name| format!("{}/{name}", table_dir(table)));
            self.abandon_files(paths, *logged, error);
        }
        done.map_err(|(error, _)| error)
    }

    fn write_files(
        &self,
        base: &TableSnapshot,
        floors: &BTreeSet<i64>,
        (to, anew): (PartitionFormat, bool),
        files: &mut Vec<(i64, Vec<SegmentMeta>)>,
    ) -> EngineResult<()> {
        let schema = base.schema();
        let directory = table_dir(schema.id);
        for &floor in floors {
            let partition = base.partition(floor).ok_or_else(|| {
                let (name, table) = (schema.partition_name(floor), &schema.name);
                let message = format!("partition '{name}' does not exist [table={table}]");
                EngineError::new(ErrorCode::InvalidValue, message)
            })?;
            if !anew && to.is_that_of(partition) {
                continue;
            }
            let vfs = self.vfs();
            vfs.create_dir(&directory).map_err(|error| EngineError::io(&directory, &error))?;
            files.push((floor, Vec::new()));
            let rows = Rows::of(schema.timestamp_column(), partition)?;
            let limit = match to {
                PartitionFormat::Native => self.options().segment_rows,
                PartitionFormat::Parquet => PARQUET_ROWS,
            };
            for order in split(rows.order.clone(), limit) {
                let meta = self.write_file(base, floor, &rows, &order, to)?;
                if let Some((_, metas)) = files.last_mut() {
                    metas.push(SegmentMeta { lsn: partition.last_lsn(), ..meta });
                }
            }
        }
        if !files.is_empty() {
            sync_dir(self.vfs().system(), &directory)?;
            sync_dir(self.vfs().system(), TABLES)?;
        }
        Ok(())
    }

    /// Writes and syncs one file.
    fn write_file(
        &self,
        base: &TableSnapshot,
        floor: i64,
        rows: &Rows,
        order: &[SourceRange],
        to: PartitionFormat,
    ) -> EngineResult<SegmentMeta> {
        let schema = base.schema();
        if to == PartitionFormat::Native {
            return self.write_native(schema, floor, rows, order);
        }
        let name = parquet_name(&schema.partition_name(floor), self.next_file_number());
        let path = format!("{}/{name}", table_dir(schema.id));
        let mut encoder = ParquetEncoder::new(&schema.columns, &base.head.symbols)?;
        for batch in split(order.to_vec(), BATCH_ROWS) {
            for range in batch {
                let source = &rows.sources[range.source];
                let cells = schema
                    .columns
                    .iter()
                    .map(|column| Ok(source.column(column)?.slice(range.start, range.len)));
                encoder.push(&cells.collect::<EngineResult<Vec<_>>>()?)?;
            }
        }
        let encoded = encoder.finish()?;
        write_new(self.vfs().system(), &path, &encoded.bytes)?;
        Ok(rows.described(name, order, encoded.bytes.len() as u64, encoded.footer_crc))
    }

    /// Writes and syncs one segment with the columns of `schema`.
    pub(crate) fn write_native(
        &self,
        schema: &TableSchema,
        floor: i64,
        rows: &Rows,
        order: &[SourceRange],
    ) -> EngineResult<SegmentMeta> {
        let directory = table_dir(schema.id);
        let vfs = self.vfs().system();
        vfs.create_dir(&directory).map_err(|error| EngineError::io(&directory, &error))?;
        let name = segment_name(&schema.partition_name(floor), self.next_file_number());
        let path = format!("{directory}/{name}");
        let columns: Vec<_> = schema.columns.iter().map(|c| (c.id, c.sql_type)).collect();
        let gathered = Gathered::new(&schema.columns, &rows.sources, order);
        let written = write_segment(vfs, &path, &columns, &gathered)?;
        let synced = written.file.sync().inspect_err(|_| drop(vfs.unlink(&path)));
        synced.map_err(|error| EngineError::io(&path, &error))?;
        Ok(rows.described(name, order, written.len, written.footer_crc))
    }
}

/// A partition's rows, in row order.
pub(crate) struct Rows {
    sources: Vec<RowSource>,
    order: Vec<SourceRange>,
    /// Timestamps of each run and segment; empty without a designated timestamp.
    times: Vec<arrow_buffer::ScalarBuffer<i64>>,
}

impl Rows {
    pub(crate) fn of(
        timestamp: Option<&ColumnSchema>,
        partition: &Partition,
    ) -> EngineResult<Self> {
        let (mut sources, mut order, mut times) = (Vec::new(), Vec::new(), Vec::new());
        for (source, fragment) in partition.view(timestamp)?.iter().enumerate() {
            let (start, len) = (fragment.rows.start, fragment.rows.len());
            order.push(SourceRange { source, start, len });
            if let Some(timestamp) = timestamp {
                times.push(fragment.source.timestamps(timestamp)?);
            }
            sources.push(fragment.source.clone());
        }
        Ok(Self { sources, order, times })
    }

    /// Returns the manifest entry for a file with these rows.
    fn described(
        &self,
        name: String,
        order: &[SourceRange],
        file_len: u64,
        footer_crc: u32,
    ) -> SegmentMeta {
        let rows = order.iter().map(|range| range.len as u64).sum();
        SegmentMeta { name, file_len, footer_crc, rows, bounds: self.bounds(order), lsn: 0 }
    }

    /// Returns rows `first..end`, numbered in row order.
    pub(crate) fn between(&self, first: u64, end: u64) -> Vec<SourceRange> {
        let mut at = 0;
        let mut between = Vec::new();
        for range in &self.order {
            let (lo, hi) = (first.max(at), end.min(at + range.len as u64));
            if lo < hi {
                let start = range.start + (lo - at) as usize;
                between.push(SourceRange { start, len: (hi - lo) as usize, ..*range });
            }
            at += range.len as u64;
        }
        between
    }

    fn bounds(&self, order: &[SourceRange]) -> (i64, i64) {
        let at = |source: usize, row: usize| self.times.get(source).map_or(0, |times| times[row]);
        let first = order.first().map_or(0, |s| at(s.source, s.start));
        let last = order.last().map_or(0, |s| at(s.source, s.start + s.len - 1));
        (first, last)
    }
}
