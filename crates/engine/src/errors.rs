//! `DataFusion`'s and Arrow's errors as ours.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use tidemark_types::{EngineError, ErrorCode};

/// The engine error inside, or the nearest kind of ours.
pub(crate) fn from_datafusion(error: DataFusionError) -> EngineError {
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
        DataFusionError::Shared(inner) => from_shared(&inner),
        DataFusionError::ResourcesExhausted(text) => exhausted(text),
        DataFusionError::IoError(error) => spilling(&error),
        DataFusionError::Execution(text) => EngineError::new(ErrorCode::InvalidValue, text),
        DataFusionError::NotImplemented(text) => EngineError::new(ErrorCode::NotSupported, text),
        other => EngineError::internal(other.to_string()),
    }
}

fn exhausted(text: String) -> EngineError {
    EngineError::new(ErrorCode::OutOfMemory, text).with_hint(
        "raise query.memory.limit or query.memory.pool, or let the query touch fewer rows",
    )
}

/// A temporary file that cannot be written. Its own limit comes as an error that names a setting
/// of `DataFusion`'s.
fn spilling(error: &std::io::Error) -> EngineError {
    if error.to_string().contains("max_temp_directory_size") {
        let message = "disk full: queries hold as much in temporary files as they may";
        return EngineError::new(ErrorCode::DiskFull, message)
            .with_hint("retry when other queries have ended, or raise spill.limit");
    }
    EngineError::io("a file of the query", error)
}

/// A shared error cannot be taken apart, so an engine error in it is cloned.
fn from_shared(error: &DataFusionError) -> EngineError {
    match error {
        DataFusionError::External(inner) => inner
            .downcast_ref::<EngineError>()
            .cloned()
            .unwrap_or_else(|| EngineError::internal(inner.to_string())),
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::ExternalError(inner) => inner
                .downcast_ref::<EngineError>()
                .cloned()
                .unwrap_or_else(|| EngineError::internal(inner.to_string())),
            ArrowError::IoError(_, error) => spilling(error),
            other => EngineError::new(ErrorCode::InvalidValue, other.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_shared(inner)
        }
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::ResourcesExhausted(text) => exhausted(text.clone()),
        DataFusionError::IoError(error) => spilling(error),
        other => EngineError::new(ErrorCode::InvalidValue, other.to_string()),
    }
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
        ArrowError::NotYetImplemented(text) => EngineError::new(ErrorCode::NotSupported, text),
        ArrowError::IoError(_, error) => spilling(&error),
        other => EngineError::new(ErrorCode::InvalidValue, other.to_string()),
    }
}
