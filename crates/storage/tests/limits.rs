//! Exceeds each limit once. The error names the limit with its unit, and the table remains
//! unchanged and usable.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow_array::{
    ArrayRef, LargeBinaryArray, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use tempfile::TempDir;
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, Pressure, Storage, StorageOptions, TableSchema, Update,
};
use tidemark_types::double_array::DoubleArrayBuilder;
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const DAY: i64 = 86_400_000_000;

/// Returns an array of this many rows with two elements each.
fn array(rows: i32) -> ArrayRef {
    let mut builder = DoubleArrayBuilder::new(2);
    builder.push(&[rows, 2], (0..rows * 2).map(f64::from)).unwrap();
    builder.finish().unwrap()
}

struct Limited {
    storage: Arc<Storage>,
    _directory: TempDir,
}

impl Limited {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
        let options = StorageOptions {
            background: false,
            max_tables: 2,
            max_partitions: 3,
            max_columns: 5,
            max_cell_bytes: 1_024,
            max_array_elements: 6,
            ..StorageOptions::default()
        };
        let storage = Storage::open(vfs, options).unwrap();
        let limited = Self { storage, _directory: directory };
        limited.create("t", 4).unwrap();
        limited
    }

    fn schema(name: &str, columns: usize) -> TableSchema {
        let mut all = vec![ColumnSchema::new("ts", SqlType::Timestamp)];
        all.push(ColumnSchema::new("v", SqlType::Varchar));
        all.push(ColumnSchema::new("b", SqlType::Binary));
        all.push(ColumnSchema::new("a", SqlType::DoubleArray(2)));
        for index in all.len()..columns {
            all.push(ColumnSchema::new(format!("c{index}"), SqlType::Int));
        }
        let schema = TableSchema::new(name, all);
        TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema }
    }

    fn create(&self, name: &str, columns: usize) -> EngineResult<()> {
        let change = Change::CreateTable(Self::schema(name, columns));
        self.storage.commit(vec![change]).map(drop)
    }

    fn batch(ts: i64, text: &str, bytes: &[u8]) -> RecordBatch {
        Self::batch_with(ts, text, bytes, array(2))
    }

    fn batch_with(ts: i64, text: &str, bytes: &[u8], array: ArrayRef) -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("ts", Arc::new(TimestampMicrosecondArray::from(vec![ts]))),
            ("v", Arc::new(StringViewArray::from(vec![text]))),
            ("b", Arc::new(LargeBinaryArray::from(vec![bytes]))),
            ("a", array),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn append(&self, ts: i64, text: &str, bytes: &[u8]) -> EngineResult<()> {
        self.append_batch(Self::batch(ts, text, bytes))
    }

    fn append_batch(&self, batch: RecordBatch) -> EngineResult<()> {
        let table = self.storage.snapshot().table("t").unwrap();
        let (table, schema_version) = (table.schema().id, table.schema().version);
        self.storage.commit(vec![Change::Append { table, schema_version, batch }]).map(drop)
    }

    /// Checks that the error names the limit, nothing has changed, and the table accepts the next
    /// row.
    fn refused(&self, done: EngineResult<()>, words: &str) {
        let error: EngineError = done.unwrap_err();
        assert_eq!(error.code, ErrorCode::ResourceLimit, "{error}");
        assert_eq!(error.message, words);
        let rows = || self.storage.snapshot().table("t").unwrap().row_count().unwrap();
        let before = rows();
        self.append(1, "next", b"next").unwrap();
        assert_eq!(rows(), before + 1);
        assert_eq!(self.storage.snapshot().table("t").unwrap().schema().columns.len(), 4);
    }
}

#[test]
fn table_count_is_limited() {
    let limited = Limited::new();
    limited.create("u", 4).unwrap();
    let words = "too many tables: 3, at most 2 tables are allowed";
    limited.refused(limited.create("v", 4), words);
    let bulk = limited.storage.begin_bulk(BulkTarget::Create(Limited::schema("v", 4))).unwrap();
    limited.refused(bulk.finish().map(drop), words);
    assert!(limited.storage.snapshot().table("v").is_none());
}

#[test]
fn column_count_is_limited() {
    let limited = Limited::new();
    let words =
        |table: &str| format!("table '{table}' has 6 columns: at most 5 columns are allowed");
    limited.refused(limited.create("u", 6), &words("u"));
    let table = limited.storage.snapshot().table("t").unwrap();
    let mut schema = TableSchema::clone(table.schema());
    schema.columns.push(ColumnSchema::new("x", SqlType::Int));
    schema.columns.push(ColumnSchema::new("y", SqlType::Int));
    let done = limited.storage.commit(vec![Change::ReplaceSchema(schema)]);
    limited.refused(done.map(drop), &words("t"));
    // A bulk write fails before it has read anything.
    let wide = BulkTarget::Create(Limited::schema("u", 6));
    limited.refused(limited.storage.begin_bulk(wide).map(drop), &words("u"));
}

#[test]
fn partition_count_is_limited() {
    let limited = Limited::new();
    (0..3).for_each(|day| limited.append(day * DAY, "a", b"a").unwrap());
    limited.storage.checkpoint().unwrap();
    let words = "table 't' has 4 partitions: at most 3 partitions are allowed";
    limited.refused(limited.append(5 * DAY, "a", b"a"), words);
    let id = limited.storage.snapshot().table("t").unwrap().schema().id;
    let mut bulk = limited.storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
    bulk.push(Limited::batch(6 * DAY, "a", b"a")).unwrap();
    limited.refused(bulk.finish().map(drop), words);
}

#[test]
fn cell_size_is_limited() {
    let limited = Limited::new();
    let long = "x".repeat(1_025);
    let words = |column: &str| {
        format!("column '{column}': value is 1025 bytes long: at most 1024 bytes are allowed")
    };
    limited.refused(limited.append(0, &long, b"a"), &words("v"));
    limited.refused(limited.append(0, "a", long.as_bytes()), &words("b"));
    let id = limited.storage.snapshot().table("t").unwrap().schema().id;
    let mut bulk = limited.storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
    let refused = bulk.push(Limited::batch(0, &long, b"a")).map(drop);
    bulk.abort();
    limited.refused(refused, &words("v"));
}

#[test]
fn array_length_is_limited() {
    let limited = Limited::new();
    let words = "column 'a': array has 8 elements: at most 6 elements are allowed";
    let with = |array| Limited::batch_with(0, "a", b"a", array);
    limited.append_batch(with(array(3))).unwrap();
    limited.refused(limited.append_batch(with(array(4))), words);
    let table = limited.storage.snapshot().table("t").unwrap();
    let id = table.schema().id;
    let mut bulk = limited.storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
    let refused = bulk.push(with(array(4))).map(drop);
    bulk.abort();
    limited.refused(refused, words);
    let base = limited.storage.snapshot().table("t").unwrap();
    let schema_version = base.schema().version;
    let (rows, values) = (vec![0], vec![array(4)]);
    let update = Update { base, schema_version, columns: vec![3], rows, values };
    limited.refused(limited.storage.commit(vec![Change::Update(update)]).map(drop), words);
}

#[test]
fn writes_are_refused_while_process_memory_is_low() {
    let limited = Limited::new();
    limited.append(1, "before", b"").unwrap();
    limited.storage.set_pressure(Pressure::High);
    let refused = limited.append(2, "refused", b"").unwrap_err();
    assert_eq!(refused.code, ErrorCode::OutOfMemory, "{refused}");
    assert!(refused.message.starts_with("memory is full"), "{refused}");
    limited.storage.set_pressure(Pressure::None);
    limited.append(3, "after", b"").unwrap();
    assert_eq!(limited.storage.snapshot().table("t").unwrap().row_count().unwrap(), 2);
}
