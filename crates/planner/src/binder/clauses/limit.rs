//! LIMIT: the first rows, the last rows, or ranges counted from either end. If a bound depends on a
//! sub-query or an outer column, rows are numbered and filtered.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow_schema::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    ColumnarValue, EmptyRelation, Expr, Extension, Limit as LimitPlan, LogicalPlan,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SortExpr, Volatility, Window,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, cast, ident, lit,
};
use tidemark_ast::{Limit, NodeId};
use tidemark_functions::CastMode;
use tidemark_operators::{LastRows, LastRowsNode, WindowNode};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::constant;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope, ScopeColumn};
use crate::binder::{Binder, error};

/// A row offset from the start or from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowOffset {
    FromStart(i64),
    FromEnd(i64),
}

/// One number in LIMIT or OFFSET.
#[derive(Debug, Clone)]
enum Number {
    /// Absent or null, which means no limit.
    Absent,
    Known(i64),
    /// The value of a sub-query or an outer column.
    Computed(Expr),
}

/// The numbers in LIMIT and OFFSET.
#[derive(Debug, Clone)]
struct Bounds<T> {
    first: T,
    second: T,
    offset: T,
}

impl Bounds<Number> {
    /// The numbers; `None` if any of them is computed at run time.
    fn known(&self) -> Option<Bounds<Option<i64>>> {
        let number = |number: &Number| match number {
            Number::Absent => Some(None),
            Number::Known(number) => Some(Some(*number)),
            Number::Computed(_) => None,
        };
        let Self { first, second, offset } = self;
        Some(Bounds { first: number(first)?, second: number(second)?, offset: number(offset)? })
    }

    fn exprs(self) -> [Expr; 3] {
        [self.first, self.second, self.offset].map(|number| match number {
            Number::Absent => lit(ScalarValue::Int64(None)),
            Number::Known(number) => lit(number),
            Number::Computed(expr) => cast(expr, DataType::Int64),
        })
    }
}

impl Bounds<Option<i64>> {
    /// The start and end of the row range; `None` for all rows.
    fn row_range(&self) -> EngineResult<Option<(RowOffset, RowOffset)>> {
        let start = RowOffset::FromStart;
        let end = |back: i64| RowOffset::FromEnd(back.saturating_neg());
        if let Some(offset) = self.offset {
            let skip = offset.max(0);
            let to = self.first.map_or(i64::MAX, |count| skip.saturating_add(count.max(0)));
            return Ok(Some((start(skip), start(to))));
        }
        Ok(Some(match (self.first, self.second) {
            (None, None) => return Ok(None),
            (Some(count), None) | (None, Some(count)) if count >= 0 => (start(0), start(count)),
            (Some(count), None) | (None, Some(count)) => (end(count), end(0)),
            (Some(a), Some(b)) if a >= 0 && b >= 0 => (start(a.min(b)), start(a.max(b))),
            (Some(a), Some(0)) => (end(a), end(0)),
            (Some(a), Some(b)) if a < 0 && b < 0 => (end(a.min(b)), end(a.max(b))),
            (Some(a), Some(b)) if a >= 0 => (start(a), end(b)),
            (Some(_), Some(_)) => {
                let message = "LIMIT <negative>, <positive> is not allowed";
                return Err(EngineError::new(ErrorCode::InvalidValue, message));
            }
        }))
    }
}

impl Binder<'_> {
    /// The rows within LIMIT.
    pub(crate) fn limited(&mut self, source: Relation, limit: &Limit) -> EngineResult<Relation> {
        let Limit { first, second, offset, span } = limit;
        if let (Some(_), Some(offset)) = (second, offset) {
            let message =
                "LIMIT with two values specifies a row range and cannot be combined with OFFSET";
            return Err(error::at(ErrorCode::InvalidValue, message, self.tree.span(*offset)));
        }
        let source = self.in_own_order(source.restored()?)?;
        let at = first.map_or(*span, |id| self.tree.span(id));
        let [first, second, offset] = [*first, *second, *offset].map(|id| self.limit_number(id));
        let bounds = Bounds { first: first?, second: second?, offset: offset? };
        let Some(known) = bounds.known() else {
            return numbered(source, |row, rows| within_limit(row, rows, bounds));
        };
        let located = |failure: EngineError| failure.at(error::span(at));
        let Some((from, to)) = known.row_range().map_err(located)? else { return Ok(source) };
        match (from, to) {
            (RowOffset::FromStart(from), RowOffset::FromStart(to)) => range(source, from, to),
            _ => self.rows_between(source, from, to),
        }
    }

    /// In a correlated sub-query, explicitly sorts rows by time before they are counted, because
    /// the join with the outer rows does not preserve the order.
    fn in_own_order(&self, source: Relation) -> EngineResult<Relation> {
        match source.ascending_time() {
            Some(column) if !self.outer.is_empty() => {
                let plan = relation::sort_by_time(source.plan.clone(), column.expr())?;
                Ok(source.with_plan(plan))
            }
            _ => Ok(source),
        }
    }

    /// The rows between two offsets, at least one of which is counted from the end.
    fn rows_between(
        &self,
        source: Relation,
        from: RowOffset,
        to: RowOffset,
    ) -> EngineResult<Relation> {
        // In a correlated sub-query, rows are counted separately for each outer row.
        if !self.outer.is_empty() {
            return numbered(source, |row, rows| {
                let index = |index: RowOffset| match index {
                    RowOffset::FromStart(offset) => lit(offset),
                    RowOffset::FromEnd(offset) => rows.clone() - lit(offset),
                };
                // Row numbers start at 1.
                row.clone().gt(index(from)).and(row.lt_eq(index(to)))
            });
        }
        let number = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
        let (RowOffset::FromStart(cut) | RowOffset::FromEnd(cut)) = to;
        let rows = match from {
            RowOffset::FromStart(skip) => {
                LastRows { skip: number(skip), keep: None, cut: number(cut) }
            }
            RowOffset::FromEnd(keep) => {
                LastRows { skip: 0, keep: Some(number(keep)), cut: number(cut) }
            }
        };
        let node = Arc::new(LastRowsNode::new(source.plan.clone(), rows));
        Ok(source.with_plan(LogicalPlan::Extension(Extension { node })))
    }

    fn limit_number(&mut self, id: Option<NodeId>) -> EngineResult<Number> {
        let Some(id) = id else { return Ok(Number::Absent) };
        let position = self.tree.span(id);
        let value = self.expression(id, &Scope::empty())?;
        let value = self.settled(value, SqlType::Long)?;
        // Clients that insert values into the SQL text may quote numbers.
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
        if !value.sql_type.is_integer() {
            let name = match value.sql_type {
                SqlType::Null => "NULL".into(),
                other => other.name(),
            };
            let message = format!("invalid type: {name}");
            return Err(error::at(ErrorCode::TypeMismatch, message, position));
        }
        if value.expr.is_volatile() {
            let what = "a LIMIT that varies by row is";
            return Err(error::not_supported(what, position));
        }
        Ok(match &value.constant {
            Some(known) => constant::as_i64(known).map_or(Number::Absent, Number::Known),
            // The parameter has no value, because the statement is only being described.
            None if has_placeholder(&value.expr) => Number::Absent,
            None => Number::Computed(value.expr),
        })
    }
}

fn has_placeholder(expr: &Expr) -> bool {
    expr.exists(|node| Ok(matches!(node, Expr::Placeholder(_)))).unwrap_or(false)
}

/// Whether a row is within LIMIT, given its number from 1 and the total number of rows.
fn within_limit(row: Expr, rows: Expr, bounds: Bounds<Number>) -> Expr {
    let signature = Signature::exact(vec![DataType::Int64; 5], Volatility::Immutable);
    let [first, second, offset] = bounds.exprs();
    ScalarUDF::from(WithinLimit { signature }).call(vec![row, rows, first, second, offset])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithinLimit {
    signature: Signature,
}

impl ScalarUDFImpl for WithinLimit {
    fn name(&self) -> &'static str {
        "within_limit"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let count = arguments.number_rows;
        let columns = arguments.args.iter().map(|argument| argument.to_array(count));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let columns: Vec<&Int64Array> = columns.iter().map(AsArray::as_primitive).collect();
        let number = |column: usize, row: usize| {
            columns[column].is_valid(row).then(|| columns[column].value(row))
        };
        let is_within = |at: usize| -> Result<bool> {
            let (first, second, offset) = (number(2, at), number(3, at), number(4, at));
            let failed = |failure: EngineError| DataFusionError::External(Box::new(failure));
            let indices = Bounds { first, second, offset }.row_range().map_err(failed)?;
            let (Some(row), Some(rows)) = (number(0, at), number(1, at)) else { return Ok(false) };
            let offset = |index: RowOffset| match index {
                RowOffset::FromStart(offset) => offset,
                RowOffset::FromEnd(back) => rows.saturating_sub(back),
            };
            Ok(indices.is_none_or(|(from, to)| row > offset(from) && row <= offset(to)))
        };
        let within = (0..count).map(is_within).collect::<Result<Vec<bool>>>()?;
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(within))))
    }
}

/// A relation's rows `from..to`.
fn range(source: Relation, from: i64, to: i64) -> EngineResult<Relation> {
    let number = |value: i64| Some(Box::new(lit(value)));
    let fetch = to.saturating_sub(from).max(0);
    if fetch == 0 {
        // Return an empty relation: nothing needs to run, and a sort limited to 0 rows is not
        // supported.
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

/// Returns the plan and its sort keys. Sort keys that the plan does not output are added to its
/// columns.
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

/// Filters rows by a test on the row number (from 1, in the input's sort order) and on the total
/// number of rows.
fn numbered(source: Relation, test: impl FnOnce(Expr, Expr) -> Expr) -> EngineResult<Relation> {
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
    let plan = if order.is_empty() {
        // Without sort keys, rows are numbered in input order.
        let node = Arc::new(WindowNode::try_new(plan, None, exprs).map_err(error::plan)?);
        LogicalPlan::Extension(Extension { node })
    } else {
        LogicalPlan::Window(Window::try_new(exprs, Arc::new(plan)).map_err(error::plan)?)
    };
    let row = cast(ident(row), DataType::Int64);
    let plan = relation::filter(plan, test(row.clone(), ident(rows)))?;
    let plan = relation::sort(plan, std::iter::once(SortExpr::new(row, true, true)))?;
    let exprs = source.columns.iter().map(ScopeColumn::expr).chain(source.unselected()).collect();
    let plan = relation::project(plan, exprs)?;
    Ok(source.with_plan(plan))
}
