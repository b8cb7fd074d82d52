//! Durable records beside the tables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId, TableSchema};
use tidemark_types::{EngineError, EngineResult, identifier};

/// The kinds of records the catalog knows; others belong to their writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A view's definition, by its folded name.
    View,
    /// A setting.
    Setting,
    /// The type a table gets at the next start, by its identifier.
    TableType,
    /// What a materialized view is, by the identifier of its table; it goes with the table.
    MaterializedView,
    /// What a materialized view shows, likewise.
    MaterializedState,
    /// What a materialized view that is a live one is in addition, likewise.
    LiveView,
    /// Why a materialized or live view may not be refreshed, likewise. Access control, which
    /// knows the rights of owners, writes it.
    RefreshRefusal,
}

impl RecordKind {
    /// The kind as the storage records it.
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

/// What a view's query named when the view was made. A name can come to mean something else; what
/// was meant stays the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ViewSource {
    /// A table, with the columns it had.
    Table {
        /// Its identifier: the columns are identified by theirs as long as it is the same.
        id: TableId,
        /// [`TableSchema::identity`].
        identity: TableId,
        /// The columns in their order.
        columns: Vec<ViewColumn>,
    },
    /// Another view, which [`View::id`] tells.
    View {
        /// Its name: views keep theirs.
        name: String,
        /// Its identifier.
        id: String,
        /// The columns it had; absent where they are unknown.
        columns: Option<Vec<String>>,
    },
}

/// A column as a view found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewColumn {
    /// [`ColumnSchema::identity`](tidemark_storage::ColumnSchema::identity).
    pub identity: u32,
    /// The name it had, which is its name in the view's query for ever.
    pub name: String,
}

/// The owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The name, for people.
    pub name: String,
    /// Tells one apart from others who had or will have the name; absent in what older versions
    /// wrote, and where there are no users.
    #[serde(default)]
    pub id: Option<String>,
}

/// A named query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The name, in the letter case it was given.
    pub name: String,
    /// The query's text.
    pub query: String,
    /// The query's tree, as JSON: its reader knows the trees of statements.
    pub tree: String,
    /// Who made it: what it reads is read with the rights of this user.
    pub owner: String,
    /// [`Owner::id`] of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// When it was made or changed, microseconds since 1970.
    pub changed_micros: i64,
    /// Never given to another view; empty in what older versions wrote, until the next start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// What its query names, by the node of the tree that does. Absent in what older versions
    /// wrote, until the next start: the names count there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<BTreeMap<u32, ViewSource>>,
}

impl View {
    /// Its owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { name: self.owner.clone(), id: self.owner_id.clone() }
    }

    /// The view with this name, letter case ignored.
    #[must_use]
    pub fn find(snapshot: &Snapshot, name: &str) -> Option<Self> {
        let bytes = snapshot.record(RecordKind::View.name(), &identifier::fold(name))?;
        serde_json::from_slice(bytes).ok()
    }

    /// The change that records this view, replacing one of the same name.
    pub fn put(&self) -> EngineResult<Change> {
        let value = serde_json::to_vec(self);
        Ok(Change::PutRecord {
            kind: RecordKind::View.name().to_owned(),
            key: identifier::fold(&self.name),
            value: value.map_err(|error| EngineError::internal(error.to_string()))?,
        })
    }

    /// The change that removes the view with this name.
    #[must_use]
    pub fn delete(name: &str) -> Change {
        Change::DeleteRecord {
            kind: RecordKind::View.name().to_owned(),
            key: identifier::fold(name),
        }
    }
}

/// SET TYPE: the table calls itself a WAL table, or not, from the next start on. The last wins.
#[must_use]
pub fn set_table_type(table: TableId, wal: bool) -> Change {
    Change::PutRecord {
        kind: RecordKind::TableType.name().to_owned(),
        key: table.to_string(),
        value: vec![u8::from(wal)],
    }
}

/// What a start has to commit so that tables have the types that were set. A damaged table keeps
/// its own until it is whole.
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

/// A record under the identifier of a table.
pub(crate) fn record(snapshot: &Snapshot, kind: RecordKind, table: TableId) -> Option<&[u8]> {
    snapshot.record(kind.name(), &table.to_string())
}

/// The change that records a value of a table, as JSON.
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
