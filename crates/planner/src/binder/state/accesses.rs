//! What a statement touches, merged per table and permission.

use std::sync::{Arc, Mutex, PoisonError};

use tidemark_border::Permission;

use crate::Access;

/// Accesses in the order they were met. Clones share one list: the columns of a table carry one, so
/// that finding a column by its name is what notes that it is read.
#[derive(Debug, Default, Clone)]
pub(crate) struct Accesses {
    list: Arc<Mutex<Vec<Access>>>,
}

impl Accesses {
    /// Adds an access; columns of one table under one permission are put together.
    pub(crate) fn note(&self, access: Access) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&mut Access| {
            known.table == access.table
                && known.permission == access.permission
                && known.view == access.view
        };
        let known = list.iter_mut().find(same);
        let Some(known) = known else {
            list.push(access);
            return;
        };
        for column in access.columns {
            if !known.columns.contains(&column) {
                known.columns.push(column);
            }
        }
    }

    /// Everything noted.
    pub(crate) fn list(&self) -> Vec<Access> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The column of a table that a column of a relation is, while it is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    read: Option<Read>,
}

#[derive(Debug, Clone)]
struct Read {
    table: Arc<str>,
    column: Arc<str>,
    accesses: Accesses,
}

impl Origin {
    /// Made by an expression, not by a table.
    pub(crate) const NONE: Self = Self { read: None };

    /// A column of `table`, by the name it has there, whose reading is noted in `accesses`.
    pub(crate) fn column(table: &Arc<str>, column: &str, accesses: &Accesses) -> Self {
        let (table, column) = (Arc::clone(table), Arc::from(column));
        Self { read: Some(Read { table, column, accesses: accesses.clone() }) }
    }

    /// Notes that the table's column is read.
    pub(crate) fn note(&self) {
        if let Some(Read { table, column, accesses }) = &self.read {
            let columns = vec![column.as_ref().to_owned()];
            accesses.note(Access { columns, ..Access::new(table, Permission::Select) });
        }
    }
}
