//! UPDATE, DELETE, and the conversion of a column to another type: the plan yields the identifier
//! of each row that changes or goes, then its new cells.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan};
use tidemark_ast::{Cte, DeleteNode, LogicalOperator, Name, Node, NodeId, UpdateNode};
use tidemark_border::Permission;
use tidemark_functions::CastMode;
use tidemark_operators::ROW_ID;
use tidemark_storage::{TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::sources::join;
use crate::binder::state::common_table::CommonTable;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope};
use crate::binder::statements::conversion::refuse_conversion;
use crate::binder::{Binder, Typed, error};
use crate::{Access, BoundDelete, BoundStatement, BoundUpdate};

impl Binder<'_> {
    /// Binds UPDATE.
    pub(crate) fn update(mut self, node: &UpdateNode) -> EngineResult<BoundStatement> {
        let table = self.writable_table(&node.table, Permission::Update);
        let table = table.map_err(|failure| failure.at(tidemark_types::Span::new(0, 0)))?;
        self.add_common_tables(&node.with);
        let schema = Arc::clone(table.schema());
        let columns = updated_columns(&schema, &node.assignments)?;
        let names = columns.iter().map(|&index| schema.columns[index].name.clone());
        self.accesses.note(Access {
            table: schema.name.clone(),
            columns: names.collect(),
            ..Access::new("", Permission::Update)
        });
        let qualifier = node.alias.as_ref().unwrap_or(&node.table).text.clone();
        let reference = self.relation_name();
        let target =
            relation::of_rows(Arc::clone(&table), &qualifier, reference.clone(), &self.accesses)?;
        let rows = self.changed_rows(target, node.from, node.filter)?;
        let mut list = vec![row_id(reference)];
        for ((_, value), &index) in node.assignments.iter().zip(&columns) {
            let cell = self.new_cell(*value, &rows, &schema, index)?;
            list.push(cell.expr.alias(&schema.columns[index].name));
        }
        Ok(BoundStatement::Update(BoundUpdate {
            plan: relation::project(rows.plan, list)?,
            table,
            columns,
            parameters: self.parameters.types(),
            accesses: self.accesses.list(),
        }))
    }

    /// Binds DELETE.
    pub(crate) fn delete(mut self, node: &DeleteNode) -> EngineResult<BoundStatement> {
        let table = self.writable_table(&node.table, Permission::Delete)?;
        self.add_common_tables(&node.with);
        self.note_change(&table.schema().name, Permission::Delete);
        let qualifier = node.alias.as_ref().unwrap_or(&node.table).text.clone();
        let reference = self.relation_name();
        let target =
            relation::of_rows(Arc::clone(&table), &qualifier, reference.clone(), &self.accesses)?;
        let plan = if node.using.is_none() && node.filter.is_none() {
            None
        } else {
            let rows = self.changed_rows(target, node.using, node.filter)?;
            Some(relation::project(rows.plan, vec![row_id(reference)])?)
        };
        let (parameters, accesses) = (self.parameters.types(), self.accesses.list());
        Ok(BoundStatement::Delete(BoundDelete { table, plan, parameters, accesses }))
    }

    fn add_common_tables(&mut self, with: &[Cte]) {
        self.common_tables.extend(with.iter().map(|common| CommonTable {
            name: common.name.text.clone(),
            columns: common.columns.clone(),
            query: common.query,
            recursive: common.recursive,
            last_rows: None,
        }));
    }

    /// The rows of the target that FROM (or USING) and WHERE choose.
    fn changed_rows(
        &mut self,
        target: Relation,
        from: Option<NodeId>,
        filter: Option<NodeId>,
    ) -> EngineResult<Relation> {
        match (from, filter) {
            (Some(from), filter) => self.joined(target, from, filter),
            (None, Some(filter)) => self.filtered(target, filter),
            (None, None) => Ok(target),
        }
    }

    /// The rows of the target with what FROM brings to each. The filter is the join's condition,
    /// so that equal columns become its keys.
    fn joined(
        &mut self,
        target: Relation,
        from: NodeId,
        filter: Option<NodeId>,
    ) -> EngineResult<Relation> {
        let source = self.source(from)?;
        let mut terms = Vec::new();
        if let Some(filter) = filter {
            match self.node(filter)? {
                Node::Logical { operator: LogicalOperator::And, operands } => {
                    terms.extend(operands);
                }
                _ => terms.push(filter),
            }
        }
        join::filtered_product(self, target, source, &terms)
    }

    /// An assigned value in its column's type.
    pub(crate) fn new_cell(
        &mut self,
        id: NodeId,
        rows: &Relation,
        schema: &TableSchema,
        index: usize,
    ) -> EngineResult<Typed> {
        let column = &schema.columns[index];
        let span = self.tree.span(id);
        let value = self.expression(id, &Scope::rows(rows))?;
        let value = self.settled(value, column.sql_type)?;
        let (from, to) = (value.sql_type, column.sql_type);
        let narrows = to.is_integer() && (from.is_floating() || from.is_timestamp());
        if narrows && to != SqlType::Long || from.is_floating() && to == SqlType::Long {
            let (from, to) = (from.name(), to.name());
            return Err(error::at(
                ErrorCode::TypeMismatch,
                format!("inconvertible types: {from} -> {to} [from=, to={}]", column.name),
                span,
            ));
        }
        refuse_conversion(from, to, "", &column.name)
            .map_err(|failure| failure.at(error::span(span)))?;
        self.cast(value, to, CastMode::Insert, span)
    }

    /// The plan that yields a whole column in another type; what does not convert is null.
    pub(crate) fn converted_column(
        &mut self,
        table: &Arc<TableSnapshot>,
        index: usize,
        to: SqlType,
    ) -> EngineResult<Option<LogicalPlan>> {
        let reference = self.relation_name();
        let rows = relation::of_rows(Arc::clone(table), "", reference.clone(), &self.accesses)?;
        let column = &rows.columns[index];
        let converted =
            tidemark_functions::cast(column.expr(), column.sql_type, to, CastMode::Explicit);
        let Ok(converted) = converted else { return Ok(None) };
        relation::project(rows.plan, vec![row_id(reference), converted.alias("cell")]).map(Some)
    }
}

impl Binder<'_> {
    /// The plan that yields a value for each row of a table.
    pub(crate) fn default_column(
        &mut self,
        table: &Arc<TableSnapshot>,
        value: Expr,
    ) -> EngineResult<LogicalPlan> {
        let reference = self.relation_name();
        let rows = relation::of_rows(Arc::clone(table), "", reference.clone(), &self.accesses)?;
        relation::project(rows.plan, vec![row_id(reference), value.alias("cell")])
    }
}

/// The identifier of each row of the target.
fn row_id(reference: String) -> Expr {
    Expr::Column(Column::new(Some(reference), ROW_ID)).alias(ROW_ID)
}

/// Positions of the columns that SET names: each once, and never the designated timestamp.
fn updated_columns(
    schema: &TableSchema,
    assignments: &[(Name, NodeId)],
) -> EngineResult<Vec<usize>> {
    let mut columns = Vec::with_capacity(assignments.len());
    for (name, _) in assignments {
        let index = schema
            .column_index(&name.text)
            .ok_or_else(|| error::invalid_column(&name.text, name.span))?;
        let refusal = if schema.timestamp == Some(index) {
            Some((ErrorCode::NotSupported, "Designated timestamp column cannot be updated".into()))
        } else if columns.contains(&index) {
            let message = format!("Duplicate column [name={}] in SET clause", name.text);
            Some((ErrorCode::DuplicateColumn, message))
        } else {
            None
        };
        if let Some((code, message)) = refusal {
            return Err(EngineError::new(code, message).at(error::span(name.span)));
        }
        columns.push(index);
    }
    Ok(columns)
}
