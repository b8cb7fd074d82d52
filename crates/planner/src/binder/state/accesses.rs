//! Tables and columns that a statement accesses, merged by table and permission.

use std::sync::{Arc, Mutex, PoisonError};

use tidemark_border::Permission;

use crate::Access;

/// Accesses in order of appearance. All clones share one list. Each column of a table holds a
/// clone, so resolving a name records the read.
#[derive(Debug, Default, Clone)]
pub(crate) struct Accesses {
    list: Arc<Mutex<Vec<Access>>>,
}

impl Accesses {
    /// Adds an access; columns with the same table and permission are merged.
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

    /// All recorded accesses.
    pub(crate) fn list(&self) -> Vec<Access> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The table column that a relation's column passes on unchanged.
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
    /// No table column, because an expression computes the value.
    pub(crate) const NONE: Self = Self { read: None };

    /// A column of `table`, named as in the table. Its reads are recorded in `accesses`.
    pub(crate) fn column(table: &Arc<str>, column: &str, accesses: &Accesses) -> Self {
        let (table, column) = (Arc::clone(table), Arc::from(column));
        Self { read: Some(Read { table, column, accesses: accesses.clone() }) }
    }

    /// Records a read of the table's column.
    pub(crate) fn note(&self) {
        if let Some(Read { table, column, accesses }) = &self.read {
            let columns = vec![column.as_ref().to_owned()];
            accesses.note(Access { columns, ..Access::new(table, Permission::Select) });
        }
    }
}
