//! Tests every type in memory, in the log, in segments and in Parquet files, with late rows in
//! between.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use arrow::compute::{cast, concat};
use arrow_array::builder::{FixedSizeBinaryBuilder, LargeBinaryBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow_schema::DataType;
use tempfile::TempDir;
use tidemark_storage::{
    Change, ColumnSchema, CommitMode, PartitionFormat, Storage, StorageOptions, TableSchema,
    TableSnapshot, TimeRange, Update,
};
use tidemark_types::double_array::DoubleArrayBuilder;
use tidemark_types::{ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

const TYPES: &[SqlType] = &[
    SqlType::Boolean,
    SqlType::Byte,
    SqlType::Short,
    SqlType::Char,
    SqlType::Int,
    SqlType::Long,
    SqlType::Float,
    SqlType::Double,
    SqlType::Date,
    SqlType::Timestamp,
    SqlType::TimestampNs,
    SqlType::Symbol,
    SqlType::String,
    SqlType::Varchar,
    SqlType::Uuid,
    SqlType::Long256,
    SqlType::Ipv4,
    SqlType::Geohash(5),
    SqlType::Geohash(12),
    SqlType::Geohash(20),
    SqlType::Geohash(60),
    SqlType::Binary,
    SqlType::Decimal(5, 2),
    SqlType::Decimal(18, 3),
    SqlType::Decimal(38, 4),
    SqlType::Decimal(60, 5),
    SqlType::DoubleArray(1),
    SqlType::DoubleArray(2),
    SqlType::DoubleArray(3),
];

/// Returns the cells of these rows. Every fifth cell is null if the type supports null.
fn cells(sql_type: SqlType, ids: &[i64]) -> ArrayRef {
    let filled = |id: &i64| (!sql_type.is_nullable() || id % 5 != 0).then_some(*id);
    let texts = || ids.iter().map(|id| filled(id).map(text)).collect::<StringViewArray>();
    match sql_type {
        SqlType::Boolean => {
            Arc::new(ids.iter().map(|id| Some(id % 3 == 0)).collect::<BooleanArray>())
        }
        SqlType::Symbol => {
            let texts: StringArray =
                ids.iter().map(|id| filled(id).map(|id| format!("s{}", id % 7))).collect();
            cast(&texts, &sql_type.arrow_type()).unwrap()
        }
        SqlType::String | SqlType::Varchar => Arc::new(texts()),
        SqlType::Uuid | SqlType::Long256 => {
            let width = if sql_type == SqlType::Uuid { 16 } else { 32 };
            let mut builder = FixedSizeBinaryBuilder::new(width);
            for id in ids {
                match filled(id) {
                    Some(id) => builder.append_value(vec![id as u8; width as usize]).unwrap(),
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        SqlType::Binary => {
            let mut builder = LargeBinaryBuilder::new();
            for id in ids {
                builder.append_option(filled(id).map(text));
            }
            Arc::new(builder.finish())
        }
        SqlType::DoubleArray(dimensions) => {
            let mut builder = DoubleArrayBuilder::new(dimensions);
            for id in ids {
                match filled(id) {
                    Some(id) if id % 4 == 0 => {
                        builder.push(&vec![0; usize::from(dimensions)], []).unwrap();
                    }
                    Some(id) => {
                        let shape: Vec<i32> =
                            (0..dimensions).map(|d| 1 + (id as i32 + i32::from(d)) % 3).collect();
                        let count: i32 = shape.iter().product();
                        let value = |n: i32| if n == 1 { f64::NAN } else { f64::from(n) + 0.5 };
                        builder.push(&shape, (0..count).map(value)).unwrap();
                    }
                    None => builder.push_null(),
                }
            }
            builder.finish().unwrap()
        }
        other => {
            let numbers: Int64Array = ids.iter().map(filled).collect();
            cast(&numbers, &other.arrow_type()).unwrap()
        }
    }
}

fn text(id: i64) -> String {
    if id % 2 == 0 { format!("{id}") } else { format!("a text that is long, number {id}") }
}

fn open(directory: &TempDir) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let options = StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        background: false,
        ..StorageOptions::default()
    };
    Storage::open(vfs, options).unwrap()
}

fn create(storage: &Arc<Storage>) -> Arc<TableSnapshot> {
    let mut columns =
        vec![ColumnSchema::new("ts", SqlType::Timestamp), ColumnSchema::new("id", SqlType::Long)];
    columns.extend(
        TYPES.iter().enumerate().map(|(i, sql_type)| ColumnSchema::new(format!("c{i}"), *sql_type)),
    );
    let schema = TableSchema::new("every", columns);
    let schema = TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    table(storage)
}

fn table(storage: &Arc<Storage>) -> Arc<TableSnapshot> {
    storage.snapshot().table("every").unwrap()
}

/// Row `id` is at hour `id`.
fn append(storage: &Arc<Storage>, ids: &[i64]) {
    let table = table(storage);
    let schema = table.schema();
    let times = ids.iter().map(|id| Some(id * HOUR)).collect::<TimestampMicrosecondArray>();
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(times), Arc::new(Int64Array::from(ids.to_vec()))];
    columns.extend(TYPES.iter().map(|sql_type| cells(*sql_type, ids)));
    let names = schema.columns.iter().map(|column| column.name.clone());
    let batch = RecordBatch::try_from_iter_with_nullable(
        names.zip(columns).map(|(name, column)| (name, column, true)),
    );
    let change =
        Change::Append { table: schema.id, schema_version: schema.version, batch: batch.unwrap() };
    storage.commit(vec![change]).unwrap();
}

fn column(table: &TableSnapshot, index: usize) -> ArrayRef {
    let slices = table.slices().unwrap();
    let parts: Vec<ArrayRef> = slices
        .iter()
        .map(|slice| slice.columns(&[index], 0..slice.rows()).unwrap().remove(0))
        .collect();
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    concat(&parts).unwrap()
}

/// Compares every cell of every row.
fn check(storage: &Arc<Storage>, ids: &[i64], when: &str) {
    let table = table(storage);
    assert_eq!(table.row_count().unwrap(), ids.len() as u64, "{when}");
    assert_eq!(*column(&table, 1), *(Arc::new(Int64Array::from(ids.to_vec())) as ArrayRef));
    for (index, sql_type) in TYPES.iter().enumerate() {
        let (found, expected) = (column(&table, index + 2), cells(*sql_type, ids));
        // Dictionaries differ; only the strings must be equal.
        let (found, expected) = match sql_type {
            SqlType::Symbol => {
                (cast(&found, &DataType::Utf8).unwrap(), cast(&expected, &DataType::Utf8).unwrap())
            }
            _ => (found, expected),
        };
        assert_eq!(*found, *expected, "{} {when}", sql_type.name());
    }
}

fn floors(storage: &Arc<Storage>, parquet: bool) -> Vec<i64> {
    let list = table(storage).partition_list();
    list.iter().filter(|p| p.parquet == parquet).map(|p| p.floor).collect()
}

#[test]
fn values_of_every_type_round_trip_in_every_storage_format() {
    let directory = TempDir::new().unwrap();
    let mut storage = open(&directory);
    let id = create(&storage).schema().id;
    append(&storage, &(0..40).collect::<Vec<_>>());
    append(&storage, &(50..100).collect::<Vec<_>>());
    let mut ids: Vec<i64> = (0..40).chain(50..100).collect();
    check(&storage, &ids, "in memory");
    drop(storage);
    storage = open(&directory);
    check(&storage, &ids, "replayed");
    storage.checkpoint().unwrap();
    check(&storage, &ids, "in segments");
    storage.close().unwrap();
    storage = open(&directory);
    check(&storage, &ids, "reopened");

    storage.convert_partitions(id, &[0, DAY, 2 * DAY], PartitionFormat::Parquet).unwrap();
    assert_eq!(floors(&storage, true), [0, DAY, 2 * DAY]);
    check(&storage, &ids, "in Parquet");
    drop(storage);
    storage = open(&directory);
    check(&storage, &ids, "in Parquet, replayed");
    storage.checkpoint().unwrap();
    storage.close().unwrap();
    storage = open(&directory);
    assert_eq!(floors(&storage, true), [0, DAY, 2 * DAY]);
    check(&storage, &ids, "in Parquet, reopened");

    append(&storage, &(40..50).collect::<Vec<_>>());
    ids = (0..100).collect();
    check(&storage, &ids, "with late rows in memory");
    storage.checkpoint().unwrap();
    check(&storage, &ids, "with late rows in segments");
    assert_eq!(floors(&storage, true), [0, DAY, 2 * DAY]);
    storage.close().unwrap();
    storage = open(&directory);
    check(&storage, &ids, "with late rows, reopened");
    let range = TimeRange { lo: 30 * HOUR, hi: 45 * HOUR };
    let rows: usize = table(&storage)
        .slices_in(&[range])
        .unwrap()
        .iter()
        .map(tidemark_storage::Slice::rows)
        .sum();
    assert_eq!(rows, 15);

    storage.convert_partitions(id, &[DAY], PartitionFormat::Parquet).unwrap();
    check(&storage, &ids, "converted again");
    let all = floors(&storage, true);
    storage.convert_partitions(id, &all, PartitionFormat::Native).unwrap();
    assert!(floors(&storage, true).is_empty());
    check(&storage, &ids, "native again");
    storage.checkpoint().unwrap();
    storage.close().unwrap();
    storage = open(&directory);
    check(&storage, &ids, "native, reopened");
}

#[test]
fn converting_a_missing_partition_is_refused_and_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let id = create(&storage).schema().id;
    append(&storage, &[1, 2, 3]);
    let error = storage.convert_partitions(id, &[0, DAY], PartitionFormat::Parquet).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidValue);
    assert!(error.message.contains("'1970-01-02' does not exist"), "{error}");
    assert!(floors(&storage, true).is_empty());
    check(&storage, &[1, 2, 3], "after the refusal");
    // The partition already has this format, so nothing changes.
    storage.convert_partitions(id, &[0], PartitionFormat::Native).unwrap();
    storage.convert_partitions(id, &[0], PartitionFormat::Parquet).unwrap();
    let files = table(&storage).partition_list();
    storage.convert_partitions(id, &[0], PartitionFormat::Parquet).unwrap();
    assert_eq!(table(&storage).partition_list(), files);
    storage.checkpoint().unwrap();
    append(&storage, &[4]);
    check(&storage, &[1, 2, 3, 4], "afterwards");
}

#[test]
fn updating_a_parquet_partition_converts_it_to_the_native_format() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let id = create(&storage).schema().id;
    append(&storage, &[1, 2, 3]);
    storage.convert_partitions(id, &[0], PartitionFormat::Parquet).unwrap();
    let base = table(&storage);
    let update = Update {
        schema_version: base.schema().version,
        columns: vec![1],
        rows: vec![1],
        values: vec![Arc::new(Int64Array::from(vec![77]))],
        base,
    };
    storage.commit(vec![Change::Update(update)]).unwrap();
    let expected = || Arc::new(Int64Array::from(vec![1, 77, 3])) as ArrayRef;
    assert_eq!(*column(&table(&storage), 1), *expected());
    storage.checkpoint().unwrap();
    assert!(floors(&storage, true).is_empty());
    assert_eq!(*column(&table(&storage), 1), *expected());
    // Updated rows that no checkpoint has written yet must also be in the new file.
    storage.convert_partitions(id, &[0], PartitionFormat::Parquet).unwrap();
    assert_eq!(*column(&table(&storage), 1), *expected());
}

#[test]
fn a_flipped_bit_in_a_parquet_file_is_detected() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let id = create(&storage).schema().id;
    append(&storage, &(0..20).collect::<Vec<_>>());
    storage.convert_partitions(id, &[0], PartitionFormat::Parquet).unwrap();
    storage.close().unwrap();
    drop(storage);
    let folder = directory.path().join(format!("db/t/{id}"));
    let path = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .unwrap();
    let whole = std::fs::read(&path).unwrap();
    for step in 0..97 {
        let at = step * whole.len() / 97;
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (step % 8);
        std::fs::write(&path, &bytes).unwrap();
        let storage = open(&directory);
        let table = table(&storage);
        let failed = (0..table.schema().columns.len()).any(|index| {
            let slices = table.slices();
            let read = slices.and_then(|slices| {
                slices
                    .iter()
                    .try_for_each(|slice| slice.columns(&[index], 0..slice.rows()).map(drop))
            });
            read.is_err_and(|error| error.code == ErrorCode::Damaged)
        });
        assert!(failed, "byte {at} of {}", whole.len());
    }
}
