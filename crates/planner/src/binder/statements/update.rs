//! UPDATE, DELETE, and column type conversion. The plan returns the ID of each changed or deleted
//! row, then the row's new values.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan};
use tidemark_ast::{
    Cte, DeleteNode, LogicalOperator, Name, Node, NodeId, SelectItem, Span, UpdateNode,
};
use tidemark_border::Permission;
use tidemark_functions::CastMode;
use tidemark_operators::ROW_ID;
use tidemark_storage::{TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

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
        let UpdateNode { table: target, alias, assignments, from, filter, with, returning } = node;
        let table = self.writable_table(target, Permission::Update);
        let table = table.map_err(|failure| failure.at(tidemark_types::Span::new(0, 0)))?;
        self.add_common_tables(with);
        let schema = Arc::clone(table.schema());
        let columns = updated_columns(&schema, assignments)?;
        let names = columns.iter().map(|&index| schema.columns[index].name.clone());
        self.accesses.note(Access {
            table: schema.name.clone(),
            columns: names.collect(),
            ..Access::new("", Permission::Update)
        });
        if !returning.is_empty() {
            self.note_read(&schema.name, Vec::new());
        }
        let qualifier = alias.as_ref().unwrap_or(target).text.clone();
        let reference = self.relation_name();
        let target =
            relation::of_rows(Arc::clone(&table), &qualifier, reference.clone(), &self.accesses)?;
        let rows = self.changed_rows(target, *from, *filter)?;
        let mut cells = Vec::with_capacity(columns.len());
        for ((_, value), &index) in assignments.iter().zip(&columns) {
            let cell = self.new_cell(*value, &rows, &schema, index)?;
            cells.push((schema.columns[index].name.as_str(), cell.expr));
        }
        let (plan, returning) = self.changed_plan(rows, reference, cells, returning)?;
        Ok(BoundStatement::Update(BoundUpdate {
            plan,
            table,
            columns,
            returning,
            parameters: self.parameters.types(),
            accesses: self.accesses.list(),
        }))
    }

    /// Binds DELETE.
    pub(crate) fn delete(mut self, node: &DeleteNode) -> EngineResult<BoundStatement> {
        let DeleteNode { table: target, alias, using, filter, with, returning: items } = node;
        let table = self.writable_table(target, Permission::Delete)?;
        self.add_common_tables(with);
        self.note_change(&table.schema().name, Permission::Delete);
        if !items.is_empty() {
            self.note_read(&table.schema().name, Vec::new());
        }
        let qualifier = alias.as_ref().unwrap_or(target).text.clone();
        let reference = self.relation_name();
        let target =
            relation::of_rows(Arc::clone(&table), &qualifier, reference.clone(), &self.accesses)?;
        let is_all = using.is_none() && filter.is_none() && items.is_empty();
        let (plan, returning) = if is_all {
            (None, Vec::new())
        } else {
            let rows = self.changed_rows(target, *using, *filter)?;
            let (plan, returning) = self.changed_plan(rows, reference, Vec::new(), items)?;
            (Some(plan), returning)
        };
        let (parameters, accesses) = (self.parameters.types(), self.accesses.list());
        Ok(BoundStatement::Delete(BoundDelete { table, plan, parameters, accesses, returning }))
    }

    /// The plan for a change. It returns row IDs, new values, and the RETURNING list over the rows
    /// with their new values.
    fn changed_plan(
        &mut self,
        rows: Relation,
        reference: String,
        cells: Vec<(&str, Expr)>,
        items: &[SelectItem],
    ) -> EngineResult<(LogicalPlan, Vec<Field>)> {
        if items.is_empty() {
            let cells = cells.into_iter().map(|(name, cell)| cell.alias(name));
            let list = std::iter::once(row_id(reference)).chain(cells).collect();
            return Ok((relation::project(rows.plan, list)?, Vec::new()));
        }
        let own = |name: &str| Column::new(Some(reference.as_str()), name);
        let names: Vec<&str> = cells.iter().map(|(name, _)| *name).collect();
        let mut list = vec![Expr::Column(own(ROW_ID))];
        list.extend(rows.columns.iter().map(|column| {
            let cell = cells.iter().find(|(name, _)| column.column == own(name));
            match cell {
                Some((name, cell)) => cell.clone().alias_qualified(Some(reference.as_str()), *name),
                None => column.expr(),
            }
        }));
        let changed = relation::project(rows.plan.clone(), list)?;
        let rows = rows.with_plan(changed);
        let mut list = vec![Expr::Column(own(ROW_ID)).alias(ROW_ID)];
        list.extend(names.iter().map(|name| Expr::Column(own(name)).alias(*name)));
        let mut returning = Vec::with_capacity(items.len());
        for (index, item) in self.returned(items, &rows)?.into_iter().enumerate() {
            // These names must differ from the names of the new values.
            list.push(item.value.expr.alias(format!("{ROW_ID} {index}")));
            returning.push(Field::new(&item.name, item.value.sql_type));
        }
        Ok((relation::project(rows.plan, list)?, returning))
    }

    fn add_common_tables(&mut self, with: &[Cte]) {
        let scopes = self.variables.len();
        self.common_tables.extend(with.iter().map(|table| CommonTable::of(table, scopes)));
    }

    /// The rows of the target table that FROM (or USING) and WHERE select.
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

    /// Joins the target's rows with FROM. The filter becomes the join condition, so that equalities
    /// between columns become join keys.
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

    /// An assigned value, cast to its column's type.
    pub(crate) fn new_cell(
        &mut self,
        id: NodeId,
        rows: &Relation,
        schema: &TableSchema,
        index: usize,
    ) -> EngineResult<Typed> {
        let column = &schema.columns[index];
        let span = self.tree.span(id);
        if self.is_default_word(id, rows)? {
            return self.default_cell(schema, index, span);
        }
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

    /// Whether a value is the word DEFAULT and no column has that name.
    fn is_default_word(&self, id: NodeId, rows: &Relation) -> EngineResult<bool> {
        let Node::Column { path } = self.node(id)? else { return Ok(false) };
        let is_word = matches!(
            path.as_slice(),
            [word] if !word.quoted && word.text.eq_ignore_ascii_case("default")
        );
        Ok(is_word && rows.resolve(path).is_err())
    }

    /// Binds `SET column = DEFAULT`: the default that applies to rows without a value.
    fn default_cell(
        &mut self,
        schema: &TableSchema,
        index: usize,
        position: Span,
    ) -> EngineResult<Typed> {
        let column = &schema.columns[index];
        let given: Vec<usize> = (0..schema.columns.len()).filter(|one| *one != index).collect();
        let defaults = self.defaults(schema, &given)?;
        match defaults.expr(index) {
            Some(value) => Ok(Typed::computed(value.clone(), column.sql_type)),
            None if column.not_null => {
                let message = format!(
                    "column '{}' is NOT NULL and has no DEFAULT: expected a value",
                    column.name
                );
                Err(error::at(ErrorCode::NullValue, message, position))
            }
            None => self.cast(Typed::null(), column.sql_type, CastMode::Explicit, position),
        }
    }

    /// A plan that returns a column converted to a different type. Values that cannot be converted
    /// become null.
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
    /// A plan that returns a value for each row of a table.
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

/// The ID of each target row.
fn row_id(reference: String) -> Expr {
    Expr::Column(Column::new(Some(reference), ROW_ID)).alias(ROW_ID)
}

/// Indices of the SET columns. Rejects duplicates and the designated timestamp.
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
