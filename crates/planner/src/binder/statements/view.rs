//! Views: named queries.
//!
//! A view is stored as the SQL text and tree of its query, and the query is bound again wherever
//! the view's name is referenced. It is therefore planned together with the outer query, and it is
//! valid if and only if all objects that it references exist. It reads with its owner's
//! permissions, not the reader's.

use tidemark_ast::{Name, NodeId};
use tidemark_border::Permission;
use tidemark_catalog::{Owner, View};
use tidemark_types::{EngineError, EngineResult, ErrorCode, identifier};

use crate::binder::catalog::view::no_view;
use crate::binder::notice::TEMPORARY_VIEW;
use crate::binder::statements::create_table::check_table_name;
use crate::binder::statements::view_sources::new_id;
use crate::binder::{Binder, error};
use crate::{BoundStatement, BoundViewChange};

/// CREATE VIEW and ALTER VIEW, as parsed.
pub(crate) struct Definition<'a> {
    pub(crate) name: &'a Name,
    pub(crate) query: NodeId,
    pub(crate) text: &'a str,
    pub(crate) if_not_exists: bool,
    pub(crate) or_replace: bool,
    /// Whether the statement is ALTER VIEW, which requires the view to exist.
    pub(crate) alter: bool,
    /// OWNED BY: the owner whose permissions apply instead of the user's.
    pub(crate) owner: Option<&'a str>,
    /// TEMPORARY: the view is dropped when its connection ends, and never replaces another view.
    pub(crate) temporary: bool,
}

impl Binder<'_> {
    /// Binds CREATE VIEW and ALTER VIEW.
    pub(crate) fn define_view(mut self, view: &Definition<'_>) -> EngineResult<BoundStatement> {
        let name = view.name;
        check_table_name(name)?;
        let command = if view.alter { "ALTER VIEW" } else { "CREATE VIEW" };
        let known = self.view(&name.text);
        // Replacing a view requires the permission to alter it, because its readers then see
        // different rows.
        let or_replace = view.or_replace && !view.temporary;
        let replaces = view.alter || (or_replace && known.is_some());
        if view.alter {
            self.must_see(name, Permission::AlterView)?;
        } else {
            self.note_change("", Permission::CreateView);
        }
        if replaces {
            self.note_change(&name.text, Permission::AlterView);
        }
        if self.snapshot.table(&name.text).is_some() {
            let message = "table or materialized view with the requested name already exists";
            return Err(error::at(ErrorCode::TableExists, message, name.span));
        }
        match (&known, view.if_not_exists) {
            (None, _) if view.alter => return Err(no_view(name)),
            (Some(_), true) => return Ok(self.view_change(None, command)),
            (Some(_), false) if !or_replace => {
                let message = format!("view already exists [view={}]", name.text);
                return Err(error::at(ErrorCode::TableExists, message, name.span));
            }
            _ => {}
        }
        self.views.push(identifier::fold(&name.text));
        self.query(view.query)?;
        if !self.parameters.types().is_empty() {
            let message = "bind variables are not allowed in a view";
            return Err(error::at(ErrorCode::NotSupported, message, name.span));
        }
        let subtree = self.subtree(view.query);
        let tree = serde_json::to_string(&subtree)
            .map_err(|failure| EngineError::internal(failure.to_string()))?;
        let sources = self.sources_of(&subtree);
        let name = view.owner.unwrap_or(&self.context.user);
        let owner = self.context.owner.clone();
        let owner = owner.unwrap_or_else(|| Owner { name: name.to_owned(), id: None });
        let known_id = known.as_ref().map(|known| known.id.clone()).filter(|id| !id.is_empty());
        let id = known_id.unwrap_or_else(|| new_id(self.snapshot, self.context.now()));
        let name = view.name;
        let record = View {
            name: known.map_or_else(|| name.text.clone(), |known| known.name),
            query: view.text.to_owned(),
            tree,
            owner: owner.name,
            owner_id: owner.id,
            changed_micros: self.context.now(),
            id,
            sources: Some(sources),
        };
        let change = record.put()?;
        if view.temporary {
            self.notices.push(TEMPORARY_VIEW);
        }
        Ok(self.view_change(Some(change), command))
    }

    /// The view in DROP VIEW; `None` if it does not exist and IF EXISTS is given.
    pub(crate) fn dropped_view(
        &mut self,
        name: &Name,
        if_exists: bool,
    ) -> EngineResult<Option<String>> {
        self.must_see(name, Permission::DropView)?;
        self.note_change(&name.text, Permission::DropView);
        match self.view(&name.text) {
            None if if_exists => Ok(None),
            None if self.snapshot.table(&name.text).is_some() => {
                let message = "view name expected, got table name";
                Err(error::at(ErrorCode::TableNotFound, message, name.span))
            }
            None => Err(no_view(name)),
            Some(view) => Ok(Some(view.name)),
        }
    }

    /// Binds COMPILE VIEW, which reports errors in a view and in the views that it reads. No code
    /// is compiled.
    pub(crate) fn compile_view(mut self, name: &Name) -> EngineResult<BoundStatement> {
        self.must_see(name, Permission::CompileView)?;
        self.note_change(&name.text, Permission::CompileView);
        let view = self.view(&name.text).ok_or_else(|| no_view(name))?;
        self.view_rows(&view, name)?;
        Ok(self.view_change(None, "COMPILE VIEW"))
    }

    fn view_change(
        self,
        change: Option<tidemark_storage::Change>,
        command: &'static str,
    ) -> BoundStatement {
        let (accesses, notice) = (self.accesses.list(), self.notice());
        BoundStatement::ViewChange(BoundViewChange { change, command, notice, accesses })
    }
}
