//! Concurrent readers, writers, merges and changes: every snapshot is consistent.
//!
//! `READS=N cargo test --release -p tidemark-storage --test snapshots` reads N snapshots.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tempfile::TempDir;
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, PartitionAction, Snapshot, Storage,
    StorageOptions, TableSchema, TableSnapshot, Update,
};
use tidemark_types::{ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const HOUR: i64 = 3_600_000_000;
const READERS: u64 = 8;

fn open(directory: &TempDir) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let options = StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        checkpoint_log_bytes: 256 << 10,
        run_rows: 500,
        segment_rows: 3_000,
        ..StorageOptions::default()
    };
    Storage::open(vfs, options).unwrap()
}

fn schema(name: &str) -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("amount", SqlType::Long),
    ];
    let schema = TableSchema::new(name, columns);
    TableSchema { timestamp: Some(0), partition_by: PartitionBy::Hour, ..schema }
}

fn batch(rows: &[(i64, i64)]) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ts", Arc::new(rows.iter().map(|r| Some(r.0)).collect::<TimestampMicrosecondArray>())),
        ("amount", Arc::new(rows.iter().map(|r| Some(r.1)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn append(snapshot: &Snapshot, name: &str, rows: &[(i64, i64)]) -> Change {
    let table = snapshot.table(name).unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    Change::Append { table, schema_version, batch: batch(rows) }
}

/// Returns the count and the sum of a table's rows, and checks their order.
fn totals(table: &TableSnapshot) -> (u64, i64) {
    let (mut count, mut sum, mut last) = (0, 0, i64::MIN);
    for slice in table.slices().unwrap() {
        let columns = slice.columns(&[1], 0..slice.rows()).unwrap();
        sum += columns[0].as_primitive::<Int64Type>().values().iter().sum::<i64>();
        let times = slice.timestamps().unwrap();
        assert!(times.is_sorted() && times[0] >= last);
        last = times[times.len() - 1];
        count += slice.rows() as u64;
    }
    assert_eq!(count, table.row_count().unwrap());
    (count, sum)
}

struct Work {
    storage: Arc<Storage>,
    stop: AtomicBool,
    reads: AtomicU64,
    commits: AtomicU64,
    clock: AtomicI64,
}

impl Work {
    /// Moves an amount from `left` to `right` in one commit, so that the sum of both remains 0.
    /// Rows are mostly in order; some are hours late.
    fn transfer(&self, writer: i64) {
        let at = self.clock.fetch_add(1, Ordering::Relaxed);
        let late = if at % 7 == 0 { 3 * HOUR } else { 0 };
        let base = (10 * HOUR + at * 1_000_000 - late).max(0);
        let rows = |sign: i64| -> Vec<(i64, i64)> {
            (0..5).map(|row| (base + row, sign * (writer + row + 1))).collect()
        };
        let snapshot = self.storage.snapshot();
        let changes =
            vec![append(&snapshot, "left", &rows(1)), append(&snapshot, "right", &rows(-1))];
        self.storage.commit(changes).unwrap();
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Bulk-writes rows whose sum is 0.
    fn import(&self) {
        let at = self.clock.load(Ordering::Relaxed);
        let table = self.storage.snapshot().table("bulk").unwrap().schema().id;
        let mut bulk = self.storage.begin_bulk(BulkTarget::Existing(table)).unwrap();
        for part in 0..3 {
            let ts = |row: i64| (at * 1_000_000 - part * HOUR).max(0) + row * 7_000_000;
            let rows: Vec<_> = (0..100).map(|row| (ts(row), row - (99 - row))).collect();
            bulk.push(batch(&rows)).unwrap();
        }
        bulk.finish().unwrap();
    }

    fn checkpoint(&self) {
        self.storage.checkpoint().unwrap();
    }

    /// Sets every amount of `same` to one value, so that no snapshot contains two values.
    fn update(&self, value: i64) {
        let base = self.storage.snapshot().table("same").unwrap();
        let mut rows = Vec::new();
        for slice in base.slices().unwrap() {
            rows.extend(slice.row_ids(0..slice.rows()).values().iter().copied());
        }
        let values: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![value; rows.len()]))];
        let schema_version = base.schema().version;
        let update = Update { base, schema_version, columns: vec![1], rows, values };
        match self.storage.commit(vec![Change::Update(update)]) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.code, ErrorCode::Replan),
        }
    }

    /// Drops the oldest partitions of `left` and `right` in one commit, and all bulk rows in
    /// another.
    fn forget(&self) {
        let snapshot = self.storage.snapshot();
        let bulk = snapshot.table("bulk").unwrap();
        if bulk.row_count().unwrap() > 20_000 {
            self.storage.commit(vec![Change::Truncate(bulk.schema().id)]).unwrap();
        }
        let left = snapshot.table("left").unwrap();
        let mut floors: Vec<_> = left.partition_list().iter().map(|p| p.floor).collect();
        floors.truncate(floors.len().saturating_sub(2));
        if !floors.is_empty() {
            let drop_from = |name: &str| Change::Partitions {
                table: snapshot.table(name).unwrap().schema().id,
                action: PartitionAction::Drop,
                floors: floors.clone(),
            };
            self.storage.commit(vec![drop_from("left"), drop_from("right")]).unwrap();
        }
        thread::yield_now();
    }

    /// Drops `passing` and creates it with rows in one commit, so that it always exists and is
    /// never empty.
    fn replace(&self) {
        let old = self.storage.snapshot().table("passing").unwrap().schema().id;
        let id = self.storage.reserve_table_id();
        let new = TableSchema { id, ..schema("passing") };
        let rows: Vec<_> = (0..50).map(|row| (row * HOUR / 3, 1)).collect();
        let append = Change::Append { table: id, schema_version: 1, batch: batch(&rows) };
        let changes = vec![Change::DropTable(old), Change::CreateTable(new), append];
        self.storage.commit(changes).unwrap();
    }

    fn read(&self) {
        let snapshot = self.storage.snapshot();
        let of = |name: &str| totals(&snapshot.table(name).unwrap());
        let (left, right) = (of("left"), of("right"));
        assert_eq!((left.0, left.1), (right.0, -right.1), "both tables are from the same commit");
        let bulk = of("bulk");
        assert_eq!((bulk.0 % 300, bulk.1), (0, 0));
        let same = snapshot.table("same").unwrap();
        let (count, sum) = totals(&same);
        assert_eq!((count, sum % 200), (200, 0), "an update is visible completely or not at all");
        assert_eq!(of("passing"), (50, 50));
        thread::yield_now();
        // Reads the same snapshot again, which later changes do not affect.
        assert_eq!(of("left"), left);
        self.reads.fetch_add(1, Ordering::Relaxed);
    }
}

fn prepare(storage: &Arc<Storage>) {
    let names = ["left", "right", "bulk", "same", "passing"];
    let create = names.iter().map(|name| Change::CreateTable(schema(name)));
    storage.commit(create.collect()).unwrap();
    let snapshot = storage.snapshot();
    let same: Vec<_> = (0..200).map(|row| (row * HOUR / 9, 1)).collect();
    let passing: Vec<_> = (0..50).map(|row| (row * HOUR / 3, 1)).collect();
    let changes = vec![append(&snapshot, "same", &same), append(&snapshot, "passing", &passing)];
    storage.commit(changes).unwrap();
}

#[test]
fn every_snapshot_is_consistent() {
    let required = std::env::var("READS").ok().and_then(|reads| reads.parse().ok()).unwrap_or(400);
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    prepare(&storage);
    let work = Work {
        storage: Arc::clone(&storage),
        stop: AtomicBool::new(false),
        reads: AtomicU64::new(0),
        commits: AtomicU64::new(0),
        clock: AtomicI64::new(0),
    };
    let running = || !work.stop.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let work = &work;
        for writer in 0..2 {
            scope.spawn(move || {
                while running() {
                    work.transfer(writer);
                }
            });
        }
        scope.spawn(move || {
            let mut value = 0;
            while running() {
                value += 1;
                work.update(value);
            }
        });
        for step in [Work::import, Work::replace, Work::forget, Work::checkpoint] {
            scope.spawn(move || {
                while running() {
                    step(work);
                }
            });
        }
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(move || {
                    while work.reads.load(Ordering::Relaxed) < required {
                        work.read();
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = readers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        work.stop.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
    let (reads, commits) = (work.reads.into_inner(), work.commits.into_inner());
    println!("{reads} snapshots read by {READERS} readers during {commits} commits");
    println!("{reads} passed, 0 failed");
    assert!(commits > 0);
    let before = totals(&storage.snapshot().table("left").unwrap());
    storage.close().unwrap();
    drop(work.storage);
    drop(storage);
    let reopened = open(&directory);
    assert_eq!(totals(&reopened.snapshot().table("left").unwrap()), before);
}

#[test]
fn open_snapshots_are_listed_and_keep_their_rows() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    prepare(&storage);
    let held = storage.snapshot();
    let also = Arc::clone(&held);
    for at in 0..5 {
        let change = append(&storage.snapshot(), "left", &[(at, 1)]);
        storage.commit(vec![change]).unwrap();
        storage.checkpoint().unwrap();
    }
    let now = storage.snapshot();
    let pinned = now.pinned();
    let epochs: Vec<_> = pinned.iter().map(|pin| (pin.epoch, pin.readers)).collect();
    assert_eq!(epochs, [(held.epoch(), 2), (now.epoch(), 1)]);
    assert!(pinned[0].published_micros <= pinned[1].published_micros);
    assert_eq!(totals(&held.table("left").unwrap()), (0, 0));
    drop((held, also));
    assert_eq!(now.pinned().len(), 1);
}
