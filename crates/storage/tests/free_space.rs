//! Space used by dropped data is freed within seconds, without another write or a restart, even on
//! a full disk.

#![allow(clippy::unwrap_used, clippy::case_sensitive_file_extension_comparisons, reason = "a test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Delete, PartitionAction, PartitionFormat,
    Storage, StorageOptions, TableSchema, Update,
};
use tidemark_types::{EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{OpenMode, SimFault, SimVfs, Vfs};

const DAY: i64 = 86_400_000_000;
/// Rows on each of the two days of a table.
const ROWS: i64 = 4_000;
/// The second day.
const LAST: i64 = 2;
/// Time limit for freeing all space.
const SOON: Duration = Duration::from_secs(5);

fn options() -> StorageOptions {
    StorageOptions {
        commit_mode: CommitMode::Sync,
        log_prewrite_bytes: 64 << 10,
        disk_watermark_bytes: Some(0),
        disk_reserve_bytes: 0,
        ..StorageOptions::default()
    }
}

fn manual_checkpoints() -> StorageOptions {
    StorageOptions { background: false, ..options() }
}

fn open(disk: &SimVfs, options: StorageOptions) -> Arc<Storage> {
    Storage::open(Arc::new(disk.clone()), options).unwrap()
}

fn schema(name: &str) -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("id", SqlType::Long),
        ColumnSchema::new("sym", SqlType::Symbol),
    ];
    let schema = TableSchema::new(name, columns);
    TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema }
}

fn create(storage: &Storage, name: &str) -> u64 {
    storage.commit(vec![Change::CreateTable(schema(name))]).unwrap();
    storage.snapshot().table(name).unwrap().schema().id
}

fn batch(day: i64, rows: i64) -> RecordBatch {
    let times = (0..rows).map(|row| Some(day * DAY + row));
    let symbols = (0..rows).map(|row| Some(format!("symbol {}", row % 500)));
    let columns: [(&str, ArrayRef); 3] = [
        ("ts", Arc::new(times.collect::<TimestampMicrosecondArray>())),
        ("id", Arc::new((0..rows).collect::<Int64Array>())),
        ("sym", Arc::new(symbols.collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn append(storage: &Storage, table: u64, day: i64, rows: i64) -> EngineResult<()> {
    let found = storage.snapshot().table_by_id(table).unwrap();
    let schema_version = found.schema().version;
    let change = Change::Append { table, schema_version, batch: batch(day, rows) };
    storage.commit(vec![change]).map(drop)
}

/// Imports two separate days of rows into segments.
fn import(storage: &Arc<Storage>, target: BulkTarget) -> EngineResult<()> {
    let mut bulk = storage.begin_bulk(target)?;
    bulk.push(batch(0, ROWS))?;
    bulk.push(batch(LAST, ROWS))?;
    bulk.finish().map(drop)
}

fn row_ids(storage: &Storage, table: u64) -> Vec<i64> {
    let found = storage.snapshot().table_by_id(table).unwrap();
    let slices = found.slices().unwrap();
    slices.iter().flat_map(|slice| slice.row_ids(0..slice.rows()).values().to_vec()).collect()
}

fn rows(storage: &Storage, table: u64) -> u64 {
    storage.snapshot().table_by_id(table).unwrap().row_count().unwrap()
}

/// Total length of files; the reserve file has length 0.
fn bytes_below(disk: &SimVfs, start: &str) -> u64 {
    let files = disk.files().into_iter().filter(|path| path.starts_with(start));
    let len = |path: String| disk.open(&path, OpenMode::Read).map_or(0, |file| file.len().unwrap());
    files.map(len).sum()
}

fn wait_until(what: &str, limit: Duration, is_done: impl Fn() -> bool) {
    let end = Instant::now() + limit;
    while !is_done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// All operations that free a table's space.
#[derive(Debug, Clone, Copy)]
enum Way {
    DropTable,
    Truncate,
    DropPartition,
    EndOfLife,
    Overwrite,
    ToParquet,
    ToParquetAndBack,
    DeleteAll,
    DeletePartition,
    DeleteSome,
    Update,
    BulkUpdate,
    DropSymbols,
    DropColumn,
    LateRows,
}

impl Way {
    const ALL: [Self; 15] = [
        Self::DropTable,
        Self::Truncate,
        Self::DropPartition,
        Self::EndOfLife,
        Self::Overwrite,
        Self::ToParquet,
        Self::ToParquetAndBack,
        Self::DeleteAll,
        Self::DeletePartition,
        Self::DeleteSome,
        Self::Update,
        Self::BulkUpdate,
        Self::DropSymbols,
        Self::DropColumn,
        Self::LateRows,
    ];

    fn run(self, storage: &Arc<Storage>, table: u64) -> EngineResult<()> {
        let found = storage.snapshot().table_by_id(table).unwrap();
        let schema = TableSchema::clone(found.schema());
        let ids = row_ids(storage, table);
        let day = ROWS as usize;
        let delete = |rows: Vec<i64>| Change::Delete(Delete { base: Arc::clone(&found), rows });
        let to = |format| storage.convert_partitions(table, &[0, LAST * DAY], format);
        let change = match self {
            Self::DropTable => Change::DropTable(table),
            Self::Truncate => Change::Truncate(table),
            Self::DropPartition => {
                Change::Partitions { table, action: PartitionAction::Drop, floors: vec![0] }
            }
            Self::EndOfLife => {
                Change::ReplaceSchema(TableSchema { ttl_hours_or_months: 1, ..schema })
            }
            Self::Overwrite => {
                return import(
                    storage,
                    BulkTarget::Replace { old: table, schema: self::schema("t") },
                );
            }
            Self::ToParquet => return to(PartitionFormat::Parquet),
            Self::ToParquetAndBack => {
                to(PartitionFormat::Parquet)?;
                return to(PartitionFormat::Native);
            }
            Self::DeleteAll => delete(ids),
            Self::DeletePartition => delete(ids[..day].to_vec()),
            Self::DeleteSome => delete(ids.into_iter().step_by(2).collect()),
            Self::Update => {
                let values: ArrayRef = Arc::new((0..ids.len() as i64).collect::<Int64Array>());
                let (columns, values) = (vec![1], vec![values]);
                let schema_version = schema.version;
                Change::Update(Update { base: found, schema_version, columns, rows: ids, values })
            }
            Self::BulkUpdate => {
                let values: ArrayRef = Arc::new((0..ids.len() as i64).collect::<Int64Array>());
                let hold = storage.lock_writes(table);
                let mut update = hold.begin_update(found, None, vec![1])?;
                update.push(&ids, &[values])?;
                return update.close()?.commit().map(drop);
            }
            Self::DropSymbols => {
                let mut schema = schema;
                schema.columns.pop();
                Change::ReplaceSchema(schema)
            }
            Self::DropColumn => {
                let mut schema = schema;
                schema.columns.remove(1);
                Change::ReplaceSchema(schema)
            }
            Self::LateRows => return import(storage, BulkTarget::Existing(table)),
        };
        storage.commit(vec![change]).map(drop)
    }
}

/// Table files that no table in the newest snapshot references.
fn unnamed(disk: &SimVfs, storage: &Storage) -> Vec<String> {
    let snapshot = storage.snapshot();
    let mut named = Vec::new();
    for table in snapshot.tables() {
        let (id, columns) = (table.schema().id, &table.schema().columns);
        named.extend(storage.segment_names(id).into_iter().map(|name| format!("db/t/{id}/{name}")));
        named.extend(columns.iter().map(|column| format!("db/t/{id}/sym.{}.", column.id)));
    }
    let is_named = |path: &String| named.iter().any(|name| path.starts_with(name.as_str()));
    disk.files().into_iter().filter(|path| path.starts_with("db/t/") && !is_named(path)).collect()
}

#[test]
fn space_used_by_dropped_data_is_freed_without_another_write() {
    for way in Way::ALL {
        let disk = SimVfs::new(1);
        let storage = open(&disk, options());
        let table = create(&storage, "t");
        import(&storage, BulkTarget::Existing(table)).unwrap();
        append(&storage, table, LAST, 50).unwrap();
        storage.checkpoint().unwrap();
        storage.advance_generations().unwrap();
        let before = bytes_below(&disk, "db/t/");
        // Files that a reader already holds are retained until that reader is dropped.
        let reader = matches!(way, Way::Truncate).then(|| storage.snapshot());
        way.run(&storage, table).unwrap();
        if matches!(way, Way::Update | Way::LateRows) {
            // Rewritten files are freed by the checkpoint that rewrites them.
            storage.checkpoint().unwrap();
        }
        if let Some(reader) = reader {
            std::thread::sleep(Duration::from_millis(2_500));
            assert!(
                bytes_below(&disk, "db/t/") * 2 > before,
                "{way:?}: a reader's files are removed"
            );
            let slices = reader.table("t").unwrap().slices().unwrap();
            let left: usize = slices.iter().map(tidemark_storage::Slice::rows).sum();
            assert_eq!(left as i64, 2 * ROWS + 50);
        }
        let left = || (unnamed(&disk, &storage), bytes_below(&disk, "db/log/"));
        wait_until(&format!("{way:?}: {:?}", left()), SOON, || {
            let (unnamed, log) = left();
            unnamed.is_empty() && log <= 8_192
        });
        let fewer = match way {
            Way::DropTable => Some(1),
            Way::Truncate | Way::DeleteAll => Some(before / 2), // Symbols are retained.
            Way::DropPartition | Way::EndOfLife | Way::DeletePartition | Way::DeleteSome => {
                Some(before * 3 / 4)
            }
            Way::Overwrite | Way::Update | Way::BulkUpdate | Way::ToParquetAndBack => {
                Some(before * 11 / 10)
            }
            Way::DropColumn => Some(before * 2 / 3),
            Way::ToParquet | Way::DropSymbols | Way::LateRows => None,
        };
        if let Some(max) = fewer {
            wait_until(&format!("{way:?}: {before} bytes became more than {max}"), SOON, || {
                bytes_below(&disk, "db/t/") < max
            });
        }
        assert_eq!(storage.check(None).unwrap(), [], "{way:?}");
    }
}

#[test]
fn startup_deletes_files_dropped_by_the_previous_process() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, manual_checkpoints());
    let table = create(&storage, "t");
    import(&storage, BulkTarget::Existing(table)).unwrap();
    storage.checkpoint().unwrap();
    storage.commit(vec![Change::DropTable(table)]).unwrap();
    let disk = disk.kill(1);
    let storage = open(&disk, options());
    wait_until("the files still exist", SOON, || bytes_below(&disk, "db/t/") == 0);
    drop(storage);
}

#[test]
fn closing_deletes_files_that_only_older_generations_need() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, options());
    let table = create(&storage, "t");
    import(&storage, BulkTarget::Existing(table)).unwrap();
    storage.checkpoint().unwrap();
    storage.commit(vec![Change::Truncate(table)]).unwrap();
    storage.close().unwrap();
    assert_eq!(unnamed(&disk, &open(&disk, manual_checkpoints())), [] as [String; 0]);
    assert!(bytes_below(&disk, "db/log/") <= 8_192, "{:?}", disk.files());
}

/// The previous generation is a valid fallback: it is older, but has the same content.
#[test]
fn a_damaged_manifest_loses_no_rows_after_generations_are_advanced() {
    for rows_after in [0, 70] {
        let disk = SimVfs::new(1);
        let storage = open(&disk, manual_checkpoints());
        let table = create(&storage, "t");
        import(&storage, BulkTarget::Existing(table)).unwrap();
        storage.checkpoint().unwrap();
        append(&storage, table, 3, 30).unwrap();
        storage.checkpoint().unwrap();
        storage.advance_generations().unwrap();
        if rows_after > 0 {
            append(&storage, table, 3, rows_after).unwrap();
        }
        let disk = disk.kill(1);
        let number = |path: &String| path.strip_prefix("db/manifest.")?.parse::<u64>().ok();
        let newest = disk.files().iter().filter_map(number).max().unwrap();
        disk.corrupt(&format!("db/manifest.{newest}"), |bytes| bytes[40] ^= 1).unwrap();
        let storage = open(&disk, manual_checkpoints());
        assert_eq!(storage.repairs().len(), 1, "{:?}", storage.repairs());
        assert_eq!(rows(&storage, table) as i64, 2 * ROWS + 30 + rows_after);
        assert_eq!(storage.snapshot().damages(), []);
    }
}

/// Fills the disk except for this many bytes.
fn fill(disk: &SimVfs, left: u64) {
    disk.heal();
    disk.plant(SimFault::Full { bytes: u64::MAX - 1 });
    let space = disk.space().unwrap();
    disk.heal();
    disk.plant(SimFault::Full { bytes: space.total - space.free + left });
}

fn full_options() -> StorageOptions {
    let (disk_watermark_bytes, disk_reserve_bytes) = (Some(32 << 10), 512 << 10);
    StorageOptions { disk_watermark_bytes, disk_reserve_bytes, ..options() }
}

#[test]
fn transactions_that_release_space_succeed_on_a_full_disk_and_let_writes_resume() {
    let ways = [
        Way::DropTable,
        Way::Truncate,
        Way::DropPartition,
        Way::EndOfLife,
        Way::DeleteAll,
        Way::DeletePartition,
    ];
    for way in ways {
        let disk = SimVfs::new(1);
        disk.plant(SimFault::Full { bytes: 64 << 20 });
        let storage = open(&disk, full_options());
        let other = create(&storage, "other");
        let table = create(&storage, "t");
        for _ in 0..3 {
            import(&storage, BulkTarget::Existing(table)).unwrap();
        }
        append(&storage, other, 0, 50).unwrap();
        assert!(disk.files().contains(&"db/reserve".to_owned()));
        fill(&disk, 0);
        // The free space is queried at most this often.
        std::thread::sleep(Duration::from_millis(120));
        let refused = append(&storage, other, 0, 1_000).unwrap_err();
        assert_eq!(refused.code, ErrorCode::DiskFull, "{refused}");
        way.run(&storage, table).unwrap_or_else(|error| panic!("{way:?}: {error}"));
        wait_until(&format!("{way:?}: writes do not resume"), SOON, || {
            append(&storage, other, 0, 10).is_ok()
        });
        wait_until("the reserve is not held", SOON, || {
            disk.files().contains(&"db/reserve".to_owned())
        });
        assert_eq!(storage.check(None).unwrap(), [], "{way:?}");
        drop(storage);
        let disk = disk.kill(1);
        disk.heal();
        let storage = open(&disk, manual_checkpoints());
        assert_eq!(rows(&storage, other), 60, "{way:?}");
    }
}

/// A range of rows takes 16 bytes of the reserve, regardless of its length.
#[test]
fn on_a_full_disk_a_row_delete_is_refused_if_it_exceeds_the_reserve() {
    const MANY: i64 = 1_200_000;
    let disk = SimVfs::new(1);
    disk.plant(SimFault::Full { bytes: 512 << 20 });
    let storage = open(&disk, full_options());
    let other = create(&storage, "other");
    let table = create(&storage, "t");
    // Writes in bulk instead of using the log, whose files would be retained for reuse.
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table)).unwrap();
    bulk.push(batch(0, MANY)).unwrap();
    bulk.finish().unwrap();
    storage.checkpoint().unwrap();
    fill(&disk, 0);
    // The free space is queried at most this often.
    std::thread::sleep(Duration::from_millis(120));
    let delete = |of: &dyn Fn(usize) -> bool| {
        let base = storage.snapshot().table_by_id(table).unwrap();
        let ids = row_ids(&storage, table).into_iter().enumerate();
        let rows = ids.filter(|(index, _)| of(*index)).map(|(_, id)| id).collect();
        storage.commit(vec![Change::Delete(Delete { base, rows })]).map(drop)
    };
    delete(&|index| index < 200_000).unwrap();
    delete(&|index| index % 1_000 == 0).unwrap();
    assert_eq!(rows(&storage, table), 999_000);
    let refused = append(&storage, other, 0, 1_000).unwrap_err();
    assert_eq!(refused.code, ErrorCode::DiskFull, "{refused}");
    // At 16 bytes each, these rows need more space than the reserve and the preallocated log have.
    let refused = delete(&|index| index % 2 == 0).unwrap_err();
    assert_eq!(refused.code, ErrorCode::DiskFull, "{refused}");
    assert!(refused.message.contains("KiB of log"), "{refused}");
    assert_eq!(rows(&storage, table), 999_000);
    Way::Truncate.run(&storage, table).unwrap();
    wait_until("writes do not resume", SOON, || append(&storage, other, 0, 10).is_ok());
    assert_eq!(storage.check(None).unwrap(), []);
}

#[test]
fn a_backup_that_runs_out_of_space_leaves_no_files() {
    for left in [0, 4_096, 20_000, 300_000] {
        let disk = SimVfs::new(1);
        disk.plant(SimFault::Full { bytes: 64 << 20 });
        let storage = open(&disk, StorageOptions { background: false, ..full_options() });
        let table = create(&storage, "t");
        import(&storage, BulkTarget::Existing(table)).unwrap();
        append(&storage, table, 0, 2_000).unwrap();
        fill(&disk, left);
        std::thread::sleep(Duration::from_millis(120));
        if storage.create_backup().is_err() {
            let copied = disk.files().into_iter().filter(|path| path.starts_with(".checkpoint"));
            assert_eq!(copied.count(), 0, "{left} bytes free: {:?}", disk.files());
        }
    }
}

/// Regression test: a new log file used to be as long as the previous one, even if few records
/// followed.
#[test]
fn space_of_reusable_log_files_is_freed_when_generations_advance() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, manual_checkpoints());
    let table = create(&storage, "t");
    for round in 0..6 {
        for _ in 0..40 {
            append(&storage, table, round, 500).unwrap();
        }
        storage.checkpoint().unwrap();
    }
    let held = bytes_below(&disk, "db/log/");
    assert!(held > 1 << 20, "{held} bytes of log");
    storage.advance_generations().unwrap();
    assert!(bytes_below(&disk, "db/log/") <= 8_192, "{:?}", disk.files());
    append(&storage, table, 6, 70).unwrap();
    let disk = disk.kill(1);
    let storage = open(&disk, manual_checkpoints());
    assert_eq!(rows(&storage, table), 6 * 40 * 500 + 70);
    drop(storage);
}

/// Regression test: each start used to leave its preallocated log space allocated.
#[test]
fn repeated_restarts_use_no_additional_space() {
    for (clean, writes) in [(true, true), (false, true), (false, false)] {
        let mut disk = SimVfs::new(1);
        disk.plant(SimFault::Full { bytes: 64 << 20 });
        let mut used = Vec::new();
        for start in 0..20 {
            let storage = open(&disk, full_options());
            if start == 0 {
                create(&storage, "t");
            }
            if writes {
                let (kind, key) = ("k".to_owned(), "k".to_owned());
                storage.commit(vec![Change::PutRecord { kind, key, value: vec![start] }]).unwrap();
            }
            if start == 14 {
                // Later starts leave too few files for an immediate checkpoint.
                storage.checkpoint().unwrap();
            }
            if clean {
                storage.close().unwrap();
            }
            drop(storage);
            disk = disk.kill(1);
            used.push(bytes_below(&disk, "db/"));
        }
        let max = if clean { 8_192 } else { 32 << 10 };
        let steps = used[1..].windows(2).all(|pair| pair[1] <= pair[0] + max);
        assert!(steps, "clean: {clean}, writes: {writes}: {used:?}");
        let storage = open(&disk, full_options());
        wait_until(&format!("clean: {clean}, writes: {writes}: {used:?}"), SOON, || {
            bytes_below(&disk, "db/") <= used[0] + (32 << 10)
        });
        drop(storage);
    }
}

#[test]
fn a_write_that_fails_on_a_full_disk_leaves_no_files() {
    for left in [0, 10_000, 40_000, 100_000, 150_000, 200_000] {
        let disk = SimVfs::new(1);
        disk.plant(SimFault::Full { bytes: 64 << 20 });
        let no_mark = StorageOptions { disk_watermark_bytes: Some(1), ..full_options() };
        let storage = open(&disk, no_mark);
        let table = create(&storage, "t");
        import(&storage, BulkTarget::Existing(table)).unwrap();
        storage.checkpoint().unwrap();
        fill(&disk, left);
        for way in [Way::LateRows, Way::Overwrite, Way::ToParquet, Way::BulkUpdate] {
            if storage.snapshot().table_by_id(table).is_some() {
                let _ = way.run(&storage, table);
            }
        }
        disk.heal();
        wait_until(&format!("{left}: {:?}", unnamed(&disk, &storage)), SOON, || {
            unnamed(&disk, &storage).is_empty() && bytes_below(&disk, "db/stage/") == 0
        });
    }
}

#[test]
fn close_within_respects_its_timeout() {
    for commit_mode in [CommitMode::Sync, CommitMode::Async, CommitMode::NoSync] {
        let disk = SimVfs::new(1);
        let storage = open(&disk, StorageOptions { commit_mode, ..manual_checkpoints() });
        let table = create(&storage, "t");
        for day in 0..50 {
            append(&storage, table, day, 20).unwrap();
        }
        assert!(!storage.close_within(Duration::ZERO).unwrap(), "a checkpoint was written");
        assert_eq!(bytes_below(&disk, "db/t/"), 0, "{commit_mode:?}");
        drop(storage);
        let after =
            if commit_mode == CommitMode::NoSync { disk.kill(1) } else { disk.power_loss(1) };
        let storage = open(&after, manual_checkpoints());
        assert_eq!(rows(&storage, table), 1_000, "{commit_mode:?}");
        assert!(storage.close_within(Duration::from_mins(1)).unwrap());
        assert!(bytes_below(&after, "db/t/") > 0);
    }
}
