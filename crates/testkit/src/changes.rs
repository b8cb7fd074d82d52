//! Changes that the random client makes to rows and partitions: UPDATE, DELETE, column type
//! changes, detached and attached partitions, TTL.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, StringViewArray};
use rand::Rng;
use rand::seq::IndexedRandom;
use tidemark_storage::{
    Change, ColumnSchema, Delete, PartitionAction, PartitionFormat, TableSchema, TableSnapshot,
    Update,
};
use tidemark_types::{EngineResult, PartitionBy, SqlType};

use crate::copies::ends_rows;
use crate::model::{Model, ModelTable, is_followed};
use crate::workload::{Client, lost};

/// A row's id in the snapshot, the value of its `id` column, and its note.
type Found = (i64, i64, Option<String>);

fn found(table: &TableSnapshot) -> EngineResult<Vec<Found>> {
    let mut rows = Vec::new();
    let row_id = table.schema().columns.len();
    for slice in table.slices()? {
        let columns = slice.columns(&[row_id, 1, 3], 0..slice.rows())?;
        let (row_ids, ids) =
            (columns[0].as_primitive::<Int64Type>(), columns[1].as_primitive::<Int64Type>());
        let notes = columns[2].as_string_view();
        for row in 0..slice.rows() {
            let note = notes.is_valid(row).then(|| notes.value(row).to_owned());
            rows.push((row_ids.value(row), ids.value(row), note));
        }
    }
    Ok(rows)
}

impl Client<'_> {
    /// Performs one random change.
    pub(crate) fn change(&mut self) -> EngineResult<()> {
        let Some(name) = self.some_table()? else { return Ok(()) };
        if self.rng.random_bool(0.2) {
            return self.convert(&name);
        }
        let mut next = Model::clone(&self.history.model);
        let snapshot = self.storage.snapshot();
        let table = snapshot.table(&name).ok_or_else(|| lost(&name))?;
        let model = next.tables.entry(name).or_default();
        let changes = match self.rng.random_range(0..14) {
            0..4 => self.update(&table, model)?,
            4 => retype(&table, model)?,
            5 => self.set_ttl(&table, model),
            10..12 => self.set_keys(&table, model),
            12.. => self.delete(&table, model)?,
            _ => self.partition(&table, model),
        };
        if ends_rows(&changes) && is_followed(&self.history.model, &table.schema().name) {
            return Ok(());
        }
        let has_cells = changes.iter().any(|change| matches!(change, Change::Update(_)));
        if changes.is_empty() {
            Ok(())
        } else if has_cells && self.rng.random_bool(0.4) {
            self.commit_in_bulk(next, changes)
        } else {
            self.commit(next, changes)
        }
    }

    /// Writes new cells to new segments, a few rows at a time, as a large UPDATE does.
    fn commit_in_bulk(&mut self, next: Model, changes: Vec<Change>) -> EngineResult<()> {
        let (storage, mode) = (Arc::clone(self.storage), self.storage.options().commit_mode);
        let (mut replace, mut found) = (None, None);
        for change in changes {
            match change {
                Change::ReplaceSchema(schema) => replace = Some(schema),
                Change::Update(update) => found = Some(update),
                _ => {}
            }
        }
        let Some(update) = found else { return Ok(()) };
        self.history.attempt(next, mode, || {
            let hold = storage.lock_writes(update.base.schema().id);
            let mut bulk = hold.begin_update(update.base, replace, update.columns)?;
            for start in (0..update.rows.len()).step_by(5) {
                let len = (update.rows.len() - start).min(5);
                let values: Vec<_> =
                    update.values.iter().map(|cells| cells.slice(start, len)).collect();
                bulk.push(&update.rows[start..start + len], &values)?;
            }
            bulk.close()?.commit().map(drop)
        })
    }

    /// Converts some partitions to Parquet files or back to segments.
    fn convert(&mut self, name: &str) -> EngineResult<()> {
        let next = Model::clone(&self.history.model);
        let snapshot = self.storage.snapshot();
        let table = snapshot.table(name).ok_or_else(|| lost(name))?;
        let mut floors: Vec<i64> = table.partition_list().iter().map(|p| p.floor).collect();
        floors.retain(|_| self.rng.random());
        let native = self.rng.random_bool(0.3);
        let to = if native { PartitionFormat::Native } else { PartitionFormat::Parquet };
        let (storage, mode) = (Arc::clone(self.storage), self.storage.options().commit_mode);
        let id = table.schema().id;
        self.history.attempt(next, mode, || storage.convert_partitions(id, &floors, to))
    }

    /// Sets new symbols and notes in some rows.
    fn update(
        &mut self,
        table: &Arc<TableSnapshot>,
        model: &mut ModelTable,
    ) -> EngineResult<Vec<Change>> {
        let (divisor, rest) = (self.rng.random_range(1..6), self.rng.random_range(0..3));
        let number: u32 = self.rng.random();
        let text = if self.rng.random() {
            format!("u{number}")
        } else {
            format!("the changed text of number {number}")
        };
        let required = |id: i64| id % divisor == rest;
        let mut rows = found(table)?;
        rows.retain(|(_, id, _)| required(*id));
        let cells = || -> ArrayRef {
            Arc::new(StringViewArray::from_iter_values(rows.iter().map(|_| &text)))
        };
        let update = Update {
            base: Arc::clone(table),
            schema_version: table.schema().version,
            columns: vec![2, 3],
            values: vec![cells(), cells()],
            rows: rows.iter().map(|(row, ..)| *row).collect(),
        };
        for row in model.rows.iter_mut().filter(|row| required(row.1)) {
            (row.2, row.3) = (Some(text.clone()), Some(text.clone()));
        }
        Ok(vec![Change::Update(update)])
    }

    /// Deletes some rows: either scattered rows or rows that arrived consecutively.
    fn delete(
        &mut self,
        table: &Arc<TableSnapshot>,
        model: &mut ModelTable,
    ) -> EngineResult<Vec<Change>> {
        let (divisor, rest) = (self.rng.random_range(2..9), self.rng.random_range(0..3));
        let scattered = self.rng.random_bool(0.7);
        let required = |id: i64| if scattered { id % divisor == rest } else { id / 16 % 2 == rest };
        let mut rows = found(table)?;
        rows.retain(|(_, id, _)| required(*id));
        model.rows.retain(|row| !required(row.1));
        let rows = rows.iter().map(|(row, ..)| *row).collect();
        Ok(vec![Change::Delete(Delete { base: Arc::clone(table), rows })])
    }

    /// Sets or removes the table's TTL.
    fn set_ttl(&mut self, table: &TableSnapshot, model: &mut ModelTable) -> Vec<Change> {
        let mut schema = TableSchema::clone(table.schema());
        if schema.partition_by == PartitionBy::None {
            return Vec::new();
        }
        schema.ttl_hours_or_months = [0, 0, 24, 48].choose(self.rng).copied().unwrap_or(0);
        model.ttl_hours = schema.ttl_hours_or_months;
        model.expire(&schema);
        vec![Change::ReplaceSchema(schema)]
    }

    /// Changes or removes the DEDUP keys.
    fn set_keys(&mut self, table: &TableSnapshot, model: &mut ModelTable) -> Vec<Change> {
        let mut schema = TableSchema::clone(table.schema());
        if schema.timestamp.is_none() {
            return Vec::new();
        }
        let keys: [&[u32]; 3] = [&[], &[1], &[1, 3]];
        schema.dedup_keys = keys.choose(self.rng).map_or(Vec::new(), |keys| keys.to_vec());
        model.keys.clone_from(&schema.dedup_keys);
        vec![Change::ReplaceSchema(schema)]
    }

    /// Detaches, drops or attaches a partition.
    fn partition(&mut self, table: &TableSnapshot, model: &mut ModelTable) -> Vec<Change> {
        let schema = table.schema();
        let detached: Vec<i64> = table.detached_list().iter().map(|p| p.floor).collect();
        let seen: Vec<i64> = table.partition_list().iter().map(|p| p.floor).collect();
        let floors = if self.rng.random() { &detached } else { &seen };
        let Some(&floor) = floors.choose(self.rng) else { return Vec::new() };
        if schema.partition_by == PartitionBy::None {
            return Vec::new();
        }
        let (is_seen, is_detached) = (seen.contains(&floor), detached.contains(&floor));
        let at = |row: &crate::model::Row| schema.partition_floor(row.0) == floor;
        let action = match (is_seen, is_detached) {
            (true, false) if self.rng.random() => {
                let rows = model.take(schema, floor);
                model.detached.extend(rows);
                PartitionAction::Detach
            }
            (true, true) if self.rng.random() => {
                model.detached.retain(|row| !at(row));
                PartitionAction::DropDetached
            }
            (true, _) => {
                model.take(schema, floor);
                PartitionAction::Drop
            }
            (false, _) => {
                let back = std::mem::take(&mut model.detached).into_iter();
                let (back, retained): (Vec<_>, Vec<_>) = back.partition(at);
                model.rows.extend(back);
                model.detached = retained;
                PartitionAction::Attach
            }
        };
        vec![Change::Partitions { table: schema.id, action, floors: vec![floor] }]
    }
}

/// Changes the note column to the other string type, and appends a mark to each note.
fn retype(table: &Arc<TableSnapshot>, model: &mut ModelTable) -> EngineResult<Vec<Change>> {
    if !model.detached.is_empty() {
        return Ok(Vec::new());
    }
    let mut schema = TableSchema::clone(table.schema());
    let other = match schema.columns[3].sql_type {
        SqlType::Varchar => SqlType::String,
        _ => SqlType::Varchar,
    };
    schema.columns[3] = ColumnSchema::new("note", other);
    let rows = found(table)?;
    let marked = |note: &Option<String>| note.as_ref().map(|note| format!("{note}!"));
    let cells: StringViewArray = rows.iter().map(|(_, _, note)| marked(note)).collect();
    let update = Update {
        base: Arc::clone(table),
        schema_version: schema.version + 1,
        columns: vec![3],
        values: vec![Arc::new(cells)],
        rows: rows.iter().map(|(row, ..)| *row).collect(),
    };
    for row in &mut model.rows {
        row.3 = marked(&row.3);
    }
    model.note_type = other.name();
    Ok(vec![Change::ReplaceSchema(schema), Change::Update(update)])
}
