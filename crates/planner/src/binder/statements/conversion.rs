//! Assignment casts: allowed conversions and their errors.

use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::error;

/// Rejects conversions that INSERT does not support. INSERT converts strings to any type, and
/// numbers to numbers and timestamps, but not numbers to strings.
pub(crate) fn refuse_conversion(
    from: SqlType,
    to: SqlType,
    shown: &str,
    column: &str,
) -> EngineResult<()> {
    let number = |of: SqlType| of.is_integer() || of.is_floating();
    let refused = match to {
        SqlType::Symbol | SqlType::String | SqlType::Varchar => {
            number(from) || from.is_timestamp() || from == SqlType::Date
        }
        SqlType::Boolean | SqlType::Uuid | SqlType::Ipv4 | SqlType::Binary => number(from),
        SqlType::Byte | SqlType::Short | SqlType::Int | SqlType::Float => {
            from.is_timestamp() || from == SqlType::Boolean && to == SqlType::Float
        }
        _ => false,
    };
    if !refused {
        return Ok(());
    }
    let (from, to) = (from.name(), to.name());
    Err(EngineError::new(
        ErrorCode::TypeMismatch,
        format!("inconvertible types: {from} -> {to} [from={shown}, to={column}]"),
    ))
}

/// The error for a value that cannot be converted. Its position is 0.
pub(crate) fn runtime_value(failure: datafusion::error::DataFusionError) -> EngineError {
    let mut engine = error::plan(failure);
    if engine.code == ErrorCode::Internal {
        engine.code = ErrorCode::InvalidValue;
        engine.message = "a value of the row cannot be computed".into();
    }
    engine.at_if_missing(tidemark_types::Span::new(0, 0))
}
