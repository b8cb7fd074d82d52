//! Reused log files. After a power loss, old content is never mistaken for new content, no matter
//! how much of the new content remains.

#![allow(clippy::unwrap_used, clippy::case_sensitive_file_extension_comparisons, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tidemark_storage::{
    Change, ColumnSchema, CommitMode, PlantedFault, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{EngineResult, PartitionBy, SqlType};
use tidemark_vfs::{SimFault, SimVfs};

/// Rows per commit.
const ROWS: usize = 10;
/// Bytes of a log file's header, and of a small group.
const BLOCK: usize = 4_096;

fn open(vfs: &SimVfs) -> Arc<Storage> {
    open_with(vfs, CommitMode::NoSync, 2)
}

fn open_with(vfs: &SimVfs, commit_mode: CommitMode, keep_generations: u32) -> Arc<Storage> {
    let options = StorageOptions {
        commit_mode,
        keep_generations,
        log_file_bytes: 8 * BLOCK as u64,
        background: false,
        ..StorageOptions::default()
    };
    Storage::open(Arc::new(vfs.clone()), options).unwrap()
}

fn create(storage: &Storage) {
    let columns =
        vec![ColumnSchema::new("ts", SqlType::Timestamp), ColumnSchema::new("id", SqlType::Long)];
    let schema = TableSchema::new("t", columns);
    let schema = TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
}

fn append(storage: &Storage) {
    try_append(storage).unwrap();
}

fn try_append(storage: &Storage) -> EngineResult<()> {
    let table = storage.snapshot().table("t").unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    let times = (0..ROWS as i64).map(Some).collect::<TimestampMicrosecondArray>();
    let ids = (0..ROWS as i64).map(Some).collect::<Int64Array>();
    let columns: [(&str, ArrayRef); 2] = [("ts", Arc::new(times)), ("id", Arc::new(ids))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    storage.commit(vec![Change::Append { table, schema_version, batch }]).map(drop)
}

fn rows(storage: &Storage) -> usize {
    let table = storage.snapshot().table("t").unwrap();
    table.slices().unwrap().iter().map(tidemark_storage::Slice::rows).sum()
}

/// Checks that between `durable` and `written` rows remain after every possible power loss.
fn survives_power_loss(vfs: &SimVfs, durable: usize, written: usize) {
    for seed in 0..40 {
        let storage = open(&vfs.power_loss(seed));
        assert_eq!(storage.repairs(), [] as [String; 0], "seed {seed}");
        assert_eq!(storage.snapshot().damages(), [], "seed {seed}");
        let left = rows(&storage);
        assert!((durable..=written).contains(&left), "seed {seed}: {left} rows of {durable}");
    }
}

/// After a block that never reached the disk, a log file may contain transactions that were never
/// durable. Their numbers are reassigned before the file can be reused.
#[test]
fn transactions_that_were_never_durable_do_not_reappear_in_a_reused_log_file() {
    let vfs = SimVfs::new(1);
    let storage = open(&vfs);
    create(&storage);
    (0..20).for_each(|_| append(&storage));
    storage.flush().unwrap();
    let first_log = vfs.files().into_iter().find(|path| path.ends_with(".log")).unwrap();
    let vfs = vfs.kill(1);
    drop(storage);
    // Simulates a block that never reached the disk, so that only the table and its first rows are
    // valid.
    vfs.flip(&first_log, 3 * BLOCK, 0xff).unwrap();

    let storage = open(&vfs);
    assert_eq!(rows(&storage), ROWS);
    for _ in 0..2 {
        append(&storage); // The second checkpoint frees the earlier files.
        storage.checkpoint().unwrap();
    }
    let mut durable = rows(&storage);
    for _ in 0..20 {
        // Writes more than a file holds, so that the log continues in another file, which was never
        // synced.
        append(&storage);
        survives_power_loss(&vfs, durable, durable + ROWS);
        storage.flush().unwrap();
        durable += ROWS;
        survives_power_loss(&vfs, durable, durable);
    }
}

/// A commit fails although its data is on disk, and its number is reassigned. Power is lost at
/// every step while the file is reused.
#[test]
fn a_refused_transaction_does_not_reappear_in_a_reused_log_file() {
    for (seed, cut) in (0..4).flat_map(|seed| (1..60).map(move |cut| (seed, cut))) {
        let vfs = SimVfs::new(seed);
        let storage = open_with(&vfs, CommitMode::Sync, 1);
        create(&storage);
        append(&storage);
        vfs.plant(SimFault::FailSync { path: ".log".to_owned(), at: 0 });
        try_append(&storage).unwrap_err();
        storage.checkpoint().unwrap();
        vfs.plant(SimFault::PowerLoss { at: vfs.operations() + cut });
        let mut durable = ROWS;
        while try_append(&storage).is_ok() {
            durable += ROWS;
        }
        survives_power_loss(&vfs, durable, durable + ROWS);
    }
}

/// Simulates power loss while a file is reused for a new group whose lengths equal those of the old
/// group. Counts the results: the database before or after the new group (1), or any other state
/// (0).
fn after_reuse(planted: Option<PlantedFault>) -> BTreeMap<usize, usize> {
    let options = StorageOptions {
        log_file_bytes: 8 * BLOCK as u64,
        background: false,
        planted,
        ..StorageOptions::default()
    };
    let put = |storage: &Storage, key: usize| {
        let (kind, key, value) = ("setting".to_owned(), format!("key {key:04}"), vec![1; 40]);
        storage.commit(vec![Change::PutRecord { kind, key, value }])
    };
    let mut left = BTreeMap::new();
    for cut in 1..4 {
        let vfs = SimVfs::new(cut);
        let storage = Storage::open(Arc::new(vfs.clone()), options.clone()).unwrap();
        for key in 0..5 {
            put(&storage, key).unwrap();
            storage.checkpoint().unwrap();
        }
        vfs.plant(SimFault::PowerLoss { at: vfs.operations() + cut });
        put(&storage, 5).unwrap_err();
        for seed in 0..400 {
            let lost = Arc::new(vfs.power_loss(seed));
            let storage = Storage::open(lost, options.clone()).unwrap();
            let snapshot = storage.snapshot();
            let known = snapshot.records("setting").count();
            let is_sixth = snapshot.records("setting").any(|(key, _)| key == "key 0005");
            // A surviving old record at this offset would count as a transaction, but would not add
            // a key.
            let consistent = known == 5 + usize::from(is_sixth) && (snapshot.lsn() == known as u64);
            *left.entry(usize::from(consistent)).or_default() += 1;
        }
    }
    left
}

#[test]
fn stale_bytes_in_a_reused_log_file_do_not_complete_a_torn_group() {
    assert_eq!(after_reuse(None).get(&0), None);
    let planted = after_reuse(Some(PlantedFault::IgnoreGroupBinding));
    assert!(planted.contains_key(&0), "the planted fault was not detected: {planted:?}");
}
