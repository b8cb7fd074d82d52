//! What of the catalog a user may see, and what the server knows beside the engine.

use std::collections::HashMap;
use std::ops::Deref;

use tidemark_border::{ListedRows, Permission, Shared};
use tidemark_types::{EngineError, ErrorCode, identifier};

/// What a user may see who may not see everything.
#[derive(Debug, Clone)]
pub struct Visibility(pub Shared<tidemark_border::Visibility>);

impl Deref for Visibility {
    type Target = tidemark_border::Visibility;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Visibility {
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

    /// Whether all of it may be read, as a view and a definition are.
    #[must_use]
    pub fn reads_whole(&self, table: &str) -> bool {
        let Some(tables) = &self.reads else { return true };
        tables.get(&identifier::fold(table)).is_some_and(Option::is_none)
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
pub(crate) fn denied(permission: Permission, object: &str) -> EngineError {
    let message = format!("Access denied [{permission} on {object}]");
    EngineError::new(ErrorCode::AccessDenied, message)
}

/// The lists a statement asks for, by their names.
pub type Lists = Shared<HashMap<String, ListedRows>>;
