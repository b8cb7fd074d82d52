//! Reads the row groups that remain after pruning, one file after another.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tidemark_operators::cell_bytes;
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, account};

use super::columns::{convert, widened};
use super::file::ParquetFile;
use super::footer::damaged;
use crate::runtime::guard;

/// Maximum number of rows in a batch.
const BATCH_ROWS: usize = 64 * 1024;
/// Maximum number of rows in a batch with structs, maps or lists, whose JSON is larger than the
/// stored values.
const NESTED_ROWS: usize = 8 * 1024;
/// Approximate maximum size in bytes of all lists in a batch.
const BATCH_BYTES: usize = 4 << 20;
/// Bytes per list value, including its repetition and definition levels.
const LIST_VALUE_BYTES: usize = 12;
/// If a list column has more values than this number times its stored size, the column is
/// considered adversarial.
const BOMB_RATIO: usize = 1000;
/// Number of batches that may be read ahead of the plan.
const BATCHES_AHEAD: usize = 2;

/// Source of a result column in one file.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A column in the file, with its type in the file.
    Column(usize, SqlType),
    /// A value from the file's directory names.
    Path(ScalarValue),
    /// The file lacks the column.
    Missing,
}

/// Row groups and columns to read from one file.
#[derive(Debug, Clone)]
pub(super) struct FileSelection {
    pub(super) file: Arc<ParquetFile>,
    pub(super) row_groups: Vec<usize>,
    /// For each result column, its source in the file.
    pub(super) sources: Vec<Source>,
}

/// A scan of Parquet files.
#[derive(Debug)]
pub(super) struct ParquetScanExec {
    selections: Arc<Vec<FileSelection>>,
    /// Result column types.
    types: Vec<SqlType>,
    limit: Option<usize>,
    /// Total number of files and row groups before pruning.
    all: (usize, usize),
    properties: Arc<PlanProperties>,
}

impl ParquetScanExec {
    pub(super) fn new(
        pieces: Vec<FileSelection>,
        types: Vec<SqlType>,
        schema: SchemaRef,
        limit: Option<usize>,
        all: (usize, usize),
        ascending: Option<usize>,
    ) -> Self {
        let order = ascending.map(|column| {
            let column = Column::new(schema.field(column).name(), column);
            [PhysicalSortExpr::new(Arc::new(column), SortOptions::new(false, true))]
        });
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, order),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { selections: Arc::new(pieces), types, limit, all, properties: Arc::new(properties) }
    }
}

impl DisplayAs for ParquetScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let schema = self.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|one| one.name().as_str()).collect();
        let groups: usize =
            self.selections.iter().map(|selection| selection.row_groups.len()).sum();
        write!(
            f,
            "ParquetScanExec: files={}/{} row_groups={groups}/{} columns=[{}]",
            self.selections.len(),
            self.all.0,
            self.all.1,
            columns.join(", ")
        )?;
        self.limit.map_or(Ok(()), |limit| write!(f, " limit={limit}"))
    }
}

impl ExecutionPlan for ParquetScanExec {
    fn name(&self) -> &'static str {
        "ParquetScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Optimizer rules call this for every plan that they visit, so it also checks for
        // cancellation.
        check_stop().map_err(external)?;
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&schema), BATCHES_AHEAD);
        let sender = builder.tx();
        let (selections, types) = (Arc::clone(&self.selections), self.types.clone());
        let mut left = self.limit.unwrap_or(usize::MAX);
        builder.spawn_blocking(move || {
            for selection in selections.iter() {
                let mut send = |batch: RecordBatch| {
                    let batch = batch.slice(0, left.min(batch.num_rows()));
                    left -= batch.num_rows();
                    sender.blocking_send(Ok(batch)).is_ok() && left > 0
                };
                let unreadable = |_| damaged(&selection.file.name);
                let goes_on = guard::catch_unreadable("parquet", unreadable, || {
                    selection.read(&types, &schema, &mut send)
                });
                if !goes_on.map_err(external)? {
                    break; // The plan needs no more rows.
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

fn external(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl FileSelection {
    /// Reads the file and sends its rows. Returns whether the receiver accepts more rows.
    fn read(
        &self,
        types: &[SqlType],
        schema: &SchemaRef,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> EngineResult<bool> {
        let unreadable = |error: &dyn fmt::Display| {
            let message = format!("cannot read '{}': {error}", self.file.name);
            EngineError::new(ErrorCode::InvalidValue, message)
        };
        let file = File::open(&self.file.path).map_err(|error| unreadable(&error))?;
        let metadata = self.file.metadata.clone();
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
        let mut read: Vec<usize> = self.sources.iter().filter_map(Source::column).collect();
        read.sort_unstable();
        read.dedup();
        let mask = ProjectionMask::roots(reader.parquet_schema(), read.iter().copied());
        let reader = reader
            .with_batch_size(self.rows_at_once(&read)?)
            .with_row_groups(self.row_groups.clone())
            .with_projection(mask)
            .build()
            .map_err(|error| unreadable(&error))?;
        for batch in reader {
            let batch = batch.map_err(|error| unreadable(&error))?;
            // Checks available memory before converting, because the converted cells are about the
            // same size.
            account::check_allocation(cell_bytes(&batch))?;
            if !send(self.convert(&batch, &read, types, schema)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns how many rows to read per batch so that the batch's lists usually fit in
    /// [`BATCH_BYTES`].
    ///
    /// A file declares how many values a row group has, but not how they are distributed among its
    /// rows. If the stored column is a thousand times smaller than its values, the query must have
    /// enough memory for a single row that contains all of them.
    fn rows_at_once(&self, read: &[usize]) -> EngineResult<usize> {
        let metadata = self.file.metadata.metadata();
        let schema = self.file.metadata.parquet_schema();
        let types = self.file.metadata.schema().fields();
        let nested = read.iter().any(|&column| types[column].data_type().is_nested());
        let mut max = if nested { NESTED_ROWS } else { BATCH_ROWS };
        for leaf in (0..schema.num_columns()).filter(|&leaf| {
            schema.column(leaf).max_rep_level() > 0
                && read.binary_search(&schema.get_column_root_idx(leaf)).is_ok()
        }) {
            for &group in &self.row_groups {
                let group = metadata.row_group(group);
                let column = group.column(leaf);
                let rows = usize::try_from(group.num_rows()).unwrap_or(0).max(1);
                let values = usize::try_from(column.num_values()).unwrap_or(0);
                max = max.min(BATCH_BYTES / (values / rows).max(1) / LIST_VALUE_BYTES).max(1);
                let in_one_row = (values.saturating_sub(rows) + 1) * LIST_VALUE_BYTES;
                let stored = usize::try_from(column.compressed_size()).unwrap_or(0);
                if in_one_row / BOMB_RATIO > stored {
                    account::check_allocation(in_one_row)?;
                }
            }
        }
        Ok(max)
    }

    /// Converts a batch, whose columns are listed in `read`, into the result columns.
    fn convert(
        &self,
        batch: &RecordBatch,
        read: &[usize],
        types: &[SqlType],
        schema: &SchemaRef,
    ) -> EngineResult<RecordBatch> {
        let rows = batch.num_rows();
        let column = |(at, source): (usize, &Source)| {
            let named = |error: EngineError| {
                let (file, column) = (&self.file.name, schema.field(at).name());
                let message = format!("cannot read '{file}', column '{column}': {}", error.message);
                EngineError { message, ..error }
            };
            let array: ArrayRef = match source {
                Source::Missing => new_null_array(schema.field(at).data_type(), rows),
                Source::Path(value) => value
                    .to_array_of_size(rows)
                    .map_err(|error| EngineError::internal(error.to_string()))?,
                Source::Column(index, sql_type) => {
                    let position = read.binary_search(index).map_err(|_| {
                        EngineError::internal("a projected Parquet column is missing")
                    })?;
                    let own = convert(batch.column(position), *sql_type).map_err(named)?;
                    widened(&own, types[at]).map_err(named)?
                }
            };
            Ok(array)
        };
        let columns: Vec<ArrayRef> =
            self.sources.iter().enumerate().map(column).collect::<EngineResult<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(|error| {
            EngineError::internal(format!("cannot assemble Parquet columns: {error}"))
        })
    }
}

impl Source {
    fn column(&self) -> Option<usize> {
        match self {
            Self::Column(index, _) => Some(*index),
            _ => None,
        }
    }
}
