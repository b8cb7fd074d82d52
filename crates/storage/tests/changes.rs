//! Compares every change to a table with a model of rows in vectors: after the change, after a
//! checkpoint, after reopening, and for a reader of an older snapshot.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use tempfile::TempDir;
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Delete, PartitionAction, Slice, Storage,
    StorageOptions, TableSchema, TableSnapshot, Update,
};
use tidemark_types::{EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// Timestamp, identifier, symbol, string.
type Row = (i64, i64, Option<String>, Option<String>);

fn open(directory: &TempDir) -> Arc<Storage> {
    open_with(directory, true)
}

fn open_with(directory: &TempDir, ttl_by_clock: bool) -> Arc<Storage> {
    let options = StorageOptions {
        ttl_by_clock,
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        segment_rows: 40,
        run_rows: 30,
        background: false,
        ..StorageOptions::default()
    };
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    Storage::open(vfs, options).unwrap()
}

fn schema(partition_by: PartitionBy) -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("id", SqlType::Long),
        ColumnSchema::new("sym", SqlType::Symbol),
        ColumnSchema::new("note", SqlType::Varchar),
    ];
    TableSchema { timestamp: Some(0), partition_by, ..TableSchema::new("t", columns) }
}

fn table(storage: &Storage) -> Arc<TableSnapshot> {
    storage.snapshot().table("t").unwrap()
}

fn texts(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringViewArray>())
}

fn batch(schema: &TableSchema, rows: &[Row]) -> RecordBatch {
    let times = rows.iter().map(|row| Some(row.0));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times.collect::<TimestampMicrosecondArray>()),
        Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int64Array>()),
        texts(rows.iter().map(|row| row.2.clone())),
        texts(rows.iter().map(|row| row.3.clone())),
    ];
    let names = schema.columns.iter().map(|column| column.name.clone());
    let named = names.zip(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(named).unwrap()
}

fn append(storage: &Storage, rows: &[Row]) {
    let table = table(storage);
    let schema = table.schema();
    let batch = batch(schema, rows);
    let (table, schema_version) = (schema.id, schema.version);
    storage.commit(vec![Change::Append { table, schema_version, batch }]).unwrap();
}

/// All rows with their identifiers in the snapshot.
fn read(table: &TableSnapshot, slices: &[Slice]) -> Vec<(i64, Row)> {
    let mut rows = Vec::new();
    for slice in slices {
        let all = [0, 1, 2, 3, table.schema().columns.len()];
        let columns = slice.columns(&all, 0..slice.rows()).unwrap();
        let times = slice.timestamps().unwrap();
        let ids = columns[1].as_primitive::<Int64Type>();
        let symbols = columns[2].as_dictionary::<Int32Type>();
        let values = symbols.values().as_string::<i32>();
        let notes = columns[3].as_string_view();
        let row_ids = columns[4].as_primitive::<Int64Type>();
        for row in 0..slice.rows() {
            let symbol = symbols.key(row).map(|key| values.value(key).to_owned());
            let note = notes.is_valid(row).then(|| notes.value(row).to_owned());
            rows.push((row_ids.value(row), (times[row], ids.value(row), symbol, note)));
        }
    }
    rows
}

fn rows_of(table: &TableSnapshot) -> Vec<Row> {
    let rows = read(table, &table.slices().unwrap());
    assert!(rows.is_sorted_by(|a, b| a.0 < b.0), "identifiers are ascending");
    assert_eq!(rows.len() as u64, table.row_count().unwrap());
    rows.into_iter().map(|(_, row)| row).collect()
}

fn detached_of(table: &TableSnapshot) -> Vec<Row> {
    let slices = table.detached_slices().unwrap();
    read(table, &slices).into_iter().map(|(_, row)| row).collect()
}

/// Sets the symbol and note of the matching rows to `text`.
fn update(table: &Arc<TableSnapshot>, required: impl Fn(&Row) -> bool, text: &str) -> Change {
    let rows = read(table, &table.slices().unwrap());
    let rows: Vec<i64> = rows.iter().filter(|(_, row)| required(row)).map(|(id, _)| *id).collect();
    let cells = || texts(rows.iter().map(|_| Some(text.to_owned())));
    Change::Update(Update {
        base: Arc::clone(table),
        schema_version: table.schema().version,
        columns: vec![2, 3],
        values: vec![cells(), cells()],
        rows,
    })
}

/// Deletes the matching rows.
fn delete(table: &Arc<TableSnapshot>, required: impl Fn(&Row) -> bool) -> Change {
    let rows = read(table, &table.slices().unwrap());
    let rows = rows.iter().filter(|(_, row)| required(row)).map(|(id, _)| *id).collect();
    Change::Delete(Delete { base: Arc::clone(table), rows })
}

fn partitions(storage: &Storage, action: PartitionAction, floors: &[i64]) -> Change {
    let table = table(storage).schema().id;
    Change::Partitions { table, action, floors: floors.to_vec() }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Expected content of the table: rows in arrival order.
#[derive(Clone, Default)]
struct Model {
    rows: Vec<Row>,
    detached: BTreeMap<i64, Vec<Row>>,
    next: i64,
}

impl Model {
    fn sorted(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| row.0);
        rows
    }

    fn floors(&self) -> Vec<i64> {
        let mut floors: Vec<i64> = self.rows.iter().map(|row| row.0 - row.0 % DAY).collect();
        floors.sort_unstable();
        floors.dedup();
        floors
    }

    fn take(&mut self, floor: i64) -> Vec<Row> {
        let (removed, retained) = std::mem::take(&mut self.rows)
            .into_iter()
            .partition(|row| row.0 - row.0 % DAY == floor);
        self.rows = retained;
        removed
    }

    fn assert(&self, table: &TableSnapshot) {
        assert_eq!(rows_of(table), self.sorted());
        let mut detached: Vec<Row> = self.detached.values().flatten().cloned().collect();
        detached.sort_by_key(|row| row.0);
        assert_eq!(detached_of(table), detached);
    }
}

/// Commits an update, either through the log or through new segments. New segments get a few rows
/// at a time.
fn rewrite(storage: &Arc<Storage>, changes: Vec<Change>, in_bulk: bool) {
    if in_bulk {
        rewrite_in_bulk(storage, changes).unwrap();
    } else {
        storage.commit(changes).unwrap();
    }
}

fn rewrite_in_bulk(storage: &Arc<Storage>, changes: Vec<Change>) -> EngineResult<()> {
    let (mut replace, mut found) = (None, None);
    for change in changes {
        match change {
            Change::ReplaceSchema(schema) => replace = Some(schema),
            Change::Update(update) => found = Some(update),
            other => panic!("{other:?}"),
        }
    }
    let Update { base, columns, rows, values, .. } = found.unwrap();
    let hold = storage.lock_writes(base.schema().id);
    let mut bulk = hold.begin_update(base, replace, columns)?;
    for start in (0..rows.len()).step_by(7) {
        let len = (rows.len() - start).min(7);
        let values: Vec<_> = values.iter().map(|cells| cells.slice(start, len)).collect();
        bulk.push(&rows[start..start + len], &values)?;
    }
    bulk.close()?.commit()?;
    Ok(())
}

/// Applies one random change to the storage and the model.
fn step(storage: &Arc<Storage>, model: &mut Model, random: &mut Random) {
    match random.below(15) {
        0..4 => {
            let rows: Vec<Row> = (0..=random.below(20))
                .map(|_| {
                    model.next += 1;
                    let id = model.next;
                    let ts = random.below(40) as i64 * (DAY / 8);
                    (ts, id, (id % 3 > 0).then(|| format!("s{}", id % 7)), Some(format!("n{id}")))
                })
                .collect();
            append(storage, &rows);
            model.rows.extend(rows);
        }
        4..8 => {
            let (divisor, rest) = (1 + random.below(9) as i64, random.below(4) as i64);
            model.next += 1;
            let text = match random.below(3) {
                0 => format!("u{}", model.next),
                _ => format!("an updated text that is long, number {}", model.next),
            };
            let required = |row: &Row| row.1 % divisor == rest;
            let change = update(&table(storage), required, &text);
            rewrite(storage, vec![change], random.below(2) == 0);
            for row in model.rows.iter_mut().filter(|row| required(row)) {
                (row.2, row.3) = (Some(text.clone()), Some(text.clone()));
            }
        }
        8 => {
            let floors = model.floors();
            if let Some(&floor) = floors.get(random.below(6) as usize) {
                storage.commit(vec![partitions(storage, PartitionAction::Drop, &[floor])]).unwrap();
                model.take(floor);
            }
        }
        9 => {
            let floors = model.floors();
            let floor = floors.get(random.below(6) as usize);
            if let Some(&floor) = floor.filter(|floor| !model.detached.contains_key(*floor)) {
                let change = partitions(storage, PartitionAction::Detach, &[floor]);
                storage.commit(vec![change]).unwrap();
                let rows = model.take(floor);
                model.detached.insert(floor, rows);
            }
        }
        10 => {
            let Some((&floor, _)) = model.detached.first_key_value() else { return };
            if model.floors().contains(&floor) {
                let change = partitions(storage, PartitionAction::DropDetached, &[floor]);
                storage.commit(vec![change]).unwrap();
                model.detached.remove(&floor);
            } else {
                let change = partitions(storage, PartitionAction::Attach, &[floor]);
                storage.commit(vec![change]).unwrap();
                model.rows.extend(model.detached.remove(&floor).unwrap());
            }
        }
        11 => retype(storage, model, random.below(2) == 0),
        _ => step_delete(storage, model, random),
    }
}

/// Deletes scattered rows, or rows adjacent in time: whole runs, segments and partitions.
fn step_delete(storage: &Arc<Storage>, model: &mut Model, random: &mut Random) {
    let (divisor, rest) = (1 + random.below(9) as i64, random.below(4) as i64);
    let from = random.below(40) as i64 * (DAY / 8);
    let scattered = random.below(3) > 0;
    let required = |row: &Row| {
        if scattered { row.1 % divisor == rest } else { row.0 >= from && row.0 < from + DAY }
    };
    storage.commit(vec![delete(&table(storage), required)]).unwrap();
    model.rows.retain(|row| !required(row));
}

/// Changes the type of the note and marks each string, in one commit.
fn retype(storage: &Arc<Storage>, model: &mut Model, in_bulk: bool) {
    if !model.detached.is_empty() {
        return;
    }
    let marked = |note: &Option<String>| note.as_ref().map(|note| format!("{note}!"));
    let change = || {
        let table = table(storage);
        let mut schema = TableSchema::clone(table.schema());
        let other = match schema.columns[3].sql_type {
            SqlType::Varchar => SqlType::String,
            _ => SqlType::Varchar,
        };
        schema.columns[3] = ColumnSchema::new("note", other);
        let rows = read(&table, &table.slices().unwrap());
        let change = Change::Update(Update {
            base: Arc::clone(&table),
            schema_version: schema.version + 1,
            columns: vec![3],
            values: vec![texts(rows.iter().map(|(_, row)| marked(&row.3)))],
            rows: rows.iter().map(|(id, _)| *id).collect(),
        });
        vec![Change::ReplaceSchema(schema), change]
    };
    rewrite(storage, change(), in_bulk);
    for row in &mut model.rows {
        row.3 = marked(&row.3);
    }
}

#[test]
fn random_changes_match_the_model() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("SEED={seed}");
    for round in 0..16 {
        let directory = TempDir::new().unwrap();
        let mut storage = open(&directory);
        storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
        let (mut model, mut random) = (Model::default(), Random(seed * 1_000 + round));
        let mut pinned: Vec<(Arc<TableSnapshot>, Model)> = Vec::new();
        for _ in 0..40 {
            step(&storage, &mut model, &mut random);
            match random.below(10) {
                0 => storage.checkpoint().unwrap(),
                1 => pinned.push((table(&storage), model.clone())),
                2 => {
                    pinned.clear();
                    if random.below(2) == 0 {
                        storage.close().unwrap();
                    }
                    drop(storage);
                    storage = open(&directory);
                }
                _ => {}
            }
            model.assert(&table(&storage));
        }
        // Older readers still see their rows.
        for (table, model) in &pinned {
            model.assert(table);
        }
    }
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn random_changes_match_the_model_during_checkpoints() {
    for round in 0..3 {
        let directory = TempDir::new().unwrap();
        let storage = open(&directory);
        storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
        let (mut model, mut random) = (Model::default(), Random(77 + round));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    storage.checkpoint().unwrap();
                }
            });
            // Stops the checkpoints even if a comparison fails, because the thread scope waits for
            // the checkpoints to end.
            let _stop = StopAtEnd(&stop);
            for _ in 0..120 {
                step(&storage, &mut model, &mut random);
                model.assert(&table(&storage));
            }
        });
        storage.checkpoint().unwrap();
        model.assert(&table(&storage));
        drop(storage);
        let storage = open(&directory);
        model.assert(&table(&storage));
        storage.checkpoint().unwrap();
        drop(storage);
        model.assert(&table(&open(&directory)));
    }
}

/// Found by kill tests: INSERTs during ALTER TABLE were refused twice in a row.
#[test]
fn an_append_is_refused_only_after_a_schema_change() {
    let directory = TempDir::new().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let storage = Storage::open(vfs, StorageOptions::default()).unwrap();
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|_| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let known = table(&storage);
                    let (table_id, schema_version) = (known.schema().id, known.schema().version);
                    let batch = batch(known.schema(), &[(1, 1, None, None)]);
                    let change = Change::Append { table: table_id, schema_version, batch };
                    if let Err(error) = storage.commit(vec![change]) {
                        assert_eq!(error.code, ErrorCode::Replan);
                        assert_ne!(table(&storage).schema().version, schema_version);
                    }
                }
            })
        });
        for _ in 0..200 {
            let same = TableSchema::clone(table(&storage).schema());
            storage.commit(vec![Change::ReplaceSchema(same)]).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

#[test]
fn an_update_is_refused_if_its_rows_have_moved() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    append(&storage, &[(5, 1, None, None), (9, 2, None, None)]);
    let stale = update(&table(&storage), |row| row.1 == 2, "late");
    append(&storage, &[(7, 3, None, None)]);
    let error = storage.commit(vec![stale]).unwrap_err();
    assert_eq!(error.code, ErrorCode::Replan);
    assert!(rows_of(&table(&storage)).iter().all(|row| row.3.is_none()));
    // A checkpoint does not change row identifiers.
    let fresh = update(&table(&storage), |row| row.1 == 2, "now");
    storage.checkpoint().unwrap();
    storage.commit(vec![fresh]).unwrap();
    let notes: Vec<_> = rows_of(&table(&storage)).into_iter().map(|row| row.3).collect();
    assert_eq!(notes, [None, None, Some("now".to_owned())]);
}

#[test]
fn an_update_is_refused_if_another_commit_changed_its_cells() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    append(&storage, &[(5, 1, None, None), (9, 2, None, None)]);
    let stale = update(&table(&storage), |_| true, "old");
    let first = update(&table(&storage), |row| row.1 == 1, "first");
    storage.commit(vec![first]).unwrap();
    storage.checkpoint().unwrap();
    assert_eq!(storage.commit(vec![stale]).unwrap_err().code, ErrorCode::Replan);
    let notes: Vec<_> = rows_of(&table(&storage)).into_iter().map(|row| row.3).collect();
    assert_eq!(notes, [Some("first".to_owned()), None]);
}

#[test]
fn checkpoints_do_not_abort_a_bulk_update() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    let rows: Vec<Row> = (0..200).map(|id| (id * HOUR, id, None, None)).collect();
    append(&storage, &rows);
    // Late rows in separate segments, which the checkpoint merges.
    append(&storage, &(0..200).map(|id| (id * HOUR, 500 + id, None, None)).collect::<Vec<_>>());
    for retyped in [false, true] {
        let Change::Update(found) = update(&table(&storage), |_| true, "changed") else { panic!() };
        let hold = storage.lock_writes(found.base.schema().id);
        let schema = retyped.then(|| {
            let mut schema = TableSchema::clone(found.base.schema());
            schema.columns[3] = ColumnSchema::new("note", SqlType::String);
            schema
        });
        let mut bulk = hold.begin_update(Arc::clone(&found.base), schema, vec![3]).unwrap();
        bulk.push(&found.rows[..150], &[found.values[1].slice(0, 150)]).unwrap();
        // Gives the checkpoint something to write.
        let kind = "k".to_owned();
        let record = Change::PutRecord { kind, key: "n".to_owned(), value: vec![1] };
        storage.commit(vec![record]).unwrap();
        storage.checkpoint().unwrap();
        bulk.push(&found.rows[150..], &[found.values[1].slice(150, found.rows.len() - 150)])
            .unwrap();
        storage.checkpoint().unwrap();
        bulk.close().unwrap().commit().unwrap();
        let changed = |row: &Row| row.3.as_deref() == Some("changed");
        assert!(rows_of(&table(&storage)).iter().all(changed));
        drop(hold);
        append(&storage, &[(HOUR, 1_000, None, Some("changed".to_owned()))]);
    }
    storage.checkpoint().unwrap();
    let expected = rows_of(&table(&storage));
    assert_eq!(expected.len(), 402);
    drop(storage);
    assert_eq!(rows_of(&table(&open(&directory))), expected);
}

#[test]
fn a_write_lock_blocks_writers_but_not_readers() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    append(&storage, &[(1, 1, None, None)]);
    let hold = storage.lock_writes(table(&storage).schema().id);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| append(&storage, &[(2, 2, None, None)]));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!writer.is_finished());
        assert_eq!(rows_of(&table(&storage)).len(), 1);
        hold.commit(vec![update(&table(&storage), |_| true, "held")]).unwrap();
        drop(hold);
        writer.join().unwrap();
    });
    let notes: Vec<_> = rows_of(&table(&storage)).into_iter().map(|row| row.3).collect();
    assert_eq!(notes, [Some("held".to_owned()), None]);
}

#[test]
fn errors_name_the_missing_partition() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    append(&storage, &[(1, 1, None, None)]);
    let refused = |action, floor| {
        storage.commit(vec![partitions(&storage, action, &[floor])]).unwrap_err().message
    };
    let expected = "partition '1970-01-02' does not exist [table=t]";
    assert_eq!(refused(PartitionAction::Drop, DAY), expected);
    assert_eq!(refused(PartitionAction::Detach, DAY), expected);
    let expected = "partition '1970-01-01' is not detached [table=t]";
    assert_eq!(refused(PartitionAction::Attach, 0), expected);
    assert_eq!(refused(PartitionAction::DropDetached, 0), expected);
    assert_eq!(rows_of(&table(&storage)).len(), 1);
}

#[test]
fn a_partition_is_dropped_without_opening_its_files() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    append(&storage, &[(1, 1, None, None), (DAY, 2, None, None)]);
    storage.close().unwrap();
    drop(storage);
    let folder = directory.path().join("db/t/1");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("1970-01-01") {
            let len = std::fs::metadata(&path).unwrap().len() as usize;
            std::fs::write(&path, vec![0x55; len]).unwrap();
        }
    }
    let storage = open(&directory);
    assert_eq!(
        table(&storage).slices().unwrap()[0].timestamps().unwrap_err().code,
        ErrorCode::Damaged
    );
    storage.commit(vec![partitions(&storage, PartitionAction::Drop, &[0])]).unwrap();
    assert_eq!(rows_of(&table(&storage)).len(), 1);
    storage.checkpoint().unwrap();
    drop(storage);
    assert_eq!(rows_of(&table(&open(&directory))).len(), 1);
}

#[test]
fn a_bulk_write_is_refused_if_a_column_type_has_changed_since_it_began() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(vec![Change::CreateTable(schema(PartitionBy::Day))]).unwrap();
    append(&storage, &[(1, 1, None, Some("old".to_owned()))]);
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table(&storage).schema().id)).unwrap();
    let rows = [(2, 2, None, Some("late".to_owned()))];
    bulk.push(batch(table(&storage).schema(), &rows)).unwrap();
    retype(&storage, &mut Model::default(), false);
    let error = bulk.finish().unwrap_err();
    assert!(error.message.starts_with("column 'note' of table 't'"), "{}", error.message);
    let notes: Vec<_> = rows_of(&table(&storage)).into_iter().map(|row| row.3).collect();
    assert_eq!(notes, [Some("old!".to_owned())]);
}

#[test]
fn ttl_drops_only_whole_partitions() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let schema = TableSchema { ttl_hours_or_months: 48, ..schema(PartitionBy::Day) };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    let days = |storage: &Storage| -> Vec<i64> {
        rows_of(&table(storage)).iter().map(|row| row.0 / DAY).collect()
    };
    append(&storage, &[(0, 1, None, None), (DAY, 2, None, None), (2 * DAY, 3, None, None)]);
    assert_eq!(days(&storage), [0, 1, 2]);
    // The first day ended 48 hours before this row.
    append(&storage, &[(3 * DAY, 4, None, None)]);
    assert_eq!(days(&storage), [1, 2, 3]);
    append(&storage, &[(5, 5, None, None)]);
    assert_eq!(days(&storage), [1, 2, 3], "a late row expires immediately");
    let mut schema = TableSchema::clone(table(&storage).schema());
    schema.ttl_hours_or_months = 24;
    storage.commit(vec![Change::ReplaceSchema(schema)]).unwrap();
    assert_eq!(days(&storage), [2, 3], "a shorter time to live applies immediately");
    // A row in the far future does not expire data that is still recent according to the clock.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let today = now.as_micros() as i64 / DAY;
    append(&storage, &[(today * DAY, 6, None, None)]);
    assert_eq!(days(&storage), [today]);
    append(&storage, &[((today + 400) * DAY, 7, None, None)]);
    assert_eq!(days(&storage), [today, today + 400]);
    drop(storage);
    assert_eq!(days(&open(&directory)), [today, today + 400]);
    // Without the clock, only the newest row determines expiry.
    let storage = open_with(&directory, false);
    append(&storage, &[((today + 400) * DAY, 8, None, None)]);
    assert_eq!(days(&storage), [today + 400, today + 400]);
}

#[test]
fn a_cancelled_bulk_update_leaves_no_files() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let change = Change::CreateTable(schema(PartitionBy::Day));
    storage.commit(vec![change]).unwrap();
    let rows: Vec<Row> = (0..200).map(|id| (id * HOUR, id, None, Some("n".into()))).collect();
    append(&storage, &rows);
    storage.checkpoint().unwrap();
    let folder = directory.path().join("db/t").join(table(&storage).schema().id.to_string());
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    let Change::Update(found) = update(&table(&storage), |_| true, "changed") else { panic!() };
    let hold = storage.lock_writes(found.base.schema().id);
    let begin = || hold.begin_update(Arc::clone(&found.base), None, vec![2, 3]).unwrap();
    let mut bulk = begin();
    bulk.push(&found.rows, &found.values).unwrap();
    assert!(files().len() > before.len(), "portions are written before the end");
    let error = bulk.push(&found.rows[..1], &found.values).unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
    drop(bulk);
    assert_eq!(files(), before);
    assert_eq!(rows_of(&table(&storage)), rows);
    // A row is added before the update commits. The commit is refused and the update must find its
    // rows again, so the added row is not lost.
    let mut bulk = begin();
    bulk.push(&found.rows, &found.values).unwrap();
    drop(hold);
    append(&storage, &[(0, 1_000, None, None)]);
    assert_eq!(bulk.close().unwrap().commit().unwrap_err().code, ErrorCode::Replan);
    assert_eq!(files(), before);
    assert_eq!(table(&storage).row_count().unwrap(), 201);
}
