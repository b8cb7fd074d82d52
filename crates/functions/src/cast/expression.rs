//! Casts expressions and constant values.

use datafusion::common::{DataFusionError, ScalarValue};
use datafusion_expr::{ColumnarValue, Expr};
use tidemark_types::period::Period;
use tidemark_types::{ErrorCode, Span, SqlType};

use super::convert::{convert, converted, convertible};
use super::mode::{CastMode, is_plain_text, is_time};
use crate::column::Call;
use crate::datetime::periods::refusal;
use crate::number::decimal;
use crate::number::wide::in_64_bits;
use crate::resolve::{Argument, ResolveError};
use crate::text::parse;

/// Casts `expr`. Fails if no such conversion exists, or if a constant is already known not to be
/// convertible.
pub fn cast(expr: Expr, from: SqlType, to: SqlType, mode: CastMode) -> Result<Expr, ResolveError> {
    located_cast(expr, (from, to), mode, None)
}

/// Like [`cast`], but a run-time conversion error is reported at position `at`.
pub fn located_cast(
    expr: Expr,
    (from, to): (SqlType, SqlType),
    mode: CastMode,
    at: Option<Span>,
) -> Result<Expr, ResolveError> {
    if from == to || (is_plain_text(from) && is_plain_text(to)) {
        return Ok(expr);
    }
    if from == SqlType::Null {
        return null_of(to).map(|null| Expr::Literal(null, None));
    }
    check_types(from, to, mode)?;
    if let Expr::Literal(value, _) = &expr {
        check_constant(value, from, to, mode)?;
    }
    if from == SqlType::Int
        && is_wider_than_int(to)
        && let Some(wide) = in_64_bits(&expr)
    {
        return cast(wide, SqlType::Long, to, mode);
    }
    Ok(converted(expr, (from, to), mode, at.map(|at| (ErrorCode::InvalidCell, at))))
}

/// Returns a cast of a constant that [`cast_value`] could not convert. The cast fails at run time
/// and reports its error at the constant's position.
#[must_use]
pub fn failing_cast(expr: Expr, types: (SqlType, SqlType), mode: CastMode, at: Span) -> Expr {
    converted(expr, types, mode, Some((ErrorCode::InvalidValue, at)))
}

fn is_wider_than_int(sql_type: SqlType) -> bool {
    sql_type == SqlType::Long || sql_type.is_floating() || is_time(sql_type)
}

/// Casts a constant during binding; fails like [`cast`]. Returns `None` if the conversion fails
/// with an error that should be reported when the statement runs.
pub fn cast_value(
    value: &ScalarValue,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> Result<Option<ScalarValue>, ResolveError> {
    if from == to || (is_plain_text(from) && is_plain_text(to)) {
        return Ok(Some(value.clone()));
    }
    if from == SqlType::Null {
        return null_of(to).map(Some);
    }
    check_types(from, to, mode)?;
    check_constant(value, from, to, mode)?;
    let arguments = [ColumnarValue::Scalar(value.clone())];
    let call = Call { arguments: &arguments, rows: 1, random: None };
    let cast = convert(&call, from, to, mode).ok();
    Ok(cast.and_then(|cells| ScalarValue::try_from_array(&cells, 0).ok()))
}

fn check_types(from: SqlType, to: SqlType, mode: CastMode) -> Result<(), ResolveError> {
    match mode {
        _ if convertible(from, to, mode) => Ok(()),
        CastMode::Explicit | CastMode::Constant => {
            Err(ResolveError::NoOverload { name: "cast".into(), types: vec![from, to] })
        }
        _ => Err(ResolveError::InconvertibleTypes { from, to }),
    }
}

/// Returns the type's null, or the value that represents null if the type has no null.
fn null_of(to: SqlType) -> Result<ScalarValue, ResolveError> {
    match to {
        SqlType::Boolean => Ok(ScalarValue::Boolean(Some(false))),
        SqlType::Byte => Ok(ScalarValue::Int8(Some(0))),
        SqlType::Short => Ok(ScalarValue::Int16(Some(0))),
        _ => ScalarValue::try_from(&to.arrow_type())
            .map_err(|_| ResolveError::InconvertibleTypes { from: SqlType::Null, to }),
    }
}

fn check_constant(
    value: &ScalarValue,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> Result<(), ResolveError> {
    if decimal::is_decimal(to) {
        let arguments = [ColumnarValue::Scalar(value.clone())];
        let call = Call { arguments: &arguments, rows: 1, random: None };
        return match convert(&call, from, to, mode) {
            Err(DataFusionError::External(source)) => {
                Err(ResolveError::Invalid { message: source.to_string() })
            }
            _ => Ok(()),
        };
    }
    let argument = Argument::constant(SqlType::String, value.clone());
    let Some(text) = argument.text() else { return Ok(()) };
    let invalid = |what: &str| Err(ResolveError::Invalid { message: what.into() });
    if to == SqlType::Period && Period::parse(&text).is_none() {
        return invalid(&refusal(&text));
    }
    if mode == CastMode::Implicit {
        return Ok(());
    }
    match to {
        // An empty string is null.
        _ if text.is_empty() => Ok(()),
        SqlType::Uuid if parse::uuid(&text).is_none() => invalid("invalid UUID constant"),
        SqlType::Ipv4 if parse::ipv4(&text).is_none() => invalid("invalid IPv4 constant"),
        _ => Ok(()),
    }
}
