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
        DataFusionError::ResourcesExhausted(text) => {
            EngineError::new(ErrorCode::ResourceLimit, text)
                .with_hint("raise the memory limit, or let the query touch fewer rows or groups")
        }
        DataFusionError::Execution(text) => EngineError::new(ErrorCode::InvalidValue, text),
        DataFusionError::NotImplemented(text) => EngineError::new(ErrorCode::NotSupported, text),
        other => EngineError::internal(other.to_string()),
    }
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
            other => EngineError::new(ErrorCode::InvalidValue, other.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            from_shared(inner)
        }
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::ResourcesExhausted(text) => {
            EngineError::new(ErrorCode::ResourceLimit, text.clone())
        }
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
        ArrowError::IoError(text, _) => EngineError::new(ErrorCode::Io, text),
        other => EngineError::new(ErrorCode::InvalidValue, other.to_string()),
    }
}
