//! Converts a column with the source type's kernel, followed by the target type's kernel.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray};
use arrow::datatypes::Int64Type;
use datafusion::common::{DataFusionError, Result};
use datafusion_expr::{Expr, Volatility};
use tidemark_types::{EngineError, ErrorCode, Span, SqlType};

use super::mode::{CastMode, is_plain_text, is_time};
use super::number::{doubles, from_double, from_integer, integers, narrower_geohash};
use super::parsed::from_text;
use super::shown::{symbol_texts, symbols, text};
use crate::column::{Call, internal};
use crate::native::{Kernel, Native, call};
use crate::number::decimal;

/// Returns a call that converts an expression at run time. If the conversion fails, the error code
/// and position in `failing` are reported, if they are known.
pub(crate) fn converted(
    expr: Expr,
    (from, to): (SqlType, SqlType),
    mode: CastMode,
    failing: Option<(ErrorCode, Span)>,
) -> Expr {
    let located = move |failure: DataFusionError| match (failure, failing) {
        (DataFusionError::External(source), Some((code, at))) => {
            match source.downcast::<EngineError>() {
                Ok(failure)
                    if failure.code == ErrorCode::InvalidValue && failure.span.is_none() =>
                {
                    let failure = EngineError { code, span: Some(at), ..*failure };
                    DataFusionError::External(Box::new(failure))
                }
                Ok(failure) => DataFusionError::External(failure),
                Err(source) => DataFusionError::External(source),
            }
        }
        (failure, _) => failure,
    };
    let kernel: Kernel =
        Arc::new(move |call: &Call<'_>| convert(call, from, to, mode).map_err(located));
    // The kernel's identity excludes the position in the SQL text because `GROUP BY` must recognise
    // the same cast.
    let variant = format!("{},{},{mode:?}", from.name(), to.name());
    let types = (vec![from], to);
    call(&Native::udf("cast_value", variant, types, Volatility::Immutable, kernel), vec![expr])
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
        // Text can be converted to BINARY only if it is in PostgreSQL's bytea syntax.
        (text, T::Binary) if text.is_text() => mode != CastMode::Implicit,
        (T::DoubleArray(_), to) if is_plain_text(to) => {
            !matches!(mode, CastMode::Implicit | CastMode::Insert)
        }
        (T::Period, to) => to.is_text(),
        (from, T::Period) => from.is_text() || from == T::Char,
        (T::Binary | T::Interval | T::DoubleArray(_) | T::Null, _)
        | (_, T::Binary | T::Interval | T::DoubleArray(_) | T::Null) => false,
        (text, _) if text.is_text() => true,
        (T::Uuid | T::Long256, to) => to.is_text(),
        (T::Geohash(bits), T::Geohash(fewer)) => fewer <= bits,
        (T::Geohash(_), to) => to.is_text(),
        (T::Char, T::Geohash(bits)) => bits <= 5,
        // The value occupies the lower 64 bits. The upper bits are zero, even for negative numbers.
        (from, T::Long256) => {
            (number(from) || is_time(from) || from == T::Boolean) && !mode.strict()
        }
        (_, T::Uuid | T::Geohash(_)) => false,
        (T::Ipv4, to) => to.is_text() || to.is_integer(),
        (from, T::Ipv4) => from.is_integer(),
        (T::Decimal(..), to) => matches!(to, T::Decimal(..)) || number(to) || to.is_text(),
        (from, T::Decimal(..)) => {
            from.is_integer()
                || from == T::Char
                || (from.is_floating() && mode != CastMode::Implicit)
        }
        _ => true,
    }
}

/// Converts a column.
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
        // A CHAR is converted as a one-character string.
        SqlType::Decimal(..) if from == SqlType::Char => {
            let texts = text(&array, from, mode)?;
            decimal::from_column(&texts, SqlType::Varchar, to, mode != CastMode::Explicit)
        }
        SqlType::Decimal(..) => decimal::from_column(&array, from, to, mode != CastMode::Explicit),
        _ if decimal::is_decimal(from) => from_decimal(&array, from, to, mode),
        SqlType::Period if from == SqlType::Char => {
            let texts = text(&array, from, mode)?;
            from_text(texts.as_string_view(), to, mode)
        }
        _ if is_plain_text(from) => {
            let texts = array.as_string_view_opt().ok_or_else(|| internal("not a string"))?;
            from_text(texts, to, mode)
        }
        SqlType::Long256 if from.is_floating() => {
            let longs = from_double(&doubles(&array, from)?, SqlType::Long)?;
            long256(&longs)
        }
        SqlType::Long256 => long256(&integers(&array, from, SqlType::Long)?),
        SqlType::Geohash(bits) => narrower_geohash(&array, from, bits),
        _ if from.is_floating() => from_double(&doubles(&array, from)?, to),
        _ => from_integer(&integers(&array, from, to)?, from, to, mode),
    }
}

/// Converts 64-bit integers to LONG256.
fn long256(longs: &dyn Array) -> Result<ArrayRef> {
    let longs = longs.as_primitive::<Int64Type>();
    let values = longs.iter().map(|long| {
        let mut bytes = [0; 32];
        bytes[24..].copy_from_slice(&long?.to_be_bytes());
        Some(bytes)
    });
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 32)?))
}

fn from_decimal(array: &ArrayRef, from: SqlType, to: SqlType, mode: CastMode) -> Result<ArrayRef> {
    let SqlType::Decimal(_, scale) = from else {
        return Err(internal(format!("{} is not a decimal type", from.name())));
    };
    if to.is_floating() {
        let double = arrow::compute::cast(array, &SqlType::Double.arrow_type())?;
        return from_double(&doubles(&double, SqlType::Double)?, to);
    }
    from_integer(&decimal::to_longs(array, scale)?, from, to, mode)
}
