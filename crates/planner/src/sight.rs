//! What of the catalog a user may see, and what the server knows beside the engine.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use tidemark_types::{EngineError, ErrorCode, identifier};

/// What somebody may see who may not see everything: the tables and columns they have some right
/// on.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Sight {
    /// By folded name the folded names of the columns, `None` for all of them; `None` in its
    /// place: every table.
    pub tables: Option<HashMap<String, Option<Vec<String>>>>,
    /// The same for what may be read, with SELECT alone.
    pub reads: Option<HashMap<String, Option<Vec<String>>>>,
    /// Whether files of the server may be read.
    #[serde(default)]
    pub files: bool,
    /// Whether others' running queries are seen and may be cancelled.
    pub queries: bool,
}

impl Sight {
    /// Whether there is a right on a table or view of this name, be it there or not.
    #[must_use]
    pub fn sees(&self, table: &str) -> bool {
        self.tables.as_ref().is_none_or(|tables| tables.contains_key(&identifier::fold(table)))
    }

    /// Whether these columns may be read; none: some column, whichever.
    #[must_use]
    pub fn reads(&self, table: &str, columns: &[String], designated: Option<&str>) -> bool {
        let Some(tables) = &self.reads else { return true };
        match tables.get(&identifier::fold(table)) {
            None => false,
            Some(None) => true,
            Some(Some(known)) => columns.iter().all(|column| {
                designated.is_some_and(|designated| identifier::same(designated, column))
                    || known.contains(&identifier::fold(column))
            }),
        }
    }

    /// Whether all columns are seen, with those to come.
    #[must_use]
    pub fn sees_whole(&self, table: &str) -> bool {
        let Some(tables) = &self.tables else { return true };
        tables.get(&identifier::fold(table)).is_some_and(Option::is_none)
    }

    /// Whether a column is seen; the designated timestamp comes along with any other.
    #[must_use]
    pub fn sees_column(&self, table: &str, column: &str, is_designated: bool) -> bool {
        let Some(tables) = &self.tables else { return true };
        match tables.get(&identifier::fold(table)) {
            None => false,
            Some(None) => true,
            Some(Some(columns)) => is_designated || columns.contains(&identifier::fold(column)),
        }
    }
}

/// `Access denied [SELECT on t]`: the same text whether the object is there or not.
pub(crate) fn denied(permission: &str, object: &str) -> EngineError {
    let message = format!("Access denied [{permission} on {object}]");
    EngineError::new(ErrorCode::AccessDenied, message)
}

/// A type of what the server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ListedType {
    /// STRING
    String,
    /// BOOLEAN
    Boolean,
}

/// A cell of what the server tells.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ListedCell {
    /// BOOLEAN
    Boolean(bool),
    /// STRING
    Text(String),
}

/// Rows that the server knows and the engine does not: users, groups, rights.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ListedRows {
    /// Names and types.
    pub columns: Vec<(String, ListedType)>,
    /// The rows.
    pub rows: Vec<Vec<Option<ListedCell>>>,
}

/// The lists a statement asks for, by their names.
pub type Lists = Arc<HashMap<String, ListedRows>>;
