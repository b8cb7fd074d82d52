//! Durable records beside the tables.

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot};
use tidemark_types::{EngineError, EngineResult, identifier};

/// The kinds of records the catalog knows; others belong to whoever writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A view's definition, by its folded name.
    View,
    /// A setting.
    Setting,
}

impl RecordKind {
    /// The kind as the storage records it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Setting => "setting",
        }
    }
}

/// A named query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The name, in the letter case it was given.
    pub name: String,
    /// The query's text.
    pub query: String,
}

impl View {
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

pub(crate) fn view(snapshot: &Snapshot, name: &str) -> Option<View> {
    let bytes = snapshot.record(RecordKind::View.name(), &identifier::fold(name))?;
    serde_json::from_slice(bytes).ok()
}

pub(crate) fn views(snapshot: &Snapshot) -> Vec<View> {
    let records = snapshot.records(RecordKind::View.name());
    records.filter_map(|(_, bytes)| serde_json::from_slice(bytes).ok()).collect()
}
