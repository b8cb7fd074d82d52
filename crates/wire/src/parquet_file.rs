//! Rows as one Parquet file, streamed one row group at a time.
//!
//! The file is primarily for other readers: plain logical types, no embedded Arrow schema, and
//! UTC-adjusted timestamps. The footer key `tidemark` contains, as JSON, what Parquet cannot
//! express about a column (LONG256, or the width of a CHAR).

use std::sync::Arc;

use arrow::compute::cast;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowTimestampType, Int8Type, Int16Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int8Array, Int16Array, RecordBatch, new_null_array,
};
use arrow_schema::{DataType, Schema, SchemaRef, TimeUnit};
use hashbrown::HashSet;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions};
use parquet::basic::{
    BrotliLevel, Compression, Encoding, GzipLevel, LogicalType, Repetition, Type as PhysicalType,
    ZstdLevel,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};
use tidemark_types::{
    EngineError, EngineResult, ErrorCode, Field, PartitionBy, SqlType, double_array,
};

use crate::row_group::{RowGroup, failed};
use crate::text_column::text_column;

/// Footer key for the SQL types.
const METADATA_KEY: &str = "tidemark";
/// Footer key for the column by which the rows turned out to be sorted.
const SORTED_KEY: &str = "tidemark.sorted";
/// Default level for codecs that have levels.
const DEFAULT_LEVEL: i32 = 9;

/// Any zone marks a column as UTC-adjusted; its name is not stored.
const UTC: &str = "+00:00";

/// Parquet page compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// No compression.
    Uncompressed,
    /// Snappy; has no level.
    Snappy,
    /// GZIP, levels 0 to 9.
    Gzip,
    /// LZ4 blocks in Hadoop framing, which some old readers require; has no level.
    Lz4Hadoop,
    /// Raw LZ4 blocks; has no level.
    Lz4Raw,
    /// Zstandard, levels 1 to 22.
    Zstd,
    /// Brotli, levels 0 to 11.
    Brotli,
}

/// Maximum dictionary size of a numeric column, in bytes. In larger dictionaries, most values are
/// unique, and looking up each value takes longer than writing it.
const NUMBER_DICTIONARY_BYTES: usize = 64 * 1024;
/// Maximum dictionary size of a numeric column, in bytes, if the first rows show repeated values
/// and the codec is slow. The codec then compresses indices, which are a quarter of the size.
const LONG_DICTIONARY_BYTES: usize = 256 * 1024;
/// Number of rows at the start that are sampled for repeated values.
const SAMPLE_ROWS: usize = 4096;

/// Maximum number of columns for which delta encoding is used. If a file has more, no column is
/// delta-encoded, because parquet-rs allocates a megabyte per such column, regardless of the row
/// count.
const MAX_DELTA_COLUMNS: usize = 128;

/// Parquet file options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParquetOptions {
    /// Page compression.
    pub codec: Codec,
    /// Codec level; `None` selects 9 for codecs with levels.
    pub level: Option<i32>,
    /// Number of rows per row group.
    pub row_group_rows: usize,
    /// Approximate uncompressed size of a data page, in bytes.
    pub data_page_bytes: usize,
    /// Whether minimums, maximums and null counts are written.
    pub statistics: bool,
    /// Data page format: 1 or 2.
    pub version: u8,
    /// Whether arrays are written in binary form, as shape and elements, instead of as nested
    /// lists.
    pub raw_arrays: bool,
    /// Time unit of the partitions that are written to separate files. With NONE, there is one
    /// file.
    pub partition_by: PartitionBy,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            codec: Codec::Zstd,
            level: None,
            row_group_rows: 100_000,
            data_page_bytes: 1_048_576,
            statistics: true,
            version: 2,
            raw_arrays: false,
            partition_by: PartitionBy::None,
        }
    }
}

/// Writes the file of one result.
pub(crate) struct ParquetFile {
    fields: Vec<Field>,
    schema: SchemaRef,
    row_group_rows: usize,
    file: SerializedFileWriter<Vec<u8>>,
    row_groups: ArrowRowGroupWriterFactory,
    /// The options until the first rows arrive; `None` after that.
    unsettled: Option<ParquetOptions>,
    /// The row group that is not yet full.
    open: Option<RowGroup>,
    /// Position of the designated timestamp column and its latest value; `None` once rows are no
    /// longer ascending.
    ascending: Option<(usize, i64)>,
}

impl std::fmt::Debug for ParquetFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ParquetFile").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl ParquetFile {
    pub(crate) fn new(
        fields: &[Field],
        timestamp: Option<usize>,
        options: &ParquetOptions,
    ) -> EngineResult<Self> {
        let arrow_fields: Vec<_> =
            fields.iter().map(|field| file_field(field, options.raw_arrays)).collect();
        let schema = Arc::new(Schema::new(arrow_fields));
        let properties = properties(fields, timestamp, options, |_| false)?;
        let (file, row_groups) = writer(fields, &schema, properties)?;
        Ok(Self {
            fields: fields.to_vec(),
            schema,
            row_group_rows: options.row_group_rows.max(1),
            file,
            row_groups,
            unsettled: Some(options.clone()),
            open: None,
            ascending: timestamp.map(|column| (column, i64::MIN)),
        })
    }

    /// Chooses dictionary sizes from the first rows, before any byte of the file is returned.
    fn settle(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        let Some(options) = self.unsettled.take() else { return Ok(()) };
        let timestamp = self.ascending.map(|(column, _)| column);
        if !is_slow(&options) {
            return Ok(());
        }
        let repeats = |column: usize| values_repeat(batch.column(column));
        let properties = properties(&self.fields, timestamp, &options, repeats)?;
        (self.file, self.row_groups) = writer(&self.fields, &self.schema, properties)?;
        Ok(())
    }

    pub(crate) fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> EngineResult<()> {
        if batch.num_columns() != self.fields.len() {
            return Err(EngineError::internal("a batch does not have the expected columns"));
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.settle(batch)?;
        self.ascending = self
            .ascending
            .and_then(|(column, latest)| Some((column, latest_of(batch.column(column), latest)?)));
        let mut from = 0;
        while from < batch.num_rows() {
            let group = match &mut self.open {
                Some(group) => group,
                closed => {
                    let index = self.file.flushed_row_groups().len();
                    let columns = self.row_groups.create_column_writers(index).map_err(failed)?;
                    closed.insert(RowGroup::new(columns))
                }
            };
            let rows = (batch.num_rows() - from).min(self.row_group_rows - group.rows());
            let (fields, targets) = (&self.fields, self.schema.fields());
            group.write(rows, targets, |index| {
                let array = batch.column(index).slice(from, rows);
                file_column(&fields[index], &array, targets[index].data_type())
            })?;
            from += rows;
            if group.rows() == self.row_group_rows {
                self.end_row_group()?;
            }
        }
        out.append(self.file.inner_mut());
        Ok(())
    }

    fn end_row_group(&mut self) -> EngineResult<()> {
        let Some(group) = self.open.take() else { return Ok(()) };
        let columns = group.close()?;
        let mut row_group = self.file.next_row_group().map_err(failed)?;
        for column in columns {
            column.append_to_row_group(&mut row_group).map_err(failed)?;
        }
        row_group.close().map_err(failed)?;
        Ok(())
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        self.end_row_group()?;
        if let Some((column, _)) = self.ascending {
            let name = self.fields[column].name.clone();
            self.file.append_key_value_metadata(KeyValue::new(SORTED_KEY.into(), name));
        }
        self.file.finish().map_err(failed)?;
        out.append(self.file.inner_mut());
        Ok(())
    }
}

/// Creates the file, before its first row group.
fn writer(
    fields: &[Field],
    schema: &SchemaRef,
    properties: WriterProperties,
) -> EngineResult<(SerializedFileWriter<Vec<u8>>, ArrowRowGroupWriterFactory)> {
    let converted = ArrowSchemaConverter::new().convert(schema).map_err(failed)?;
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(with_uuids(fields, &converted)?);
    ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(schema), options)
        .and_then(ArrowWriter::into_serialized_writer)
        .map_err(failed)
}

/// Whether compression takes longer than dictionary lookups.
fn is_slow(options: &ParquetOptions) -> bool {
    const SLOW_ZSTD: i32 = 3;
    match options.codec {
        Codec::Zstd => options.level.unwrap_or(DEFAULT_LEVEL) >= SLOW_ZSTD,
        Codec::Gzip | Codec::Brotli => true,
        Codec::Uncompressed | Codec::Snappy | Codec::Lz4Hadoop | Codec::Lz4Raw => false,
    }
}

/// Whether numbers repeat as often as in a column whose dictionary has the maximum size.
fn values_repeat(column: &ArrayRef) -> bool {
    let rows = column.len().min(SAMPLE_ROWS);
    let data = column.slice(0, rows).to_data();
    let (Some(width), [values, ..]) = (data.data_type().primitive_width(), data.buffers()) else {
        return false;
    };
    let values = values.as_slice().chunks_exact(width).skip(data.offset()).take(rows);
    let different: HashSet<&[u8]> = values.collect();
    // Among n values drawn from d distinct ones, about n²/2d are repeats.
    let came_before = rows - different.len();
    came_before > 0 && came_before * 2 * (LONG_DICTIONARY_BYTES / width) >= rows * rows
}

/// Returns a column's last timestamp; `None` if any timestamp is null or earlier than its
/// predecessor.
fn latest_of(column: &ArrayRef, before: i64) -> Option<i64> {
    let timestamps = match column.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().values()
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<TimestampNanosecondType>().values()
        }
        _ => return None,
    };
    let ascends = timestamps.is_sorted() && timestamps.first().is_none_or(|first| before <= *first);
    (ascends && column.null_count() == 0).then(|| timestamps.last().copied().unwrap_or(before))
}

/// Returns the type of the column in the file. Columns that are never null in the dialect are
/// required.
fn file_field(field: &Field, raw_arrays: bool) -> arrow_schema::Field {
    let utc = || Some(UTC.into());
    let data_type = match field.sql_type {
        SqlType::Date => DataType::Timestamp(TimeUnit::Millisecond, utc()),
        SqlType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, utc()),
        SqlType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        SqlType::Char
        | SqlType::Ipv4
        | SqlType::Geohash(_)
        | SqlType::Interval
        | SqlType::Period
        | SqlType::Null => DataType::Utf8,
        SqlType::DoubleArray(_) if raw_arrays => DataType::Binary,
        SqlType::DoubleArray(dimensions) => double_array::nested_type(dimensions),
        other => other.arrow_type(),
    };
    arrow_schema::Field::new(&field.name, data_type, field.sql_type.is_nullable())
}

fn properties(
    fields: &[Field],
    timestamp: Option<usize>,
    options: &ParquetOptions,
    repeats: impl Fn(usize) -> bool,
) -> EngineResult<WriterProperties> {
    let columns: Vec<_> = fields
        .iter()
        .map(|field| serde_json::json!({ "name": field.name, "type": field.sql_type.name() }))
        .collect();
    let about = serde_json::json!({ "version": 1, "columns": columns, "timestamp": timestamp });
    let version = match options.version {
        1 => WriterVersion::PARQUET_1_0,
        2 => WriterVersion::PARQUET_2_0,
        other => return Err(invalid(format!("parquet version {other}: expected 1 or 2"))),
    };
    let statistics =
        if options.statistics { EnabledStatistics::Page } else { EnabledStatistics::None };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("tidemark version {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(METADATA_KEY.into(), about.to_string())]))
        .set_compression(compression(options)?)
        .set_max_row_group_row_count(Some(options.row_group_rows.max(1)))
        .set_data_page_size_limit(options.data_page_bytes.max(1))
        .set_statistics_enabled(statistics)
        .set_writer_version(version);
    if fields.len() > MAX_DELTA_COLUMNS {
        properties = properties.set_encoding(Encoding::PLAIN);
    }
    for (index, field) in fields.iter().enumerate() {
        let path = ColumnPath::from(field.name.as_str());
        if timestamp == Some(index) {
            // Values rarely repeat, and each is close to its predecessor.
            properties = properties.set_column_dictionary_enabled(path, false);
        } else if file_field(field, options.raw_arrays).data_type().is_primitive() {
            let bytes =
                if repeats(index) { LONG_DICTIONARY_BYTES } else { NUMBER_DICTIONARY_BYTES };
            properties = properties.set_column_dictionary_page_size_limit(path, bytes);
        }
    }
    Ok(properties.build())
}

fn invalid(message: impl Into<String>) -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, message)
}

fn compression(options: &ParquetOptions) -> EngineResult<Compression> {
    let level = options.level.unwrap_or(DEFAULT_LEVEL);
    let unsigned = u32::try_from(level).unwrap_or(u32::MAX);
    Ok(match options.codec {
        Codec::Uncompressed => Compression::UNCOMPRESSED,
        Codec::Snappy => Compression::SNAPPY,
        Codec::Lz4Hadoop => Compression::LZ4,
        Codec::Lz4Raw => Compression::LZ4_RAW,
        Codec::Gzip => Compression::GZIP(
            GzipLevel::try_new(unsigned)
                .map_err(|_| invalid("GZIP compression level must be between 0 and 9"))?,
        ),
        Codec::Zstd => Compression::ZSTD(
            ZstdLevel::try_new(level)
                .map_err(|_| invalid("ZSTD compression level must be between 1 and 22"))?,
        ),
        Codec::Brotli => Compression::BROTLI(
            BrotliLevel::try_new(unsigned)
                .map_err(|_| invalid("Brotli compression level must be between 0 and 11"))?,
        ),
    })
}

/// Returns the schema with the UUID logical type, which Arrow's 16-byte type does not imply.
fn with_uuids(fields: &[Field], converted: &SchemaDescriptor) -> EngineResult<SchemaDescriptor> {
    let columns = fields
        .iter()
        .zip(converted.root_schema().get_fields())
        .map(|(field, column)| match field.sql_type {
            SqlType::Uuid => uuid_column(&field.name),
            _ => Ok(TypePtr::clone(column)),
        })
        .collect::<EngineResult<Vec<_>>>()?;
    let root = Type::group_type_builder(converted.root_schema().name())
        .with_fields(columns)
        .build()
        .map_err(failed)?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

fn uuid_column(name: &str) -> EngineResult<TypePtr> {
    let column = Type::primitive_type_builder(name, PhysicalType::FIXED_LEN_BYTE_ARRAY)
        .with_repetition(Repetition::OPTIONAL)
        .with_length(16)
        .with_logical_type(Some(LogicalType::Uuid))
        .build()
        .map_err(failed)?;
    Ok(Arc::new(column))
}

/// Converts an array to the form in which the file stores it.
fn file_column(field: &Field, array: &ArrayRef, target: &DataType) -> EngineResult<ArrayRef> {
    if array.data_type() == &DataType::Null {
        return Ok(new_null_array(target, array.len()));
    }
    let rendered = match field.sql_type {
        SqlType::Date => utc_timestamps::<TimestampMillisecondType>(array),
        SqlType::Timestamp => utc_timestamps::<TimestampMicrosecondType>(array),
        SqlType::TimestampNs => utc_timestamps::<TimestampNanosecondType>(array),
        SqlType::Char
        | SqlType::Ipv4
        | SqlType::Geohash(_)
        | SqlType::Interval
        | SqlType::Period => Some(text_column(field, array)?),
        SqlType::DoubleArray(_) if target == &DataType::Binary => {
            Some(double_array::to_raw(array)?)
        }
        SqlType::DoubleArray(_) => Some(double_array::to_nested(array)?),
        SqlType::Boolean | SqlType::Byte | SqlType::Short if array.null_count() > 0 => {
            without_nulls(array)
        }
        _ if array.data_type() == target => Some(ArrayRef::clone(array)),
        _ => None,
    };
    match rendered {
        Some(column) => Ok(column),
        None => cast(array, target).map_err(|error| {
            EngineError::internal(format!(
                "cannot convert column \"{}\" for Parquet: {error}",
                field.name
            ))
        }),
    }
}

/// Returns the same timestamps with a zone; values are UTC in both types.
fn utc_timestamps<T: ArrowTimestampType>(array: &ArrayRef) -> Option<ArrayRef> {
    let timestamps = array.as_primitive_opt::<T>()?;
    Some(Arc::new(timestamps.clone().with_timezone(UTC)))
}

/// Replaces nulls, which a join may produce, with false or 0. BOOLEAN, BYTE and SHORT are never
/// null.
fn without_nulls(array: &ArrayRef) -> Option<ArrayRef> {
    if let Some(values) = array.as_boolean_opt() {
        let filled = values.iter().map(|value| Some(value.unwrap_or(false)));
        return Some(Arc::new(filled.collect::<BooleanArray>()));
    }
    if let Some(values) = array.as_primitive_opt::<Int8Type>() {
        let filled = values.iter().map(|value| value.unwrap_or(0));
        return Some(Arc::new(Int8Array::from_iter_values(filled)));
    }
    let values = array.as_primitive_opt::<Int16Type>()?;
    let filled = values.iter().map(|value| value.unwrap_or(0));
    Some(Arc::new(Int16Array::from_iter_values(filled)))
}
