//! A random client that performs commits, bulk writes, schema changes and checkpoints, and the
//! history of what the storage has guaranteed to the client.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Snapshot, Storage, TableSchema, TimeRange,
};
use tidemark_types::double_array::DoubleArrayBuilder;
use tidemark_types::{EngineError, EngineResult, PartitionBy, SqlType};
use tidemark_vfs::SimVfs;

use crate::model::{COPY, Model, ModelTable, Row, is_followed, push_book};

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// All states acknowledged to a client so far.
#[derive(Debug, Clone)]
pub(crate) struct History {
    /// The initial fingerprint, then the fingerprint after each acknowledged transaction.
    pub(crate) states: Vec<u64>,
    /// For each failed or in-flight transaction, the number of transactions acknowledged before it,
    /// and the fingerprint after it.
    pub(crate) maybe: Vec<(usize, u64)>,
    /// Index of the last entry in `states` that a power loss must not undo.
    pub(crate) durable: usize,
    pub(crate) model: Model,
    /// Earlier models, excluding the current one, oldest first.
    pub(crate) past: Vec<Model>,
    pub(crate) next_id: i64,
    /// Possible outcomes of CHECKPOINT CREATE: a backup with one of these fingerprints, or no
    /// backup.
    pub(crate) copies: Vec<Option<u64>>,
    /// Number of damaged segments that were skipped.
    pub(crate) given_up: u64,
}

impl History {
    pub(crate) fn new() -> Self {
        let model = Model::default();
        let states = vec![model.fingerprint()];
        let (maybe, past, copies) = (Vec::new(), Vec::new(), vec![None]);
        Self { states, maybe, durable: 0, model, past, next_id: 0, copies, given_up: 0 }
    }

    /// Whether a database with this fingerprint meets the guarantees. It must reflect the first
    /// acknowledged transactions, at least `at_least` of them, possibly followed by an in-flight
    /// transaction.
    pub(crate) fn allows(&self, fingerprint: u64, at_least: usize) -> bool {
        self.states[at_least..].contains(&fingerprint)
            || self.maybe.iter().any(|(after, f)| *after >= at_least && *f == fingerprint)
    }

    /// Continues from the recovered state, which counts as durable.
    pub(crate) fn restart(&mut self, model: Model) {
        self.states = vec![model.fingerprint()];
        self.maybe.clear();
        self.durable = 0;
        self.past.clear();
        self.model = model;
    }

    /// Returns the index of the last entry in `states` that killing the process must not undo. The
    /// page cache also retains later writes unless a sync failed.
    pub(crate) fn after_kill(&self, sync_failed: bool) -> usize {
        if sync_failed { self.durable } else { self.acknowledged() }
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.states.len() - 1
    }

    pub(crate) fn attempt(
        &mut self,
        next: Model,
        mode: CommitMode,
        commit: impl FnOnce() -> EngineResult<()>,
    ) -> EngineResult<()> {
        let fingerprint = next.fingerprint();
        match commit() {
            // A change without effect is not logged, so it adds no state.
            Ok(()) if self.states.last() == Some(&fingerprint) => Ok(()),
            Ok(()) => {
                self.states.push(fingerprint);
                self.past.push(std::mem::replace(&mut self.model, next));
                if mode == CommitMode::Sync {
                    self.durable = self.acknowledged();
                }
                Ok(())
            }
            Err(error) => {
                self.maybe.push((self.acknowledged(), fingerprint));
                Err(error)
            }
        }
    }
}

/// An action that the client can perform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Append,
    Bulk,
    Checkpoint,
    /// Releases the previous generation.
    Advance,
    Flush,
    DropOrTruncate,
    AddColumn,
    PutRecord,
    /// Changes rows or partitions, for example with an UPDATE.
    Change,
    /// Retains the current snapshot.
    Pin,
    /// Releases the retained snapshot and creates a table.
    Create,
    /// Creates or refreshes a copy of a table.
    Refresh,
}

impl Action {
    /// Relative frequency of each action.
    const WEIGHTS: &[(Self, u32)] = &[
        (Self::Append, 50),
        (Self::Bulk, 12),
        (Self::Checkpoint, 14),
        (Self::Advance, 5),
        (Self::Flush, 4),
        (Self::DropOrTruncate, 3),
        (Self::AddColumn, 3),
        (Self::PutRecord, 14),
        (Self::Change, 7),
        (Self::Pin, 2),
        (Self::Create, 2),
        (Self::Refresh, 10),
    ];

    /// Every action, ordered so that actions encounter the results of earlier actions.
    pub(crate) const SCRIPT: &[Self] = &[
        Self::Create,
        Self::Append,
        Self::Append,
        Self::PutRecord,
        Self::Create,
        Self::Append,
        Self::Refresh,
        Self::Bulk,
        Self::Checkpoint,
        Self::Refresh,
        Self::Refresh,
        Self::Append,
        Self::Pin,
        Self::AddColumn,
        Self::Append,
        Self::Bulk,
        Self::Bulk,
        Self::Flush,
        Self::DropOrTruncate,
        Self::Append,
        Self::Change,
        Self::Refresh,
        Self::Change,
        Self::Checkpoint,
        Self::Refresh,
        Self::Advance,
        Self::Create,
        Self::Append,
        Self::Change,
        Self::Bulk,
        Self::PutRecord,
        Self::Change,
        Self::Checkpoint,
        Self::Change,
        Self::DropOrTruncate,
        Self::Append,
        Self::Change,
        Self::Checkpoint,
        Self::Append,
        Self::Advance,
        Self::DropOrTruncate,
        Self::Checkpoint,
        Self::Advance,
        Self::Append,
    ];
}

/// A client of one storage.
pub(crate) struct Client<'a> {
    pub(crate) storage: &'a Arc<Storage>,
    pub(crate) rng: &'a mut ChaCha8Rng,
    pub(crate) history: &'a mut History,
    /// The old snapshot that a reader retains, if any.
    pub(crate) pinned: Option<Arc<Snapshot>>,
}

impl Client<'_> {
    /// Performs a random action. Any error that it returns comes from the storage.
    pub(crate) fn act(&mut self) -> EngineResult<()> {
        let weighted = Action::WEIGHTS.choose_weighted(self.rng, |(_, weight)| *weight);
        self.perform(weighted.map_or(Action::Append, |(action, _)| *action))
    }

    pub(crate) fn perform(&mut self, action: Action) -> EngineResult<()> {
        match action {
            Action::Append => self.append(),
            Action::Bulk => self.bulk(),
            Action::Checkpoint => {
                if self.rng.random_bool(0.3) {
                    self.storage.checkpoint_lean()?;
                } else {
                    self.storage.checkpoint()?;
                }
                self.history.durable = self.history.acknowledged();
                Ok(())
            }
            Action::Advance => self.storage.advance_generations(),
            Action::Flush => {
                self.storage.flush()?;
                self.history.durable = self.history.acknowledged();
                Ok(())
            }
            Action::DropOrTruncate => self.drop_or_truncate(),
            Action::AddColumn => self.add_column(),
            Action::PutRecord => self.put_record(),
            Action::Change => self.change(),
            Action::Pin => {
                self.pinned = Some(self.storage.snapshot());
                Ok(())
            }
            Action::Refresh => self.refresh(),
            Action::Create => {
                self.pinned = None;
                self.create(Model::clone(&self.history.model)).map(drop)
            }
        }
    }

    /// Creates a backup of the database, or releases the existing backup.
    pub(crate) fn copy_or_release(&mut self) -> EngineResult<()> {
        let (required, done) = if self.history.copies == [None] {
            let required = Some(self.history.model.fingerprint());
            (required, self.storage.create_backup())
        } else {
            (None, self.storage.release_backup())
        };
        match &done {
            Ok(()) => self.history.copies = vec![required],
            Err(_) => self.history.copies.push(required),
        }
        done
    }

    /// Declares a segment damaged and recovers its table without that segment. The expected result
    /// is determined on a copy of the disk.
    pub(crate) fn skip(&mut self, disk: &SimVfs) -> EngineResult<()> {
        let Some(name) = self.some_table()? else { return Ok(()) };
        let snapshot = self.storage.snapshot();
        let id = snapshot.table(&name).ok_or_else(|| lost(&name))?.schema().id;
        let Some(segment) = self.storage.segment_names(id).choose(self.rng).cloned() else {
            return Ok(());
        };
        if disk.sync_has_failed() || disk.power_is_off() {
            return Ok(()); // The copy would lack visible changes.
        }
        let copy = Storage::open(Arc::new(disk.kill(0)), self.storage.options().clone())?;
        if !copy.condemn(id, &segment) {
            return Ok(());
        }
        copy.skip_damage(id)?;
        let next = Model::read(&copy.snapshot())?;
        let fingerprint = next.fingerprint();
        self.storage.condemn(id, &segment);
        let (storage, mode) = (Arc::clone(self.storage), self.mode());
        let mut is_durable = false;
        self.history.attempt(next, mode, || {
            let skipped = storage.skip_damage(id).map(drop);
            is_durable = skipped.is_ok();
            // The skip may be committed even though its final checkpoint failed.
            let seen = Model::read(&storage.snapshot()).map(|model| model.fingerprint());
            if seen == Ok(fingerprint) { Ok(()) } else { skipped }
        })?;
        self.history.given_up += 1;
        if is_durable {
            self.history.durable = self.history.acknowledged();
        }
        Ok(())
    }

    fn mode(&self) -> CommitMode {
        self.storage.options().commit_mode
    }

    pub(crate) fn commit(&mut self, next: Model, changes: Vec<Change>) -> EngineResult<()> {
        let (storage, mode) = (Arc::clone(self.storage), self.mode());
        self.history.attempt(next, mode, || storage.commit(changes).map(drop))
    }

    fn schema(&mut self, name: &str) -> TableSchema {
        let columns = vec![
            ColumnSchema::new("ts", SqlType::Timestamp),
            ColumnSchema::new("id", SqlType::Long),
            ColumnSchema::new("sym", SqlType::Symbol),
            ColumnSchema::new("note", SqlType::Varchar),
            ColumnSchema::new("book", SqlType::DoubleArray(2)),
        ];
        let units = [PartitionBy::None, PartitionBy::Hour, PartitionBy::Day];
        let partition_by = *units.choose(self.rng).unwrap_or(&PartitionBy::Day);
        let timestamp = (partition_by != PartitionBy::None || self.rng.random()).then_some(0);
        let mut schema = TableSchema { timestamp, partition_by, ..TableSchema::new(name, columns) };
        if timestamp.is_some() && self.rng.random_bool(0.4) {
            // The ids that the new table's columns will get.
            schema.dedup_keys = if self.rng.random() { vec![1] } else { vec![1, 3] };
        }
        schema
    }

    fn create(&mut self, mut next: Model) -> EngineResult<Option<String>> {
        let free = NAMES.iter().find(|name| !next.tables.contains_key(**name));
        let Some(name) = free.map(|name| (*name).to_owned()) else { return Ok(None) };
        let schema = self.schema(&name);
        next.tables.insert(name.clone(), ModelTable::of(&schema));
        self.commit(next, vec![Change::CreateTable(schema)])?;
        Ok(Some(name))
    }

    pub(crate) fn some_table(&mut self) -> EngineResult<Option<String>> {
        let names = self.history.model.tables.keys();
        let names: Vec<String> = names.filter(|name| !name.ends_with(COPY)).cloned().collect();
        match names.choose(self.rng) {
            Some(name) => Ok(Some(name.clone())),
            None => self.create(Model::clone(&self.history.model)),
        }
    }

    fn rows(&mut self, max: usize) -> Vec<Row> {
        let count = self.rng.random_range(1..=max);
        let base = self.history.next_id * 600_000_000;
        let row = |_| {
            self.history.next_id += 1;
            let id = self.history.next_id;
            let mut late =
                if self.rng.random_bool(0.3) { self.rng.random_range(0..=base) } else { 0 };
            let again = self.rng.random();
            if again {
                late -= late % 600_000_000; // Probably another row's timestamp.
            }
            let symbols = if again { 2 } else { 2 + id as u64 / 4 };
            let symbol = self.rng.random_range(0..symbols);
            let symbol = (symbol > 0).then(|| format!("symbol {symbol}"));
            let note = match self.rng.random_range(0..3) {
                0 => None,
                1 => Some(format!("n{id}")),
                _ => Some(format!("the note of row {id} is long")),
            };
            (base - late, id, symbol, note)
        };
        (0..count).map(row).collect()
    }

    fn append(&mut self) -> EngineResult<()> {
        let mut next = Model::clone(&self.history.model);
        let mut changes = Vec::new();
        let tables = if self.rng.random_bool(0.15) { 2 } else { 1 };
        for _ in 0..tables {
            let Some(name) = self.some_table()? else { return Ok(()) };
            if !next.tables.contains_key(&name) {
                next = Model::clone(&self.history.model);
            }
            let rows = self.rows(6);
            let snapshot = self.storage.snapshot();
            let table = snapshot.table(&name).ok_or_else(|| lost(&name))?;
            let schema = table.schema();
            let batch = batch(schema, &rows)?;
            let (table, schema_version) = (schema.id, schema.version);
            changes.push(Change::Append { table, schema_version, batch });
            let model = next.tables.entry(name).or_default();
            model.add(rows);
            model.expire(schema);
        }
        self.commit(next, changes)
    }

    fn bulk(&mut self) -> EngineResult<()> {
        let mut next = Model::clone(&self.history.model);
        let Some(name) = self.some_table()? else { return Ok(()) };
        if !next.tables.contains_key(&name) {
            next = Model::clone(&self.history.model);
        }
        let snapshot = self.storage.snapshot();
        let id = snapshot.table(&name).ok_or_else(|| lost(&name))?.schema().id;
        let free = NAMES.iter().find(|name| !next.tables.contains_key(**name));
        let (target, name) = match (self.rng.random_range(0..4), free) {
            (0, Some(free)) => {
                let schema = self.schema(free);
                next.tables.insert((*free).to_owned(), ModelTable::of(&schema));
                (BulkTarget::Create(schema), (*free).to_owned())
            }
            (1, _) => {
                let schema = self.schema(&name);
                next.tables.insert(name.clone(), ModelTable::of(&schema));
                (BulkTarget::Replace { old: id, schema }, name)
            }
            _ => (BulkTarget::Existing(id), name),
        };
        let mut bulk = self.storage.begin_bulk(target)?;
        for _ in 0..self.rng.random_range(1..4) {
            let rows = self.rows(12);
            bulk.push(batch(bulk.schema(), &rows)?)?;
            next.tables.entry(name.clone()).or_default().add(rows);
        }
        next.tables.entry(name).or_default().expire(bulk.schema());
        if self.rng.random_bool(0.2) {
            bulk.abort();
            return Ok(());
        }
        let mode = self.mode();
        self.history.attempt(next, mode, || bulk.finish().map(drop))
    }

    fn drop_or_truncate(&mut self) -> EngineResult<()> {
        let Some(name) = self.some_table()? else { return Ok(()) };
        let mut next = Model::clone(&self.history.model);
        let snapshot = self.storage.snapshot();
        let id = snapshot.table(&name).ok_or_else(|| lost(&name))?.schema().id;
        let change = if self.rng.random() {
            next.tables.remove(&name);
            Change::DropTable(id)
        } else {
            // A copy reflects a deletion of all rows. After a TRUNCATE, however, it would retain
            // the archived rows.
            let is_followed = is_followed(&next, &name);
            next.tables.entry(name).or_default().rows.clear();
            let ranges = vec![TimeRange { lo: i64::MIN, hi: i64::MAX }];
            let all = Change::Clear { table: id, ranges };
            if is_followed { all } else { Change::Truncate(id) }
        };
        self.commit(next, vec![change])
    }

    fn add_column(&mut self) -> EngineResult<()> {
        let Some(name) = self.some_table()? else { return Ok(()) };
        let mut next = Model::clone(&self.history.model);
        let snapshot = self.storage.snapshot();
        let table = snapshot.table(&name).ok_or_else(|| lost(&name))?;
        let mut schema = TableSchema::clone(table.schema());
        schema.columns.push(ColumnSchema::new(format!("c{}", schema.version), SqlType::Long));
        next.tables.entry(name).or_default().columns += 1;
        self.commit(next, vec![Change::ReplaceSchema(schema)])
    }

    fn put_record(&mut self) -> EngineResult<()> {
        let mut next = Model::clone(&self.history.model);
        let key = format!("k{}", self.rng.random_range(0..4));
        let kind = "setting".to_owned();
        let change = if next.records.contains_key(&key) && self.rng.random() {
            next.records.remove(&key);
            Change::DeleteRecord { kind, key }
        } else {
            let value = vec![self.rng.random(); 20];
            next.records.insert(key.clone(), value.clone());
            Change::PutRecord { kind, key, value }
        };
        self.commit(next, vec![change])
    }
}

pub(crate) fn lost(name: &str) -> EngineError {
    EngineError::internal(format!("table {name} no longer exists"))
}

/// Builds a batch of rows with the table's schema. Columns added later are null.
pub(crate) fn batch(schema: &TableSchema, rows: &[Row]) -> EngineResult<RecordBatch> {
    let mut symbols = StringDictionaryBuilder::<Int32Type>::new();
    for (_, _, symbol, _) in rows {
        symbols.append_option(symbol.as_deref());
    }
    let ts: TimestampMicrosecondArray = rows.iter().map(|row| Some(row.0)).collect();
    let ids: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
    let notes: StringViewArray = rows.iter().map(|row| row.3.as_deref()).collect();
    let mut books = DoubleArrayBuilder::new(2);
    rows.iter().try_for_each(|row| push_book(row.1, &mut books))?;
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(ts),
        Arc::new(ids),
        Arc::new(symbols.finish()),
        Arc::new(notes),
        books.finish()?,
    ];
    for _ in columns.len()..schema.columns.len() {
        columns.push(Arc::new(Int64Array::new_null(rows.len())));
    }
    let names = schema.columns.iter().map(|column| column.name.clone());
    let named = names.zip(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(named)
        .map_err(|error| EngineError::internal(error.to_string()))
}
