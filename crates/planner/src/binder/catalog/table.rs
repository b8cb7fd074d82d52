//! Tables by their names, as statements that are no queries ask for them.

use std::sync::Arc;

use tidemark_ast::Name;
use tidemark_border::Permission;
use tidemark_storage::TableSnapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::{Binder, error};

impl Binder<'_> {
    /// The table a statement changes, for which it takes a permission.
    pub(crate) fn writable_table(
        &mut self,
        name: &Name,
        permission: Permission,
    ) -> EngineResult<Arc<TableSnapshot>> {
        self.must_see(name, permission)?;
        self.snapshot.table(&name.text).ok_or_else(|| match self.view(&name.text) {
            Some(_) => read_only(name),
            None => error::no_table(name),
        })
    }

    /// The table a statement tells about.
    pub(crate) fn readable_table(&mut self, name: &Name) -> EngineResult<Arc<TableSnapshot>> {
        self.must_see(name, Permission::Select)?;
        self.snapshot.table(&name.text).ok_or_else(|| match self.view(&name.text) {
            Some(_) => {
                let message = "table name expected, got view or materialized view name";
                error::at(ErrorCode::TableNotFound, message, name.span)
            }
            None => error::no_table(name),
        })
    }
}

/// What cannot be done to a view.
fn read_only(name: &Name) -> EngineError {
    let message = format!("cannot modify view [view={}]", name.text);
    error::at(ErrorCode::NotSupported, message, name.span)
}
