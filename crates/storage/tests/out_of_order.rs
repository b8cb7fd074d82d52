//! Out-of-order rows. For every arrival order, the rows are returned in order, few segments remain,
//! and a checkpoint rewrites few rows.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{PartitionBy, SqlType};
use tidemark_vfs::{SimVfs, Vfs};

const SECOND: i64 = 1_000_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

fn open(disk: &SimVfs) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let options = StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        background: false,
        ..StorageOptions::default()
    };
    let storage = Storage::open(vfs, options).unwrap();
    if storage.snapshot().table("t").is_none() {
        let columns = vec![
            ColumnSchema::new("ts", SqlType::Timestamp),
            ColumnSchema::new("id", SqlType::Long),
        ];
        let schema = TableSchema::new("t", columns);
        let partition_by = PartitionBy::Year;
        let schema = TableSchema { timestamp: Some(0), partition_by, ..schema };
        storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    }
    storage
}

fn batch(times: &[i64], first_id: i64) -> RecordBatch {
    let ids = first_id..first_id + times.len() as i64;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ts", Arc::new(times.iter().map(|ts| Some(*ts)).collect::<TimestampMicrosecondArray>())),
        ("id", Arc::new(ids.map(Some).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn append(storage: &Storage, times: &[i64], first_id: i64) {
    let table = storage.snapshot().table("t").unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    let batch = batch(times, first_id);
    storage.commit(vec![Change::Append { table, schema_version, batch }]).unwrap();
}

fn import(storage: &Arc<Storage>, times: &[i64], first_id: i64) {
    let table = storage.snapshot().table("t").unwrap();
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table.schema().id)).unwrap();
    bulk.push(batch(times, first_id)).unwrap();
    bulk.finish().unwrap();
}

fn check(storage: &Storage, rows: &[(i64, i64)]) {
    let mut expected = rows.to_vec();
    expected.sort_by_key(|row| row.0);
    let table = storage.snapshot().table("t").unwrap();
    let mut found = Vec::with_capacity(expected.len());
    for slice in table.slices().unwrap() {
        let columns = slice.columns(&[1], 0..slice.rows()).unwrap();
        let ids = columns[0].as_primitive::<Int64Type>().values().iter().copied();
        found.extend(slice.timestamps().unwrap().iter().copied().zip(ids));
    }
    assert!(found == expected, "{} rows of {}", found.len(), expected.len());
}

fn segments(storage: &Storage) -> usize {
    let table = storage.snapshot().table("t").unwrap();
    table.partition_list().iter().map(|partition| partition.segments).sum()
}

/// Commits and imports portions with random sizes and times, with checkpoints between them.
fn mixed(seed: u64) {
    let disk = SimVfs::new(seed);
    let mut storage = open(&disk);
    let mut random = Random(seed);
    let mut rows: Vec<(i64, i64)> = Vec::new();
    let mut newest = 0;
    for _ in 0..40 {
        let max = [5, 300, 20_000][random.below(3) as usize];
        let count = 1 + random.below(max) as i64;
        let kind = random.below(5);
        let late = random.below(newest as u64 / 2 + 1) as i64;
        let times: Vec<i64> = (0..count)
            .map(|at| match kind {
                0 => random.below(newest as u64 + 50_000) as i64, // anywhere
                1 => late + at,                                   // together, late
                _ if random.below(20) == 0 => (newest + at).saturating_sub(at * 3).max(0),
                _ => newest + at / 2, // in order, in pairs
            })
            .collect();
        newest = newest.max(times.iter().copied().max().unwrap_or(0));
        let first_id = rows.len() as i64;
        rows.extend(times.iter().copied().zip(first_id..));
        if random.below(4) == 0 {
            import(&storage, &times, first_id);
        } else {
            append(&storage, &times, first_id);
        }
        if random.below(2) == 0 {
            storage.checkpoint().unwrap();
        }
        if random.below(8) == 0 {
            drop(storage);
            storage = open(&disk);
        }
        check(&storage, &rows);
    }
}

#[test]
fn rows_are_returned_in_order_for_any_arrival_order() {
    let seeds = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    seeds.map_or(0..12, |seed: u64| seed..seed + 1).for_each(mixed);
}

/// One import leaves large segments that hardly overlap. The segment that is written last has the
/// earliest start, but where timestamps are equal, its rows still come after earlier rows.
#[test]
fn segments_of_one_import_keep_their_write_order() {
    let disk = SimVfs::new(1);
    let storage = open(&disk);
    let schema = TableSchema::clone(storage.snapshot().table("t").unwrap().schema());
    let table = schema.id;
    // Every batch is written immediately.
    let schema = TableSchema { max_uncommitted_rows: 1, o3_max_lag_micros: 0, ..schema };
    storage.commit(vec![Change::ReplaceSchema(schema)]).unwrap();
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table)).unwrap();
    let mut rows: Vec<(i64, i64)> = Vec::new();
    for times in [900..=2_000, 0..=1_000] {
        let (times, first_id): (Vec<i64>, _) = (times.collect(), rows.len() as i64);
        bulk.push(batch(&times, first_id)).unwrap();
        rows.extend(times.into_iter().zip(first_id..));
    }
    bulk.finish().unwrap();
    check(&storage, &rows);
    storage.checkpoint().unwrap();
    assert!(segments(&storage) > 1);
    check(&storage, &rows);
    drop(storage);
    check(&open(&disk), &rows);
}

/// A few rows are combined with the adjacent segment, which ends at the start timestamp of a large
/// segment. A late row leaves the large segment unchanged.
#[test]
fn merged_rows_stay_before_a_large_segment_that_arrived_later() {
    let disk = SimVfs::new(1);
    let storage = open(&disk);
    let mut rows: Vec<(i64, i64)> = Vec::new();
    let mut add = |times: Vec<i64>, checkpoint: bool| {
        let first_id = rows.len() as i64;
        append(&storage, &times, first_id);
        rows.extend(times.into_iter().zip(first_id..));
        if checkpoint {
            storage.checkpoint().unwrap();
        }
        check(&storage, &rows);
    };
    add((6..=10).collect(), true);
    add((10..1_000).collect(), true);
    add((0..5).chain(0..5).collect(), false);
    add(vec![500], true);
    drop(storage);
    check(&open(&disk), &rows);
}

#[test]
fn a_late_row_does_not_cause_a_rewrite_of_a_large_segment() {
    let storage = open(&SimVfs::new(1));
    let in_order: Vec<i64> = (0..1_000_000).map(|at| at * SECOND).collect();
    import(&storage, &in_order, 0);
    storage.checkpoint().unwrap();
    let before = storage.folded_rows();
    let mut rows: Vec<_> = in_order.iter().copied().zip(0..).collect();
    for late in 0..40 {
        let ts = (late * 23_456 + 77) * SECOND + 5;
        append(&storage, &[ts], 1_000_000 + late);
        rows.push((ts, 1_000_000 + late));
        storage.checkpoint().unwrap();
    }
    assert!(storage.folded_rows() - before < 2_000, "{}", storage.folded_rows() - before);
    assert!(segments(&storage) <= 10, "{}", segments(&storage));
    check(&storage, &rows);
    // Many late rows justify the merge.
    let late: Vec<i64> = (0..200_000).map(|at| at * 5 * SECOND + 3).collect();
    append(&storage, &late, 2_000_000);
    rows.extend(late.iter().copied().zip(2_000_000..));
    storage.checkpoint().unwrap();
    assert_eq!(segments(&storage), 1);
    check(&storage, &rows);
}

#[test]
fn a_merge_rewrites_only_segments_that_overlap_new_rows() {
    let storage = open(&SimVfs::new(1));
    for part in 0..4 {
        let times: Vec<i64> = (0..100_000).map(|at| (part * 100_000 + at) * SECOND).collect();
        import(&storage, &times, part * 100_000);
    }
    storage.checkpoint().unwrap();
    assert_eq!(segments(&storage), 4);
    let before = storage.folded_rows();
    // Rows within the third segment, and ordered rows after the last segment.
    let times: Vec<i64> = (0..20_000)
        .map(|at| 250_000 * SECOND + at)
        .chain((0..20_000).map(|at| (400_000 + at) * SECOND))
        .collect();
    append(&storage, &times, 400_000);
    storage.checkpoint().unwrap();
    assert_eq!(storage.folded_rows() - before, 140_000);
    assert_eq!(segments(&storage), 5);
}

/// Checks the bounds stated in `fold.rs`, for three arrival orders in many small portions.
#[test]
fn segment_count_and_rewritten_rows_are_bounded() {
    for (way, most_written) in [("in order", 8.0), ("backward", 8.0), ("anywhere", 30.0)] {
        let storage = open(&SimVfs::new(1));
        let mut random = Random(1);
        let (portions, size) = (120, 2_500);
        let mut most_segments = 0;
        for portion in 0..portions {
            let base = if way == "backward" { portions - portion } else { portion } * size;
            let times: Vec<i64> = (0..size)
                .map(|at| match way {
                    "anywhere" => random.below((portions * size) as u64) as i64,
                    _ => base + at,
                })
                .collect();
            append(&storage, &times, portion * size);
            storage.checkpoint().unwrap();
            most_segments = most_segments.max(segments(&storage));
        }
        let written = storage.folded_rows() as f64 / (portions * size) as f64;
        println!("{way}: each row written {written:.1} times, {most_segments} segments at most");
        assert!(written < most_written, "{way}: each row was written {written:.1} times");
        assert!(most_segments <= 9 + 2 * 300_000 / 65_536 + 8, "{way}: {most_segments} segments");
    }
}
