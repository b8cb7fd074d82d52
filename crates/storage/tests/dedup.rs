//! Compares DEDUP UPSERT KEYS with a naive model. Regardless of how rows are redelivered, the last
//! of the rows with equal keys is kept, and nothing else is lost.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Delete, PartitionAction, Storage, StorageOptions,
    TableSchema, Update,
};
use tidemark_types::{ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{SimVfs, Vfs};

const HOUR: i64 = 3_600_000_000;

/// Timestamp, symbol, string, number, and the arrival order as payload.
type Row = (i64, Option<u8>, Option<u8>, Option<i64>, i64);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

fn open(disk: &SimVfs, small: bool) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let usual = StorageOptions::default();
    let options = StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        run_rows: if small { 40 } else { usual.run_rows },
        segment_rows: if small { 25 } else { usual.segment_rows },
        bulk_memory_bytes: if small { 3_000 } else { usual.bulk_memory_bytes },
        background: false,
        ..usual
    };
    Storage::open(vfs, options).unwrap()
}

fn schema(keys: &[u32]) -> TableSchema {
    let columns = vec![
        ColumnSchema { id: 1, ..ColumnSchema::new("ts", SqlType::Timestamp) },
        ColumnSchema { id: 2, ..ColumnSchema::new("sym", SqlType::Symbol) },
        ColumnSchema { id: 3, ..ColumnSchema::new("text", SqlType::Varchar) },
        ColumnSchema { id: 4, ..ColumnSchema::new("number", SqlType::Long) },
        ColumnSchema { id: 5, ..ColumnSchema::new("arrival", SqlType::Long) },
    ];
    TableSchema {
        timestamp: Some(0),
        partition_by: PartitionBy::Hour,
        wal: true,
        dedup_keys: keys.to_vec(),
        ..TableSchema::new("readings", columns)
    }
}

fn text(value: u8) -> String {
    if value.is_multiple_of(2) {
        format!("t{value}")
    } else {
        format!("a longer text, number {value}")
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let mut symbols = StringDictionaryBuilder::<Int32Type>::new();
    for row in rows {
        symbols.append_option(row.1.map(|symbol| format!("s{symbol}")));
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ts", Arc::new(rows.iter().map(|row| Some(row.0)).collect::<TimestampMicrosecondArray>())),
        ("sym", Arc::new(symbols.finish())),
        ("text", Arc::new(rows.iter().map(|row| row.2.map(text)).collect::<StringViewArray>())),
        ("number", Arc::new(rows.iter().map(|row| row.3).collect::<Int64Array>())),
        ("arrival", Arc::new(rows.iter().map(|row| Some(row.4)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Payloads with their timestamps, in table order.
fn read(storage: &Storage) -> Vec<(i64, i64)> {
    let table = storage.snapshot().table("readings").unwrap();
    let mut rows = Vec::new();
    for slice in table.slices().unwrap() {
        let times = slice.timestamps().unwrap();
        let columns = slice.columns(&[4], 0..slice.rows()).unwrap();
        let arrivals = columns[0].as_primitive::<Int64Type>();
        assert_eq!(arrivals.null_count(), 0);
        rows.extend(times.iter().copied().zip(arrivals.values().iter().copied()));
    }
    assert_eq!(table.row_count().unwrap(), rows.len() as u64);
    let listed: u64 = table.partition_list().iter().map(|partition| partition.rows).sum();
    assert_eq!(listed, rows.len() as u64);
    rows
}

#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    keys: Vec<u32>,
}

impl Model {
    fn add(&mut self, new: Row) {
        let same = |key: &u32, old: &Row| match key {
            1 => old.0 == new.0,
            2 => old.1 == new.1,
            3 => old.2 == new.2,
            _ => old.3 == new.3,
        };
        if !self.keys.is_empty() {
            self.rows.retain(|old| !self.keys.iter().all(|key| same(key, old)));
        }
        self.rows.push(new);
    }

    fn shown(&self) -> Vec<(i64, i64)> {
        let mut shown: Vec<_> = self.rows.iter().map(|row| (row.0, row.4)).collect();
        shown.sort_by_key(|row| row.0);
        shown
    }
}

/// A client that redelivers rows.
struct Client {
    random: Random,
    arrivals: i64,
    delivered: Vec<Vec<Row>>,
}

impl Client {
    fn rows(&mut self, max: u64) -> Vec<Row> {
        let mut rows = match self.random.below(3) {
            0 if !self.delivered.is_empty() => {
                let index = self.random.below(self.delivered.len() as u64) as usize;
                self.delivered[index].clone()
            }
            _ => (0..=self.random.below(max)).map(|_| self.row()).collect(),
        };
        for row in &mut rows {
            self.arrivals += 1;
            row.4 = self.arrivals;
        }
        self.delivered.push(rows.clone());
        rows
    }

    fn row(&mut self) -> Row {
        let ts = self.random.below(4) as i64 * HOUR + self.random.below(15) as i64;
        let mut key = |bound| match self.random.below(bound) {
            0 => None,
            value => Some(value as u8),
        };
        (ts, key(4), key(3), key(3).map(i64::from), 0)
    }

    fn keys(&mut self) -> Vec<u32> {
        match self.random.below(6) {
            0 => vec![],
            1 => vec![1],
            2 => vec![1, 2],
            3 => vec![3, 1],
            4 => vec![1, 4, 2],
            _ => vec![1, 2, 3, 4],
        }
    }
}

fn append(storage: &Storage, portions: &[Vec<Row>]) {
    let table = storage.snapshot().table("readings").unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    let change = |rows: &Vec<Row>| Change::Append { table, schema_version, batch: batch(rows) };
    storage.commit(portions.iter().map(change).collect()).unwrap();
}

/// Changes the number of some rows. The number may be a key, but UPDATE does not enforce keys.
fn update(storage: &Storage, model: &mut Model, random: &mut Random) {
    let base = storage.snapshot().table("readings").unwrap();
    let number = (random.below(3) > 0).then(|| random.below(3) as i64);
    let (mut rows, mut arrivals) = (Vec::new(), Vec::new());
    for slice in base.slices().unwrap() {
        let columns = slice.columns(&[4], 0..slice.rows()).unwrap();
        let ids = slice.row_ids(0..slice.rows());
        for row in 0..slice.rows() {
            if random.below(5) == 0 {
                rows.push(ids.value(row));
                arrivals.push(columns[0].as_primitive::<Int64Type>().value(row));
            }
        }
    }
    for row in model.rows.iter_mut().filter(|row| arrivals.contains(&row.4)) {
        row.3 = number;
    }
    let values: ArrayRef = Arc::new(vec![number; rows.len()].into_iter().collect::<Int64Array>());
    let schema_version = base.schema().version;
    let update = Update { base, schema_version, columns: vec![3], rows, values: vec![values] };
    storage.commit(vec![Change::Update(update)]).unwrap();
}

/// Deletes some rows. The rows that they replaced must not reappear.
fn delete(storage: &Storage, model: &mut Model, random: &mut Random) {
    let base = storage.snapshot().table("readings").unwrap();
    let (mut rows, mut arrivals) = (Vec::new(), Vec::new());
    for slice in base.slices().unwrap() {
        let columns = slice.columns(&[4], 0..slice.rows()).unwrap();
        let ids = slice.row_ids(0..slice.rows());
        for row in 0..slice.rows() {
            if random.below(4) == 0 {
                rows.push(ids.value(row));
                arrivals.push(columns[0].as_primitive::<Int64Type>().value(row));
            }
        }
    }
    model.rows.retain(|row| !arrivals.contains(&row.4));
    storage.commit(vec![Change::Delete(Delete { base, rows })]).unwrap();
}

fn deliver(seed: u64) {
    let disk = SimVfs::new(1);
    let mut storage = open(&disk, true);
    let mut client = Client { random: Random(seed), arrivals: 0, delivered: Vec::new() };
    let mut model = Model { keys: client.keys(), ..Model::default() };
    storage.commit(vec![Change::CreateTable(schema(&model.keys))]).unwrap();
    for _ in 0..60 {
        let table = storage.snapshot().table("readings").unwrap();
        match client.random.below(26) {
            0..10 => {
                let portions: Vec<_> =
                    (0..=client.random.below(2)).map(|_| client.rows(12)).collect();
                append(&storage, &portions);
                portions.into_iter().flatten().for_each(|row| model.add(row));
            }
            10..13 => {
                let target = BulkTarget::Existing(table.schema().id);
                let mut bulk = storage.begin_bulk(target).unwrap();
                for _ in 0..=client.random.below(4) {
                    let rows = client.rows(40);
                    bulk.push(batch(&rows)).unwrap();
                    for row in rows {
                        model.add(row);
                    }
                }
                bulk.finish().unwrap();
            }
            13..16 => storage.checkpoint().unwrap(),
            16..18 => {
                if client.random.below(2) == 0 {
                    storage.close().unwrap();
                }
                drop(storage);
                storage = open(&disk, true);
            }
            18..21 => update(&storage, &mut model, &mut client.random),
            23.. => delete(&storage, &mut model, &mut client.random),
            _ => {
                model.keys = client.keys();
                let mut changed = TableSchema::clone(table.schema());
                changed.dedup_keys.clone_from(&model.keys);
                storage.commit(vec![Change::ReplaceSchema(changed)]).unwrap();
            }
        }
        assert_eq!(read(&storage), model.shown(), "seed {seed}");
    }
}

#[test]
fn the_last_row_of_each_key_is_kept() {
    let seeds = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    seeds.map_or(0..60, |seed: u64| seed..seed + 1).for_each(deliver);
}

#[test]
fn many_keys_at_one_timestamp_are_deduplicated() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, false);
    storage.commit(vec![Change::CreateTable(schema(&[1, 4]))]).unwrap();
    let rows = |from: i64| -> Vec<Row> {
        (0..20_000).map(|id| (HOUR, None, None, Some(id), from + id)).collect()
    };
    append(&storage, &[rows(0)]);
    storage.checkpoint().unwrap();
    append(&storage, &[rows(20_000), rows(40_000)]);
    let expected: Vec<_> = (40_000..60_000).map(|arrival| (HOUR, arrival)).collect();
    assert_eq!(read(&storage), expected);
    storage.checkpoint().unwrap();
    assert_eq!(read(&storage), expected);
}

#[test]
fn a_bulk_write_is_refused_if_the_dedup_keys_have_changed_since_it_began() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, false);
    storage.commit(vec![Change::CreateTable(schema(&[]))]).unwrap();
    let table = storage.snapshot().table("readings").unwrap();
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table.schema().id)).unwrap();
    bulk.push(batch(&[(1, None, None, None, 1), (1, None, None, None, 2)])).unwrap();
    let mut changed = TableSchema::clone(table.schema());
    changed.dedup_keys = vec![1];
    storage.commit(vec![Change::ReplaceSchema(changed)]).unwrap();
    let error = bulk.finish().unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidValue);
    assert!(error.message.contains("DEDUP keys of table 'readings' changed during the write"));
    assert_eq!(read(&storage), []);
}

#[test]
fn dedup_keys_must_be_existing_columns_and_include_the_timestamp() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, false);
    for keys in [vec![2], vec![1, 99]] {
        let error = storage.commit(vec![Change::CreateTable(schema(&keys))]).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidValue);
    }
    assert!(storage.snapshot().table("readings").is_none());
}

/// Sets the number of every row.
fn set_numbers(storage: &Storage, number: i64) {
    let base = storage.snapshot().table("readings").unwrap();
    let row_id = base.schema().columns.len();
    let slices = base.slices().unwrap();
    let ids = slices.iter().map(|slice| slice.columns(&[row_id], 0..slice.rows()).unwrap());
    let rows: Vec<i64> =
        ids.flat_map(|ids| ids[0].as_primitive::<Int64Type>().values().to_vec()).collect();
    let values: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![number; rows.len()]))];
    let schema_version = base.schema().version;
    let update = Update { base, schema_version, columns: vec![3], rows, values };
    storage.commit(vec![Change::Update(update)]).unwrap();
}

/// Tests every combination of checkpoints between the steps, with and without restarts.
#[test]
fn duplicate_keys_created_by_an_update_remain_until_the_next_row_with_that_key() {
    const STEPS: u32 = 5;
    let row = |ts, number, arrival| vec![vec![(ts, None, None, Some(number), arrival)]];
    for checkpoints in 0..1_u64 << STEPS {
        for reopen in [false, true] {
            let disk = SimVfs::new(checkpoints);
            let mut storage = open(&disk, false);
            storage.commit(vec![Change::CreateTable(schema(&[1, 4]))]).unwrap();
            for step in 0..STEPS {
                match step {
                    0 => {
                        append(&storage, &row(0, 1, 1));
                        append(&storage, &row(5, 1, 2));
                    }
                    1 => append(&storage, &row(0, 2, 3)),
                    2 => set_numbers(&storage, 9),
                    3 => append(&storage, &row(7, 9, 4)),
                    _ => {
                        let alike = [(0, 1), (0, 3), (5, 2), (7, 4)];
                        assert_eq!(read(&storage), alike, "checkpoints {checkpoints:05b}");
                        append(&storage, &row(0, 9, 5));
                    }
                }
                if checkpoints & (1 << step) != 0 {
                    storage.checkpoint().unwrap();
                }
                if reopen {
                    drop(storage);
                    storage = open(&disk, false);
                }
            }
            let replaced = [(0, 5), (5, 2), (7, 4)];
            assert_eq!(read(&storage), replaced, "checkpoints {checkpoints:05b}");
        }
    }
}

/// A manifest contains no keys, so the replaced rows of a partition are removed before the
/// partition is detached.
#[test]
fn replaced_rows_do_not_reappear_when_their_partition_is_reattached() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, false);
    storage.commit(vec![Change::CreateTable(schema(&[1]))]).unwrap();
    let id = storage.snapshot().table("readings").unwrap().schema().id;
    for arrival in [1, 2] {
        let mut bulk = storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
        bulk.push(batch(&[(5, None, None, None, arrival)])).unwrap();
        bulk.finish().unwrap();
    }
    let partitions = |action| vec![Change::Partitions { table: id, action, floors: vec![0] }];
    storage.commit(partitions(PartitionAction::Detach)).unwrap();
    storage.checkpoint().unwrap();
    drop(storage);
    let storage = open(&disk, false);
    storage.commit(partitions(PartitionAction::Attach)).unwrap();
    assert_eq!(read(&storage), [(5, 2)]);
}
