//! What a database should hold, in the plainest form: rows in vectors.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use tidemark_storage::Snapshot;
use tidemark_types::EngineResult;

/// A row: timestamp, identifier, symbol, text.
pub(crate) type Row = (i64, i64, Option<String>, Option<String>);

/// A table's rows in the order of their arrival, and its number of columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ModelTable {
    pub(crate) rows: Vec<Row>,
    pub(crate) columns: usize,
    pub(crate) timed: bool,
}

/// A database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    pub(crate) tables: BTreeMap<String, ModelTable>,
    pub(crate) records: BTreeMap<String, Vec<u8>>,
}

impl Model {
    /// Equal for equal databases as a reader sees them.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut seen = self.clone();
        for table in seen.tables.values_mut().filter(|table| table.timed) {
            table.rows.sort_by_key(|row| row.0);
        }
        let mut hasher = DefaultHasher::new();
        seen.hash(&mut hasher);
        hasher.finish()
    }

    /// The first difference from another database, for people.
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
                return format!("{name}: {found} rows of {expected}, first unlike {pair:?}");
            }
        }
        format!("records {:?}, {:?}", self.records.keys(), other.records.keys())
    }

    /// What a snapshot holds.
    pub(crate) fn read(snapshot: &Snapshot) -> EngineResult<Self> {
        let mut model = Self::default();
        for table in snapshot.tables() {
            let schema = table.schema();
            let mut rows = Vec::new();
            for slice in table.slices()? {
                let columns = slice.columns(&[0, 1, 2, 3], 0..slice.rows())?;
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
            let columns = schema.columns.len();
            let found = ModelTable { rows, columns, timed: schema.timestamp.is_some() };
            model.tables.insert(schema.name.clone(), found);
        }
        for (key, value) in snapshot.records("setting") {
            model.records.insert(key.to_owned(), value.to_vec());
        }
        Ok(model)
    }
}
