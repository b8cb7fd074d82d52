//! Tables by their names, as statements that are no queries ask for them.

use std::sync::Arc;

use tidemark_ast::{Name, Span};
use tidemark_border::Permission;
use tidemark_catalog::{LiveView, MaterializedView};
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
        let found = self.snapshot.table(&name.text).ok_or_else(|| match self.view(&name.text) {
            Some(_) => read_only(name),
            None => error::no_table(name),
        })?;
        // Checks and repairs are for the files of every table.
        let is_content = !matches!(permission, Permission::Snapshot | Permission::SystemAdmin);
        let kind = MaterializedView::kind(self.snapshot, found.schema().id);
        if let Some(kind) = kind.filter(|_| is_content) {
            let message = format!("cannot modify {kind} [view={}]", name.text);
            return Err(error::at(ErrorCode::NotSupported, message, Span::default()));
        }
        Ok(found)
    }

    /// A materialized view by its name, and its table.
    pub(crate) fn materialized_view(
        &mut self,
        name: &Name,
        permission: Permission,
    ) -> EngineResult<(Arc<TableSnapshot>, MaterializedView)> {
        self.must_see(name, permission)?;
        let table = self.snapshot.table(&name.text);
        let is_live = |table: &&Arc<TableSnapshot>| LiveView::is(self.snapshot, table.schema().id);
        let found = table.as_ref().filter(|table| !is_live(table)).and_then(|table| {
            let view = MaterializedView::of(self.snapshot, table.schema().id)?;
            Some((Arc::clone(table), view))
        });
        found.ok_or_else(|| {
            let message = if table.is_some() || self.view(&name.text).is_some() {
                format!("materialized view name expected, got table or view [name={}]", name.text)
            } else {
                format!("materialized view does not exist [view={}]", name.text)
            };
            error::at(ErrorCode::TableNotFound, message, name.span)
        })
    }

    /// A live view by its name, and its table.
    pub(crate) fn live_view(
        &mut self,
        name: &Name,
        permission: Permission,
    ) -> EngineResult<(Arc<TableSnapshot>, MaterializedView, LiveView)> {
        self.must_see(name, permission)?;
        let table = self.snapshot.table(&name.text);
        let found = table.as_ref().and_then(|table| {
            let id = table.schema().id;
            let view = MaterializedView::of(self.snapshot, id)?;
            Some((Arc::clone(table), view, LiveView::of(self.snapshot, id)?))
        });
        found.ok_or_else(|| {
            let message = if table.is_some() || self.view(&name.text).is_some() {
                format!("live view name expected, got table or view [name={}]", name.text)
            } else {
                format!("live view does not exist [view={}]", name.text)
            };
            error::at(ErrorCode::TableNotFound, message, name.span)
        })
    }

    /// The table a statement tells about.
    pub(crate) fn readable_table(&mut self, name: &Name) -> EngineResult<Arc<TableSnapshot>> {
        self.must_see(name, Permission::Select)?;
        self.snapshot.table(&name.text).ok_or_else(|| match self.view(&name.text) {
            Some(_) => no_name_of_a_table(name),
            None => error::no_table(name),
        })
    }
}

/// A view where a table is expected.
pub(crate) fn no_name_of_a_table(name: &Name) -> EngineError {
    let message = "table name expected, got view or materialized view name";
    error::at(ErrorCode::TableNotFound, message, name.span)
}

/// What cannot be done to a view.
fn read_only(name: &Name) -> EngineError {
    let message = format!("cannot modify view [view={}]", name.text);
    error::at(ErrorCode::NotSupported, message, name.span)
}
