//! DEFAULT: a column's value in rows that do not specify one. It is stored both as SQL text and as
//! a tree. It is evaluated once per statement or, if it is volatile, once per row.

use arrow_array::{Array, ArrayRef, RecordBatch};
use datafusion::logical_expr::Expr;
use tidemark_ast::{ColumnDefinition, NodeId, Span, Tree};
use tidemark_functions::CastMode;
use tidemark_storage::{ColumnDefault, ColumnSchema, TableSchema};
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::catalog::pg_catalog::object::Numbering;
use crate::binder::expressions::constant;
use crate::binder::state::scope::Scope;
use crate::binder::statements::conversion::{refuse_conversion, runtime_value};
use crate::binder::{Binder, error, names};

/// Defaults of columns that a statement does not specify.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    columns: Vec<(usize, Expr)>,
}

impl Defaults {
    /// True if no column has a default.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(crate) fn expr(&self, column: usize) -> Option<&Expr> {
        self.columns.iter().find(|(index, _)| *index == column).map(|(_, expr)| expr)
    }

    /// A column's default values for `rows` rows.
    pub(crate) fn cells(&self, column: usize, rows: usize) -> EngineResult<Option<ArrayRef>> {
        let expr = self.expr(column);
        expr.map(|expr| constant::evaluate_rows(expr, rows).map_err(runtime_value)).transpose()
    }

    /// Fills in the defaults in a batch that has the table's columns.
    pub fn fill(&self, batch: &RecordBatch) -> EngineResult<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        for (index, _) in &self.columns {
            if let Some(cells) = self.cells(*index, batch.num_rows())? {
                columns[*index] = cells;
            }
        }
        RecordBatch::try_new(batch.schema(), columns)
            .map_err(|failure| EngineError::internal(failure.to_string()))
    }
}

impl Binder<'_> {
    /// Defaults for the columns that are not in `given`.
    pub(crate) fn defaults(
        &mut self,
        schema: &TableSchema,
        given: &[usize],
    ) -> EngineResult<Defaults> {
        let mut columns = Vec::new();
        for (index, column) in schema.columns.iter().enumerate() {
            let Some(default) = column.default.as_ref().filter(|_| !given.contains(&index)) else {
                continue;
            };
            if let Some(numbering) = Numbering::of_default(&default.text)
                && let Some(expr) = self.next_number(schema, column, numbering)?
            {
                columns.push((index, expr));
                continue;
            }
            let tree: Tree = serde_json::from_str(&default.tree).map_err(|_| {
                let message = format!("the default of column '{}' cannot be read", column.name);
                EngineError::new(ErrorCode::NotSupported, message)
            })?;
            columns.push((index, self.default_expr(&tree, column)?));
        }
        Ok(Defaults { columns })
    }

    /// Applies NOT NULL and DEFAULT from a column definition.
    pub(crate) fn apply_rules(
        &mut self,
        column: &mut ColumnSchema,
        definition: &ColumnDefinition,
    ) -> EngineResult<()> {
        column.not_null = definition.not_null;
        let Some(id) = definition.default else { return Ok(()) };
        let written = definition.options.iter().find(|option| option.name.text == "DEFAULT");
        let text = written.and_then(|option| option.value.as_ref());
        self.set_default(column, id, text.map(|text| text.text.clone()))
    }

    /// Sets a column's default. `text` is its SQL text as written.
    pub(crate) fn set_default(
        &mut self,
        column: &mut ColumnSchema,
        id: NodeId,
        text: Option<String>,
    ) -> EngineResult<()> {
        check_stop()?;
        // Defaults are bound in SQL text order, so a default's nodes follow the preceding default's
        // nodes.
        let first = std::mem::replace(&mut self.after_default, id + 1);
        let subtree = self.subtree_from(if first > id { self.tree.first } else { first }, id);
        // A sequence can generate values only after the table exists.
        let is_numbered = text.as_deref().is_some_and(|text| Numbering::of_default(text).is_some());
        if !is_numbered || !column.sql_type.is_integer() {
            self.check_default(column, &subtree)?;
        }
        let tree = serde_json::to_string(&subtree)
            .map_err(|failure| EngineError::internal(failure.to_string()))?;
        let text = text.unwrap_or_else(|| names::canonical(self.tree, id));
        column.default = Some(ColumnDefault { text, tree });
        Ok(())
    }

    /// Rejects a default that cannot be evaluated. Otherwise the error would first appear when a
    /// row is inserted.
    fn check_default(&mut self, column: &ColumnSchema, tree: &Tree) -> EngineResult<()> {
        let expr = self.default_expr(tree, column)?;
        let at = tree.span(tree.root);
        let value = constant::evaluate_rows(&expr, 1).map_err(|failure| {
            let failure = runtime_value(failure);
            failure.at(error::span(at))
        })?;
        if column.not_null && value.logical_null_count() > 0 {
            let message = format!("column '{}' is NOT NULL and its default is null", column.name);
            return Err(error::at(ErrorCode::InvalidValue, message, at));
        }
        Ok(())
    }

    fn default_expr(&mut self, tree: &Tree, column: &ColumnSchema) -> EngineResult<Expr> {
        self.within(tree, |inner| {
            let span = tree.span(tree.root);
            let value = inner.expression(tree.root, &Scope::empty())?;
            let value = inner.settled(value, column.sql_type)?;
            let shown = names::canonical(tree, tree.root);
            refuse_conversion(value.sql_type, column.sql_type, &shown, &column.name)
                .map_err(|failure| failure.at(error::span(span)))?;
            Ok(inner.cast(value, column.sql_type, CastMode::Insert, span)?.expr)
        })
    }
}

/// Rejects a statement that omits a required column. `name` is the table name's position, and
/// `rows` is the position to report for a missing timestamp.
pub(crate) fn check_required(
    schema: &TableSchema,
    given: &[usize],
    defaults: &Defaults,
    (name, rows): (Span, Span),
) -> EngineResult<()> {
    let missing = |index: usize| !given.contains(&index) && defaults.expr(index).is_none();
    if schema.timestamp.is_some_and(missing) {
        let message = "insert statement must populate timestamp";
        return Err(error::at(ErrorCode::InvalidValue, message, rows));
    }
    let mut columns = schema.columns.iter().enumerate();
    match columns.find(|(index, column)| column.not_null && missing(*index)) {
        Some((_, column)) => {
            let message = format!(
                "column '{}' is NOT NULL and has no DEFAULT: expected a value",
                column.name
            );
            Err(error::at(ErrorCode::NullValue, message, name))
        }
        None => Ok(()),
    }
}
