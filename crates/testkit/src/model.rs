//! A database's expected content in the simplest form: rows in vectors.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef};
use tidemark_storage::{Snapshot, TableSchema, TableSnapshot};
use tidemark_types::double_array::{DoubleArrayBuilder, DoubleArrays};
use tidemark_types::{EngineError, EngineResult};

/// Name suffix of a table that is a copy of another table. Only a refresh changes the copy.
pub(crate) const COPY: &str = " copy";

/// Whether a table has a copy. When partitions of the table are dropped, the copy retains its
/// partitions.
pub(crate) fn is_followed(model: &Model, name: &str) -> bool {
    model.tables.contains_key(&copy_of(name))
}

pub(crate) fn copy_of(name: &str) -> String {
    format!("{name}{COPY}")
}

/// A row's timestamp, id, symbol and note.
pub(crate) type Row = (i64, i64, Option<String>, Option<String>);

/// A table's rows in order of arrival, and its number of columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ModelTable {
    pub(crate) rows: Vec<Row>,
    /// Rows of the detached partitions, in time order.
    pub(crate) detached: Vec<Row>,
    /// Name of the note column's type.
    pub(crate) note_type: String,
    /// TTL in hours; 0 means unlimited.
    pub(crate) ttl_hours: i64,
    /// Column ids of the DEDUP keys: none, the timestamp (1), or the timestamp and the symbol (1
    /// and 3).
    pub(crate) keys: Vec<u32>,
    pub(crate) columns: usize,
    pub(crate) timed: bool,
}

impl ModelTable {
    /// Returns an empty table with this schema.
    pub(crate) fn of(schema: &TableSchema) -> Self {
        Self {
            rows: Vec::new(),
            detached: Vec::new(),
            note_type: schema.columns[3].sql_type.name(),
            ttl_hours: schema.ttl_hours_or_months,
            keys: schema.dedup_keys.clone(),
            columns: schema.columns.len(),
            timed: schema.timestamp.is_some(),
        }
    }

    /// Adds rows in order of arrival. Each added row replaces any row with the same DEDUP keys.
    pub(crate) fn add(&mut self, rows: Vec<Row>) {
        for row in rows {
            if !self.keys.is_empty() {
                let by_symbol = self.keys.contains(&3);
                self.rows.retain(|old| old.0 != row.0 || (by_symbol && old.2 != row.2));
            }
            self.rows.push(row);
        }
    }

    /// Removes and returns one partition's rows.
    pub(crate) fn take(&mut self, schema: &TableSchema, floor: i64) -> Vec<Row> {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let (removed, retained) = rows.partition(|row| schema.partition_floor(row.0) == floor);
        self.rows = retained;
        removed
    }

    /// Removes the rows that have expired under the TTL.
    pub(crate) fn expire(&mut self, schema: &TableSchema) {
        let Some(newest) = self.rows.iter().map(|row| row.0).max() else { return };
        let ttl = self.ttl_hours * 3_600_000_000;
        let end = |row: &Row| schema.partition_ceil(schema.partition_floor(row.0));
        if ttl > 0 {
            self.rows.retain(|row| end(row) + ttl > newest);
        }
    }
}

/// A database's expected content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    pub(crate) tables: BTreeMap<String, ModelTable>,
    pub(crate) records: BTreeMap<String, Vec<u8>>,
}

impl Model {
    /// Returns a hash. Databases that look the same to a reader have equal hashes.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut seen = self.clone();
        for table in seen.tables.values_mut().filter(|table| table.timed) {
            table.rows.sort_by_key(|row| row.0);
            table.detached.sort_by_key(|row| row.0);
        }
        let mut hasher = DefaultHasher::new();
        seen.hash(&mut hasher);
        hasher.finish()
    }

    /// Describes the first difference between two databases.
    pub(crate) fn difference(&self, other: &Self) -> String {
        if self.tables.keys().ne(other.tables.keys()) {
            return format!("tables {:?}, {:?}", self.tables.keys(), other.tables.keys());
        }
        for ((name, mine), theirs) in self.tables.iter().zip(other.tables.values()) {
            let mut rows = theirs.rows.clone();
            if theirs.timed {
                rows.sort_by_key(|row| row.0);
            }
            let pair = mine.rows.iter().zip(&rows).find(|(a, b)| a != b);
            if pair.is_some() || mine.rows.len() != rows.len() || mine.columns != theirs.columns {
                let (found, expected) = (mine.rows.len(), rows.len());
                return format!("{name}: {found} of {expected} rows, first difference {pair:?}");
            }
        }
        format!("records {:?}, {:?}", self.records.keys(), other.records.keys())
    }

    /// Reads a snapshot's content.
    pub(crate) fn read(snapshot: &Snapshot) -> EngineResult<Self> {
        let mut model = Self::default();
        for table in snapshot.tables() {
            model.tables.insert(table.schema().name.clone(), ModelTable::read(table)?);
        }
        for (key, value) in snapshot.records("setting") {
            model.records.insert(key.to_owned(), value.to_vec());
        }
        Ok(model)
    }
}

impl ModelTable {
    /// Reads a table's content.
    pub(crate) fn read(table: &TableSnapshot) -> EngineResult<Self> {
        let mut rows = Vec::new();
        let mut detached = Vec::new();
        let seen = table.slices()?.into_iter().map(|slice| (slice, false));
        let retained = table.detached_slices()?.into_iter().map(|slice| (slice, true));
        for (slice, is_detached) in seen.chain(retained) {
            let rows = if is_detached { &mut detached } else { &mut rows };
            let columns = slice.columns(&[0, 1, 2, 3, 4], 0..slice.rows())?;
            check_books(&columns[1], &columns[4])?;
            let times = columns[0].as_primitive::<TimestampMicrosecondType>();
            let ids = columns[1].as_primitive::<Int64Type>();
            let symbols = columns[2].as_dictionary::<Int32Type>();
            let texts = symbols.values().as_string::<i32>();
            let notes = columns[3].as_string_view();
            for row in 0..slice.rows() {
                let symbol = symbols.key(row).map(|key| texts.value(key).to_owned());
                let note = notes.is_valid(row).then(|| notes.value(row).to_owned());
                rows.push((times.value(row), ids.value(row), symbol, note));
            }
        }
        Ok(Self { rows, detached, ..Self::of(table.schema()) })
    }

    /// Returns the table with its rows in the order in which a reader sees them.
    pub(crate) fn in_order(&self) -> Self {
        let mut seen = self.clone();
        if seen.timed {
            seen.rows.sort_by_key(|row| row.0);
            seen.detached.sort_by_key(|row| row.0);
        }
        seen
    }
}

/// Appends the array for a row id. The id determines whether the array is null or empty, and its
/// shape.
pub(crate) fn push_book(id: i64, books: &mut DoubleArrayBuilder) -> EngineResult<()> {
    match id % 4 {
        0 => books.push_null(),
        1 => books.push(&[0, 0], [])?,
        rest => {
            let shape = [rest as i32, 1 + (id % 3) as i32];
            books.push(&shape, (0..shape[0] * shape[1]).map(|n| id as f64 + f64::from(n)))?;
        }
    }
    Ok(())
}

/// Fails if an array does not match its row's id.
fn check_books(ids: &ArrayRef, books: &ArrayRef) -> EngineResult<()> {
    let ids = ids.as_primitive::<Int64Type>();
    let mut expected = DoubleArrayBuilder::new(2);
    ids.values().iter().try_for_each(|id| push_book(*id, &mut expected))?;
    let expected = expected.finish()?;
    let cells = |array| DoubleArrays::new(array);
    let (Some(found), Some(expected)) = (cells(books), cells(&expected)) else {
        return Err(EngineError::internal("the array column contains no arrays"));
    };
    for row in 0..ids.len() {
        let same = match (found.get(row), expected.get(row)) {
            (Some(a), Some(b)) => a.same(&b),
            (a, b) => a.is_none() && b.is_none(),
        };
        if !same {
            let message = format!("row {} has a different row's array", ids.value(row));
            return Err(EngineError::internal(message));
        }
    }
    Ok(())
}
