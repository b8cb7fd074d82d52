//! Window function frames: their bounds, and the effect of EXCLUDE CURRENT ROW.

use datafusion::common::ScalarValue;
use datafusion::functions_aggregate as aggregates;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit,
    when,
};
use tidemark_ast::{Frame, FrameBound, FrameMode, Node, Span};
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::constant;
use crate::binder::expressions::frame_aggregate::over_frames;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, error};

/// A window function's frame, relative to the current row.
pub(crate) enum Frames {
    /// Consecutive rows.
    One(WindowFrame),
    /// The rows before the current row, and the rows after it.
    Around(WindowFrame, WindowFrame),
}

impl Frames {
    /// Whether the frame counts rows.
    pub(crate) fn by_rows(&self) -> bool {
        match self {
            Self::One(frame) => frame.units == WindowFrameUnits::Rows,
            Self::Around(..) => true,
        }
    }

    /// Whether the frame includes only some of the rows with the current timestamp.
    pub(crate) fn ends_amid_equals(&self) -> bool {
        match self {
            Self::One(frame) => !self.by_rows() && ends_now(&frame.end_bound),
            Self::Around(..) => false,
        }
    }
}

fn ends_now(end: &WindowFrameBound) -> bool {
    match end {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(distance) => *distance == interval(0),
        WindowFrameBound::Following(_) => false,
    }
}

/// A window function whose frame is still unknown.
#[derive(Clone)]
pub(crate) struct OverRows {
    pub(crate) function: WindowFunctionDefinition,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) partition_by: Vec<Expr>,
    pub(crate) order_by: Vec<SortExpr>,
    pub(crate) ignore_nulls: bool,
    pub(crate) distinct: bool,
}

impl OverRows {
    /// Applies the function to a frame.
    pub(crate) fn over(&self, frame: &WindowFrame) -> Expr {
        Expr::from(WindowFunction {
            fun: self.function.clone(),
            params: WindowFunctionParams {
                args: self.arguments.clone(),
                partition_by: self.partition_by.clone(),
                order_by: self.order_by.clone(),
                window_frame: frame.clone(),
                filter: None,
                null_treatment: self.ignore_nulls.then_some(NullTreatment::IgnoreNulls),
                distinct: self.distinct,
            },
        })
    }
}

impl Binder<'_> {
    pub(crate) fn frames(
        &mut self,
        frame: &Frame,
        order_by: &[SortExpr],
        scope: &Scope<'_>,
        position: Span,
    ) -> EngineResult<Frames> {
        let Frame { mode, start, end, exclude_current_row, span } = frame;
        let units = match mode {
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
                        *span,
                    )
                })?)
            }
            _ => None,
        };
        let start = self.frame_bound(start, unit)?;
        let end = match end {
            Some(end) => self.frame_bound(end, unit)?,
            None => WindowFrameBound::CurrentRow,
        };
        if units == WindowFrameUnits::Range && unit.is_none() {
            let is_near = |bound: &FrameBound| {
                matches!(bound, FrameBound::Preceding { .. } | FrameBound::Following { .. })
            };
            if is_near(&frame.start) || frame.end.as_ref().is_some_and(is_near) {
                let message =
                    "RANGE with an offset requires ORDER BY on the designated timestamp alone";
                return Err(error::at(ErrorCode::NotSupported, message, *span));
            }
        }
        let mut whole = WindowFrame::new_bounds(units, start, end);
        let begins = whole.start_bound.is_unbounded();
        if units == WindowFrameUnits::Range
            && order_by.is_empty()
            && !(begins && whole.end_bound == WindowFrameBound::CurrentRow)
        {
            // Without ORDER BY, all rows in a partition are peers.
            whole = default_frame(false);
        }
        if *exclude_current_row {
            return without_current_row(whole, *span, unit);
        }
        // A frame up to the current row does not include later rows with the same timestamp.
        if whole.start_bound.is_unbounded() && whole.end_bound == WindowFrameBound::CurrentRow {
            return Ok(Frames::One(default_frame(true)));
        }
        Ok(Frames::One(whole))
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

    /// A frame bound's distance: a number of rows, or a time in the timestamp's unit.
    fn distance(
        &mut self,
        id: tidemark_ast::NodeId,
        word: Option<&str>,
        unit: Option<SqlType>,
    ) -> EngineResult<ScalarValue> {
        let position = self.tree.span(id);
        let value = self.demanded(id, SqlType::Long, ScalarValue::Int64(Some(1)))?.constant;
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

/// The frame without the current row. A frame that ends at the current row is shortened by one row
/// or one time unit. A frame that continues after it is split in two.
fn without_current_row(
    whole: WindowFrame,
    at: Span,
    unit: Option<SqlType>,
) -> EngineResult<Frames> {
    let (units, start, end) = (whole.units, whole.start_bound, whole.end_bound);
    let one = |units, start, end| Ok(Frames::One(WindowFrame::new_bounds(units, start, end)));
    match (units, frame_position(&start), frame_position(&end)) {
        (_, FramePosition::Before, FramePosition::Before) => one(units, start, end),
        (WindowFrameUnits::Range, FramePosition::Before | FramePosition::At, FramePosition::At) => {
            let tick = interval(if unit == Some(SqlType::TimestampNs) { 1 } else { 1_000 });
            one(units, start, WindowFrameBound::Preceding(tick))
        }
        (WindowFrameUnits::Range, ..) => Err(error::not_supported(
            "EXCLUDE CURRENT ROW in a RANGE frame with following rows is",
            at,
        )),
        (_, FramePosition::After, _) => one(units, start, end),
        (
            _,
            FramePosition::Before | FramePosition::At,
            FramePosition::Before | FramePosition::At,
        ) => one(units, start, row_before()),
        (_, FramePosition::At, FramePosition::After) => one(units, row_after(), end),
        (_, FramePosition::Before, FramePosition::After) => Ok(Frames::Around(
            WindowFrame::new_bounds(units, start, row_before()),
            WindowFrame::new_bounds(units, row_after(), end),
        )),
    }
}

/// A frame bound's position relative to the current row.
#[derive(Clone, Copy, PartialEq)]
enum FramePosition {
    Before,
    At,
    After,
}

fn frame_position(bound: &WindowFrameBound) -> FramePosition {
    let nothing = |distance: &ScalarValue| matches!(distance, ScalarValue::UInt64(Some(0)));
    match bound {
        WindowFrameBound::CurrentRow => FramePosition::At,
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance)
            if nothing(distance) =>
        {
            FramePosition::At
        }
        WindowFrameBound::Preceding(_) => FramePosition::Before,
        WindowFrameBound::Following(_) => FramePosition::After,
    }
}

fn row_before() -> WindowFrameBound {
    WindowFrameBound::Preceding(ScalarValue::UInt64(Some(1)))
}

fn row_after() -> WindowFrameBound {
    WindowFrameBound::Following(ScalarValue::UInt64(Some(1)))
}

/// Combines a function's results over the rows before and after the current row.
pub(crate) fn around(
    window: &OverRows,
    (before, behind): (&WindowFrame, &WindowFrame),
    at: Span,
) -> EngineResult<Expr> {
    let both = |of: &OverRows| (of.over(before), of.over(behind));
    let (low, high) = both(window);
    let counted = |of: Vec<Expr>| {
        let count = over_frames(aggregates::count::count_udaf());
        both(&OverRows { function: count, arguments: of, ignore_nulls: false, ..window.clone() })
    };
    let chosen = match window.function.name() {
        "count" => return Ok(low + high),
        "sum" => {
            let sum = low.clone() + high.clone();
            known_or(low, high, sum)
        }
        "min" => {
            let min = when(low.clone().lt_eq(high.clone()), low.clone()).otherwise(high.clone());
            known_or(low, high, min.map_err(error::plan)?)
        }
        "max" => {
            let max = when(low.clone().gt_eq(high.clone()), low.clone()).otherwise(high.clone());
            known_or(low, high, max.map_err(error::plan)?)
        }
        "avg" => {
            let sum = over_frames(aggregates::sum::sum_udaf());
            let (low, high) = both(&OverRows { function: sum, ..window.clone() });
            let (some, more) = counted(window.arguments.clone());
            let total = low.clone() + high.clone();
            let count = datafusion::logical_expr::cast(some + more, DOUBLE);
            return Ok(known_or(low, high, total).map_err(error::plan)? / count);
        }
        "first_value" if window.ignore_nulls => known_or(low.clone(), high, low),
        "last_value" if window.ignore_nulls => known_or(low, high.clone(), high),
        "first_value" => {
            let (rows, _) = counted(vec![lit(1_i64)]);
            when(rows.gt(lit(0_i64)), low).otherwise(high)
        }
        "last_value" => {
            let (_, rows) = counted(vec![lit(1_i64)]);
            when(rows.gt(lit(0_i64)), high).otherwise(low)
        }
        name => {
            let what = format!("EXCLUDE CURRENT ROW for {name} in a frame with following rows is");
            return Err(error::not_supported(&what, at));
        }
    };
    chosen.map_err(error::plan)
}

const DOUBLE: arrow_schema::DataType = arrow_schema::DataType::Float64;

/// `combined` if both values are non-null; otherwise the non-null value.
fn known_or(low: Expr, high: Expr, combined: Expr) -> datafusion::common::Result<Expr> {
    when(low.clone().is_null(), high.clone()).when(high.is_null(), low).otherwise(combined)
}

/// A duration of fixed length.
fn interval(nanoseconds: i64) -> ScalarValue {
    let interval = arrow::datatypes::IntervalMonthDayNano { months: 0, days: 0, nanoseconds };
    ScalarValue::IntervalMonthDayNano(Some(interval))
}

/// The length of a time unit in nanoseconds, given its name in singular or plural.
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

/// Whether a frame is empty for every row because its end precedes its start.
pub(crate) fn is_never_filled(frame: &WindowFrame) -> bool {
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

/// The default frame: with ORDER BY, all rows up to the current one; without it, the whole
/// partition.
pub(crate) fn default_frame(ordered: bool) -> WindowFrame {
    let endless = ScalarValue::UInt64(None);
    let end = if ordered {
        WindowFrameBound::CurrentRow
    } else {
        WindowFrameBound::Following(endless.clone())
    };
    WindowFrame::new_bounds(WindowFrameUnits::Rows, WindowFrameBound::Preceding(endless), end)
}
