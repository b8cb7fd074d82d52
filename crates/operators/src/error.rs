//! Errors of our own layers on their way through `DataFusion`, and back.

use datafusion::error::{DataFusionError, Result};
use tidemark_types::{EngineError, ErrorCode, bounded};

/// Wraps an engine error so that it survives `DataFusion`; the engine downcasts it again.
pub(crate) fn engine_error(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Fails once the statement that is being planned was stopped.
pub fn check_stop() -> Result<()> {
    bounded::check_stop().map_err(engine_error)
}

/// The error for a statement whose plan we cannot make.
pub fn not_supported<T>(what: impl std::fmt::Display) -> Result<T> {
    let message = format!("{what} is not supported");
    Err(engine_error(EngineError::new(ErrorCode::NotSupported, message)))
}

/// A worker that panicked or was aborted ends its query with an error, not the process.
pub(crate) fn join_error(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}
