//! Segments as Parquet files: the output of `CONVERT PARTITION TO PARQUET`, and the reader of its
//! columns.
//!
//! A file consists of one row group, the unit of decoding. Other readers can read it as plain
//! Parquet. The footer key `tidemark` contains what Parquet cannot express: each column's
//! identifier and SQL type, the keys of its symbols, and the checksum of its bytes.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use arrow::compute::{cast, concat};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch};
use arrow_buffer::{Buffer, NullBufferBuilder};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use serde::{Deserialize, Serialize};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, double_array};

use crate::disk::layout::{PARQUET_SUFFIX, damaged};
use crate::segment::column::{ColumnData, without_nulls};
use crate::segment::meta::SegmentMeta;
use crate::segment::zone::Zones;
use crate::table::schema::ColumnSchema;
use crate::table::symbols::SymbolDictionary;

/// Maximum number of rows per file, so that decoding one of its columns stays cheap.
pub(crate) const PARQUET_ROWS: usize = 512 << 10;
/// Default and minimum, in bytes, of the memory limit for decoded columns that the process caches
/// for later readers. [`set_decoded_bytes`] changes the limit. The minimum is large enough for some
/// of a file's columns.
const DECODED_BYTES: usize = 256 << 20;
const MIN_DECODED_BYTES: usize = 64 << 20;
/// Footer key for metadata that Parquet cannot express.
const METADATA_KEY: &str = "tidemark";
/// First and last bytes of every Parquet file.
const MAGIC: &[u8] = b"PAR1";
/// Size of the metadata length and the magic number at the end of the file.
const TAIL_BYTES: usize = 8;
/// Time zone of timestamp columns. Any zone marks a column as UTC-adjusted.
const UTC: &str = "+00:00";

/// The footer key's content.
#[derive(Debug, Serialize, Deserialize)]
struct Described {
    version: u32,
    columns: Vec<DescribedColumn>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct DescribedColumn {
    name: String,
    /// Type name in SQL.
    #[serde(rename = "type")]
    type_name: String,
    id: u32,
    sql_type: SqlType,
    /// Keys of a symbol column's strings, in the order in which the rows first use them.
    keys: Vec<i32>,
    /// CRC-32C of the column's bytes in the file.
    checksum: u32,
}

/// A file's bytes and its footer checksum.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) footer_crc: u32,
}

/// Encodes rows, batch by batch.
pub(crate) struct ParquetEncoder<'a> {
    columns: &'a [ColumnSchema],
    /// Dictionaries of the symbol columns, by identifier.
    symbols: &'a HashMap<u32, Arc<SymbolDictionary>>,
    schema: Arc<Schema>,
    writer: ArrowWriter<Vec<u8>>,
    keys: Vec<(HashSet<i32>, Vec<i32>)>,
}

impl<'a> ParquetEncoder<'a> {
    pub(crate) fn new(
        columns: &'a [ColumnSchema],
        symbols: &'a HashMap<u32, Arc<SymbolDictionary>>,
    ) -> EngineResult<Self> {
        let fields = columns.iter().map(|column| {
            Field::new(&column.name, file_type(column.sql_type), column.sql_type.is_nullable())
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let level = ZstdLevel::try_new(3).map_err(|error| failed(&error))?;
        let properties = WriterProperties::builder()
            .set_created_by(format!("tidemark version {}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(PARQUET_ROWS))
            // Without these indexes, every byte belongs to a column or to the footer, and both have
            // a checksum.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))
            .map_err(|error| failed(&error))?;
        let keys = columns.iter().map(|_| Default::default()).collect();
        Ok(Self { columns, symbols, schema, writer, keys })
    }

    /// Adds rows, with cells in column order.
    pub(crate) fn push(&mut self, cells: &[ColumnData]) -> EngineResult<()> {
        let mut arrays = Vec::with_capacity(cells.len());
        for (index, (column, cells)) in self.columns.iter().zip(cells).enumerate() {
            arrays.push(match cells {
                ColumnData::Plain(array) => file_array(column.sql_type, array)?,
                ColumnData::Keys(keys) => {
                    let (seen, order) = &mut self.keys[index];
                    order.extend(keys.keys().iter().flatten().filter(|key| seen.insert(*key)));
                    let dictionary = self.symbols.get(&column.id).ok_or_else(|| {
                        EngineError::internal(format!(
                            "column {} is not a SYMBOL column",
                            column.name
                        ))
                    })?;
                    let array = keys.dictionary(dictionary.array());
                    Arc::new(array.map_err(|error| EngineError::internal(error.to_string()))?)
                }
            });
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(|error| {
            EngineError::internal(format!("cannot assemble rows for Parquet: {error}"))
        })?;
        self.writer.write(&batch).map_err(|error| failed(&error))
    }

    /// Returns the complete file.
    pub(crate) fn finish(mut self) -> EngineResult<Encoded> {
        self.writer.flush().map_err(|error| failed(&error))?;
        self.writer.sync().map_err(|error| EngineError::internal(error.to_string()))?;
        let [group] = self.writer.flushed_row_groups() else {
            return Err(EngineError::internal("expected a Parquet segment with one row group"));
        };
        let ranges: Vec<(u64, u64)> = group
            .columns()
            .iter()
            .map(parquet::file::metadata::ColumnChunkMetaData::byte_range)
            .collect();
        let footer_start = ranges.iter().map(|(start, len)| start + len).max().unwrap_or(0);
        let written = self.writer.inner();
        let described = self.columns.iter().zip(&self.keys).zip(&ranges).map(
            |((column, (_, keys)), &(start, len))| DescribedColumn {
                name: column.name.clone(),
                type_name: column.sql_type.name(),
                id: column.id,
                sql_type: column.sql_type,
                keys: keys.clone(),
                checksum: crc32c::crc32c(&written[start as usize..(start + len) as usize]),
            },
        );
        let described = Described { version: 1, columns: described.collect() };
        let text = serde_json::to_string(&described)
            .map_err(|error| EngineError::internal(error.to_string()))?;
        self.writer.append_key_value_metadata(KeyValue::new(METADATA_KEY.to_owned(), text));
        let bytes = self.writer.into_inner().map_err(|error| failed(&error))?;
        let footer_crc = crc32c::crc32c(&bytes[footer_start as usize..]);
        Ok(Encoded { bytes, footer_crc })
    }
}

fn failed(error: &ParquetError) -> EngineError {
    EngineError::internal(format!("cannot write Parquet: {error}"))
}

/// A column's type in the file.
fn file_type(sql_type: SqlType) -> DataType {
    match sql_type {
        SqlType::DoubleArray(dimensions) => double_array::nested_type(dimensions),
        other => match other.arrow_type() {
            DataType::Timestamp(unit, _) => DataType::Timestamp(unit, Some(UTC.into())),
            plain => plain,
        },
    }
}

fn file_array(sql_type: SqlType, array: &ArrayRef) -> EngineResult<ArrayRef> {
    let array = without_nulls(sql_type, array);
    match sql_type {
        SqlType::DoubleArray(_) => double_array::to_nested(&array),
        _ => converted(&array, &file_type(sql_type)),
    }
}

fn converted(array: &ArrayRef, to: &DataType) -> EngineResult<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    cast(array, to).map_err(|error| EngineError::internal(error.to_string()))
}

/// A mapped file in the form that the Parquet reader accepts.
struct Mapped(Buffer);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Debug)]
struct Opened {
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
    columns: Vec<DescribedColumn>,
}

/// A segment's file, from which its columns are read.
pub(crate) trait MappedFile {
    /// Path, for error messages.
    fn path(&self) -> &str;
    fn meta(&self) -> &SegmentMeta;
    /// The file's bytes.
    fn map(&self) -> EngineResult<Buffer>;

    fn rows(&self) -> usize {
        self.meta().rows as usize
    }
}

/// Reads a Parquet segment.
#[derive(Debug)]
pub(crate) struct ParquetColumns {
    /// Identifies the file's columns in the cache of decoded columns.
    number: u64,
    opened: OnceLock<EngineResult<Opened>>,
}

impl ParquetColumns {
    /// Creates a segment's reader if the segment's name is that of a Parquet file.
    pub(crate) fn of(meta: &SegmentMeta) -> Option<Arc<Self>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        meta.name.ends_with(PARQUET_SUFFIX).then(|| {
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            Arc::new(Self { number, opened: OnceLock::new() })
        })
    }

    /// Returns the whole column; null if the file is older than the column.
    pub(crate) fn column(
        &self,
        segment: &dyn MappedFile,
        target: &ColumnSchema,
    ) -> EngineResult<ColumnData> {
        let name = (self.number, target.id);
        if let Some((cells, _)) = DECODED.lock().get(name) {
            return Ok(cells);
        }
        let opened = self.opened(segment)?;
        let Some(index) = opened.columns.iter().position(|column| column.id == target.id) else {
            return ColumnData::nulls(target.sql_type, segment.rows());
        };
        // Decodes outside the lock. Two readers may decode the same column, but no reader waits
        // while another column is decoded.
        let cells = decode(opened, index, segment)?;
        DECODED.lock().put(name, &cells);
        Ok(cells)
    }

    /// Returns a column and its zones if the column is cached.
    pub(crate) fn zones(&self, column: &ColumnSchema) -> Option<(ColumnData, Arc<Zones>)> {
        DECODED.lock().get((self.number, column.id))
    }

    /// Decodes every column, which verifies every checksum.
    pub(crate) fn verify(&self, segment: &dyn MappedFile) -> EngineResult<()> {
        let opened = self.opened(segment)?;
        (0..opened.columns.len()).try_for_each(|index| decode(opened, index, segment).map(drop))
    }

    fn opened(&self, segment: &dyn MappedFile) -> EngineResult<&Opened> {
        if self.opened.get().is_none() {
            match open(segment) {
                // An error such as too many open files or too little memory is not cached, because
                // the next reader may succeed.
                Err(error) if error.code != ErrorCode::Damaged => return Err(error),
                outcome => drop(self.opened.set(outcome)),
            }
        }
        self.opened.get_or_init(|| open(segment)).as_ref().map_err(Clone::clone)
    }
}

impl Drop for ParquetColumns {
    fn drop(&mut self) {
        DECODED.lock().forget(self.number);
    }
}

fn open(segment: &dyn MappedFile) -> EngineResult<Opened> {
    let path = segment.path();
    let damage = |what: &dyn std::fmt::Display| damaged(path, what);
    let map = segment.map()?;
    if map.len() as u64 != segment.meta().file_len || !map.starts_with(MAGIC) {
        return Err(damage(&"wrong file length or Parquet signature"));
    }
    let tail = map.len().checked_sub(TAIL_BYTES);
    let start = tail.and_then(|tail| {
        let len = map[tail..tail + 4].try_into().ok().map(u32::from_le_bytes)?;
        tail.checked_sub(len as usize)
    });
    let start = start.ok_or_else(|| damage(&"the footer is out of bounds"))?;
    if crc32c::crc32c(&map[start..]) != segment.meta().footer_crc {
        return Err(damage(&"checksum mismatch in the footer"));
    }
    let bytes = Bytes::from_owner(Mapped(map));
    let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::default())
        .map_err(|error| damage(&error))?;
    let pairs = metadata.metadata().file_metadata().key_value_metadata();
    let described = pairs
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == METADATA_KEY))
        .and_then(|pair| serde_json::from_str::<Described>(pair.value.as_deref()?).ok())
        .ok_or_else(|| damage(&"the footer does not describe the columns"))?;
    let rows = metadata.metadata().file_metadata().num_rows();
    let columns = metadata.schema().fields().len();
    if rows as u64 != segment.meta().rows || columns != described.columns.len() {
        return Err(damage(&format!("found {rows} rows, expected {}", segment.meta().rows)));
    }
    Ok(Opened { bytes, metadata, columns: described.columns })
}

/// Number of bytes in the file that belong to columns with unknown identifiers.
pub(crate) fn bytes_beside(
    segment: &dyn MappedFile,
    is_known: impl Fn(u32) -> bool,
) -> EngineResult<u64> {
    let opened = open(segment)?;
    let groups = opened.metadata.metadata().row_groups();
    let roots = groups.iter().flat_map(|group| {
        let schema = group.schema_descr_ptr();
        let leaves = group.columns().iter().enumerate();
        leaves.map(move |(leaf, chunk)| (schema.get_column_root_idx(leaf), chunk.compressed_size()))
    });
    let beside = roots
        .filter(|(root, _)| opened.columns.get(*root).is_some_and(|column| !is_known(column.id)));
    Ok(beside.map(|(_, bytes)| bytes.unsigned_abs()).sum())
}

/// Verifies and decodes one column.
fn decode(opened: &Opened, index: usize, segment: &dyn MappedFile) -> EngineResult<ColumnData> {
    let damage = |what: &dyn std::fmt::Display| damaged(segment.path(), what);
    let column = &opened.columns[index];
    for group in opened.metadata.metadata().row_groups() {
        let (start, len) = group.column(index).byte_range();
        let end = start.checked_add(len).filter(|&end| end <= opened.bytes.len() as u64);
        let end = end.ok_or_else(|| damage(&"a column is out of bounds"))?;
        if crc32c::crc32c(&opened.bytes[start as usize..end as usize]) != column.checksum {
            return Err(damage(&format!("checksum mismatch in column {}", column.id)));
        }
    }
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
        opened.bytes.clone(),
        opened.metadata.clone(),
    );
    let mask = ProjectionMask::roots(reader.parquet_schema(), [index]);
    let reader = reader.with_projection(mask).with_batch_size(segment.rows().max(1)).build();
    let mut arrays = Vec::new();
    for batch in reader.map_err(|error| damage(&error))? {
        arrays.push(Arc::clone(batch.map_err(|error| damage(&error))?.column(0)));
    }
    let cells = match column.sql_type {
        SqlType::Symbol => symbol_keys(&arrays, &column.keys)
            .ok_or_else(|| damage(&format!("column {} does not match its symbols", column.id)))
            .and_then(ColumnData::keys),
        sql_type => plain(sql_type, &arrays).map(ColumnData::Plain),
    }?;
    if cells.len() != segment.rows() {
        return Err(damage(&format!(
            "column {} has the wrong number of rows: {}",
            column.id,
            cells.len()
        )));
    }
    Ok(cells)
}

fn plain(sql_type: SqlType, arrays: &[ArrayRef]) -> EngineResult<ArrayRef> {
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    let whole = concat(&arrays).map_err(|error| EngineError::internal(error.to_string()))?;
    match (sql_type, whole.data_type()) {
        (SqlType::DoubleArray(_), _) => double_array::from_nested(&whole),
        (_, DataType::Timestamp(unit, Some(_))) => {
            let unit: TimeUnit = *unit;
            let naive = converted(&whole, &DataType::Timestamp(unit, None))?;
            converted(&naive, &sql_type.arrow_type())
        }
        _ => converted(&whole, &sql_type.arrow_type()),
    }
}

/// Maps strings to their keys in the table's dictionary; `None` if there are more strings than
/// keys.
fn symbol_keys(arrays: &[ArrayRef], keys: &[i32]) -> Option<Int32Array> {
    /// Marks a key that has not been looked up yet; keys are never negative.
    const UNKNOWN: i32 = -1;
    let mut known: HashMap<&str, i32> = HashMap::new();
    let count = arrays.iter().map(Array::len).sum();
    let (mut rows, mut validity) = (Vec::with_capacity(count), NullBufferBuilder::new(count));
    for array in arrays {
        let array = array.as_dictionary_opt::<Int32Type>()?;
        let texts = array.values().as_string_opt::<i32>()?;
        let mut found = vec![UNKNOWN; texts.len()];
        let nulls = array.keys().nulls().filter(|nulls| nulls.null_count() > 0);
        for (row, &position) in array.keys().values().iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                rows.push(0);
                continue;
            }
            let slot = found.get_mut(position as usize)?;
            if *slot == UNKNOWN {
                let next = known.len();
                let text = texts.value(position as usize);
                *slot = match known.get(text) {
                    Some(key) => *key,
                    None => *keys.get(next)?,
                };
                known.insert(text, *slot);
            }
            rows.push(*slot);
        }
        match nulls {
            Some(nulls) => validity.append_buffer(nulls),
            None => validity.append_n_non_nulls(array.len()),
        }
    }
    Some(Int32Array::new(rows.into(), validity.finish()))
}

/// Cache of decoded columns; evicts the least recently used column first.
static DECODED: LazyLock<Mutex<Decoded>> = LazyLock::new(Mutex::default);

/// Sets the maximum size of all cached decoded columns, in bytes.
pub(crate) fn set_decoded_bytes(max: u64) {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    DECODED.lock().shrink(max.max(MIN_DECODED_BYTES));
}

/// Evicts all decoded columns.
pub(crate) fn forget_decoded() {
    let mut decoded = DECODED.lock();
    let max = decoded.max_bytes;
    decoded.shrink(0);
    decoded.max_bytes = max;
}

struct Decoded {
    columns: HashMap<(u64, u32), DecodedColumn>,
    bytes: usize,
    max_bytes: usize,
    clock: u64,
}

impl Default for Decoded {
    fn default() -> Self {
        Self { columns: HashMap::new(), bytes: 0, max_bytes: DECODED_BYTES, clock: 0 }
    }
}

struct DecodedColumn {
    cells: ColumnData,
    zones: Arc<Zones>,
    bytes: usize,
    used: u64,
}

impl Decoded {
    fn get(&mut self, name: (u64, u32)) -> Option<(ColumnData, Arc<Zones>)> {
        self.clock += 1;
        let column = self.columns.get_mut(&name)?;
        column.used = self.clock;
        Some((column.cells.clone(), Arc::clone(&column.zones)))
    }

    /// Sets the cache's maximum size in bytes, and evicts columns beyond it.
    fn shrink(&mut self, max: usize) {
        self.max_bytes = max;
        while self.bytes > max {
            let oldest = self.columns.iter().min_by_key(|(_, column)| column.used);
            let Some(name) = oldest.map(|(name, _)| *name) else { break };
            self.remove(name);
        }
    }

    fn put(&mut self, name: (u64, u32), cells: &ColumnData) {
        let bytes = cells.byte_size();
        if bytes > self.max_bytes {
            return;
        }
        self.remove(name);
        let max = self.max_bytes;
        self.shrink(max - bytes);
        self.max_bytes = max;
        self.clock += 1;
        self.bytes += bytes;
        let (used, zones) = (self.clock, Arc::default());
        self.columns.insert(name, DecodedColumn { cells: cells.clone(), zones, bytes, used });
    }

    fn remove(&mut self, name: (u64, u32)) {
        if let Some(column) = self.columns.remove(&name) {
            self.bytes -= column.bytes;
        }
    }

    fn forget(&mut self, number: u64) {
        let names: Vec<_> =
            self.columns.keys().filter(|(owner, _)| *owner == number).copied().collect();
        for name in names {
            self.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{DictionaryArray, Int64Array};

    use super::*;

    #[test]
    fn decoded_column_cache_respects_its_limit() {
        let mut decoded = Decoded::default();
        let rows = DECODED_BYTES / 8 / 4;
        let column = || ColumnData::Plain(Arc::new(Int64Array::from(vec![1; rows])));
        for id in 0..4 {
            decoded.put((1, id), &column());
        }
        assert!(decoded.bytes <= DECODED_BYTES && decoded.bytes > DECODED_BYTES / 2);
        let retained = decoded.columns.len() as u32;
        assert!(decoded.get((1, 4 - retained)).is_some());
        decoded.put((2, 9), &column());
        assert!(decoded.get((1, 4 - retained)).is_some(), "used lately");
        assert!(decoded.get((1, 5 - retained)).is_none(), "longest unused");
        decoded.shrink(DECODED_BYTES / 2);
        assert!(decoded.bytes <= DECODED_BYTES / 2 && decoded.get((2, 9)).is_some(), "used last");
        decoded.put((2, 10), &column());
        assert!(decoded.bytes <= DECODED_BYTES / 2);
        decoded.forget(1);
        decoded.forget(2);
        assert_eq!((decoded.bytes, decoded.columns.len()), (0, 0));
    }

    #[test]
    fn symbol_keys_are_assigned_in_order_of_first_use() {
        let array = |texts: &[Option<&str>]| -> ArrayRef {
            Arc::new(texts.iter().copied().collect::<DictionaryArray<Int32Type>>())
        };
        let arrays = [
            array(&[Some("b"), None, Some("a"), Some("b")]),
            array(&[Some("c"), Some("a")]),
            array(&[None, Some("d"), Some("c")]),
        ];
        let expected = [Some(7), None, Some(3), Some(7), Some(5), Some(3), None, Some(0), Some(5)];
        assert_eq!(symbol_keys(&arrays, &[7, 3, 5, 0]), Some(Int32Array::from(expected.to_vec())));
        assert_eq!(symbol_keys(&arrays[1..2], &[4, 2]), Some(Int32Array::from(vec![4, 2])));
        assert_eq!(symbol_keys(&arrays[1..2], &[4, 2]).unwrap().null_count(), 0);
        assert_eq!(symbol_keys(&arrays, &[7, 3, 5]), None);
    }
}
