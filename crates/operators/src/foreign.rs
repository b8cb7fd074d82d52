//! Converts `DataFusion` and Arrow errors into engine errors. Only this module reads library error
//! messages, which must never reach a client. Known errors get our own message; the text of all
//! other errors is only logged.

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use tidemark_types::{EngineError, ErrorCode};

/// Prefix of messages about running out of memory for queries.
pub const MEMORY: &str = "out of memory for queries";

/// Returns the wrapped engine error, or else the closest engine error.
pub fn from_datafusion(error: DataFusionError) -> EngineError {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<EngineError>() {
            Ok(own) => *own,
            Err(other) => match other.downcast::<DataFusionError>() {
                Ok(nested) => from_datafusion(*nested),
                Err(other) => EngineError::internal(other.to_string()),
            },
        },
        DataFusionError::ArrowError(inner, _) => from_arrow(*inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_datafusion(*inner)
        }
        other => of_datafusion(&other),
    }
}

/// Converts a borrowed error.
fn of_datafusion(error: &DataFusionError) -> EngineError {
    match error {
        DataFusionError::External(inner) => match inner.downcast_ref::<EngineError>() {
            Some(own) => own.clone(),
            None => match inner.downcast_ref::<DataFusionError>() {
                Some(nested) => of_datafusion(nested),
                None => EngineError::internal(inner.to_string()),
            },
        },
        DataFusionError::ArrowError(inner, _) => of_arrow(inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            of_datafusion(inner)
        }
        DataFusionError::Shared(inner) => of_datafusion(inner),
        DataFusionError::ResourcesExhausted(text) => exhausted(text),
        DataFusionError::IoError(error) => spilling(error),
        DataFusionError::Execution(text) if text.starts_with("Placeholder") => {
            let message = "a constant is required, but a parameter has no value";
            EngineError::new(ErrorCode::InvalidValue, message).with_inner(text)
        }
        DataFusionError::Execution(text) => {
            let message = "a value cannot be computed: it is out of range or has the wrong type";
            EngineError::new(ErrorCode::InvalidValue, message).with_inner(text)
        }
        DataFusionError::NotImplemented(text) => {
            let message = "part of the statement is not supported here";
            EngineError::new(ErrorCode::NotSupported, message).with_inner(text)
        }
        DataFusionError::SchemaError(of, _) => schema(of, error),
        other => EngineError::internal(other.to_string()),
    }
}

/// Reports a reference to a column that is not available where it is used. After grouping, for
/// example, only keys and aggregates are available.
fn schema(of: &SchemaError, error: &DataFusionError) -> EngineError {
    match of {
        SchemaError::FieldNotFound { .. } => {
            let message = "column is not available: after GROUP BY, only keys and aggregates are \
                           available; after a set operation, only the columns of its SELECT list";
            EngineError::new(ErrorCode::ColumnNotFound, message).with_inner(error.to_string())
        }
        _ => EngineError::internal(error.to_string()),
    }
}

fn exhausted(text: &str) -> EngineError {
    let hint = "raise query.memory.limit or query.memory.pool, or make the query read fewer rows";
    // Removes any list of memory consumers that precedes our own error.
    let error = match text.find(MEMORY) {
        Some(start) => EngineError::new(ErrorCode::OutOfMemory, &text[start..]),
        None => EngineError::new(ErrorCode::OutOfMemory, MEMORY).with_inner(text),
    };
    error.with_hint(hint)
}

/// Reports a temporary file that cannot be written. The library's error about the temporary file
/// size limit is recognized by the `DataFusion` setting it names.
fn spilling(error: &std::io::Error) -> EngineError {
    if error.to_string().contains("max_temp_directory_size") {
        let message =
            "out of temporary disk space: queries have reached the limit for temporary files";
        return EngineError::new(ErrorCode::DiskFull, message)
            .with_hint("retry after other queries have finished, or raise spill.limit");
    }
    EngineError::io("cannot use a temporary file for the query", error)
}

fn from_arrow(error: ArrowError) -> EngineError {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<EngineError>() {
            Ok(own) => *own,
            Err(other) => match other.downcast::<DataFusionError>() {
                Ok(nested) => from_datafusion(*nested),
                Err(other) => EngineError::internal(other.to_string()),
            },
        },
        other => of_arrow(&other),
    }
}

fn of_arrow(error: &ArrowError) -> EngineError {
    let (code, message) = match error {
        ArrowError::ExternalError(inner) => {
            return match (inner.downcast_ref::<EngineError>(), inner.downcast_ref()) {
                (Some(own), _) => own.clone(),
                (None, Some(nested)) => of_datafusion(nested),
                (None, None) => EngineError::internal(inner.to_string()),
            };
        }
        ArrowError::IoError(_, error) => return spilling(error),
        ArrowError::NotYetImplemented(_) => {
            (ErrorCode::NotSupported, "part of the statement is not supported here")
        }
        ArrowError::DivideByZero => (ErrorCode::InvalidValue, "division by zero"),
        ArrowError::ArithmeticOverflow(_) => (ErrorCode::InvalidValue, "a number is out of range"),
        ArrowError::CastError(_) | ArrowError::ParseError(_) => {
            (ErrorCode::InvalidValue, "a value cannot be converted")
        }
        ArrowError::OffsetOverflowError(_)
        | ArrowError::DictionaryKeyOverflowError
        | ArrowError::RunEndIndexOverflowError => {
            (ErrorCode::ResourceLimit, "the strings of one batch are larger than 2 GiB")
        }
        other => return EngineError::internal(other.to_string()),
    };
    EngineError::new(code, message).with_inner(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_never_see_library_messages() {
        let own = EngineError::new(ErrorCode::Busy, "too many queries");
        let boxed = || DataFusionError::External(Box::new(own.clone()));
        assert_eq!(from_datafusion(boxed()), own);
        assert_eq!(from_datafusion(DataFusionError::Shared(boxed().into())), own);
        let arrow = ArrowError::ExternalError(Box::new(boxed()));
        assert_eq!(from_datafusion(arrow.into()), own);
        let text = "AggregateUDF { Schema error }";
        for error in [
            DataFusionError::Plan(text.into()),
            DataFusionError::Execution(text.into()),
            DataFusionError::NotImplemented(text.into()),
            DataFusionError::ResourcesExhausted(text.into()),
            DataFusionError::Internal(text.into()).context(text),
            ArrowError::ComputeError(text.into()).into(),
            ArrowError::CastError(text.into()).into(),
        ] {
            let answer = from_datafusion(error);
            assert!(!answer.message.contains("UDF"), "{}", answer.message);
            assert!(answer.inner.is_some_and(|inner| inner.contains(text)));
        }
    }
}
