//! Late rows of one import. Regardless of batch order and memory size, the rows are returned by
//! time, then by arrival, with all their cells.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray,
};
use tidemark_storage::{
    BulkTarget, ColumnSchema, CommitMode, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{PartitionBy, SqlType};
use tidemark_vfs::{SimVfs, Vfs};

const MINUTE: i64 = 60_000_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// Timestamp and arrival number, from which the other cells are derived.
type Row = (i64, i64);

fn open(disk: &SimVfs, bulk_memory_bytes: usize) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let options = StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        segment_rows: 3_000,
        bulk_memory_bytes,
        background: false,
        ..StorageOptions::default()
    };
    Storage::open(vfs, options).unwrap()
}

fn schema(timestamp: bool, random: &mut Random) -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("sym", SqlType::Symbol),
        ColumnSchema::new("text", SqlType::Varchar),
        ColumnSchema::new("number", SqlType::Double),
        ColumnSchema::new("flag", SqlType::Boolean),
        ColumnSchema::new("arrival", SqlType::Long),
    ];
    let partitions = [PartitionBy::Hour, PartitionBy::Day, PartitionBy::Year];
    TableSchema {
        timestamp: timestamp.then_some(0),
        partition_by: if timestamp {
            partitions[random.below(3) as usize]
        } else {
            PartitionBy::None
        },
        max_uncommitted_rows: 100 + random.below(9_000),
        o3_max_lag_micros: random.below(30) as i64 * MINUTE,
        ..TableSchema::new("t", columns)
    }
}

fn symbol(arrival: i64) -> Option<String> {
    (arrival % 7 != 0).then(|| format!("s{}", arrival % 20))
}

fn text(arrival: i64) -> Option<String> {
    match arrival % 5 {
        0 => None,
        1 => Some(format!("a text too long for a view, {arrival}")),
        _ => Some(format!("t{arrival}")),
    }
}

/// In every third group of 2,000 rows, every third row is null, so that segments without nulls
/// exist.
fn number(arrival: i64) -> Option<f64> {
    (arrival / 2_000 % 3 != 0 || arrival % 3 != 0).then_some(arrival as f64 / 4.0)
}

fn batch(rows: &[Row]) -> RecordBatch {
    let mut symbols = StringDictionaryBuilder::<Int32Type>::new();
    for row in rows {
        symbols.append_option(symbol(row.1));
    }
    let texts: StringViewArray = rows.iter().map(|row| text(row.1)).collect();
    let flags: BooleanArray = rows.iter().map(|row| Some(row.1 % 3 == 0)).collect();
    let times: TimestampMicrosecondArray = rows.iter().map(|row| Some(row.0)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ts", Arc::new(times)),
        ("sym", Arc::new(symbols.finish())),
        ("text", Arc::new(texts)),
        ("number", Arc::new(rows.iter().map(|row| number(row.1)).collect::<Float64Array>())),
        ("flag", Arc::new(flags)),
        ("arrival", Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Returns all rows in table order after checking their cells.
fn read(storage: &Storage) -> Vec<Row> {
    let table = storage.snapshot().table("t").unwrap();
    let mut found = Vec::new();
    for slice in table.slices().unwrap() {
        let columns = slice.columns(&[0, 1, 2, 3, 4, 5], 0..slice.rows()).unwrap();
        let times = columns[0].as_primitive::<arrow_array::types::TimestampMicrosecondType>();
        let symbols = columns[1].as_dictionary::<Int32Type>();
        let names = symbols.values();
        let name = |key: usize| match names.as_string_view_opt() {
            Some(names) => names.value(key).to_owned(),
            None => names.as_string::<i32>().value(key).to_owned(),
        };
        let (texts, numbers) = (columns[2].as_string_view(), columns[3].as_primitive());
        let (flags, arrivals) = (columns[4].as_boolean(), columns[5].as_primitive::<Int64Type>());
        for row in 0..slice.rows() {
            let arrival = arrivals.value(row);
            let numbers: &Float64Array = numbers;
            assert_eq!(symbols.key(row).map(name), symbol(arrival));
            assert_eq!(texts.is_valid(row).then(|| texts.value(row).to_owned()), text(arrival));
            assert_eq!(numbers.is_valid(row).then(|| numbers.value(row)), number(arrival));
            assert_eq!(flags.value(row), arrival % 3 == 0);
            found.push((times.value(row), arrival));
        }
    }
    found
}

/// Timestamps of a batch: in order, some late, all random, or one ahead of all others.
fn times(random: &mut Random, newest: &mut i64) -> Vec<i64> {
    let max = [3, 200, 4_000][random.below(3) as usize];
    let count = 1 + random.below(max) as i64;
    let (kind, start) = (random.below(6), *newest);
    let times: Vec<i64> = (0..count)
        .map(|at| match kind {
            0 => random.below(start as u64 + 1) as i64,
            1 if at == 0 => start + 90 * MINUTE,
            2 => start, // all at once
            _ if kind > 3 && random.below(20) == 0 => {
                (start - random.below(120 * MINUTE as u64) as i64).max(0)
            }
            _ => start + at / 2 * 1_000_000, // in order, in pairs
        })
        .collect();
    *newest = times.iter().copied().max().unwrap_or(0).max(start);
    times
}

fn round(seed: u64) {
    let mut random = Random(seed);
    let disk = SimVfs::new(seed);
    let memory = [10_000, 200_000, 96 << 20][random.below(3) as usize];
    let mut storage = open(&disk, memory);
    let schema = schema(!seed.is_multiple_of(6), &mut random);
    let ordered = schema.timestamp.is_some();
    let (mut rows, mut newest) = (Vec::new(), 3 * 60 * MINUTE);
    for import in 0..2 {
        let target = match import {
            0 => BulkTarget::Create(schema.clone()),
            _ => BulkTarget::Existing(storage.snapshot().table("t").unwrap().schema().id),
        };
        let mut bulk = storage.begin_bulk(target).unwrap();
        for _ in 0..random.below(25) {
            let times = times(&mut random, &mut newest);
            let new: Vec<Row> = times.into_iter().zip(rows.len() as i64..).collect();
            bulk.push(batch(&new)).unwrap();
            rows.extend(new);
        }
        bulk.finish().unwrap();
        let mut expected = rows.clone();
        if ordered {
            expected.sort_by_key(|row| row.0);
        }
        assert!(read(&storage) == expected, "seed {seed}: after the import");
        if random.below(2) == 0 {
            storage.checkpoint().unwrap();
            assert!(read(&storage) == expected, "seed {seed}: after the checkpoint");
        }
        drop(storage);
        storage = open(&disk, memory);
        assert!(read(&storage) == expected, "seed {seed}: after a restart");
    }
}

#[test]
fn late_rows_of_an_import_are_returned_in_time_order() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    seed.map_or(0..60, |seed: u64| seed..seed + 1).for_each(round);
}

/// 5 % of the rows are late, but by less than the lag, and there is enough memory for the lag. No
/// two segments overlap, so a checkpoint has nothing to merge.
#[test]
fn rows_within_the_lag_create_no_overlapping_segments() {
    let mut random = Random(5);
    let storage = open(&SimVfs::new(1), 96 << 20);
    let mut schema = schema(true, &mut random);
    schema.partition_by = PartitionBy::Year;
    (schema.max_uncommitted_rows, schema.o3_max_lag_micros) = (20_000, 10 * MINUTE);
    let mut bulk = storage.begin_bulk(BulkTarget::Create(schema)).unwrap();
    for part in 0..40 {
        let rows = (part * 2_000..(part + 1) * 2_000).map(|arrival: i64| {
            let late = if random.below(20) == 0 { random.below(8 * 60) as i64 } else { 0 };
            ((arrival - late).max(0) * 1_000_000, arrival)
        });
        bulk.push(batch(&rows.collect::<Vec<_>>())).unwrap();
    }
    bulk.finish().unwrap();
    let before = storage.folded_rows();
    let info = storage.snapshot().table("t").unwrap().partition_list();
    assert!(info[0].segments > 3, "{} segments", info[0].segments);
    assert_eq!(info[0].overlap, 1);
    storage.checkpoint().unwrap();
    assert_eq!(storage.folded_rows() - before, 0);
}
