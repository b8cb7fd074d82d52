//! Reading views: a view's query is bound again for each reference, with the owner's permissions.
//! `sources/recorded.rs` resolves the names in the query.

use std::mem;
use std::sync::Arc;

use hashbrown::HashMap;
use tidemark_ast::{Name, Node, NodeId, Tree};
use tidemark_catalog::View;
use tidemark_optimizer::fenced;
use tidemark_types::bounded::grown;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, identifier};

use crate::Access;
use crate::binder::state::binder::VariableValue;
use crate::binder::state::scope::{Relation, ScopeColumn};
use crate::binder::state::views::{BoundView, ViewContext};
use crate::binder::{Binder, error};

/// Maximum nesting depth of views.
const DEEPEST: usize = 32;

/// A view's current state.
pub(crate) struct ViewState {
    /// The view's columns, or the error if the view is invalid.
    pub(crate) columns: EngineResult<Vec<Field>>,
    /// Index of the designated timestamp.
    pub(crate) timestamp: Option<usize>,
    /// The tables and views that the view's query references.
    pub(crate) reads: Vec<String>,
}

impl Binder<'_> {
    /// The view with this name.
    pub(crate) fn view(&self, name: &str) -> Option<View> {
        View::find(self.snapshot, name)
    }

    /// Binds a reference to a view and returns the view's rows. `name` is the reference as it
    /// appears in the statement.
    pub(crate) fn view_rows(&mut self, view: &View, name: &Name) -> EngineResult<Relation> {
        let key = identifier::fold(&view.name);
        if self.views.contains(&key) {
            let message = format!("circular dependency detected [view={}]", view.name);
            return Err(error::at(ErrorCode::InvalidValue, message, name.span));
        }
        if self.views.len() >= DEEPEST {
            let message =
                format!("views are nested more than {DEEPEST} levels deep [view={}]", view.name);
            return Err(error::at(ErrorCode::StatementTooComplex, message, name.span));
        }
        if let Some(bound) = self.bound_views.get(&key).filter(|_| self.variables.is_empty()) {
            let BoundView { rows, reads, sources } = bound.clone();
            self.work.count_sources(sources, name.span)?;
            for access in reads {
                self.accesses.note(access);
            }
            return Ok(rows);
        }
        let tree: Result<Tree, _> = serde_json::from_str(&view.tree);
        let mut tree = tree.map_err(|_| {
            let message = format!("view '{}' was created by a different version", view.name);
            error::at(ErrorCode::NotSupported, message, name.span)
                .with_hint("run ALTER VIEW with the query shown by views()")
        })?;
        self.override_variables(&mut tree, name)?;
        let sources = self.work.sources;
        let (rows, reads) = self.bound_view(view, &tree, &key);
        if let (Ok(rows), true) = (&rows, self.variables.is_empty()) {
            let sources = self.work.sources - sources;
            self.bound_views.insert(key, BoundView { rows: rows.clone(), reads, sources });
        }
        let is_limited = self.visibility().is_some();
        // Error positions in the view's query are meaningless in the reader's SQL text.
        rows.map_err(|failure| {
            let is_known = ["view '", "circular dependency"]
                .iter()
                .any(|start| failure.message.starts_with(start));
            let message = if failure.code == ErrorCode::AccessDenied {
                failure.message.clone()
            } else if is_limited {
                // The error must not reveal to a reader which tables the view reads.
                format!("view '{}' is invalid", view.name)
            } else if is_known {
                failure.message.clone()
            } else {
                format!("view '{}' is invalid: {}", view.name, failure.message)
            };
            EngineError { message, ..failure }.at(error::span(name.span))
        })
    }

    /// Binds a view's query and returns its rows and accesses. The owner's permissions apply to
    /// these accesses.
    fn bound_view(
        &mut self,
        view: &View,
        tree: &Tree,
        key: &str,
    ) -> (EngineResult<Relation>, Vec<Access>) {
        let outer = mem::take(&mut self.accesses);
        let (name, owner) = (view.name.clone(), view.owner());
        self.view_contexts.push(ViewContext { before: outer.clone(), view: name, owner });
        let rows = self.within(tree, |inner| {
            inner.beneath_view = true;
            inner.view_sources = view.sources.clone().map(Arc::new);
            inner.views.push(key.to_owned());
            let rows = inner.query(tree.root);
            inner.views.pop();
            rows
        });
        // A user with limited visibility must not learn about rows that the view filters out.
        let is_limited = self.visibility().is_some();
        let rows = rows.map(|mut rows| {
            if is_limited {
                rows.base = None;
                rows.plan = fenced(rows.plan);
            }
            rows
        });
        self.view_contexts.pop();
        let reads = mem::replace(&mut self.accesses, outer).list().into_iter();
        let reads: Vec<Access> =
            reads.map(|access| access.through(&view.name, &view.owner())).collect();
        for access in &reads {
            self.accesses.note(access.clone());
        }
        (rows, reads)
    }

    /// Replaces the values of the view's OVERRIDABLE variables with those that the reader declares.
    fn override_variables(&mut self, tree: &mut Tree, name: &Name) -> EngineResult<()> {
        if self.variables.is_empty() {
            return Ok(());
        }
        let Some(Node::Query { declarations, .. }) = tree.get(tree.root) else { return Ok(()) };
        let mut replaced: HashMap<usize, NodeId> = HashMap::new();
        for (index, declaration) in declarations.clone().iter().enumerate() {
            let Some(value) = self.variable_value(&declaration.name) else { continue };
            if !declaration.overridable {
                let message = format!("variable is not overridable: @{}", declaration.name.text);
                return Err(error::at(ErrorCode::InvalidValue, message, name.span));
            }
            replaced.insert(index, self.graft(tree, value)?);
        }
        if let Some(Node::Query { declarations, .. }) = tree.get_mut(tree.root) {
            for (index, value) in replaced {
                declarations[index].value = value;
            }
        }
        Ok(())
    }

    /// Copies a value from the statement's tree to the end of a different tree.
    fn graft(&mut self, tree: &mut Tree, value: VariableValue) -> EngineResult<NodeId> {
        self.count_step(value.node)?;
        grown(|| self.graft_at(tree, value))
    }

    fn graft_at(&mut self, tree: &mut Tree, value: VariableValue) -> EngineResult<NodeId> {
        let VariableValue { node: id, scopes } = value;
        let part = |id: NodeId| VariableValue { node: id, scopes };
        let mut copy = self.node(id)?.clone();
        match &mut copy {
            Node::Null
            | Node::Boolean { .. }
            | Node::Integer { .. }
            | Node::Float { .. }
            | Node::Decimal { .. }
            | Node::Long256 { .. }
            | Node::Geohash { .. }
            | Node::Duration { .. }
            | Node::String { .. }
            | Node::TypedString { .. }
            | Node::Parameter { .. } => {}
            Node::Variable { name } => {
                let value = self.variable_value_in(name, scopes);
                let value = value.ok_or_else(|| error::invalid_column(&name.text, name.span))?;
                return self.graft(tree, value);
            }
            Node::Unary { operand, .. } | Node::Cast { operand, .. } => {
                *operand = self.graft(tree, part(*operand))?;
            }
            Node::Binary { left, right, .. } => {
                *left = self.graft(tree, part(*left))?;
                *right = self.graft(tree, part(*right))?;
            }
            Node::Call(call) if call.over.is_none() => {
                for argument in &mut call.arguments {
                    *argument = self.graft(tree, part(*argument))?;
                }
            }
            _ => {
                let message = "a view variable can only be overridden by a constant expression";
                return Err(error::at(ErrorCode::NotSupported, message, self.tree.span(id)));
            }
        }
        Ok(tree.push(copy, self.tree.span(id)))
    }

    /// All views visible to the user, sorted by name.
    pub(crate) fn sorted_views(&self) -> Vec<View> {
        let mut views = tidemark_catalog::Catalog::new(Arc::clone(self.snapshot)).views();
        if let Some(visibility) = self.visibility() {
            views.retain(|view| visibility.sees(&view.name));
        }
        views
    }

    /// A view's current state.
    pub(crate) fn view_state(&mut self, view: &View) -> ViewState {
        let name =
            Name { text: view.name.clone(), quoted: true, span: tidemark_ast::Span::default() };
        // Describing a view must not count as reading it.
        let outer = mem::take(&mut self.accesses);
        let variables = mem::take(&mut self.variables);
        let sources = self.work.sources;
        let rows = self.view_rows(view, &name);
        self.work.sources = sources;
        self.variables = variables;
        let inner = mem::replace(&mut self.accesses, outer).list();
        let reads = inner.into_iter().filter(|access| access.is_through(&view.name));
        let mut reads: Vec<String> = reads.map(|access| access.table).collect();
        reads.dedup();
        let timestamp = rows.as_ref().ok().and_then(|rows| rows.timestamp);
        ViewState { columns: rows.map(|rows| fields(&rows)), timestamp, reads }
    }
}

/// A relation's column names and types, as reported to clients.
pub(crate) fn fields(rows: &Relation) -> Vec<Field> {
    // Fast path: the columns of most queries have no catalog type.
    let is_marked = rows.plan.schema().fields().iter().any(|field| !field.metadata().is_empty());
    let field = |column: &ScopeColumn| Field {
        catalog_type: if is_marked { rows.catalog_type(&column.column) } else { None },
        ..Field::new(&column.name, column.sql_type)
    };
    rows.columns.iter().map(field).collect()
}

/// The error `view does not exist [view=x]`.
pub(crate) fn no_view(name: &Name) -> EngineError {
    let message = format!("view does not exist [view={}]", name.text);
    error::at(ErrorCode::TableNotFound, message, name.span)
}
