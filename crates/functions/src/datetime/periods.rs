//! PERIOD values: addition to times, arithmetic, comparison and grids.

use std::sync::Arc;

use arrow::array::{ArrayRef, PrimitiveArray};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type, IntervalMonthDayNanoType};
use datafusion::common::Result;
use datafusion_expr::{Expr, Volatility};
use tidemark_ast::BinaryOperator;
use tidemark_types::SqlType;
use tidemark_types::calendar::{
    self, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, floor_to_months,
};
use tidemark_types::period::Period;
use tidemark_types::timestamp::TimestampUnit;

use super::fields::{TimeField, requested_field};
use super::times::{KernelResult, Us, micros_of, times, try_build_times};
use crate::column::{Call, build, invalid};
use crate::native::{Kernel, Native, call};
use crate::operator::infix::{function_name, operator};
use crate::resolve::{Argument, ResolveError, ResolvedOperator};
use crate::signature::Bound;

/// 2000-01-03, a Monday, in microseconds: the origin of `time_bucket` grids.
const FIRST_BUCKET: i64 = 946_857_600_000_000;
/// 2000-01-01 in microseconds: the origin of month grids.
const FIRST_MONTH: i64 = 946_684_800_000_000;

/// Reads a PERIOD argument row by row.
pub(super) fn periods(
    call: &Call<'_>,
    index: usize,
) -> Result<impl Fn(usize) -> Option<Period> + use<>> {
    let values = call.primitive::<IntervalMonthDayNanoType>(index)?;
    Ok(move |row: usize| values.get(row).map(Period::from))
}

/// Builds a PERIOD column; out-of-range values are errors.
pub(crate) fn build_periods(
    rows: usize,
    value: impl Fn(usize) -> Option<Option<Period>>,
) -> Result<ArrayRef> {
    let cell = |row: usize| match value(row) {
        None => Ok(None),
        Some(period) => {
            let native = period.and_then(Period::native);
            native.map(Some).ok_or_else(|| invalid("interval out of range"))
        }
    };
    let cells = (0..rows).map(cell).collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>();
    Ok(Arc::new(cells?))
}

/// Returns the error message for a malformed period.
pub(crate) fn refusal(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("invalid interval '{shown}': expected, for example, '1 month 2 days 03:04:05'")
}

/// Resolves `time + PERIOD`, `PERIOD + PERIOD`, `PERIOD * number` and similar operations; `None`
/// for other operands.
pub(crate) fn arithmetic(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Option<ResolvedOperator> {
    use BinaryOperator::{Add, Divide, Multiply, Subtract};
    use SqlType::{Double, Period as P};
    let (l, r) = (left.sql_type, right.sql_type);
    if l != P && r != P {
        return None;
    }
    let time = |of: SqlType| match of {
        SqlType::Timestamp | SqlType::TimestampNs => Some(of),
        SqlType::Date => Some(SqlType::Timestamp),
        text if text.is_text() => Some(SqlType::Timestamp),
        _ => None,
    };
    let is_number = |of: SqlType| {
        of.is_integer() || of.is_floating() || matches!(of, SqlType::Decimal(..) | SqlType::Null)
    };
    let (types, kernel): ((SqlType, SqlType, SqlType), Kernel) = match (op, l, r) {
        (Add | Subtract, P, P | SqlType::Null) | (Add | Subtract, SqlType::Null, P) => {
            ((P, P, P), sum(op == Subtract))
        }
        (Add | Subtract, from, P) if time(from).is_some() => {
            let from = time(from)?;
            ((from, P, from), moved([0, 1], op == Subtract))
        }
        (Add, P, from) if time(from).is_some() => {
            let from = time(from)?;
            ((P, from, from), moved([1, 0], false))
        }
        (Multiply, P, number) if is_number(number) => ((P, Double, P), scaled([0, 1], false)),
        (Multiply, number, P) if is_number(number) => ((Double, P, P), scaled([1, 0], false)),
        (Divide, P, number) if is_number(number) => ((P, Double, P), scaled([0, 1], true)),
        _ => return None,
    };
    Some(operator(function_name(op), types, op.sign(), kernel))
}

fn moved([time, period]: [usize; 2], back: bool) -> Kernel {
    Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, time)?;
        let lengths = periods(call, period)?;
        try_build_times(call.rows, unit, |row| {
            let (Some(value), Some(length)) = (at(row), lengths(row)) else { return Ok(None) };
            let length = if back { length.negated() } else { Some(length) };
            let length = length.ok_or_else(|| invalid("interval out of range"))?;
            Ok(length.after(value, unit))
        })
    })
}

fn sum(is_difference: bool) -> Kernel {
    Arc::new(move |call: &Call<'_>| {
        let (left, right) = (periods(call, 0)?, periods(call, 1)?);
        build_periods(call.rows, |row| {
            let (left, right) = left(row).zip(right(row))?;
            let right = if is_difference { right.negated() } else { Some(right) };
            Some(right.and_then(|right| left.plus(right)))
        })
    })
}

fn scaled([period, factor]: [usize; 2], divides: bool) -> Kernel {
    Arc::new(move |call: &Call<'_>| {
        let (lengths, factors) = (periods(call, period)?, call.primitive::<Float64Type>(factor)?);
        build_periods(call.rows, |row| {
            let (length, factor) = lengths(row).zip(factors.get(row))?;
            Some(if divides { length.divided(factor) } else { length.times(factor) })
        })
    })
}

/// Returns the kernel for `-period`.
pub(crate) fn negation() -> Kernel {
    Arc::new(|call: &Call<'_>| {
        let lengths = periods(call, 0)?;
        build_periods(call.rows, |row| lengths(row).map(Period::negated))
    })
}

/// Returns the sort key of a period as a LONG.
pub fn period_order(period: Expr) -> Expr {
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let lengths = periods(call, 0)?;
        Ok(build::<Int64Type>(call.rows, |row| lengths(row).map(Period::order)))
    });
    let types = (vec![SqlType::Period], SqlType::Long);
    call(
        &Native::udf("period_order", String::new(), types, Volatility::Immutable, kernel),
        vec![period],
    )
}

/// A component of a period and its name.
type Component = (&'static str, fn(Period) -> i64);

/// Returns a period's months, days and microseconds, each as a LONG that can be summed.
#[must_use]
pub fn period_components(period: &Expr) -> [Expr; 3] {
    let components: [Component; 3] = [
        ("months", |length| length.months.into()),
        ("days", |length| length.days.into()),
        ("micros", |length| length.micros),
    ];
    components.map(|(name, component)| {
        let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
            let lengths = periods(call, 0)?;
            Ok(build::<Int64Type>(call.rows, |row| lengths(row).map(component)))
        });
        let types = (vec![SqlType::Period], SqlType::Long);
        let function =
            Native::udf("period_part", name.to_owned(), types, Volatility::Immutable, kernel);
        call(&function, vec![period.clone()])
    })
}

/// Builds a period from its months, days and microseconds.
#[must_use]
pub fn period_of_components(components: Vec<Expr>) -> Expr {
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let (months, days) = (call.primitive::<Int64Type>(0)?, call.primitive::<Int64Type>(1)?);
        let micros = call.primitive::<Int64Type>(2)?;
        build_periods(call.rows, |row| {
            let ((months, days), micros) =
                months.get(row).zip(days.get(row)).zip(micros.get(row))?;
            let small = i32::try_from(months).ok().zip(i32::try_from(days).ok());
            Some(small.map(|(months, days)| Period { months, days, micros }))
        })
    });
    let types = (vec![SqlType::Long; 3], SqlType::Period);
    let function =
        Native::udf("period_of_parts", String::new(), types, Volatility::Immutable, kernel);
    call(&function, components)
}

/// Computes `make_interval(years, months, weeks, days, hours, minutes, seconds)`.
pub(super) fn make_interval(call: &Call<'_>) -> Result<ArrayRef> {
    let whole: Vec<_> =
        (0..6).map(|index| call.primitive::<Int32Type>(index)).collect::<Result<_>>()?;
    let seconds = call.primitive::<Float64Type>(6)?;
    build_periods(call.rows, |row| {
        let fields: Option<Vec<i32>> = whole.iter().map(|field| field.get(row)).collect();
        let (fields, seconds) = fields.zip(seconds.get(row))?;
        let [years, months, weeks, days, hours, minutes] = fields[..] else { return None };
        let components =
            format!("{years} y {months} mon {weeks} w {days} d {hours} h {minutes} m {seconds} s");
        Some(Period::parse(&components))
    })
}

/// Applies a function to each period. An out-of-range result is an error.
pub(super) fn mapped(
    call: &Call<'_>,
    value: impl Fn(Period) -> Option<Period>,
) -> Result<ArrayRef> {
    let lengths = periods(call, 0)?;
    build_periods(call.rows, |row| lengths(row).map(&value))
}

/// Computes `age(later, earlier)`: the years, months, days and time between two times.
pub(super) fn age(call: &Call<'_>) -> Result<ArrayRef> {
    let (later, earlier) = (call.primitive::<Us>(0)?, call.primitive::<Us>(1)?);
    build_periods(call.rows, |row| {
        let (later, earlier) = later.get(row).zip(earlier.get(row))?;
        Some(Period::between(earlier, later))
    })
}

/// Returns a period field as DOUBLE; `None` for fields that only times have.
fn field_of(period: Period, field: TimeField) -> Option<f64> {
    let Period { months, days, micros } = period;
    let seconds = (micros % MICROS_PER_MINUTE) as f64 / MICROS_PER_SECOND as f64;
    Some(match field {
        TimeField::Millennium => f64::from(months / 12_000),
        TimeField::Century => f64::from(months / 1_200),
        TimeField::Decade => f64::from(months / 120),
        TimeField::Year => f64::from(months / 12),
        TimeField::Quarter => f64::from(months % 12 / 3 + 1),
        TimeField::Month => f64::from(months % 12),
        TimeField::Day => f64::from(days),
        TimeField::Hour => (micros / MICROS_PER_HOUR) as f64,
        TimeField::Minute => (micros % MICROS_PER_HOUR / MICROS_PER_MINUTE) as f64,
        TimeField::Second => seconds,
        TimeField::MillisOfMinute => seconds * 1e3,
        TimeField::MicrosOfMinute => seconds * 1e6,
        TimeField::NanosOfMinute => seconds * 1e9,
        // As in PostgreSQL, a year has 365.25 days here.
        TimeField::Epoch => {
            let whole_days =
                f64::from(months / 12) * 365.25 + f64::from(months % 12) * 30.0 + f64::from(days);
            whole_days * 86_400.0 + micros as f64 / MICROS_PER_SECOND as f64
        }
        _ => return None,
    })
}

/// Builds the kernel for `date_part(part, period)` and `extract(part FROM period)`.
pub(super) fn period_field(bound: &Bound<'_>) -> KernelResult {
    let field = requested_field(bound)?;
    if field_of(Period::default(), field).is_none() {
        let name = bound.arguments[0].text().unwrap_or_default();
        let message = format!("an interval has no field {name}");
        return Err(ResolveError::InvalidArgument { index: 0, message });
    }
    Ok(Arc::new(move |call: &Call<'_>| {
        let lengths = periods(call, 1)?;
        Ok(build::<Float64Type>(call.rows, |row| field_of(lengths(row)?, field)))
    }))
}

/// Builds the kernel for `date_trunc(part, period)`, which clears all fields smaller than `part`.
pub(super) fn truncated(bound: &Bound<'_>) -> KernelResult {
    let field = requested_field(bound)?;
    if cut(Period::default(), field).is_none() {
        let name = bound.arguments[0].text().unwrap_or_default();
        let message = format!("an interval has no field {name}");
        return Err(ResolveError::InvalidArgument { index: 0, message });
    }
    Ok(Arc::new(move |call: &Call<'_>| {
        let lengths = periods(call, 1)?;
        build_periods(call.rows, |row| lengths(row).map(|length| cut(length, field)))
    }))
}

fn cut(length: Period, field: TimeField) -> Option<Period> {
    let Period { months, days, micros } = length;
    let whole_months = |of: i32| Period { months: months / of * of, ..Period::default() };
    let whole_micros = |of: i64| Period { micros: micros / of * of, ..length };
    Some(match field {
        TimeField::Millennium => whole_months(12_000),
        TimeField::Century => whole_months(1_200),
        TimeField::Decade => whole_months(120),
        TimeField::Year => whole_months(12),
        TimeField::Quarter => whole_months(3),
        TimeField::Month => whole_months(1),
        TimeField::Day => Period { months, days, micros: 0 },
        TimeField::Hour => whole_micros(MICROS_PER_HOUR),
        TimeField::Minute => whole_micros(MICROS_PER_MINUTE),
        TimeField::Second => whole_micros(MICROS_PER_SECOND),
        TimeField::MillisOfMinute => whole_micros(1_000),
        TimeField::MicrosOfMinute => length,
        _ => return None,
    })
}

/// Computes `time AT TIME ZONE period`, the local time at that offset from UTC.
pub(super) fn at_offset(call: &Call<'_>) -> Result<ArrayRef> {
    let lengths = periods(call, 0)?;
    let (at, unit) = times(call, 1)?;
    try_build_times(call.rows, unit, |row| {
        let (Some(value), Some(length)) = (at(row), lengths(row)) else { return Ok(None) };
        if length.months != 0 || length.days != 0 {
            return Err(invalid("an interval used as a time zone must not include months or days"));
        }
        Ok(length.after(value, unit))
    })
}

/// Computes `date_bin(stride, time, origin)` and `time_bucket(width, time, [origin])`.
pub(super) fn time_bucket(call: &Call<'_>) -> Result<ArrayRef> {
    let lengths = periods(call, 0)?;
    let has_origin = call.arguments.len() == 3;
    let (at, unit) = times(call, 1)?;
    let (origin_at, origin_unit) = times(call, if has_origin { 2 } else { 1 })?;
    try_build_times(call.rows, unit, |row| {
        let (Some(value), Some(length)) = (at(row), lengths(row)) else { return Ok(None) };
        let months = i64::from(length.months);
        let days = i64::from(length.days).checked_mul(MICROS_PER_DAY);
        let micros = days
            .and_then(|days| days.checked_add(length.micros))
            .ok_or_else(|| invalid("interval out of range"))?;
        if months < 0 || micros < 0 || (months == 0) == (micros == 0) {
            let message = "a time step must be positive, and either in months or of a fixed length";
            return Err(invalid(message));
        }
        let origin = if has_origin {
            let Some(origin) = origin_at(row) else { return Ok(None) };
            Some(micros_of(origin, origin_unit))
        } else {
            None
        };
        let at = micros_of(value, unit);
        let floor = if months == 0 {
            Some(calendar::floor_to(at, micros, origin.unwrap_or(FIRST_BUCKET)))
        } else {
            floor_to_months(at, months, origin.unwrap_or(FIRST_MONTH), MICROS_PER_DAY)
        };
        Ok(floor.and_then(|floor| TimestampUnit::Micros.convert(floor, unit)))
    })
}
