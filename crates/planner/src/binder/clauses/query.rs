//! Whole queries: WITH and DECLARE before a body, ORDER BY and LIMIT after it.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan};
use hashbrown::{HashMap, HashSet};
use tidemark_ast::{Declaration, Limit, Name, Node, NodeId, OrderItem};
use tidemark_operators::SharedRowsNode;
use tidemark_types::bounded::grown;
use tidemark_types::{EngineError, EngineResult, ErrorCode, identifier};

use crate::binder::state::binder::Queries;
use crate::binder::state::common_table::CommonTable;
use crate::binder::state::scope::Relation;
use crate::binder::{Binder, error};

/// Binds a query clause by clause.
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
            // OVERRIDABLE only matters to statements that read a view.
            for Declaration { name, value, overridable: _ } in declarations {
                frame.insert(identifier::fold(&name.text), *value);
            }
            self.variables.push(frame);
        }
        let mut names = HashSet::with_capacity(with.len());
        for table in with {
            if !names.insert(identifier::fold(&table.name.text)) {
                self.common_tables.truncate(tables_before);
                self.variables.truncate(frames_before);
                let message =
                    format!("WITH query name '{}' is specified more than once", table.name.text);
                return Err(error::at(ErrorCode::InvalidName, message, table.name.span));
            }
            self.common_tables.push(CommonTable::of(table, self.variables.len()));
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
        // In a correlated sub-query with LIMIT and no ORDER BY, rows are counted in time order,
        // even if the timestamp is not selected.
        let is_read = self.time_is_read;
        let counts = !is_read && !self.outer.is_empty() && order_by.is_empty();
        self.time_is_read = is_read || counts;
        let relation = self.body(body, order_by)?;
        let relation = self.limited(relation, limit)?;
        if counts { relation.without_unselected() } else { Ok(relation) }
    }

    /// Rejects a variable that reads itself or a later variable. A variable can read only earlier
    /// ones.
    fn check_declarations(&mut self, declarations: &[Declaration]) -> EngineResult<()> {
        let tree = self.tree;
        let mut last = HashMap::with_capacity(declarations.len());
        let mut values = Vec::with_capacity(declarations.len());
        for (index, declaration) in declarations.iter().enumerate() {
            last.insert(identifier::fold(&declaration.name.text), index);
            values.push((tree.span(declaration.value), index));
        }
        values.sort_unstable_by_key(|(span, _)| span.start);
        for (node, at) in tree.nodes.iter().zip(&tree.spans) {
            let read = match node {
                // Register the parameter even if the variable is unused, because clients send a
                // value for it.
                Node::Parameter { index } => {
                    self.parameters.slot(*index);
                    None
                }
                Node::Variable { name } => Some(name.text.as_str()),
                Node::Table { name, .. } => name.text.strip_prefix('@'),
                _ => None,
            };
            let Some(read) = read else { continue };
            let before = values.partition_point(|(span, _)| span.start <= at.start);
            let within = values[..before].last().filter(|(span, _)| at.end <= span.end);
            let Some((_, within)) = within else { continue };
            if last.get(&identifier::fold(read)).is_some_and(|last| last >= within) {
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
            _ => return Err(EngineError::internal("a query has no body")),
        };
        self.ordered(relation, order_by)
    }

    /// A CTE's rows.
    fn with_table(&mut self, name: &Name) -> Option<EngineResult<Relation>> {
        let same = |table: &CommonTable| identifier::same(&table.name, &name.text);
        let position = self.common_tables.iter().rposition(same)?;
        if let Some(rows) = self.read_last_rows(position, name.span) {
            return Some(Ok(rows));
        }
        let table = self.common_tables[position].clone();
        if let Some(shared) = table.shared {
            return Some(Ok(shared));
        }
        // The CTE's body can reference preceding CTEs, the outer scope's variables and, if the CTE
        // is recursive, the CTE itself.
        let hidden = self.common_tables.split_off(position);
        let inner = self.variables.split_off(table.scopes.min(self.variables.len()));
        let captured: Vec<Vec<Expr>> =
            self.outer.iter_mut().map(|outer| std::mem::take(&mut outer.captured)).collect();
        let bound = if table.recursive {
            self.recursive_table(&table)
        } else {
            self.source_query(table.query)
        };
        let reads_outer = self.outer.iter().any(|outer| !outer.captured.is_empty());
        for (outer, captured) in self.outer.iter_mut().zip(captured) {
            outer.capture_first(captured);
        }
        let bound = bound.and_then(|relation| relation.renamed(&table.columns));
        self.common_tables.extend(hidden);
        self.variables.extend(inner);
        Some(bound.and_then(|relation| self.computed_once(relation, position, reads_outer, name)))
    }

    /// Computes the rows once if they are volatile and the statement references the CTE more than
    /// once.
    fn computed_once(
        &mut self,
        relation: Relation,
        position: usize,
        reads_outer: bool,
        name: &Name,
    ) -> EngineResult<Relation> {
        let is_named = |node: &&Node| match node {
            Node::Table { name: other, .. } => identifier::same(&other.text, &name.text),
            _ => false,
        };
        if !is_volatile(&relation.plan) || self.tree.nodes.iter().filter(is_named).count() < 2 {
            return Ok(relation);
        }
        if reads_outer {
            let what = format!(
                "referencing the random and correlated WITH query '{}' more than once is",
                name.text
            );
            return Err(error::not_supported(&what, name.span));
        }
        let node = Arc::new(SharedRowsNode::new(relation.plan.clone()));
        let order = relation.order.shuffled();
        let plan = LogicalPlan::Extension(Extension { node });
        let shared = Relation { order, ..relation.with_plan(plan) };
        self.common_tables[position].shared = Some(shared.clone());
        Ok(shared)
    }
}

/// Whether a plan may return different rows on each execution.
fn is_volatile(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = plan.apply_with_subqueries(|node| {
        found = node.expressions().iter().any(Expr::is_volatile);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}
