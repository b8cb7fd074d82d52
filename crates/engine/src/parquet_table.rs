//! `read_parquet`: one Parquet file as a table.
//!
//! Files are read, never mapped: users may truncate them under a running query. Columns keep the
//! SQL type they had when this database wrote them (the footer's key `tidemark`, written by
//! `tidemark-wire`), or take the nearest one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::TableType;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use tidemark_types::double_array::{from_nested, nested_dimensions};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

/// Rows of a batch.
const BATCH_ROWS: usize = 64 * 1024;
/// Batches read ahead of the plan.
const BATCHES_AHEAD: usize = 2;
/// Footer key whose JSON lists name and SQL type of each column.
const TYPES_KEY: &str = "tidemark";

/// A Parquet file.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    columns: Arc<Vec<Field>>,
    schema: SchemaRef,
}

impl ParquetTable {
    /// Reads the footer.
    pub(crate) fn open(path: &Path) -> EngineResult<Self> {
        let file = File::open(path).map_err(|error| {
            EngineError::io(format_args!("cannot open {}", path.display()), &error)
        })?;
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()).map_err(|error| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                EngineError::new(ErrorCode::InvalidValue, format!("cannot read {name}: {error}"))
            })?;
        let stored = stored_types(&metadata);
        let columns: Vec<Field> = metadata
            .schema()
            .fields()
            .iter()
            .enumerate()
            .map(|(index, field)| sql_field(field, stored.get(index)))
            .collect();
        let schema = Schema::new(
            columns
                .iter()
                .map(|field| ArrowField::new(&field.name, field.sql_type.arrow_type(), true))
                .collect::<Vec<_>>(),
        );
        Ok(Self {
            path: path.to_owned(),
            metadata,
            columns: Arc::new(columns),
            schema: Arc::new(schema),
        })
    }

    /// Names and SQL types.
    pub(crate) fn columns(&self) -> &[Field] {
        &self.columns
    }
}

#[async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let wanted = projection.cloned().unwrap_or_else(|| (0..self.columns.len()).collect());
        let partition = ParquetPartition {
            path: self.path.clone(),
            metadata: self.metadata.clone(),
            schema: Arc::new(self.schema.project(&wanted)?),
            types: wanted.iter().map(|index| self.columns[*index].sql_type).collect(),
            wanted,
            limit,
        };
        let schema = Arc::clone(&partition.schema);
        let exec = StreamingTableExec::try_new(
            schema,
            vec![Arc::new(partition)],
            None,
            std::iter::empty(),
            false,
            limit,
        )?;
        Ok(Arc::new(exec))
    }
}

#[derive(Debug)]
struct ParquetPartition {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    schema: SchemaRef,
    /// SQL types of the columns, in output order.
    types: Vec<SqlType>,
    /// Columns of the file, in output order.
    wanted: Vec<usize>,
    limit: Option<usize>,
}

impl PartitionStream for ParquetPartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder =
            RecordBatchReceiverStream::builder(Arc::clone(&self.schema), BATCHES_AHEAD);
        let sender = builder.tx();
        let (path, metadata) = (self.path.clone(), self.metadata.clone());
        let (schema, wanted, limit) = (Arc::clone(&self.schema), self.wanted.clone(), self.limit);
        let types = self.types.clone();
        builder.spawn_blocking(move || {
            let file = File::open(&path)?;
            let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_batch_size(BATCH_ROWS);
            let mask = ProjectionMask::roots(reader.parquet_schema(), wanted.iter().copied());
            reader = reader.with_projection(mask);
            if let Some(limit) = limit {
                reader = reader.with_limit(limit);
            }
            for batch in reader.build().map_err(|error| parquet_error(&error))? {
                let batch = convert(&batch?, &wanted, &types, &schema)?;
                if sender.blocking_send(Ok(batch)).is_err() {
                    break; // the plan has all it wants
                }
            }
            Ok(())
        });
        builder.build()
    }
}

fn parquet_error(error: &parquet::errors::ParquetError) -> DataFusionError {
    DataFusionError::Execution(format!("cannot read a Parquet file: {error}"))
}

/// The reader yields the wanted columns in file order; the plan wants them in its own order and
/// in the Arrow types of their SQL types.
fn convert(
    batch: &RecordBatch,
    wanted: &[usize],
    types: &[SqlType],
    schema: &SchemaRef,
) -> DataFusionResult<RecordBatch> {
    let mut in_file_order = wanted.to_vec();
    in_file_order.sort_unstable();
    let column = |(output, file_index): (usize, &usize)| {
        let position = in_file_order.iter().position(|index| index == file_index);
        let position = position.ok_or_else(|| {
            DataFusionError::Internal("a projected Parquet column is missing".into())
        })?;
        convert_column(batch.column(position), types[output])
    };
    let columns: Vec<ArrayRef> =
        wanted.iter().enumerate().map(column).collect::<DataFusionResult<_>>()?;
    let options =
        arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn convert_column(array: &ArrayRef, to: SqlType) -> DataFusionResult<ArrayRef> {
    let target = &to.arrow_type();
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    let is_text =
        matches!(array.data_type(), DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8);
    match (array.data_type(), to) {
        // A geohash of other than whole characters travels as binary digits.
        (_, SqlType::Geohash(bits)) if is_text && bits % 5 != 0 => {
            let texts = cast(array, &DataType::Utf8View)?;
            let texts = arrow::array::AsArray::as_string_view(&texts);
            let bits = |text: Option<&str>| i64::from_str_radix(text?, 2).ok();
            let values: arrow::array::Int64Array = texts.iter().map(bits).collect();
            Ok(cast(&values, target)?)
        }
        // These travel as the dialect's text.
        (_, SqlType::Char | SqlType::Ipv4 | SqlType::Geohash(_)) if is_text => {
            tidemark_functions::from_texts(&cast(array, &DataType::Utf8View)?, to)
        }
        (nested, SqlType::DoubleArray(_)) if nested_dimensions(nested).is_some() => {
            from_nested(array).map_err(|error| DataFusionError::External(Box::new(error)))
        }
        (DataType::Timestamp(unit, Some(_)), _) => {
            let naive = cast(array, &DataType::Timestamp(*unit, None))?;
            Ok(cast(&naive, target)?)
        }
        _ => Ok(cast(array, target)?),
    }
}

/// What the footer says of the columns; nothing for files of other programs.
fn stored_types(metadata: &ArrowReaderMetadata) -> Vec<StoredColumn> {
    let footer = metadata.metadata().file_metadata();
    let about = footer
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == TYPES_KEY))
        .and_then(|pair| pair.value.as_deref())
        .and_then(|text| serde_json::from_str::<StoredTypes>(text).ok());
    about.map(|about| about.columns).unwrap_or_default()
}

#[derive(serde::Deserialize)]
struct StoredTypes {
    columns: Vec<StoredColumn>,
}

#[derive(serde::Deserialize)]
struct StoredColumn {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
}

fn sql_field(field: &ArrowField, stored: Option<&StoredColumn>) -> Field {
    let same = stored.filter(|stored| stored.name == *field.name());
    let known = same.and_then(|stored| SqlType::parse_text(&stored.type_name));
    let sql_type = known.unwrap_or_else(|| nearest_type(field.data_type()));
    Field { name: field.name().clone(), sql_type }
}

/// The SQL type for a column another program wrote. Nullable booleans and bytes take the next
/// wider nullable type.
fn nearest_type(data_type: &DataType) -> SqlType {
    match data_type {
        DataType::Boolean => SqlType::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::Int32 | DataType::UInt16 => {
            SqlType::Int
        }
        DataType::UInt32 | DataType::Int64 => SqlType::Long,
        DataType::UInt64 => SqlType::Decimal(20, 0),
        DataType::Float16 | DataType::Float32 => SqlType::Float,
        DataType::Float64 => SqlType::Double,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => {
            SqlType::Date
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => SqlType::TimestampNs,
        DataType::Timestamp(_, _) => SqlType::Timestamp,
        DataType::FixedSizeBinary(16) => SqlType::Uuid,
        DataType::FixedSizeBinary(32) => SqlType::Long256,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => SqlType::Binary,
        DataType::Dictionary(_, _) => SqlType::Symbol,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            SqlType::Decimal(*precision, u8::try_from(*scale).unwrap_or(0))
        }
        nested => nested_dimensions(nested).map_or(SqlType::Varchar, SqlType::DoubleArray),
    }
}
