//! CONVERT PARTITION as a step of a transaction: new files replace a partition's content.

use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::disk::layout::table_dir;
use crate::segment::{Segment, SegmentMeta};
use crate::snapshot::{Snapshot, no_such_table, put_table, table_of};
use crate::state::context::ApplyContext;
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::schema::TableId;

/// A partition's file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionFormat {
    /// Mapped segments, read in place.
    Native,
    /// Parquet files.
    Parquet,
}

impl PartitionFormat {
    /// Whether the partition already has this format.
    pub(crate) fn is_that_of(self, partition: &Partition) -> bool {
        let in_files = partition.is_written();
        match self {
            Self::Native => !partition.segments.iter().any(|segment| segment.is_parquet()),
            Self::Parquet => in_files && partition.segments.iter().all(|s| s.is_parquet()),
        }
    }
}

/// Files that replace the content of partitions.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// The table that the rows were read from.
    pub(crate) base: Arc<TableSnapshot>,
    /// Version of the definition that the rows were written with.
    pub(crate) schema_version: u64,
    /// The partitions' start timestamps and new segments.
    pub(crate) partitions: Vec<(i64, Vec<SegmentMeta>)>,
}

impl Conversion {
    pub(crate) fn table(&self) -> TableId {
        self.base.schema().id
    }
}

/// A conversion in its logged form.
#[derive(Debug)]
pub(crate) struct ConvertOp {
    pub(crate) table: TableId,
    pub(crate) partitions: Vec<(i64, Vec<SegmentMeta>)>,
}

/// Refuses to convert rows that have changed since they were read.
pub(crate) fn resolve_convert(
    snapshot: &Snapshot,
    conversion: Conversion,
) -> EngineResult<ConvertOp> {
    let table = conversion.table();
    let found = snapshot.table_by_id(table).ok_or_else(|| no_such_table(table))?;
    let base = &conversion.base;
    let same = |floor: &i64| match (base.partition(*floor), found.partition(*floor)) {
        // A checkpoint may have moved the rows; the written files replace all of them.
        (Some(before), Some(now)) => before.changed == now.changed,
        _ => false,
    };
    let same = conversion.partitions.iter().all(|(floor, _)| same(floor));
    if !same || conversion.schema_version != found.schema().version {
        let message = format!("table '{}' changed concurrently", found.schema().name);
        return Err(EngineError::new(ErrorCode::Replan, message));
    }
    Ok(ConvertOp { table, partitions: conversion.partitions })
}

pub(crate) fn apply_convert(
    snapshot: &mut Snapshot,
    op: &ConvertOp,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, op.table)?;
    let directory = table_dir(op.table);
    for (floor, metas) in &op.partitions {
        let old = table.partition(*floor);
        let old = old.ok_or_else(|| EngineError::internal("no such partition"))?;
        context.removed.extend(old.files());
        let segments: Vec<_> =
            metas.iter().map(|meta| Segment::new(context.vfs, &directory, meta.clone())).collect();
        let new = Partition::new(segments, Vec::new(), context.lsn);
        // Rows replaced by DEDUP keys are not written, so the number of rows can change.
        table.rows = table.rows - old.rows() + new.rows();
        table.hot.insert(*floor, Arc::new(new));
    }
    put_table(snapshot, table);
    Ok(())
}
