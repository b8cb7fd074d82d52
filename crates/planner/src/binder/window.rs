//! Window functions, run by `DataFusion`'s window operators.

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate as aggregates;
use datafusion::functions_window as windows;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, cast,
};
use tidemark_ast::{CallNode, Frame, FrameBound, FrameMode, Node, Span, WindowSpec};
use tidemark_functions::CastMode;
use tidemark_types::{EngineResult, ErrorCode, SqlType, identifier};

use super::expression::Scope;
use super::order::SortKey;
use super::{Binder, Typed, constant, error};

/// A window function as `DataFusion` has it, and the types around it.
struct Resolved {
    function: WindowFunctionDefinition,
    arguments: Vec<Typed>,
    return_type: SqlType,
}

impl Binder<'_> {
    /// `f(…) OVER (…)`.
    pub(crate) fn window_call(
        &mut self,
        call: &CallNode,
        over: &WindowSpec,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let over = &self.window_spec(over)?;
        let inner = Scope { aggregates: true, ..*scope };
        let arguments = match call.arguments.as_slice() {
            [only] if matches!(self.node(*only)?, Node::Star { .. }) => Vec::new(),
            ids => self.expressions(ids, &inner)?,
        };
        let resolved = if call.name.text.eq_ignore_ascii_case("avg") && arguments.len() > 1 {
            let (function, arguments) = self.moving_average(call, over, &inner)?;
            let function = WindowFunctionDefinition::WindowUDF(function);
            Resolved { function, arguments, return_type: SqlType::Double }
        } else {
            self.window_function(call, arguments, position)?
        };
        let partition_by = self.expressions(&over.partition_by, &inner)?;
        let mut order_by: Vec<SortExpr> = Vec::with_capacity(over.order_by.len());
        for item in &over.order_by {
            let key = self.expression(item.expression, &inner)?;
            let expr = key.expr.clone();
            order_by.push(SortKey::new(item, key.expr, key.sql_type, None).sort(expr));
        }
        let window_frame = match &over.frame {
            Some(frame) => self.frame(frame, &order_by, scope, call.name.span)?,
            None => default_frame(!order_by.is_empty()),
        };
        if is_never_filled(&window_frame) {
            return self.over_nothing(resolved.function.name(), resolved.return_type);
        }
        let params = WindowFunctionParams {
            args: resolved.arguments.into_iter().map(|argument| argument.expr).collect(),
            partition_by: partition_by.into_iter().map(|key| key.expr).collect(),
            order_by,
            window_frame,
            filter: None,
            null_treatment: call.ignore_nulls.then_some(NullTreatment::IgnoreNulls),
            distinct: false,
        };
        let unsigned =
            matches!(resolved.function.name(), "row_number" | "rank" | "dense_rank" | "ntile");
        let expr = Expr::from(WindowFunction { fun: resolved.function, params });
        // DataFusion counts in unsigned numbers.
        let expr = if unsigned { cast(expr, DataType::Int64) } else { expr };
        Ok(Typed::computed(expr, resolved.return_type))
    }

    /// What a function gives over a frame without rows.
    fn over_nothing(&mut self, name: &str, return_type: SqlType) -> EngineResult<Typed> {
        if name == "count" {
            return Ok(Typed::literal(ScalarValue::Int64(Some(0)), SqlType::Long));
        }
        self.cast(Typed::null(), return_type, CastMode::Explicit, Span::default())
    }

    /// What OVER says, with what the window it names says.
    fn window_spec(&self, over: &WindowSpec) -> EngineResult<WindowSpec> {
        let Some(name) = &over.name else { return Ok(over.clone()) };
        let named = self
            .named_windows
            .iter()
            .rev()
            .find(|named| identifier::same(&named.name.text, &name.text))
            .ok_or_else(|| {
                error::at(
                    ErrorCode::InvalidName,
                    format!("window '{}' is not defined", name.text),
                    name.span,
                )
            })?;
        let mut spec = self.window_spec(&named.spec)?;
        if !over.partition_by.is_empty() {
            spec.partition_by.clone_from(&over.partition_by);
        }
        if !over.order_by.is_empty() {
            spec.order_by.clone_from(&over.order_by);
        }
        spec.frame = over.frame.clone().or(spec.frame);
        Ok(spec)
    }

    fn window_function(
        &mut self,
        call: &CallNode,
        arguments: Vec<Typed>,
        position: Span,
    ) -> EngineResult<Resolved> {
        use WindowFunctionDefinition::{AggregateUDF, WindowUDF};
        let name = call.name.text.to_ascii_lowercase();
        self.check_neighbour(&name, call, &arguments)?;
        let first_type = arguments.first().map_or(SqlType::Null, |first| first.sql_type);
        let plain = |function, return_type| Ok((function, return_type));
        let whole = |of: SqlType| if of.is_integer() { SqlType::Long } else { of };
        let (function, return_type) = match name.as_str() {
            "row_number" => plain(WindowUDF(windows::row_number::row_number_udwf()), SqlType::Long),
            "rank" => plain(WindowUDF(windows::rank::rank_udwf()), SqlType::Long),
            "dense_rank" => plain(WindowUDF(windows::rank::dense_rank_udwf()), SqlType::Long),
            "percent_rank" => plain(WindowUDF(windows::rank::percent_rank_udwf()), SqlType::Double),
            "cume_dist" => plain(WindowUDF(windows::cume_dist::cume_dist_udwf()), SqlType::Double),
            "ntile" => plain(WindowUDF(windows::ntile::ntile_udwf()), SqlType::Long),
            "lag" => plain(WindowUDF(windows::lead_lag::lag_udwf()), whole(first_type)),
            "lead" => plain(WindowUDF(windows::lead_lag::lead_udwf()), whole(first_type)),
            "first_value" | "first_not_null_value" => {
                plain(WindowUDF(windows::nth_value::first_value_udwf()), whole(first_type))
            }
            "last_value" | "last_not_null_value" => {
                plain(WindowUDF(windows::nth_value::last_value_udwf()), whole(first_type))
            }
            "nth_value" => {
                plain(WindowUDF(windows::nth_value::nth_value_udwf()), whole(first_type))
            }
            "count" => plain(AggregateUDF(aggregates::count::count_udaf()), SqlType::Long),
            "sum" | "ksum" => plain(AggregateUDF(aggregates::sum::sum_udaf()), SqlType::Double),
            "avg" if arguments.len() == 1 => {
                plain(AggregateUDF(aggregates::average::avg_udaf()), SqlType::Double)
            }
            "min" => plain(AggregateUDF(aggregates::min_max::min_udaf()), whole(first_type)),
            "max" => plain(AggregateUDF(aggregates::min_max::max_udaf()), whole(first_type)),
            _ => Err(error::at(
                ErrorCode::FunctionNotFound,
                format!("unknown window function: {name}"),
                call.name.span,
            )),
        }?;
        let arguments = self.window_arguments(&name, arguments, return_type, position)?;
        Ok(Resolved { function, arguments, return_type })
    }

    /// What `lag` and `lead` ask of their arguments.
    fn check_neighbour(
        &self,
        name: &str,
        call: &CallNode,
        arguments: &[Typed],
    ) -> EngineResult<()> {
        if !matches!(name, "lag" | "lead") {
            return Ok(());
        }
        if arguments.is_empty() {
            return Err(error::at(
                ErrorCode::InvalidValue,
                format!("function `{name}` requires arguments"),
                call.name.span,
            ));
        }
        let distance = arguments.get(1).and_then(|distance| distance.constant.as_ref());
        if distance.and_then(constant::as_i64).is_some_and(|distance| distance < 0) {
            return Err(error::at(
                ErrorCode::InvalidValue,
                "offset must be a positive integer",
                self.tree.span(call.arguments[1]),
            ));
        }
        Ok(())
    }

    fn window_arguments(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        return_type: SqlType,
        position: Span,
    ) -> EngineResult<Vec<Typed>> {
        let mut casted = Vec::with_capacity(arguments.len().max(1));
        let value_first = !matches!(name, "count" | "ntile" | "row_number" | "rank" | "dense_rank");
        for (index, argument) in arguments.into_iter().enumerate() {
            let argument = match index {
                0 if value_first => {
                    self.cast(argument, return_type, CastMode::Implicit, position)?
                }
                0 if name == "count" => argument,
                2 if matches!(name, "lag" | "lead") => {
                    self.cast(argument, return_type, CastMode::Implicit, position)?
                }
                _ => self.cast(argument, SqlType::Long, CastMode::Implicit, position)?,
            };
            casted.push(argument);
        }
        if name == "count" && casted.is_empty() {
            casted.push(Typed::literal(ScalarValue::Int64(Some(1)), SqlType::Long));
        }
        Ok(casted)
    }

    fn frame(
        &mut self,
        frame: &Frame,
        order_by: &[SortExpr],
        scope: &Scope<'_>,
        position: Span,
    ) -> EngineResult<WindowFrame> {
        let units = match frame.mode {
            FrameMode::Rows | FrameMode::Cumulative => WindowFrameUnits::Rows,
            FrameMode::Range => WindowFrameUnits::Range,
            FrameMode::Groups => {
                return Err(error::not_supported("GROUPS is", position));
            }
        };
        let unit = match (units, order_by, scope.relation) {
            (WindowFrameUnits::Range, [key], Some(relation)) => {
                let designated = relation.timestamp_column();
                let column = designated.filter(|column| column.expr() == key.expr);
                Some(column.map(|column| column.sql_type).ok_or_else(|| {
                    error::at(
                        ErrorCode::NotSupported,
                        "RANGE is supported only for queries ordered by designated timestamp",
                        frame.span,
                    )
                })?)
            }
            _ => None,
        };
        let start = self.frame_bound(&frame.start, unit)?;
        let mut end = match &frame.end {
            Some(end) => self.frame_bound(end, unit)?,
            None => WindowFrameBound::CurrentRow,
        };
        if frame.exclude_current_row {
            end = Self::without_current_row(frame, &start, end, unit)?;
        }
        // Rows of the current instant that come later are not seen yet.
        if start.is_unbounded() && end == WindowFrameBound::CurrentRow {
            return Ok(default_frame(true));
        }
        Ok(WindowFrame::new_bounds(units, start, end))
    }

    /// EXCLUDE CURRENT ROW moves the end of a frame that ends there to the row, or the smallest
    /// time, before.
    fn without_current_row(
        frame: &Frame,
        start: &WindowFrameBound,
        end: WindowFrameBound,
        unit: Option<SqlType>,
    ) -> EngineResult<WindowFrameBound> {
        let before = match unit {
            _ if start.is_unbounded() => ScalarValue::UInt64(Some(1)),
            None => ScalarValue::UInt64(Some(1)),
            Some(unit) => interval(if unit == SqlType::TimestampNs { 1 } else { 1_000 }),
        };
        match (end, start) {
            (WindowFrameBound::CurrentRow, _) => Ok(WindowFrameBound::Preceding(before)),
            // A frame that does not reach the current row.
            (end @ WindowFrameBound::Preceding(_), _) => Ok(end),
            _ => Err(error::not_supported(
                "EXCLUDE CURRENT ROW in a frame that goes on behind it is",
                frame.span,
            )),
        }
    }

    fn frame_bound(
        &mut self,
        bound: &FrameBound,
        unit: Option<SqlType>,
    ) -> EngineResult<WindowFrameBound> {
        let endless = |unit: Option<SqlType>| match unit {
            Some(_) => ScalarValue::Null,
            None => ScalarValue::UInt64(None),
        };
        Ok(match bound {
            FrameBound::UnboundedPreceding => WindowFrameBound::Preceding(endless(unit)),
            FrameBound::UnboundedFollowing => WindowFrameBound::Following(endless(unit)),
            FrameBound::CurrentRow => WindowFrameBound::CurrentRow,
            FrameBound::Preceding { value, unit: word } => {
                WindowFrameBound::Preceding(self.distance(*value, word.as_deref(), unit)?)
            }
            FrameBound::Following { value, unit: word } => {
                WindowFrameBound::Following(self.distance(*value, word.as_deref(), unit)?)
            }
        })
    }

    /// A frame's distance: rows, or time in the timestamp's unit.
    fn distance(
        &mut self,
        id: tidemark_ast::NodeId,
        word: Option<&str>,
        unit: Option<SqlType>,
    ) -> EngineResult<ScalarValue> {
        let position = self.tree.span(id);
        let value = self.constant(id)?;
        // PostgreSQL writes '5' MINUTE.
        let value = match (self.node(id)?, word) {
            (Node::String { value }, Some(_)) => value.trim().parse().ok(),
            _ => value.as_ref().and_then(constant::as_i64),
        };
        let Some(value) = value.filter(|value| *value >= 0) else {
            return Err(error::at(ErrorCode::InvalidValue, "integer expected", position));
        };
        let Some(unit) = unit else { return Ok(ScalarValue::UInt64(Some(value as u64))) };
        let nanos_per = match word {
            Some(word) => time_word(word)
                .ok_or_else(|| error::at(ErrorCode::InvalidValue, "unknown unit", position))?,
            None if unit == SqlType::TimestampNs => 1,
            None => 1_000,
        };
        Ok(interval(value.saturating_mul(nanos_per)))
    }
}

/// A span of time.
fn interval(nanoseconds: i64) -> ScalarValue {
    let interval = arrow::datatypes::IntervalMonthDayNano { months: 0, days: 0, nanoseconds };
    ScalarValue::IntervalMonthDayNano(Some(interval))
}

/// `row_number()` over a window.
pub(crate) fn row_number(partition_by: Vec<Expr>, order_by: Vec<SortExpr>) -> Expr {
    Expr::from(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(windows::row_number::row_number_udwf()),
        params: WindowFunctionParams {
            args: Vec::new(),
            partition_by,
            order_by,
            window_frame: default_frame(true),
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    })
}

/// Nanoseconds in a unit word, singular or plural.
pub(crate) fn time_word(word: &str) -> Option<i64> {
    let lower = word.to_ascii_lowercase();
    Some(match lower.strip_suffix('s').unwrap_or(&lower) {
        "nanosecond" => 1,
        "microsecond" => 1_000,
        "millisecond" => 1_000_000,
        "second" => 1_000_000_000,
        "minute" => 60_000_000_000,
        "hour" => 3_600_000_000_000,
        "day" => 86_400_000_000_000,
        _ => return None,
    })
}

/// Whether a frame ends before it starts, in every row.
fn is_never_filled(frame: &WindowFrame) -> bool {
    let rows = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows))) => Some(-i128::from(*rows)),
        WindowFrameBound::CurrentRow => Some(0),
        WindowFrameBound::Following(ScalarValue::UInt64(Some(rows))) => Some(i128::from(*rows)),
        _ => None,
    };
    match (frame.units, rows(&frame.start_bound), rows(&frame.end_bound)) {
        (WindowFrameUnits::Rows, Some(start), Some(end)) => end < start,
        _ => false,
    }
}

/// With ORDER BY up to the current row, counted in rows; without, the whole partition.
fn default_frame(ordered: bool) -> WindowFrame {
    let endless = ScalarValue::UInt64(None);
    let end = if ordered {
        WindowFrameBound::CurrentRow
    } else {
        WindowFrameBound::Following(endless.clone())
    };
    WindowFrame::new_bounds(WindowFrameUnits::Rows, WindowFrameBound::Preceding(endless), end)
}
