//! LIMIT: the first rows, the last rows, ranges counted from either end.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    EmptyRelation, Expr, Extension, Limit as LimitPlan, LogicalPlan, SortExpr, Window, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, ident, lit,
};
use tidemark_ast::{Limit, NodeId};
use tidemark_functions::CastMode;
use tidemark_operators::{LastRows, LastRowsNode};
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::constant;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope, ScopeColumn};
use crate::binder::{Binder, error};

/// A row's place, as an offset from the first row or from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    FromStart(i64),
    FromEnd(i64),
}

impl Binder<'_> {
    /// The rows that LIMIT leaves.
    pub(crate) fn limited(&mut self, source: Relation, limit: &Limit) -> EngineResult<Relation> {
        let source = self.in_own_order(source.restored()?)?;
        let first = self.limit_number(limit.first)?;
        let second = self.limit_number(limit.second)?;
        if let Some(offset) = self.limit_number(limit.offset)? {
            let skip = offset.max(0);
            let end = first.map_or(i64::MAX, |count| skip.saturating_add(count.max(0)));
            return range(source, skip, end);
        }
        match (first, second) {
            (None, None) => Ok(source),
            (Some(count), None) | (None, Some(count)) if count >= 0 => range(source, 0, count),
            (Some(count), None) | (None, Some(count)) => {
                self.rows_between(source, Place::FromEnd(count.saturating_neg()), Place::FromEnd(0))
            }
            (Some(a), Some(b)) if a >= 0 && b >= 0 => range(source, a.min(b), a.max(b)),
            (Some(a), Some(0)) => {
                self.rows_between(source, Place::FromEnd(a.saturating_neg()), Place::FromEnd(0))
            }
            (Some(a), Some(b)) if a < 0 && b < 0 => {
                let (a, b) = (a.saturating_neg(), b.saturating_neg());
                self.rows_between(source, Place::FromEnd(a.max(b)), Place::FromEnd(a.min(b)))
            }
            (Some(a), Some(b)) if a >= 0 => {
                self.rows_between(source, Place::FromStart(a), Place::FromEnd(b.saturating_neg()))
            }
            (Some(_), Some(_)) => Err(error::at(
                ErrorCode::InvalidValue,
                "LIMIT <negative>, <positive> is not allowed",
                limit.first.map_or(limit.span, |id| self.tree.span(id)),
            )),
        }
    }

    /// Where rows of a correlated sub-query are counted, the order of time is said, because they
    /// meet the rows around them in a join.
    fn in_own_order(&self, source: Relation) -> EngineResult<Relation> {
        match source.ascending_time() {
            Some(column) if !self.outer.is_empty() => {
                let plan = relation::sort_by_time(source.plan.clone(), column.expr())?;
                Ok(source.with_plan(plan))
            }
            _ => Ok(source),
        }
    }

    /// Rows between two places of which one at least is counted from the end.
    fn rows_between(&self, source: Relation, from: Place, to: Place) -> EngineResult<Relation> {
        // Those of a sub-query are counted for each row around it.
        if !self.outer.is_empty() {
            return numbered(source, from, to);
        }
        let number = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
        let (Place::FromStart(cut) | Place::FromEnd(cut)) = to;
        let rows = match from {
            Place::FromStart(skip) => LastRows { skip: number(skip), keep: None, cut: number(cut) },
            Place::FromEnd(keep) => {
                LastRows { skip: 0, keep: Some(number(keep)), cut: number(cut) }
            }
        };
        let node = Arc::new(LastRowsNode::new(source.plan.clone(), rows));
        Ok(source.with_plan(LogicalPlan::Extension(Extension { node })))
    }

    fn limit_number(&mut self, id: Option<NodeId>) -> EngineResult<Option<i64>> {
        let Some(id) = id else { return Ok(None) };
        let position = self.tree.span(id);
        let value = self.expression(id, &Scope::empty())?;
        let open = value.parameter.is_some();
        let value = self.settled(value, SqlType::Long)?;
        // Clients that put values into the text quote numbers as well.
        let is_number = match &value.constant {
            Some(ScalarValue::UInt16(Some(digit))) => {
                (u16::from(b'0')..=u16::from(b'9')).contains(digit)
            }
            Some(quoted) => {
                constant::as_text(quoted).is_some_and(|text| text.parse::<i64>().is_ok())
            }
            None => false,
        };
        let value = if is_number {
            self.cast(value, SqlType::Long, CastMode::Constant, position)?
        } else {
            value
        };
        let found = value.constant.as_ref().and_then(constant::as_i64);
        match value.sql_type {
            SqlType::Byte | SqlType::Short | SqlType::Int | SqlType::Long => match found {
                Some(number) => Ok(Some(number)),
                // A parameter without a value yet: the statement is only described.
                None if open || value.constant.is_none() => Ok(None),
                None => Ok(None),
            },
            other => {
                let name = if other == SqlType::Null { "NULL".into() } else { other.name() };
                Err(error::at(ErrorCode::TypeMismatch, format!("invalid type: {name}"), position))
            }
        }
    }
}

/// Rows `from..to` of a relation.
fn range(source: Relation, from: i64, to: i64) -> EngineResult<Relation> {
    let number = |value: i64| Some(Box::new(lit(value)));
    let fetch = to.saturating_sub(from).max(0);
    if fetch == 0 {
        // Nothing has to run, and a sort for its first 0 rows cannot.
        let schema = Arc::clone(source.plan.schema());
        let plan = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema });
        return Ok(source.with_plan(plan));
    }
    let plan = LogicalPlan::Limit(LimitPlan {
        skip: if from > 0 { number(from) } else { None },
        fetch: if to == i64::MAX { None } else { number(fetch) },
        input: Arc::new(source.plan.clone()),
    });
    Ok(source.with_plan(plan))
}

/// A plan and what its rows are sorted by: what is not among its columns becomes one.
fn with_order(plan: &LogicalPlan) -> EngineResult<(LogicalPlan, Vec<SortExpr>)> {
    match plan {
        LogicalPlan::Sort(sort) => Ok((plan.clone(), sort.expr.clone())),
        LogicalPlan::Projection(list) => {
            let LogicalPlan::Sort(sort) = list.input.as_ref() else {
                return Ok((plan.clone(), Vec::new()));
            };
            let mut exprs = list.expr.clone();
            let mut order = Vec::with_capacity(sort.expr.len());
            for (at, key) in sort.expr.iter().enumerate() {
                let name = relation::fresh(&format!("limit key {at}"), plan);
                exprs.push(key.expr.clone().alias(&name));
                order.push(SortExpr { expr: ident(name), ..key.clone() });
            }
            Ok((relation::project(list.input.as_ref().clone(), exprs)?, order))
        }
        _ => Ok((plan.clone(), Vec::new())),
    }
}

/// Rows between two places: every row gets its number, in the order that the rows are sorted by,
/// and the number of all rows.
fn numbered(source: Relation, from: Place, to: Place) -> EngineResult<Relation> {
    let row = relation::fresh("limit row", &source.plan);
    let rows = relation::fresh("limit rows", &source.plan);
    let (plan, order) = with_order(&source.plan)?;
    let endless = || ScalarValue::UInt64(None);
    let window = |function, args: Vec<Expr>, end| {
        Expr::from(WindowFunction {
            fun: function,
            params: WindowFunctionParams {
                args,
                partition_by: Vec::new(),
                order_by: order.clone(),
                window_frame: WindowFrame::new_bounds(
                    WindowFrameUnits::Rows,
                    WindowFrameBound::Preceding(endless()),
                    end,
                ),
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        })
    };
    let number = window(
        WindowFunctionDefinition::WindowUDF(row_number_udwf()),
        Vec::new(),
        WindowFrameBound::Following(endless()),
    );
    let total = window(
        WindowFunctionDefinition::AggregateUDF(count_udaf()),
        vec![lit(1_i64)],
        WindowFrameBound::Following(endless()),
    );
    let exprs = vec![number.alias(&row), total.alias(&rows)];
    let numbered = Window::try_new(exprs, Arc::new(plan)).map_err(error::plan)?;
    let row = datafusion::logical_expr::cast(ident(row), arrow_schema::DataType::Int64);
    let place = |place: Place| match place {
        Place::FromStart(offset) => lit(offset),
        Place::FromEnd(offset) => ident(&rows) - lit(offset),
    };
    // Row numbers count from 1.
    let test = row.clone().gt(place(from)).and(row.lt_eq(place(to)));
    let plan = relation::filter(LogicalPlan::Window(numbered), test)?;
    let exprs = source.columns.iter().map(ScopeColumn::expr).chain(source.unselected()).collect();
    let plan = relation::project(plan, exprs)?;
    Ok(source.with_plan(plan))
}
