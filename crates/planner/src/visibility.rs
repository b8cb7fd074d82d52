//! The subset of the catalog that a user can see, and lists provided by the server.

use std::collections::HashMap;
use std::ops::Deref;

use tidemark_border::{ListedRows, Permission, Shared};
use tidemark_types::{EngineError, ErrorCode, identifier};

/// Visibility for a user who cannot see everything.
#[derive(Debug, Clone)]
pub struct Visibility(pub Shared<tidemark_border::Visibility>);

impl Deref for Visibility {
    type Target = tidemark_border::Visibility;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Visibility {
    /// Whether the user has any permission on a table or view with this name. The name need not
    /// exist.
    #[must_use]
    pub fn sees(&self, table: &str) -> bool {
        self.tables.as_ref().is_none_or(|tables| tables.contains_key(&identifier::fold(table)))
    }

    /// Whether the user may read these columns. If none are given, whether the user may read any
    /// column.
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

    /// Whether the user may read the entire table or view, as views and definitions require.
    #[must_use]
    pub fn reads_all(&self, table: &str) -> bool {
        let Some(tables) = &self.reads else { return true };
        tables.get(&identifier::fold(table)).is_some_and(Option::is_none)
    }

    /// Whether the user sees all columns, including future ones.
    #[must_use]
    pub fn sees_all(&self, table: &str) -> bool {
        let Some(tables) = &self.tables else { return true };
        tables.get(&identifier::fold(table)).is_some_and(Option::is_none)
    }

    /// Whether the user sees a column. The designated timestamp is visible together with any other
    /// column.
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

/// The error `Access denied [SELECT on t]`. The message is the same whether or not the object
/// exists.
pub(crate) fn denied(permission: Permission, object: &str) -> EngineError {
    let message = format!("Access denied [{permission} on {object}]");
    EngineError::new(ErrorCode::AccessDenied, message)
}

/// The lists that a statement requests, by name.
pub type Lists = Shared<HashMap<String, ListedRows>>;
