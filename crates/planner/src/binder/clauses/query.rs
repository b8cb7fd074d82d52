//! Whole queries: WITH and DECLARE around a body, ORDER BY and LIMIT behind it.

use hashbrown::HashMap;
use tidemark_ast::{Declaration, Limit, Name, Node, NodeId, OrderItem};
use tidemark_types::bounded::grown;
use tidemark_types::{EngineError, EngineResult, ErrorCode, identifier};

use crate::binder::state::binder::Queries;
use crate::binder::state::common_table::CommonTable;
use crate::binder::state::scope::Relation;
use crate::binder::{Binder, error};

/// Binds a query by its clauses.
pub(crate) struct Clauses;

impl Queries for Clauses {
    fn query(&self, binder: &mut Binder<'_>, id: NodeId) -> EngineResult<Relation> {
        binder.count_step(id)?;
        grown(|| binder.query_at(id))
    }

    fn common_table(&self, binder: &mut Binder<'_>, name: &Name) -> Option<EngineResult<Relation>> {
        binder.with_table(name)
    }
}

impl Binder<'_> {
    fn query_at(&mut self, id: NodeId) -> EngineResult<Relation> {
        let Node::Query { declarations, with, body, order_by, limit } = self.node(id)? else {
            return self.body(id, &[]);
        };
        let tables_before = self.common_tables.len();
        let frames_before = self.variables.len();
        if !declarations.is_empty() {
            self.check_declarations(declarations)?;
            let mut frame = HashMap::with_capacity(declarations.len());
            for declaration in declarations {
                frame.insert(identifier::fold(&declaration.name.text), declaration.value);
            }
            self.variables.push(frame);
        }
        for (index, table) in with.iter().enumerate() {
            if with[..index].iter().any(|one| identifier::same(&one.name.text, &table.name.text)) {
                self.common_tables.truncate(tables_before);
                self.variables.truncate(frames_before);
                let message = format!("WITH names '{}' twice", table.name.text);
                return Err(error::at(ErrorCode::InvalidName, message, table.name.span));
            }
            self.common_tables.push(CommonTable {
                name: table.name.text.clone(),
                columns: table.columns.clone(),
                query: table.query,
                recursive: table.recursive,
                last_rows: None,
            });
        }
        let bound = self.limited_body(*body, order_by, limit.as_ref());
        self.common_tables.truncate(tables_before);
        self.variables.truncate(frames_before);
        bound
    }

    fn limited_body(
        &mut self,
        body: NodeId,
        order_by: &[OrderItem],
        limit: Option<&Limit>,
    ) -> EngineResult<Relation> {
        let Some(limit) = limit else { return self.body(body, order_by) };
        // Rows that are counted for each row around them are in the order of time, whether it is
        // selected or not, where no other is asked for.
        let is_read = self.time_is_read;
        let counts = !is_read && !self.outer.is_empty() && order_by.is_empty();
        self.time_is_read = is_read || counts;
        let relation = self.body(body, order_by)?;
        let relation = self.limited(relation, limit)?;
        if counts { relation.without_unselected() } else { Ok(relation) }
    }

    /// A variable's value reads those declared before it: one that reads itself has none.
    fn check_declarations(&mut self, declarations: &[Declaration]) -> EngineResult<()> {
        let tree = self.tree;
        for (node, at) in tree.nodes.iter().zip(&tree.spans) {
            let read = match node {
                // One of a variable that nothing reads is sent as well.
                Node::Parameter { index } => {
                    self.parameters.slot(*index);
                    None
                }
                Node::Variable { name } => Some(name.text.as_str()),
                Node::Table { name, .. } => name.text.strip_prefix('@'),
                _ => None,
            };
            let Some(read) = read else { continue };
            let within = declarations.iter().position(|declaration| {
                let value = tree.span(declaration.value);
                value.start <= at.start && at.end <= value.end
            });
            let Some(within) = within else { continue };
            let same = |later: &Declaration| identifier::same(&later.name.text, read);
            if declarations.iter().skip(within).any(same) {
                let message = format!("tried to use undeclared variable `@{read}`");
                return Err(error::at(ErrorCode::ColumnNotFound, message, *at));
            }
        }
        Ok(())
    }

    fn body(&mut self, id: NodeId, order_by: &[OrderItem]) -> EngineResult<Relation> {
        let body = self.node(id)?;
        if !matches!(body, Node::Select(_) | Node::Query { .. }) {
            self.time_is_read = false;
        }
        let relation = match body {
            Node::Select(select) => return self.select(select, order_by),
            Node::Query { .. } => self.query(id)?,
            Node::SetOperation { .. } => self.set_operation(id)?,
            Node::Values { rows } => self.values_rows(rows)?,
            Node::Show { subject } => self.show(subject)?,
            Node::Table { .. } | Node::TableFunction { .. } | Node::Derived { .. } => {
                let rows = self.source(id)?;
                rows.read_all(self.tree.span(id))?;
                rows
            }
            _ => return Err(EngineError::internal("a query without a body")),
        };
        self.ordered(relation, order_by)
    }

    /// The rows of a table of WITH.
    fn with_table(&mut self, name: &Name) -> Option<EngineResult<Relation>> {
        let same = |table: &CommonTable| identifier::same(&table.name, &name.text);
        let position = self.common_tables.iter().rposition(same)?;
        if let Some(rows) = self.read_last_rows(position, name.span) {
            return Some(Ok(rows));
        }
        let table = self.common_tables[position].clone();
        // Its body sees the ones before it, and itself only where it is recursive.
        let hidden = self.common_tables.split_off(position);
        let bound = if table.recursive {
            self.recursive_table(&table)
        } else {
            self.source_query(table.query)
        };
        let bound = bound.and_then(|relation| relation.renamed(&table.columns));
        self.common_tables.extend(hidden);
        Some(bound)
    }
}
