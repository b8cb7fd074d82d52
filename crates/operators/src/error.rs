//! Passes engine errors through `DataFusion`.

use datafusion::error::{DataFusionError, Result};
use tidemark_types::{EngineError, ErrorCode, bounded};

/// Wraps an engine error so that `DataFusion` passes it on unchanged; the engine downcasts it
/// again.
pub(crate) fn engine_error(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Fails if the statement being planned has been cancelled.
pub fn check_stop() -> Result<()> {
    bounded::check_stop().map_err(engine_error)
}

/// Returns the error for a statement that cannot be planned.
pub fn not_supported<T>(what: impl std::fmt::Display) -> Result<T> {
    let message = format!("{what} is not supported");
    Err(engine_error(EngineError::new(ErrorCode::NotSupported, message)))
}

/// Converts a worker's panic or abort into an error of the worker's query.
pub(crate) fn join_error(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}
