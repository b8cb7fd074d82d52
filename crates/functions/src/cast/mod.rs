//! Conversions between types: which exist, and the kernels that run them. Every kernel works on a
//! whole column: it widens the source to 64-bit lanes, then narrows to the target.

mod number;
mod parsed;
mod shown;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{ColumnarValue, Expr, Volatility};
use tidemark_types::SqlType;
use tidemark_types::timestamp::TimestampUnit;

use self::number::{doubles, from_double, from_integer, integers, narrower_geohash};
use self::parsed::from_text;
pub use self::parsed::from_texts;
pub(crate) use self::shown::{concatenate, symbol_texts, symbols, text};
use crate::column::{Call, internal};
use crate::decimal;
use crate::native::{Kernel, Native, call};
use crate::parse;
use crate::resolve::ResolveError;
use crate::wide::in_64_bits;

/// On whose behalf a value is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastMode {
    /// `CAST` and `::` over a column: what does not convert is null.
    Explicit,
    /// By the binder, to make operands meet: text that does not convert is an error.
    Implicit,
    /// Into a stored column: failures are errors, and fewer conversions exist.
    Insert,
    /// `CAST` and `::` over a constant: as Explicit, but a null number has a text.
    Constant,
}

impl CastMode {
    fn strict(self) -> bool {
        matches!(self, Self::Implicit | Self::Insert)
    }
}

/// Casts `expr`. Fails when the conversion does not exist, or when a constant does not convert
/// and that is known without running anything.
pub fn cast(
    expr: Expr,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> std::result::Result<Expr, ResolveError> {
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
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| convert(call, from, to, mode));
    let variant = format!("{},{},{mode:?}", from.name(), to.name());
    let types = (vec![from], to);
    Ok(call(&Native::udf("cast_value", variant, types, Volatility::Immutable, kernel), vec![expr]))
}

fn is_wider_than_int(sql_type: SqlType) -> bool {
    sql_type == SqlType::Long || sql_type.is_floating() || is_time(sql_type)
}

/// Casts a value here and now; fails as [`cast`] does. `None`: the conversion fails, which is for
/// the statement to tell when it runs.
pub fn cast_value(
    value: &ScalarValue,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> std::result::Result<Option<ScalarValue>, ResolveError> {
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

fn check_types(
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> std::result::Result<(), ResolveError> {
    match mode {
        _ if convertible(from, to, mode) => Ok(()),
        CastMode::Explicit | CastMode::Constant => {
            Err(ResolveError::NoOverload { name: "cast".into(), types: vec![from, to] })
        }
        _ => Err(ResolveError::InconvertibleTypes { from, to }),
    }
}

/// The null of a type, or the value that represents it where there is none.
fn null_of(to: SqlType) -> std::result::Result<ScalarValue, ResolveError> {
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
) -> std::result::Result<(), ResolveError> {
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
    let argument = crate::resolve::Argument::constant(SqlType::String, value.clone());
    let Some(text) = argument.text() else { return Ok(()) };
    let invalid = |what: &str| Err(ResolveError::Invalid { message: what.into() });
    if mode == CastMode::Implicit {
        return Ok(());
    }
    match to {
        // Nothing is null.
        _ if text.is_empty() => Ok(()),
        SqlType::Uuid if parse::uuid(&text).is_none() => invalid("invalid UUID constant"),
        SqlType::Ipv4 if parse::ipv4(&text).is_none() => invalid("invalid IPv4 constant"),
        _ => Ok(()),
    }
}

/// `inconvertible value: …` in the reference's words.
pub(crate) fn inconvertible_value(value: &str, from: SqlType, to: SqlType) -> String {
    let quote = if from.is_text() { "`" } else { "" };
    format!("inconvertible value: {quote}{value}{quote} [{} -> {}]", from.name(), to.name())
}

fn is_plain_text(sql_type: SqlType) -> bool {
    matches!(sql_type, SqlType::String | SqlType::Varchar)
}

fn is_time(sql_type: SqlType) -> bool {
    unit_of(sql_type).is_some()
}

pub(crate) fn unit_of(sql_type: SqlType) -> Option<TimestampUnit> {
    match sql_type {
        SqlType::Date => Some(TimestampUnit::Millis),
        SqlType::Timestamp => Some(TimestampUnit::Micros),
        SqlType::TimestampNs => Some(TimestampUnit::Nanos),
        _ => None,
    }
}

/// Whether a conversion exists.
pub(crate) fn convertible(from: SqlType, to: SqlType, mode: CastMode) -> bool {
    use SqlType as T;
    let number = |sql_type: T| sql_type.is_integer() || sql_type.is_floating();
    if from == to {
        return true;
    }
    if mode == CastMode::Insert {
        let from_number = number(from) || is_time(from) || from == T::Boolean;
        let to_texts = to.is_text() || matches!(to, T::Char | T::Boolean);
        if from_number && to_texts && from != T::Boolean {
            return false;
        }
    }
    match (from, to) {
        (text, T::DoubleArray(_)) if text.is_text() => true,
        // A text is no bytes, unless it is what PostgreSQL writes for some.
        (text, T::Binary) if text.is_text() => mode != CastMode::Implicit,
        (T::DoubleArray(_), to) if is_plain_text(to) => {
            !matches!(mode, CastMode::Implicit | CastMode::Insert)
        }
        (T::Binary | T::Interval | T::DoubleArray(_) | T::Null, _)
        | (_, T::Binary | T::Interval | T::DoubleArray(_) | T::Null) => false,
        (text, _) if text.is_text() => true,
        (T::Uuid | T::Long256, to) => to.is_text(),
        (T::Geohash(bits), T::Geohash(fewer)) => fewer <= bits,
        (T::Geohash(_), to) => to.is_text(),
        (T::Char, T::Geohash(bits)) => bits <= 5,
        (_, T::Uuid | T::Long256 | T::Geohash(_)) => false,
        (T::Ipv4, to) => to.is_text() || to.is_integer(),
        (from, T::Ipv4) => from.is_integer(),
        (T::Decimal(..), to) => matches!(to, T::Decimal(..)) || number(to) || to.is_text(),
        (from, T::Decimal(..)) => {
            from.is_integer() || (from.is_floating() && mode != CastMode::Implicit)
        }
        _ => true,
    }
}

pub(crate) fn convert(
    call: &Call<'_>,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> Result<ArrayRef> {
    let (array, _) = call.array(0)?;
    let (array, from) = if from == SqlType::Symbol {
        (symbol_texts(&array)?, SqlType::String)
    } else {
        (array, from)
    };
    if is_plain_text(from) && is_plain_text(to) {
        return Ok(array);
    }
    match to {
        SqlType::String | SqlType::Varchar => text(&array, from, mode),
        SqlType::Symbol => symbols(&text(&array, from, mode)?),
        SqlType::Decimal(..) => decimal::from_column(&array, from, to, mode != CastMode::Explicit),
        _ if decimal::is_decimal(from) => from_decimal(&array, from, to, mode),
        _ if is_plain_text(from) => {
            let texts = array.as_string_view_opt().ok_or_else(|| internal("not a text"))?;
            from_text(texts, to, mode)
        }
        SqlType::Geohash(bits) => narrower_geohash(&array, from, bits),
        _ if from.is_floating() => from_double(&doubles(&array, from)?, to),
        _ => from_integer(&integers(&array, from, to)?, from, to, mode),
    }
}

fn from_decimal(array: &ArrayRef, from: SqlType, to: SqlType, mode: CastMode) -> Result<ArrayRef> {
    let SqlType::Decimal(_, scale) = from else {
        return Err(internal(format!("{} is no decimal", from.name())));
    };
    if to.is_floating() {
        let double = arrow::compute::cast(array, &SqlType::Double.arrow_type())?;
        return from_double(&doubles(&double, SqlType::Double)?, to);
    }
    from_integer(&decimal::to_longs(array, scale)?, from, to, mode)
}

/// A BOOLEAN column without nulls, for results of `DataFusion` functions that may have some.
pub(crate) fn definite(flags: &BooleanArray) -> BooleanArray {
    let values =
        BooleanBuffer::collect_bool(flags.len(), |row| flags.is_valid(row) && flags.value(row));
    BooleanArray::new(values, None)
}

#[cfg(test)]
mod tests;
