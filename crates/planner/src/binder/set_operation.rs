//! UNION, EXCEPT, INTERSECT, and VALUES as a query.

use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, Union};
use tidemark_ast::{NodeId, SetOperator, Span, ValuesBlock};
use tidemark_functions::CastMode;
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use super::expression::Scope;
use super::scope::Relation;
use super::{Binder, Typed, error, literal, relation, select, unify};

impl Binder<'_> {
    /// Two queries of as many columns, in their common types, under the left one's names.
    pub(crate) fn set_operation(
        &mut self,
        operator: SetOperator,
        all: bool,
        left: NodeId,
        right: NodeId,
    ) -> EngineResult<Relation> {
        let position = self.tree.span(right);
        let left = self.query(left)?;
        let right = self.query(right)?;
        self.united((operator, all), left, right, position)
    }

    /// The same of two queries that are bound. The right one stands at `position`.
    pub(crate) fn united(
        &mut self,
        (operator, all): (SetOperator, bool),
        left: Relation,
        right: Relation,
        position: Span,
    ) -> EngineResult<Relation> {
        if left.columns.len() != right.columns.len() {
            return Err(error::at(
                ErrorCode::TypeMismatch,
                "queries have different number of columns",
                position,
            ));
        }
        let mut types = Vec::with_capacity(left.columns.len());
        for (a, b) in left.columns.iter().zip(&right.columns) {
            let common = unify::union_columns(a.sql_type, b.sql_type).ok_or_else(|| {
                let (from, to) = (b.sql_type.name(), a.sql_type.name());
                error::at(
                    ErrorCode::TypeMismatch,
                    format!("unsupported cast [column={}, from={from}, to={to}]", b.name),
                    position,
                )
            })?;
            types.push(common);
        }
        let names: Vec<String> = left.columns.iter().map(|column| column.name.clone()).collect();
        let left = self.conformed(left, &names, &types)?;
        let right = self.conformed(right, &names, &types)?;
        let plan = match operator {
            SetOperator::Union => {
                let both = vec![Arc::new(left), Arc::new(right)];
                let union =
                    LogicalPlan::Union(Union::try_new_with_loose_types(both).map_err(error::plan)?);
                if all { union } else { select::distinct(union) }
            }
            // A row on the right is as good as many alike, and each costs as many comparisons.
            SetOperator::Except => {
                let right = select::distinct(right);
                LogicalPlanBuilder::except(left, right, all).map_err(error::plan)?
            }
            SetOperator::Intersect => {
                let right = select::distinct(right);
                LogicalPlanBuilder::intersect(left, right, all).map_err(error::plan)?
            }
        };
        // What the operator made of the columns' qualifiers is not to be seen from outside.
        let exprs = plan
            .schema()
            .columns()
            .into_iter()
            .zip(&names)
            .map(|(column, name)| datafusion::logical_expr::Expr::Column(column).alias(name))
            .collect();
        let plan = relation::project(plan, exprs)?;
        let columns = names
            .iter()
            .zip(&types)
            .map(|(name, sql_type)| relation::output_column(name, *sql_type))
            .collect();
        Ok(Relation {
            plan,
            columns,
            timestamp: None,
            ascending: false,
            base: None,
            gone: Vec::new(),
        })
    }

    /// A side's columns under these names, in these types.
    pub(crate) fn conformed(
        &mut self,
        side: Relation,
        names: &[String],
        types: &[SqlType],
    ) -> EngineResult<LogicalPlan> {
        let mut exprs = Vec::with_capacity(names.len());
        for ((column, name), sql_type) in side.columns.iter().zip(names).zip(types) {
            let typed = Typed::computed(column.expr(), column.sql_type);
            let at = Span::default();
            let typed = self.cast(typed, *sql_type, CastMode::Explicit, at)?;
            exprs.push(typed.expr.alias(name));
        }
        relation::project(side.plan, exprs)
    }

    /// VALUES as a query: columns `column1`, `column2`, ….
    pub(crate) fn values_rows(&mut self, rows: &ValuesBlock) -> EngineResult<Relation> {
        let width = rows.widths.first().copied().unwrap_or_default() as usize;
        let mut cells: Vec<Vec<Typed>> = Vec::with_capacity(rows.rows as usize);
        let mut types = vec![SqlType::Null; width];
        let mut cell = 0;
        let kinds = rows.kinds.as_bytes();
        for (row, row_width) in rows.widths.iter().enumerate() {
            let start = rows.row_starts.get(row).copied().unwrap_or_default();
            let at = Span { start, end: start };
            if *row_width as usize != width {
                return Err(error::at(
                    ErrorCode::TypeMismatch,
                    "all rows of VALUES must have the same number of values",
                    at,
                ));
            }
            let mut bound = Vec::with_capacity(width);
            for known in &mut types {
                let kind = kinds.get(cell).copied().unwrap_or(b'n');
                let text = rows.texts.get(cell).map_or("", String::as_str);
                let typed = self.value_cell(kind, text, at)?;
                *known = unify::union_columns(*known, typed.sql_type).ok_or_else(|| {
                    error::at(ErrorCode::TypeMismatch, "values of different types", at)
                })?;
                bound.push(typed);
                cell += 1;
            }
            cells.push(bound);
        }
        let mut exprs = Vec::with_capacity(cells.len());
        for row in cells {
            let mut cast = Vec::with_capacity(width);
            for (typed, sql_type) in row.into_iter().zip(&types) {
                let at = Span::default();
                cast.push(self.cast(typed, *sql_type, CastMode::Explicit, at)?.expr);
            }
            exprs.push(cast);
        }
        let plan = LogicalPlanBuilder::values(exprs)
            .and_then(LogicalPlanBuilder::build)
            .map_err(error::plan)?;
        let columns = types
            .iter()
            .enumerate()
            .map(|(index, sql_type)| {
                relation::output_column(&format!("column{}", index + 1), *sql_type)
            })
            .collect();
        Ok(Relation {
            plan,
            columns,
            timestamp: None,
            ascending: false,
            base: None,
            gone: Vec::new(),
        })
    }

    /// A cell of a VALUES block as a value.
    pub(crate) fn value_cell(&mut self, kind: u8, text: &str, at: Span) -> EngineResult<Typed> {
        match kind {
            b't' => Ok(Typed::truth(true)),
            b'f' => Ok(Typed::truth(false)),
            b'i' => literal::integer(text, at),
            b'd' => literal::floating(text, at),
            b's' => Ok(literal::string(text)),
            b'x' => {
                let id = text.parse().unwrap_or(NodeId::MAX);
                self.expression(id, &Scope::empty())
            }
            _ => Ok(Typed::null()),
        }
    }
}
