//! Errors of our own layers on their way through `DataFusion`, and back.

use datafusion::error::DataFusionError;
use tidemark_types::EngineError;

/// Wraps an engine error so that it survives `DataFusion`; the engine downcasts it again.
pub(crate) fn engine_error(error: EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A worker that panicked or was aborted ends its query with an error, not the process.
pub(crate) fn join_error(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}
