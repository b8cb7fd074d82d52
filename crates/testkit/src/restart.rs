//! Measures startup times on real files, and checks the effect of a damaged table.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Snapshot, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{EngineError, EngineResult, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const DAY_MICROS: i64 = 86_400_000_000;
const ROWS: usize = 10_000;
/// Number of columns besides the timestamp, chosen so that a log record takes about 400 kB.
const VALUES: usize = 4;

fn options() -> StorageOptions {
    StorageOptions {
        commit_mode: CommitMode::NoSync,
        checkpoint_log_bytes: u64::MAX,
        background: false,
        ..StorageOptions::default()
    }
}

fn open(root: &Path) -> EngineResult<Arc<Storage>> {
    let vfs = RealVfs::new(root).map_err(|error| EngineError::io(root.display(), &error))?;
    let shared: Arc<dyn Vfs> = Arc::new(vfs);
    Storage::open(shared, options())
}

fn schema(name: &str) -> TableSchema {
    let mut columns = vec![ColumnSchema::new("ts", SqlType::Timestamp)];
    columns.extend((0..VALUES).map(|i| ColumnSchema::new(format!("v{i}"), SqlType::Long)));
    let schema = TableSchema::new(name, columns);
    TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema }
}

/// Builds rows whose timestamps begin at `start` and are `step` microseconds apart.
fn batch(start: i64, step: i64, rows: usize) -> EngineResult<RecordBatch> {
    let times = (0..rows as i64).map(|row| Some(start + row * step));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(times.collect::<TimestampMicrosecondArray>())];
    for value in 0..VALUES as i64 {
        let values = (0..rows as i64).map(|row| start ^ (row * 31 + value));
        columns.push(Arc::new(Int64Array::from_iter_values(values)));
    }
    let names = std::iter::once("ts".to_owned()).chain((0..VALUES).map(|i| format!("v{i}")));
    RecordBatch::try_from_iter(names.zip(columns))
        .map_err(|error| EngineError::internal(error.to_string()))
}

fn create(storage: &Storage, name: &str) -> EngineResult<()> {
    storage.commit(vec![Change::CreateTable(schema(name))]).map(drop)
}

fn append(storage: &Storage, name: &str, batch: RecordBatch) -> EngineResult<()> {
    let snapshot = storage.snapshot();
    let table = snapshot.table(name).ok_or_else(|| EngineError::internal("no table"))?;
    let (table, schema_version) = (table.schema().id, table.schema().version);
    storage.commit(vec![Change::Append { table, schema_version, batch }]).map(drop)
}

fn rows(snapshot: &Snapshot, name: &str) -> EngineResult<u64> {
    let table = snapshot.table(name).ok_or_else(|| EngineError::internal("no table"))?;
    let all: Vec<usize> = (0..table.schema().columns.len()).collect();
    let mut count = 0;
    for slice in table.slices()? {
        slice.columns(&all, 0..slice.rows())?;
        count += slice.rows() as u64;
    }
    Ok(count)
}

fn wrong(what: String) -> EngineError {
    EngineError::internal(what)
}

/// Measures the startup time when `bytes` bytes of log are replayed.
pub fn replay(root: &Path, bytes: u64) -> EngineResult<Duration> {
    let storage = open(root)?;
    create(&storage, "replayed")?;
    let record = (ROWS * (VALUES + 1) * 8) as u64;
    let commits = bytes.div_ceil(record);
    for commit in 0..commits as i64 {
        append(&storage, "replayed", batch(commit * ROWS as i64 * 1_000, 1_000, ROWS)?)?;
    }
    drop(storage); // Not closed, so commits are only in the log.
    let start = Instant::now();
    let storage = open(root)?;
    let took = start.elapsed();
    let (found, expected) = (rows(&storage.snapshot(), "replayed")?, commits * ROWS as u64);
    if found == expected { Ok(took) } else { Err(wrong(format!("{found} rows of {expected}"))) }
}

/// Measures the startup time of a closed root whose table has `partitions` partitions. Returns the
/// shortest of three times, because the first start has a cold cache.
pub fn partitions(root: &Path, partitions: usize) -> EngineResult<Duration> {
    let storage = open(root)?;
    let mut bulk = storage.begin_bulk(BulkTarget::Create(schema("wide")))?;
    bulk.push(batch(0, DAY_MICROS, partitions)?)?;
    bulk.finish()?;
    storage.close()?;
    drop(storage);
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        let storage = open(root)?;
        best = best.min(start.elapsed());
        let found = storage.snapshot().table("wide").map_or(0, |t| t.partition_list().len());
        if found != partitions {
            return Err(wrong(format!("{found} partitions of {partitions}")));
        }
    }
    Ok(best)
}

/// Ways to damage a file.
const DAMAGES: [&str; 4] = ["removed", "emptied", "cut in half", "overwritten"];

/// Damages each file of one table in each way. The root must open, and the other table must be
/// complete. The damaged table must return either an error or, if no data was lost, all its rows.
/// Returns the number of damages tried.
pub fn damaged_table(root: &Path) -> EngineResult<u64> {
    let storage = open(root)?;
    for name in ["well", "hurt"] {
        create(&storage, name)?;
        append(&storage, name, batch(0, DAY_MICROS, 5)?)?;
    }
    storage.close()?;
    let id = storage.snapshot().table("hurt").map_or(0, |table| table.schema().id);
    drop(storage);
    let io = |error: std::io::Error| EngineError::io("the damaged table", &error);
    let mut tried = 0;
    let directory = root.join(format!("db/t/{id}"));
    for entry in std::fs::read_dir(&directory).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let good = std::fs::read(&path).map_err(io)?;
        for damage in DAMAGES {
            match damage {
                "removed" => std::fs::remove_file(&path).map_err(io)?,
                "emptied" => std::fs::write(&path, b"").map_err(io)?,
                "cut in half" => std::fs::write(&path, &good[..good.len() / 2]).map_err(io)?,
                _ => std::fs::write(&path, vec![0xA5; good.len()]).map_err(io)?,
            }
            let what = |error: EngineError| {
                wrong(format!("{} {damage}: {}", path.display(), error.message))
            };
            let storage = open(root).map_err(what)?;
            let snapshot = storage.snapshot();
            if rows(&snapshot, "well").map_err(what)? != 5 {
                return Err(what(wrong("the other table lost rows".to_owned())));
            }
            if rows(&snapshot, "hurt").is_ok_and(|count| count != 5) {
                return Err(what(wrong("rows are missing without an error".to_owned())));
            }
            append(&storage, "well", batch(0, 1, 0)?).map_err(what)?;
            tried += 1;
            drop((snapshot, storage));
            std::fs::write(&path, &good).map_err(io)?;
        }
    }
    Ok(tried)
}
