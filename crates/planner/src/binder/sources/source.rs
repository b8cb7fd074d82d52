//! Sources in FROM: tables, CTEs, sub-queries.

use std::sync::Arc;

use datafusion::logical_expr::{Expr, Extension, LogicalPlan, cast, ident};
use tidemark_ast::{Name, Node, NodeId};
use tidemark_border::Permission;
use tidemark_operators::WindowNode;
use tidemark_types::bounded::grown;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::expressions::window::row_number;
use crate::binder::sources::recorded::unbound;
use crate::binder::state::binder::VariableValue;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, ScopeColumn, TimeOrder};
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// Binds a source.
    pub(crate) fn source(&mut self, id: NodeId) -> EngineResult<Relation> {
        self.sources += 1;
        self.work.count_sources(1, self.tree.span(id))?;
        self.count_step(id)?;
        grown(|| self.source_at(id))
    }

    fn source_at(&mut self, id: NodeId) -> EngineResult<Relation> {
        match self.node(id)? {
            Node::Table { name, alias, timestamp } => {
                let relation = self.named_source(id, name, alias.as_ref())?;
                redesignated(relation, timestamp.as_ref())
            }
            // Without a left side, LATERAL is an ordinary sub-query.
            Node::Derived { query, alias, timestamp, lateral: _ } => {
                let relation = self.derived(*query, alias.as_ref())?;
                redesignated(relation, timestamp.as_ref())
            }
            Node::TableFunction { .. } if self.unnest_of(id).is_some() => {
                self.unnested(&relation::one_row(), id, false)
            }
            Node::TableFunction { call, alias, columns, timestamp, ordinality } => {
                let relation = self.table_function(*call, alias.as_ref())?;
                let relation = if *ordinality { with_ordinality(relation)? } else { relation };
                let relation = if columns.is_empty() {
                    relation
                } else {
                    let reference = self.relation_name();
                    let qualifier = alias.as_ref().map(|alias| alias.text.as_str());
                    relation.renamed(columns)?.aliased(qualifier, &reference)?
                };
                redesignated(relation, timestamp.as_ref())
            }
            Node::Join { .. } => self.join(id),
            Node::Variable { name } => match self.variable_value(name) {
                Some(query) => self.declared(query, name, name),
                None => Err(error::no_table(name)),
            },
            Node::Query { .. }
            | Node::Select(_)
            | Node::SetOperation { .. }
            | Node::Show { .. } => self.derived(id, None),
            _ => Err(error::at(
                ErrorCode::Syntax,
                "table name or query expected",
                self.tree.span(id),
            )),
        }
    }

    /// Binds a sub-query as a source.
    pub(crate) fn derived(
        &mut self,
        query: NodeId,
        alias: Option<&Name>,
    ) -> EngineResult<Relation> {
        let relation = self.source_query(query)?;
        let reference = self.relation_name();
        relation.aliased(alias.map(|alias| alias.text.as_str()), &reference)
    }

    /// Binds a DECLARE variable as a source. Its value is a query, or the name of a table, view or
    /// table function.
    fn declared(
        &mut self,
        value: VariableValue,
        name: &Name,
        alias: &Name,
    ) -> EngineResult<Relation> {
        self.within_declaration(value, |binder, id| match binder.node(id)? {
            Node::Query { .. }
            | Node::Select(_)
            | Node::SetOperation { .. }
            | Node::Values { .. }
            | Node::Show { .. }
            | Node::Table { .. }
            | Node::TableFunction { .. }
            | Node::Derived { .. } => binder.derived(id, Some(alias)),
            Node::Column { path } => {
                let words: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
                let text = words.join(".");
                let Some(first) = path.first() else {
                    return Err(EngineError::internal("a column has no name"));
                };
                binder.named_source(id, &Name { text, ..first.clone() }, Some(alias))
            }
            Node::String { value } => {
                let table = Name { text: value.clone(), quoted: true, span: binder.tree.span(id) };
                binder.named_source(id, &table, Some(alias))
            }
            Node::Call(_) => binder.table_function(id, Some(alias)),
            _ => {
                let message = format!("'@{}' is a value, expected a query", name.text);
                Err(error::at(ErrorCode::TypeMismatch, message, name.span))
            }
        })
    }

    fn named_source(
        &mut self,
        id: NodeId,
        name: &Name,
        alias: Option<&Name>,
    ) -> EngineResult<Relation> {
        let qualifier = alias.unwrap_or(name).text.as_str();
        if let Some(variable) = name.text.strip_prefix('@') {
            let bare = Name { text: variable.to_owned(), ..name.clone() };
            if let Some(query) = self.variable_value(&bare) {
                return self.declared(query, &bare, alias.unwrap_or(&bare));
            }
        }
        if let Some(common) = self.common_table(name) {
            let reference = self.relation_name();
            return common?.aliased(Some(qualifier), &reference);
        }
        let recorded = self.view_sources.clone();
        if let Some(source) = recorded.as_ref().and_then(|sources| sources.get(&id)) {
            return self.recorded_source(source, name, qualifier);
        }
        // Catalog tables take precedence over user tables.
        if (recorded.is_some() || identifier::is_reserved_table_name(&name.text))
            && let Some(rows) = self.catalog_table(&name.text)?
        {
            let reference = self.relation_name();
            return rows.aliased(Some(qualifier), &reference);
        }
        if recorded.is_some() {
            return Err(unbound(name));
        }
        let sees = self.must_see(name, Permission::Select);
        let is_seen = sees.is_ok();
        if let Some(table) = self.snapshot.table(&name.text).filter(|_| is_seen) {
            self.note_read(&table.schema().name, Vec::new());
            return self.table_rows(&table, qualifier);
        }
        if let Some(view) = self.view(&name.text).filter(|_| is_seen) {
            self.note_all_columns(&view.name);
            let rows = self.view_rows(&view, name)?;
            let reference = self.relation_name();
            return rows.aliased(Some(qualifier), &reference);
        }
        match self.catalog_table(&name.text)? {
            Some(rows) => {
                let reference = self.relation_name();
                rows.aliased(Some(qualifier), &reference)
            }
            None => Err(sees.err().unwrap_or_else(|| error::no_table(name))),
        }
    }
}

/// WITH ORDINALITY: numbers the rows from 1.
fn with_ordinality(mut relation: Relation) -> EngineResult<Relation> {
    let name = relation::fresh("row", &relation.plan);
    let number = row_number(Vec::new(), Vec::new()).alias(&name);
    let node = WindowNode::try_new(relation.plan.clone(), None, vec![number]);
    let node = Arc::new(node.map_err(error::plan)?);
    let mut exprs: Vec<Expr> = relation.columns.iter().map(ScopeColumn::expr).collect();
    exprs.extend(relation.unselected());
    exprs.push(cast(ident(name), SqlType::Long.arrow_type()).alias("ordinality"));
    relation.plan = relation::project(LogicalPlan::Extension(Extension { node }), exprs)?;
    relation.columns.push(ScopeColumn {
        qualifier: relation.columns.first().and_then(|column| column.qualifier.clone()),
        ..relation::output_column("ordinality", SqlType::Long)
    });
    relation.base = None;
    Ok(relation)
}

/// Applies `source TIMESTAMP(column)`. The column is assumed to be in ascending order.
fn redesignated(mut relation: Relation, column: Option<&Name>) -> EngineResult<Relation> {
    let Some(name) = column else { return Ok(relation) };
    let found = relation.resolve(std::slice::from_ref(name))?;
    if !relation.columns[found].sql_type.is_timestamp() {
        return Err(error::at(ErrorCode::TypeMismatch, "not a TIMESTAMP", name.span));
    }
    if relation.timestamp != Some(found) {
        relation.base = None;
    }
    relation.timestamp = Some(found);
    relation.unselected_time = None;
    relation.order = TimeOrder::Ascending;
    Ok(relation)
}
