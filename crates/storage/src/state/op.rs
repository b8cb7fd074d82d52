//! A transaction's steps.

use tidemark_types::SqlType;

use crate::mutation::convert::ConvertOp;
use crate::mutation::delete::DeleteOp;
use crate::mutation::retire::PartitionsOp;
use crate::mutation::skip::SkipOp;
use crate::mutation::update::UpdateOp;
use crate::segment::SegmentMeta;
use crate::segment::column::ColumnData;
use crate::table::schema::{TableId, TableSchema};
use crate::table::symbols::NewSymbols;

/// One step of a transaction in its logged form: complete, with all identifiers assigned.
#[derive(Debug)]
pub(crate) enum Op {
    CreateTable(TableSchema),
    DropTable(TableId),
    /// The definition, with its new version.
    ReplaceSchema(TableSchema),
    Truncate(TableId),
    Append(Append),
    Adopt(Adopt),
    PutRecord {
        kind: String,
        key: String,
        value: Vec<u8>,
    },
    DeleteRecord {
        kind: String,
        key: String,
    },
    Partitions(PartitionsOp),
    Update(UpdateOp),
    Convert(ConvertOp),
    Skip(SkipOp),
    Delete(DeleteOp),
    /// Starts tracking touched time ranges, or forgets the ranges up to a transaction.
    Watch {
        table: TableId,
        through: u64,
    },
    /// Starts retaining a table's changes for feeds.
    Follow {
        table: TableId,
    },
}

impl Op {
    /// The table that the step changes, if any.
    pub(crate) fn table(&self) -> Option<TableId> {
        match self {
            Self::CreateTable(schema) | Self::ReplaceSchema(schema) => Some(schema.id),
            Self::DropTable(id) | Self::Truncate(id) => Some(*id),
            Self::Append(append) => Some(append.table),
            Self::Adopt(adopt) => Some(adopt.table),
            Self::Partitions(op) => Some(op.table),
            Self::Update(update) => Some(update.table),
            Self::Convert(convert) => Some(convert.table),
            Self::Skip(skip) => Some(skip.table),
            Self::Delete(delete) => Some(delete.table),
            Self::Watch { table, .. } | Self::Follow { table } => Some(*table),
            Self::PutRecord { .. } | Self::DeleteRecord { .. } => None,
        }
    }
}

/// Rows ascending in time, with symbols as keys of the table's dictionaries.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) table: TableId,
    pub(crate) symbols: Vec<NewSymbols>,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<(u32, SqlType, ColumnData)>,
}

/// Segments of a bulk write that become part of a table.
#[derive(Debug)]
pub(crate) struct Adopt {
    pub(crate) table: TableId,
    pub(crate) symbols: Vec<NewSymbols>,
    /// Whether the segments were synced before the step was logged.
    pub(crate) synced: bool,
    /// Partitions and segments, in arrival order.
    pub(crate) segments: Vec<(i64, SegmentMeta)>,
}
