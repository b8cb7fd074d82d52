//! What a statement touches, merged per table and permission.

use crate::Access;

/// Accesses in the order they were met.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    list: Vec<Access>,
}

impl Accesses {
    /// Adds an access; columns of one table under one permission are put together.
    pub(crate) fn note(&mut self, access: Access) {
        let same = |known: &&mut Access| {
            known.table == access.table
                && known.permission == access.permission
                && known.view == access.view
        };
        let known = self.list.iter_mut().find(same);
        let Some(known) = known else {
            self.list.push(access);
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
        self.list.clone()
    }
}
