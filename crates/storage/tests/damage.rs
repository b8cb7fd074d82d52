//! Damage in real files is isolated, reported by name and never read as data. Also tests backups
//! that can be restored, and a full disk.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, PartitionFormat, Storage, StorageOptions,
    TableSchema, check_root,
};
use tidemark_types::{EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, SimFault, SimVfs, Vfs};

const DAY: i64 = 86_400_000_000;
const CHILD: &str = "TIDEMARK_DAMAGE_CHILD";

fn options() -> StorageOptions {
    StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        background: false,
        ..StorageOptions::default()
    }
}

fn open(root: &Path) -> Arc<Storage> {
    Storage::open(Arc::new(RealVfs::new(root).unwrap()), options()).unwrap()
}

fn create(storage: &Storage, name: &str) -> u64 {
    let columns =
        vec![ColumnSchema::new("ts", SqlType::Timestamp), ColumnSchema::new("id", SqlType::Long)];
    let schema = TableSchema::new(name, columns);
    let schema = TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    storage.snapshot().table(name).unwrap().schema().id
}

/// Rows of one day. Every identifier is odd, so that an invented zero is never a valid identifier.
fn batch(day: i64, rows: i64) -> RecordBatch {
    let times = (0..rows).map(|row| Some(day * DAY + row)).collect::<TimestampMicrosecondArray>();
    let ids = (0..rows).map(|row| Some(2 * row + 1)).collect::<Int64Array>();
    let columns: [(&str, ArrayRef); 2] = [("ts", Arc::new(times)), ("id", Arc::new(ids))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn append(storage: &Storage, name: &str, day: i64, rows: i64) -> EngineResult<()> {
    let table = storage.snapshot().table(name).unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    let change = Change::Append { table, schema_version, batch: batch(day, rows) };
    storage.commit(vec![change]).map(drop)
}

fn bulk(storage: &Arc<Storage>, table: u64, day: i64, rows: i64) {
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table)).unwrap();
    bulk.push(batch(day, rows)).unwrap();
    bulk.finish().unwrap();
}

/// Sum of all identifiers.
fn sum(storage: &Storage, name: &str) -> EngineResult<i64> {
    let faults = tidemark_vfs::faults();
    let mut sum = 0;
    for slice in storage.snapshot().table(name).unwrap().slices()? {
        let columns = slice.columns(&[1], 0..slice.rows())?;
        sum += columns[0].as_primitive::<Int64Type>().values().iter().sum::<i64>();
    }
    if tidemark_vfs::faults() == faults {
        return Ok(sum);
    }
    let damage = storage.snapshot().damages();
    Err(tidemark_types::EngineError::new(ErrorCode::Damaged, format!("{damage:?}")))
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_str().unwrap().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 16], at).unwrap();
}

#[test]
fn a_damaged_segment_affects_only_its_table_and_can_be_dropped_with_its_partition() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let (bad, good) = (create(&storage, "bad"), create(&storage, "good"));
    for day in 0..3 {
        bulk(&storage, bad, day, 1_000);
        bulk(&storage, good, day, 1_000);
    }
    storage.checkpoint().unwrap();
    let segments = files(&directory.path().join(format!("db/t/{bad}")), ".seg");
    flip(&segments[1], 5_000);
    assert!(storage.check(Some(good)).unwrap().is_empty());
    let found = storage.check(None).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].table, "bad");
    assert!(found[0].what.contains(segments[1].file_name().unwrap().to_str().unwrap()));
    let refused = append(&storage, "bad", 9, 1).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Damaged);
    assert!(refused.message.contains("'bad'"), "{refused}");
    assert_eq!(storage.begin_bulk(BulkTarget::Existing(bad)).unwrap_err().code, ErrorCode::Damaged);
    assert_eq!(sum(&storage, "bad").unwrap_err().code, ErrorCode::Damaged);
    append(&storage, "good", 9, 1).unwrap();
    storage.checkpoint().unwrap();
    assert_eq!(sum(&storage, "good").unwrap(), 3_000_001);
    let action = tidemark_storage::PartitionAction::Drop;
    storage.commit(vec![Change::Partitions { table: bad, action, floors: vec![DAY] }]).unwrap();
    assert_eq!(storage.snapshot().damages(), []);
    append(&storage, "bad", 9, 1).unwrap();
    assert_eq!(sum(&storage, "bad").unwrap(), 2_000_001);
}

#[test]
fn an_offline_check_finds_damage_in_every_file_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = create(&storage, "t");
    bulk(&storage, table, 0, 1_000);
    storage.checkpoint().unwrap();
    bulk(&storage, table, 1, 1_000);
    storage.checkpoint().unwrap();
    append(&storage, "t", 2, 10).unwrap();
    storage.flush().unwrap();
    append(&storage, "t", 3, 10).unwrap();
    drop(storage);
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let all = || {
        let files = files(&directory.path().join("db"), "");
        files.into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = all();
    assert_eq!(check_root(&vfs).unwrap(), []);
    assert!(all() == before);
    let mut named = 0;
    for (content, path) in &before {
        let name = path.file_name().unwrap().to_str().unwrap();
        let at = match name {
            "reserve" => continue,
            // The first record after the header block.
            log if is_log(log) => 4_096 + 70,
            _ => content.len() as u64 / 2,
        };
        if at >= content.len() as u64 {
            continue;
        }
        flip(path, at);
        let spoiled = std::fs::read(path).unwrap();
        let found = check_root(&vfs).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), spoiled);
        // Damage is not reported in old logs that no generation needs, nor in the log before the
        // current manifest.
        if !is_log(name) {
            assert!(found.iter().any(|damage| damage.what.contains(name)), "{name}: {found:?}");
        }
        named += usize::from(!found.is_empty());
        flip(path, at);
    }
    assert!(named >= 6, "{named}");
    assert_eq!(check_root(&vfs).unwrap(), []);
}

/// Truncates a segment file while readers use it. The readers get an error, never a zero, and the
/// process survives.
#[test]
fn reading_a_truncated_segment_fails_and_never_returns_zeros() {
    if std::env::var_os(CHILD).is_some() {
        return cut_segments();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "reading_a_truncated_segment_fails_and_never_returns_zeros";
    command.args(["--exact", test, "--test-threads", "1", "--nocapture"]).env(CHILD, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{} {text}", output.status);
}

/// A file that is truncated within a page raises no fault in that page, because the rest of the
/// page reads as zeros.
#[test]
fn reading_a_segment_truncated_within_a_page_fails() {
    const ROWS: i64 = 20_000;
    for missing in [1, 20, 4_000, 5_000, 100_000] {
        let directory = tempfile::tempdir().unwrap();
        let storage = open(directory.path());
        let table = create(&storage, "t");
        bulk(&storage, table, 0, ROWS);
        assert_eq!(sum(&storage, "t").unwrap(), ROWS * ROWS);
        let path = files(&directory.path().join(format!("db/t/{table}")), ".seg").remove(0);
        let len = std::fs::metadata(&path).unwrap().len();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(len - missing).unwrap();
        let error = sum(&storage, "t").unwrap_err();
        assert_eq!(error.code, ErrorCode::Damaged, "{missing} bytes less: {error:?}");
    }
}

fn is_log(name: &str) -> bool {
    name.rsplit('.').next() == Some("log")
}

fn cut_segments() {
    const ROWS: i64 = 200_000;
    const EXPECTED: i64 = ROWS * ROWS;
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let mut failed = 0;
    let stable = create(&storage, "stable");
    bulk(&storage, stable, 0, ROWS);
    for round in 0..60 {
        let name = format!("t{round}");
        let table = create(&storage, &name);
        bulk(&storage, table, 0, ROWS);
        assert_eq!(sum(&storage, &name).unwrap(), EXPECTED);
        let path = files(&directory.path().join(format!("db/t/{table}")), ".seg").remove(0);
        let (stop, errors) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Acquire) || errors.load(Ordering::Relaxed) == 0 {
                        match sum(&storage, &name) {
                            Ok(read) => assert_eq!(read, EXPECTED, "round {round}"),
                            Err(error) => {
                                assert_eq!(error.code, ErrorCode::Damaged);
                                errors.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
            let len = std::fs::metadata(&path).unwrap().len();
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(len * (round % 7) / 8).unwrap();
            stop.store(true, Ordering::Release);
        });
        failed += errors.load(Ordering::Relaxed);
        assert!(storage.snapshot().damages().iter().any(|damage| damage.table == name));
        assert_eq!(append(&storage, &name, 1, 1).unwrap_err().code, ErrorCode::Damaged);
        storage.commit(vec![Change::DropTable(table)]).unwrap();
    }
    assert!(failed >= 60);
    storage.checkpoint().unwrap();
    assert_eq!(sum(&storage, "stable").unwrap(), EXPECTED);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Stops the other threads, even if this thread fails.
struct StopWhenDone<'a>(&'a AtomicBool);

impl Drop for StopWhenDone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_backup_made_during_writes_is_a_consistent_root() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    create(&storage, "t");
    create(&storage, "u");
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut day = 0;
            while !stop.load(Ordering::Acquire) {
                // Changes both tables in one commit, so that a copy contains both changes or
                // neither.
                let snapshot = storage.snapshot();
                let changes = ["t", "u"].map(|name| {
                    let table = snapshot.table(name).unwrap();
                    let (table, schema_version) = (table.schema().id, table.schema().version);
                    Change::Append { table, schema_version, batch: batch(day % 5, 10) }
                });
                storage.commit(changes.into()).unwrap();
                written.fetch_add(10, Ordering::Release);
                day += 1;
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                storage.checkpoint().unwrap();
            }
        });
        let _stop = StopWhenDone(&stop);
        for _ in 0..10 {
            let before = written.load(Ordering::Acquire);
            storage.create_backup().unwrap();
            let again = storage.create_backup().unwrap_err();
            assert_eq!(again.code, ErrorCode::InvalidValue);
            let restored = tempfile::tempdir().unwrap();
            copy(&directory.path().join(".checkpoint"), restored.path());
            storage.release_backup().unwrap();
            let after = written.load(Ordering::Acquire) + 10;
            let copied = open(restored.path());
            assert_eq!(copied.repairs(), &[] as &[String]);
            assert_eq!(copied.check(None).unwrap(), []);
            let rows = |name| copied.snapshot().table(name).unwrap().row_count().unwrap();
            assert_eq!(rows("t"), rows("u"));
            assert!((before..=after).contains(&rows("t")), "{before} {} {after}", rows("t"));
            append(&copied, "t", 7, 1).unwrap();
            copied.checkpoint().unwrap();
        }
    });
    storage.release_backup().unwrap();
    assert!(!directory.path().join(".checkpoint").exists());
    assert_eq!(storage.check(None).unwrap(), []);
}

#[test]
fn writes_stop_before_the_disk_is_full_and_resume_automatically() {
    let vfs = SimVfs::new(1);
    let options =
        StorageOptions { disk_watermark_bytes: Some(64 << 10), disk_reserve_bytes: 0, ..options() };
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let storage = Storage::open(shared, options).unwrap();
    let table = create(&storage, "t");
    append(&storage, "t", 0, 10).unwrap();
    let used: u64 = vfs
        .files()
        .iter()
        .map(|path| vfs.open(path, tidemark_vfs::OpenMode::Read).unwrap().len().unwrap())
        .sum();
    vfs.plant(SimFault::Full { bytes: used + (60 << 10) });
    std::thread::sleep(std::time::Duration::from_millis(120));
    let refused = append(&storage, "t", 1, 1).unwrap_err();
    assert_eq!(refused.code, ErrorCode::DiskFull);
    assert!(refused.message.starts_with("disk full"), "{refused}");
    assert_eq!(
        storage.begin_bulk(BulkTarget::Existing(table)).unwrap_err().code,
        ErrorCode::DiskFull
    );
    // Reads still succeed, as do transactions that free space.
    assert_eq!(sum(&storage, "t").unwrap(), 100);
    storage.commit(vec![Change::Truncate(table)]).unwrap();
    vfs.heal();
    // Free space slightly above the watermark is not sufficient.
    vfs.plant(SimFault::Full { bytes: used + (80 << 10) });
    std::thread::sleep(std::time::Duration::from_millis(120));
    assert_eq!(append(&storage, "t", 1, 1).unwrap_err().code, ErrorCode::DiskFull);
    vfs.heal();
    std::thread::sleep(std::time::Duration::from_millis(120));
    append(&storage, "t", 1, 10).unwrap();
    assert_eq!(sum(&storage, "t").unwrap(), 100);
}

#[test]
fn a_file_that_failed_to_map_is_read_on_the_next_attempt() {
    let disk = SimVfs::new(1);
    let storage = Storage::open(Arc::new(disk.clone()) as Arc<dyn Vfs>, options()).unwrap();
    let table = create(&storage, "t");
    bulk(&storage, table, 0, 10);
    storage.checkpoint().unwrap();
    for ending in [".seg", ".parquet"] {
        if ending == ".parquet" {
            storage.convert_partitions(table, &[0], PartitionFormat::Parquet).unwrap();
            storage.checkpoint().unwrap();
        }
        // A segment that is already open is not mapped again.
        let copy = disk.kill(1);
        copy.plant(SimFault::FailMap { path: ending.to_owned() });
        let storage = Storage::open(Arc::new(copy) as Arc<dyn Vfs>, options()).unwrap();
        let failed = sum(&storage, "t").unwrap_err();
        assert_eq!(failed.code, ErrorCode::Io, "{ending}: {failed}");
        assert_eq!(storage.snapshot().damages(), [], "{ending}");
        assert_eq!(sum(&storage, "t").unwrap(), 100, "{ending}");
        append(&storage, "t", 1, 1).unwrap();
    }
}
