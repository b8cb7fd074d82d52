//! Watched tables and materialized views: touched ranges survive checkpoints and restarts, rows are
//! deleted by time, and no other transaction changes the rows of a view.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tempfile::TempDir;
use tidemark_storage::{
    Change, ColumnSchema, CommitMode, PartitionAction, Storage, StorageOptions, TableId,
    TableSchema, TimeRange,
};
use tidemark_types::{EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

fn open(directory: &TempDir) -> Arc<Storage> {
    let options = StorageOptions {
        commit_mode: CommitMode::NoSync,
        background: false,
        ..StorageOptions::default()
    };
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    Storage::open(vfs, options).unwrap()
}

fn create(storage: &Storage, name: &str) -> TableId {
    let columns =
        vec![ColumnSchema::new("ts", SqlType::Timestamp), ColumnSchema::new("x", SqlType::Long)];
    let id = storage.reserve_table_id();
    let schema = TableSchema {
        id,
        timestamp: Some(0),
        partition_by: PartitionBy::Day,
        ..TableSchema::new(name, columns)
    };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    id
}

fn rows(storage: &Storage, table: TableId, times: &[i64]) -> Change {
    let schema = storage.snapshot().table_by_id(table).unwrap();
    let cells: [(&str, ArrayRef); 2] = [
        ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times.iter().copied()))),
        ("x", Arc::new(Int64Array::from_iter_values(times.iter().copied()))),
    ];
    let batch = RecordBatch::try_from_iter(cells).unwrap();
    Change::Append { table, schema_version: schema.schema().version, batch }
}

fn record(kind: &str, table: TableId) -> Change {
    let (kind, key, value) = (kind.to_owned(), table.to_string(), b"{}".to_vec());
    Change::PutRecord { kind, key, value }
}

fn touched(storage: &Storage, table: TableId, after: u64) -> Option<Vec<(i64, i64)>> {
    storage.snapshot().touched(table)?.after(after)
}

#[test]
fn changed_ranges_survive_checkpoints_and_restarts_until_forgotten() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let table = create(&storage, "t");
    let commit = |storage: &Storage, change| storage.commit(vec![change]).unwrap().lsn;
    commit(&storage, rows(&storage, table, &[1, 2]));
    assert_eq!(touched(&storage, table, 0), None, "the table is not watched");
    let began = commit(&storage, Change::Watch { table, through: 0 });
    let far = 30 * DAY;
    let first = commit(&storage, rows(&storage, table, &[HOUR, HOUR + 5, far]));
    let expected = vec![(HOUR, HOUR + 5), (far, far)];
    assert_eq!(touched(&storage, table, began), Some(expected.clone()));
    drop(storage);
    let storage = open(&directory);
    assert_eq!(touched(&storage, table, began), Some(expected.clone()), "replayed");
    storage.checkpoint().unwrap();
    drop(storage);
    let storage = open(&directory);
    assert_eq!(touched(&storage, table, began), Some(expected), "from the manifest");
    let clear = Change::Clear { table, ranges: vec![TimeRange { lo: HOUR, hi: HOUR + 1 }] };
    let second = commit(&storage, clear);
    assert_eq!(touched(&storage, table, first), Some(vec![(HOUR, HOUR)]));
    let floors = vec![far];
    let drops = Change::Partitions { table, action: PartitionAction::Drop, floors };
    let third = commit(&storage, drops);
    assert_eq!(
        touched(&storage, table, second),
        Some(vec![]),
        "dropped partitions do not count as touched"
    );
    commit(&storage, Change::Watch { table, through: third });
    assert_eq!(touched(&storage, table, second), None, "forgotten");
    assert_eq!(touched(&storage, table, third), Some(vec![]));
    commit(&storage, Change::Truncate(table));
    assert_eq!(
        touched(&storage, table, third),
        Some(vec![]),
        "truncated rows do not count as touched"
    );
    let known = storage.snapshot().touched(table).unwrap();
    let known: Vec<bool> = known.retired.iter().map(|range| range.lsn > third).collect();
    assert_eq!(known, [true, false], "only the truncated range is newer");
    commit(&storage, Change::DropTable(table));
    assert!(storage.snapshot().touched(table).is_none());
}

#[test]
fn clear_deletes_the_rows_of_a_time_range() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let table = create(&storage, "t");
    let times: Vec<i64> = (0..100).map(|number| number * HOUR).collect();
    storage.commit(vec![rows(&storage, table, &times[..60])]).unwrap();
    storage.checkpoint().unwrap();
    storage.commit(vec![rows(&storage, table, &times[40..])]).unwrap();
    let count = || storage.snapshot().table_by_id(table).unwrap().row_count().unwrap();
    assert_eq!(count(), 120);
    let ranges = vec![
        TimeRange { lo: i64::MIN, hi: 10 * HOUR },
        TimeRange { lo: 50 * HOUR, hi: 70 * HOUR },
        TimeRange { lo: 99 * HOUR, hi: i64::MAX },
    ];
    storage.commit(vec![Change::Clear { table, ranges }]).unwrap();
    assert_eq!(count(), 120 - 10 - 30 - 1);
    storage.checkpoint().unwrap();
    assert_eq!(count(), 120 - 10 - 30 - 1);
    let nothing = Change::Clear { table, ranges: vec![TimeRange { lo: 0, hi: HOUR }] };
    storage.commit(vec![nothing]).unwrap();
    assert_eq!(count(), 120 - 10 - 30 - 1);
}

#[test]
fn rows_of_a_view_change_only_together_with_their_state_record() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let table = create(&storage, "v");
    storage.commit(vec![record("materialized_view", table)]).unwrap();
    let refused = |changes: Vec<Change>| -> EngineResult<()> {
        let error = storage.commit(changes).unwrap_err();
        assert_eq!(error.message, "cannot modify materialized view [view=v]");
        Ok(())
    };
    refused(vec![rows(&storage, table, &[1])]).unwrap();
    refused(vec![Change::Truncate(table)]).unwrap();
    refused(vec![Change::Clear { table, ranges: vec![] }]).unwrap();
    let expect = |value: Option<&[u8]>| Change::Expect {
        kind: "materialized_state".to_owned(),
        key: table.to_string(),
        value: value.map(<[u8]>::to_vec),
    };
    let own = || vec![rows(&storage, table, &[1]), record("materialized_state", table)];
    let mut changes = own();
    changes.insert(0, expect(None));
    storage.commit(changes).unwrap();
    let mut again = own();
    again.insert(0, expect(None));
    assert_eq!(storage.commit(again).unwrap_err().code, ErrorCode::Replan);
    let mut right = own();
    right.insert(0, expect(Some(b"{}")));
    storage.commit(right).unwrap();
    assert_eq!(storage.snapshot().table("v").unwrap().row_count().unwrap(), 2);
    storage.commit(vec![Change::DropTable(table)]).unwrap();
    let snapshot = storage.snapshot();
    assert!(snapshot.record("materialized_view", &table.to_string()).is_none());
    assert!(snapshot.record("materialized_state", &table.to_string()).is_none());
}
