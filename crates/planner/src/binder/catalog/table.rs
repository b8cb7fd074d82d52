//! Table lookup by name for statements other than queries.

use std::sync::Arc;

use tidemark_ast::{Name, Span, ViewKind};
use tidemark_border::Permission;
use tidemark_catalog::{IncrementalView, ViewForm};
use tidemark_storage::TableSnapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::{Binder, error};

impl Binder<'_> {
    /// The table that a statement changes, and the permission it requires.
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
        // Checks and repairs affect only files, so tables of materialized and live views are also
        // accepted.
        let is_content = !matches!(permission, Permission::Snapshot | Permission::SystemAdmin);
        let form = IncrementalView::form_of(self.snapshot, found.schema().id);
        if let Some(form) = form.filter(|_| is_content) {
            let message = format!("cannot modify {} [view={}]", form.name(), name.text);
            return Err(error::at(ErrorCode::NotSupported, message, Span::default()));
        }
        Ok(found)
    }

    /// Finds a materialized or live view by name, together with its table.
    pub(crate) fn incremental_view(
        &mut self,
        name: &Name,
        form: ViewForm,
        permission: Permission,
    ) -> EngineResult<(Arc<TableSnapshot>, IncrementalView)> {
        self.must_see(name, permission)?;
        let table = self.snapshot.table(&name.text);
        let found = table.as_ref().and_then(|table| {
            let view = IncrementalView::of(self.snapshot, table.schema().id)?;
            (view.form() == form).then(|| (Arc::clone(table), view))
        });
        found.ok_or_else(|| {
            let (form, name_text) = (form.name(), &name.text);
            let message = if table.is_some() || self.view(name_text).is_some() {
                format!("{form} name expected, got table or view [name={name_text}]")
            } else {
                format!("{form} does not exist [view={name_text}]")
            };
            error::at(ErrorCode::TableNotFound, message, name.span)
        })
    }

    /// The table that a statement describes.
    pub(crate) fn readable_table(&mut self, name: &Name) -> EngineResult<Arc<TableSnapshot>> {
        self.must_see(name, Permission::Select)?;
        self.snapshot.table(&name.text).ok_or_else(|| match self.view(&name.text) {
            Some(_) => no_name_of_a_table(name),
            None => error::no_table(name),
        })
    }
}

/// The kind of incremental view that a statement names; `None` for tables and plain views.
pub(crate) fn form_of(what: ViewKind) -> Option<ViewForm> {
    match what {
        ViewKind::Table | ViewKind::View => None,
        ViewKind::MaterializedView => Some(ViewForm::Materialized),
        ViewKind::LiveView => Some(ViewForm::Live),
    }
}

/// The error for a view where a table is expected.
pub(crate) fn no_name_of_a_table(name: &Name) -> EngineError {
    let message = "table name expected, got view or materialized view name";
    error::at(ErrorCode::TableNotFound, message, name.span)
}

/// The error for a statement that cannot modify a view.
fn read_only(name: &Name) -> EngineError {
    let message = format!("cannot modify view [view={}]", name.text);
    error::at(ErrorCode::NotSupported, message, name.span)
}
