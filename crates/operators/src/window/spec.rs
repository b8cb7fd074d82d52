//! Window functions that can be computed in one pass over rows in time order, and their parameters.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use tidemark_kernels::{Pick, Reach};

/// Name of the window function that numbers periods. A new period starts wherever a row's LONG
/// value differs from the previous row's value in the same partition.
pub const PERIOD_NUMBER: &str = "period_number";

/// What to compute over a frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    RowNumber,
    Rank,
    DenseRank,
    Sum,
    Average,
    Count,
    Extreme {
        greatest: bool,
    },
    /// The value of another row, or the default if that row does not exist.
    Pick {
        pick: Pick,
        ignore_nulls: bool,
        default: ScalarValue,
    },
    /// The number of the row's run of equal values; see [`PERIOD_NUMBER`].
    Period,
    /// The value from the row this many rows ahead.
    Ahead {
        distance: usize,
        default: ScalarValue,
    },
}

/// A window function's parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    /// The frame; `None` for the whole partition. Time distances are in nanoseconds.
    pub(crate) reach: Option<Reach>,
    pub(crate) by_time: bool,
}

impl Spec {
    /// Returns a window function's parameters; `None` if it cannot be computed in one pass over
    /// rows ordered by `timestamp`.
    pub(crate) fn of(
        expr: &Expr,
        timestamp: Option<&Expr>,
        schema: &DFSchema,
    ) -> Option<(Self, WindowFunction)> {
        let Expr::WindowFunction(function) = expr.clone().unalias() else { return None };
        let params = &function.params;
        let plain = params.filter.is_none() && !params.distinct;
        if !plain || !is_ordered(&params.order_by, timestamp) {
            return None;
        }
        let kind = kind(&function, schema)?;
        let frameless = matches!(
            kind,
            Kind::RowNumber
                | Kind::Rank
                | Kind::DenseRank
                | Kind::Period
                | Kind::Ahead { .. }
                | Kind::Pick { pick: Pick::Back(_), .. }
        );
        let (reach, by_time) =
            if frameless { (Some(Reach::CUMULATIVE), false) } else { reach(&params.window_frame)? };
        if matches!(kind, Kind::Rank | Kind::DenseRank) && params.order_by.is_empty() {
            return None;
        }
        Some((Self { kind, reach, by_time }, *function))
    }

    /// Whether later rows can change the result.
    pub(crate) fn is_deferred(&self) -> bool {
        self.reach.is_none() || matches!(self.kind, Kind::Ahead { .. })
    }
}

/// Whether ordering by `timestamp` satisfies this ORDER BY clause. Without a clause, any order
/// does.
fn is_ordered(order_by: &[SortExpr], timestamp: Option<&Expr>) -> bool {
    match (order_by, timestamp) {
        ([], _) => true,
        ([only], Some(timestamp)) => only.asc && only.expr == *timestamp,
        _ => false,
    }
}

fn kind(function: &WindowFunction, schema: &DFSchema) -> Option<Kind> {
    let arguments = &function.params.args;
    let ignore_nulls = function.params.null_treatment == Some(NullTreatment::IgnoreNulls);
    let of = arguments.first().map(|argument| argument.get_type(schema));
    let of = of.transpose().ok()?;
    let pick = |pick| {
        let of = of.clone().filter(|of| !matches!(of, DataType::Dictionary(..)))?;
        let default = match (pick, arguments.get(2)) {
            (Pick::Back(_), Some(default)) => literal(default)?,
            _ => ScalarValue::try_new_null(&of).ok()?,
        };
        Some(Kind::Pick { pick, ignore_nulls, default })
    };
    let number = |index: usize, otherwise: usize| match arguments.get(index) {
        Some(argument) => match literal(argument)? {
            ScalarValue::Int64(Some(number)) => usize::try_from(number).ok(),
            _ => None,
        },
        None => Some(otherwise),
    };
    let extreme = |greatest| {
        let ordered =
            matches!(of, Some(DataType::Float64 | DataType::Int64 | DataType::Timestamp(_, None)));
        ordered.then_some(Kind::Extreme { greatest })
    };
    let is_float = of == Some(DataType::Float64);
    match function.fun.name() {
        "row_number" => Some(Kind::RowNumber),
        "rank" => Some(Kind::Rank),
        "dense_rank" => Some(Kind::DenseRank),
        PERIOD_NUMBER => Some(Kind::Period),
        "count" if arguments.len() == 1 => Some(Kind::Count),
        "sum" if is_float => Some(Kind::Sum),
        "avg" if is_float && arguments.len() == 1 => Some(Kind::Average),
        "min" => extreme(false),
        "max" => extreme(true),
        "first_value" => pick(Pick::First),
        "last_value" => pick(Pick::Last),
        "nth_value" => pick(Pick::Nth(number(1, 1)?)),
        "lag" => pick(Pick::Back(number(1, 1)?)),
        "lead" if !ignore_nulls => {
            let Kind::Pick { default, .. } = pick(Pick::Back(0))? else { return None };
            Some(Kind::Ahead { distance: number(1, 1)?, default })
        }
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        _ => None,
    }
}

/// Returns a frame as distances back from the current row, and whether these distances are times.
fn reach(frame: &WindowFrame) -> Option<(Option<Reach>, bool)> {
    let by_time = match frame.units {
        WindowFrameUnits::Rows => false,
        WindowFrameUnits::Range => true,
        WindowFrameUnits::Groups => return None,
    };
    let from = match &frame.start_bound {
        WindowFrameBound::Preceding(value) if value.is_null() => None,
        WindowFrameBound::Preceding(value) => Some(distance(value)?),
        WindowFrameBound::CurrentRow => Some(0),
        WindowFrameBound::Following(_) => return None,
    };
    let to = match &frame.end_bound {
        WindowFrameBound::Preceding(value) if value.is_null() => return None,
        WindowFrameBound::Preceding(value) => distance(value)?,
        WindowFrameBound::CurrentRow => 0,
        WindowFrameBound::Following(value) => {
            return (value.is_null() && from.is_none()).then_some((None, false));
        }
    };
    Some((Some(Reach { from, to }), by_time))
}

/// Returns a distance, in rows or nanoseconds.
fn distance(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::UInt64(Some(rows)) => i64::try_from(*rows).ok(),
        ScalarValue::IntervalMonthDayNano(Some(span)) if span.months == 0 && span.days == 0 => {
            Some(span.nanoseconds)
        }
        _ => None,
    }
}
