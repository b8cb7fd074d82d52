//! Durable records that are stored alongside the tables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId, TableSchema};
use tidemark_types::{EngineError, EngineResult, identifier};

/// Record kinds that the catalog defines; other kinds are defined by the modules that write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A view definition, by folded name.
    View,
    /// A setting.
    Setting,
    /// The table type that takes effect at the next start, by table id.
    TableType,
    /// The definition of a materialized view, by table id; removed with the table.
    MaterializedView,
    /// The refresh state of a materialized view, by table id; removed with the table.
    MaterializedState,
    /// The additional clauses of a live view, by table id; removed with the table.
    LiveView,
    /// The reason why a materialized or live view must not be refreshed, by table id; removed with
    /// the table. Access control writes this record, because it tracks the owners' permissions.
    RefreshRefusal,
}

impl RecordKind {
    /// Returns the record kind's name in storage.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Setting => "setting",
            Self::TableType => "table_type",
            Self::MaterializedView => "materialized_view",
            Self::MaterializedState => "materialized_state",
            Self::LiveView => "live_view",
            Self::RefreshRefusal => "refresh_refusal",
        }
    }
}

/// An object named in a view's query, as resolved when the view was created. The view continues to
/// refer to this object even if the name later refers to a different object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ViewSource {
    /// A table, with the columns it had when the view was created.
    Table {
        /// The table's id. Column identities are valid only while this id is unchanged.
        id: TableId,
        /// The table's [`TableSchema::identity`].
        identity: TableId,
        /// The columns, in table order.
        columns: Vec<ViewColumn>,
    },
    /// Another view, identified by [`View::id`].
    View {
        /// The view's name, which cannot change.
        name: String,
        /// The view's id.
        id: String,
        /// The other view's columns when the reference was recorded; `None` if unknown.
        columns: Option<Vec<String>>,
    },
}

/// A table column, as it was when the view was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewColumn {
    /// The column's [`ColumnSchema::identity`](tidemark_storage::ColumnSchema::identity).
    pub identity: u32,
    /// The column's name when the view was created. The view's query continues to use this name.
    pub name: String,
}

/// An object's owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The name, for display.
    pub name: String,
    /// Distinguishes owners with the same name, including deleted owners. Absent from records
    /// written by older versions and on servers without users.
    #[serde(default)]
    pub id: Option<String>,
}

/// A named query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The name as entered, with its case.
    pub name: String,
    /// The SQL text of the query.
    pub query: String,
    /// The syntax tree of the query, as JSON. The catalog does not interpret it.
    pub tree: String,
    /// The owner. The query runs with the owner's permissions.
    pub owner: String,
    /// The owner's [`Owner::id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// Time of creation or last change, in microseconds since 1970.
    pub changed_micros: i64,
    /// Unique view id, never reused. Empty in records written by older versions, until the next
    /// start assigns an id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Objects that the query names, by syntax tree node. Absent from records written by older
    /// versions until the next start; until then, the names are resolved on each use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<BTreeMap<u32, ViewSource>>,
}

impl View {
    /// Returns the owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { name: self.owner.clone(), id: self.owner_id.clone() }
    }

    /// Returns the view with this name, ignoring case.
    #[must_use]
    pub fn find(snapshot: &Snapshot, name: &str) -> Option<Self> {
        let bytes = snapshot.record(RecordKind::View.name(), &identifier::fold(name))?;
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the change that stores this view, replacing any view with the same name.
    pub fn put(&self) -> EngineResult<Change> {
        let value = serde_json::to_vec(self);
        Ok(Change::PutRecord {
            kind: RecordKind::View.name().to_owned(),
            key: identifier::fold(&self.name),
            value: value.map_err(|error| EngineError::internal(error.to_string()))?,
        })
    }

    /// Returns the change that removes the view with this name.
    #[must_use]
    pub fn delete(name: &str) -> Change {
        Change::DeleteRecord {
            kind: RecordKind::View.name().to_owned(),
            key: identifier::fold(name),
        }
    }
}

/// Returns the change for SET TYPE: from the next start, the table counts as declared with or
/// without WAL. If the type is changed several times, the last change wins.
#[must_use]
pub fn set_table_type(table: TableId, wal: bool) -> Change {
    Change::PutRecord {
        kind: RecordKind::TableType.name().to_owned(),
        key: table.to_string(),
        value: vec![u8::from(wal)],
    }
}

/// Returns the changes that apply pending SET TYPE records at startup. A damaged table keeps its
/// type until it is repaired.
#[must_use]
pub fn due_table_types(snapshot: &Snapshot) -> Vec<Change> {
    let kind = RecordKind::TableType.name();
    let mut changes = Vec::new();
    for (key, value) in snapshot.records(kind) {
        let table = key.parse().ok().and_then(|id| snapshot.table_by_id(id));
        if let Some(table) = table {
            if snapshot.damage(&table).is_some() {
                continue;
            }
            let wal = value.first() == Some(&1);
            if table.schema().wal != wal {
                let schema = TableSchema { wal, ..TableSchema::clone(table.schema()) };
                changes.push(Change::ReplaceSchema(schema));
            }
        }
        changes.push(Change::DeleteRecord { kind: kind.to_owned(), key: key.to_owned() });
    }
    changes
}

pub(crate) fn views(snapshot: &Snapshot) -> Vec<View> {
    let records = snapshot.records(RecordKind::View.name());
    records.filter_map(|(_, bytes)| serde_json::from_slice(bytes).ok()).collect()
}

/// Returns a record stored under a table id.
pub(crate) fn record(snapshot: &Snapshot, kind: RecordKind, table: TableId) -> Option<&[u8]> {
    snapshot.record(kind.name(), &table.to_string())
}

/// Returns the change that stores a value under a table id, as JSON.
pub(crate) fn put(
    kind: RecordKind,
    table: TableId,
    value: &impl Serialize,
) -> EngineResult<Change> {
    let bytes = serde_json::to_vec(value);
    Ok(Change::PutRecord {
        kind: kind.name().to_owned(),
        key: table.to_string(),
        value: bytes.map_err(|error| EngineError::internal(error.to_string()))?,
    })
}
