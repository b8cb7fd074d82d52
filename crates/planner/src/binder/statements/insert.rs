//! INSERT: its columns and rows.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;
use tidemark_ast::{
    InsertNode, Name, Node, NodeId, PlainKind, PlainPart, PlainRows, Span, ValuesBlock,
};
use tidemark_border::Permission;
use tidemark_functions::CastMode;
use tidemark_storage::{TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope};
use crate::binder::statements::conversion::{refuse_conversion, runtime_value};
use crate::binder::statements::defaults::check_required;
use crate::binder::statements::insert_values::{Cell, InsertTemplate, ValueRows};
use crate::binder::{Binder, Typed, error};
use crate::{BoundInsert, BoundStatement, InsertSource, Returning};

impl Binder<'_> {
    /// Binds INSERT.
    pub(crate) fn insert(mut self, node: &InsertNode) -> EngineResult<BoundStatement> {
        let InsertNode {
            table: _,
            alias: _,
            columns: _,
            plain: _,
            values: _,
            query: _,
            // Every INSERT is a single commit, and its rows may be in any order, so these options
            // have no effect.
            atomic: _,
            batch: _,
            o3_max_lag: _,
            returning: _,
            conflict: _,
        } = node;
        let table = self.writable_table(&node.table, Permission::Insert)?;
        let schema = Arc::clone(table.schema());
        let targets = insert_columns(&schema, &node.columns)?;
        self.note_change(&schema.name, Permission::Insert);
        let source = match node.query {
            Some(query) => {
                let rows = self.query(query)?;
                self.insert_rows(&schema, &targets, rows, &node.table)?
            }
            None if self.has_subqueries(node) => {
                let block = as_block(node)?;
                self.settle_cells(&schema, &targets, &block)?;
                let rows = self.values_rows(&block)?;
                self.insert_rows(&schema, &targets, rows, &node.table)?
            }
            None => self.insert_values(&schema, targets, node)?,
        };
        let source = match &node.conflict {
            Some(conflict) => {
                let name = node.alias.as_ref().map_or(schema.name.as_str(), |name| &name.text);
                self.resolved_conflict((&table, name), source, conflict)?
            }
            None => source,
        };
        let name = node.alias.as_ref().unwrap_or(&node.table);
        let returning = self.returning(&node.returning, &table, name)?;
        Ok(self.bound_insert(table, source, returning))
    }

    fn bound_insert(
        self,
        table: Arc<TableSnapshot>,
        source: InsertSource,
        returning: Option<Returning>,
    ) -> BoundStatement {
        BoundStatement::Insert(BoundInsert {
            table,
            source,
            returning,
            parameters: self.parameters.types(),
            accesses: self.accesses.list(),
            sequence_values: self.context.sequence_values.clone(),
        })
    }

    fn insert_values(
        &mut self,
        schema: &Arc<TableSchema>,
        targets: Vec<usize>,
        node: &InsertNode,
    ) -> EngineResult<InsertSource> {
        let names_default = node
            .values
            .as_ref()
            .is_some_and(|values| values.kinds.contains('v') || is_default_row(values));
        let given = if names_default { &[] } else { targets.as_slice() };
        let defaults = self.defaults(schema, given)?;
        check_required(schema, &targets, &defaults, (node.table.span, Span::default()))?;
        let mut rows = ValueRows::new(Arc::clone(schema), targets, defaults);
        let mut known = 0;
        if let Some(plain) = &node.plain {
            push_plain(&mut rows, plain)?;
            known = plain.rows as usize;
        }
        if let Some(values) = &node.values {
            self.push_values(&mut rows, values, known)?;
        }
        if !rows.has_parameters() {
            return Ok(InsertSource::Batch(rows.batch()?));
        }
        match &self.context.parameter_values {
            Some(given) => {
                Ok(InsertSource::Batch(rows.with_parameters([given.as_slice()])?.batch()?))
            }
            None => Ok(InsertSource::Template(InsertTemplate {
                rows: rows.into_owned(),
                resolves: false,
            })),
        }
    }

    /// Binds rows that contain expressions. `known` rows precede them.
    fn push_values<'t>(
        &mut self,
        rows: &mut ValueRows<'t>,
        values: &'t ValuesBlock,
        known: usize,
    ) -> EngineResult<()> {
        if is_default_row(values) {
            let start = values.row_starts.first().copied().unwrap_or_default();
            (0..rows.width()).for_each(|_| rows.push(Cell::Default, start));
            return Ok(());
        }
        rows.reserve(values.texts.len());
        let mut cell = 0;
        for (row, width) in values.widths.iter().enumerate() {
            let width = *width as usize;
            if width != rows.width() {
                let end = self.row_end(values, cell + width);
                return Err(width_error(end, rows.width(), width, known + row));
            }
            for position in 0..width {
                let start = values.starts.get(cell).copied().unwrap_or_default();
                let bound = if let Some(literal) = literal_cell(values, cell) {
                    literal
                } else {
                    let text = values.texts.get(cell).map_or("", String::as_str);
                    self.insert_expression(text, rows.target(position), start)?
                };
                rows.push(bound, start);
                cell += 1;
            }
        }
        Ok(())
    }

    /// The value of an expression in a cell, converted to the column's type.
    fn insert_expression(
        &mut self,
        text: &str,
        (name, sql_type): (String, SqlType),
        start: u32,
    ) -> EngineResult<Cell<'static>> {
        let id = text.parse().unwrap_or(NodeId::MAX);
        if let Some((index, given)) = self.parameter_cell(id, sql_type)? {
            self.parameters.settle(index, given);
            return Ok(Cell::Parameter(index));
        }
        let value = self.expression(id, &Scope::empty())?;
        let at = Span { start, end: start };
        refuse_conversion(
            value.sql_type,
            sql_type,
            &crate::binder::names::canonical(self.tree, id),
            &name,
        )
        .map_err(|failure| failure.at(error::span(at)))?;
        let value = self.cast(value, sql_type, CastMode::Insert, at)?;
        let is_open = |node: &Expr| Ok(matches!(node, Expr::Placeholder(_)));
        if value.expr.exists(is_open).map_err(error::plan)? {
            return Ok(Cell::Computed);
        }
        let scalar = match value.constant {
            Some(scalar) => scalar,
            None => crate::binder::expressions::constant::evaluate(&value.expr)
                .map_err(runtime_value)?,
        };
        Ok(Cell::Value(Box::new(scalar)))
    }

    /// The parameter in a cell, and the parameter's type: the column's type, or the type of the
    /// enclosing cast.
    fn parameter_cell(&self, id: NodeId, column: SqlType) -> EngineResult<Option<(u32, SqlType)>> {
        let (mut inner, mut given) = (id, column);
        while let Node::Cast { operand, type_name, .. } = self.node(inner)? {
            (inner, given) = (*operand, Self::type_name(type_name)?);
        }
        Ok(match self.node(inner)? {
            Node::Parameter { index } => Some((*index, given)),
            _ => None,
        })
    }

    /// The end position of a row's last cell, which is the cell before index `end`.
    fn row_end(&self, values: &ValuesBlock, end: usize) -> u32 {
        let last = end.saturating_sub(1);
        let start = values.starts.get(last).copied().unwrap_or_default();
        let text = values.texts.get(last).map_or("", String::as_str);
        let units = text.encode_utf16().count() as u32;
        let quotes = text.matches('\'').count() as u32;
        let length = match values.kinds.as_bytes().get(last) {
            Some(b's') => units + quotes + 2,
            Some(b'n' | b't') => 4,
            Some(b'f') => 5,
            Some(b'v') => 7,
            Some(b'x') => {
                let span = self.tree.span(text.parse().unwrap_or_default());
                span.end.saturating_sub(start)
            }
            _ => units,
        };
        start + length
    }

    /// Whether the rows contain sub-queries. Such rows are inserted as a query.
    fn has_subqueries(&self, node: &InsertNode) -> bool {
        let is_query = |node: &Node| matches!(node, Node::Subquery { .. } | Node::Exists { .. });
        let has_expressions = node.values.as_ref().is_some_and(|rows| rows.kinds.contains('x'));
        has_expressions && self.tree.nodes.iter().any(is_query)
    }

    /// Gives each parameter that makes up a whole cell the type of the cell's column, as in rows
    /// without sub-queries.
    fn settle_cells(
        &mut self,
        schema: &TableSchema,
        targets: &[usize],
        block: &ValuesBlock,
    ) -> EngineResult<()> {
        let columns = targets.iter().cycle().map(|target| schema.columns[*target].sql_type);
        for ((kind, text), sql_type) in block.kinds.bytes().zip(&block.texts).zip(columns) {
            let id = if kind == b'x' { text.parse().ok() } else { None };
            if let Some(id) = id
                && let Some((index, given)) = self.parameter_cell(id, sql_type)?
            {
                self.parameters.settle(index, given);
            }
        }
        Ok(())
    }

    /// Inserts a query's rows.
    fn insert_rows(
        &mut self,
        schema: &Arc<TableSchema>,
        targets: &[usize],
        rows: Relation,
        name: &Name,
    ) -> EngineResult<InsertSource> {
        if rows.columns.len() != targets.len() {
            // If the query has too few columns and lacks the timestamp, the error names the
            // timestamp.
            let lacks = targets
                .get(rows.columns.len()..)
                .is_some_and(|left| schema.timestamp.is_some_and(|at| left.contains(&at)));
            let message = if lacks {
                "select clause must provide timestamp column"
            } else {
                "column count mismatch"
            };
            return Err(error::at(ErrorCode::InvalidValue, message, name.span));
        }
        let defaults = self.defaults(schema, targets)?;
        check_required(schema, targets, &defaults, (name.span, name.span))?;
        let mut exprs: Vec<Option<Expr>> = vec![None; schema.columns.len()];
        for (column, target) in rows.columns.iter().zip(targets) {
            let required = &schema.columns[*target];
            refuse_conversion(column.sql_type, required.sql_type, &column.name, &required.name)
                .map_err(|failure| failure.at(error::span(name.span)))?;
            let value = Typed::computed(column.expr(), column.sql_type);
            let value = self.cast(value, required.sql_type, CastMode::Insert, name.span)?;
            exprs[*target] = Some(value.expr);
        }
        let mut list = Vec::with_capacity(exprs.len());
        for (index, (expr, column)) in exprs.into_iter().zip(&schema.columns).enumerate() {
            let expr = if let Some(expr) = expr.or_else(|| defaults.expr(index).cloned()) {
                expr
            } else {
                let null = Typed::null();
                self.cast(null, column.sql_type, CastMode::Explicit, name.span)?.expr
            };
            list.push(expr.alias(&column.name));
        }
        Ok(InsertSource::Plan(relation::project(rows.plan, list)?))
    }
}

/// Whether the rows are DEFAULT VALUES: a single row without values.
fn is_default_row(values: &ValuesBlock) -> bool {
    values.widths == [0]
}

/// Adds rows of plain literals.
fn push_plain<'t>(rows: &mut ValueRows<'t>, plain: &'t PlainRows) -> EngineResult<()> {
    rows.reserve(plain.rows as usize * rows.width());
    let (mut row, mut width) = (0, 0);
    for token in plain.parts() {
        match token {
            PlainPart::Cell { kind, text, start } => {
                rows.push(plain_cell(kind, text), start);
                width += 1;
            }
            PlainPart::RowEnd { last_end } if width != rows.width() => {
                return Err(width_error(last_end, rows.width(), width, row));
            }
            PlainPart::RowEnd { .. } => (row, width) = (row + 1, 0),
        }
    }
    if row != plain.rows as usize || width != 0 {
        let message = format!("malformed rows [expected={}, found={row}]", plain.rows);
        return Err(EngineError::internal(message));
    }
    Ok(())
}

/// Converts an INSERT's rows to the representation used for VALUES in a query.
fn as_block(node: &InsertNode) -> EngineResult<ValuesBlock> {
    let rest = node.values.clone().unwrap_or_default();
    if rest.kinds.contains('v') {
        let message = "DEFAULT cannot be combined with a sub-query: omit the column";
        return Err(EngineError::new(ErrorCode::NotSupported, message));
    }
    let Some(plain) = &node.plain else { return Ok(rest) };
    let mut block = ValuesBlock::default();
    let mut width = 0;
    for token in plain.parts() {
        match token {
            PlainPart::Cell { kind, text, start } => {
                block.kinds.push(match kind {
                    PlainKind::Null => 'n',
                    PlainKind::True => 't',
                    PlainKind::False => 'f',
                    PlainKind::Integer => 'i',
                    PlainKind::Floating => 'd',
                    PlainKind::Text => 's',
                });
                block.texts.push(text.into_owned());
                block.starts.push(start);
                width += 1;
            }
            PlainPart::RowEnd { last_end } => {
                block.widths.push(width);
                block.row_starts.push(last_end);
                block.row_ends.push(last_end);
                block.rows += 1;
                width = 0;
            }
        }
    }
    block.rows += rest.rows;
    block.widths.extend(rest.widths);
    block.kinds.push_str(&rest.kinds);
    block.texts.extend(rest.texts);
    block.starts.extend(rest.starts);
    block.row_starts.extend(rest.row_starts);
    block.row_ends.extend(rest.row_ends);
    Ok(block)
}

fn plain_cell(kind: PlainKind, text: Cow<'_, str>) -> Cell<'_> {
    match kind {
        PlainKind::Null => Cell::Null,
        PlainKind::True => Cell::Boolean(true),
        PlainKind::False => Cell::Boolean(false),
        PlainKind::Integer => Cell::Integer(text),
        PlainKind::Floating => Cell::Floating(text),
        PlainKind::Text => Cell::Text(text),
    }
}

/// The error for a row with the wrong number of cells, positioned at the end of the row.
fn width_error(end: u32, expected: usize, actual: usize, row: usize) -> EngineError {
    let tuple = row + 1;
    error::at(
        ErrorCode::Syntax,
        format!(
            "row value count does not match column count [expected={expected}, \
             actual={actual}, tuple={tuple}]"
        ),
        Span { start: end, end: end + 1 },
    )
}

/// The literal in a cell; `None` for an expression.
fn literal_cell(values: &ValuesBlock, cell: usize) -> Option<Cell<'_>> {
    let text = || Cow::Borrowed(values.texts.get(cell).map_or("", String::as_str));
    Some(match values.kinds.as_bytes().get(cell) {
        Some(b't') => Cell::Boolean(true),
        Some(b'f') => Cell::Boolean(false),
        Some(b'i') => Cell::Integer(text()),
        Some(b'd') => Cell::Floating(text()),
        Some(b's') => Cell::Text(text()),
        Some(b'v') => Cell::Default,
        Some(b'x') => return None,
        _ => Cell::Null,
    })
}

/// Indices of the listed columns, or of all columns if there is no list.
fn insert_columns(schema: &TableSchema, names: &[Name]) -> EngineResult<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.columns.len()).collect());
    }
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let index = schema
            .column_index(&name.text)
            .ok_or_else(|| error::invalid_column(&name.text, name.span))?;
        if targets.contains(&index) {
            return Err(error::at(
                ErrorCode::DuplicateColumn,
                format!("Duplicate column [name={}]", name.text),
                name.span,
            ));
        }
        targets.push(index);
    }
    Ok(targets)
}
