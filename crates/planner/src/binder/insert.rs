//! INSERT.

use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// The rows of a VALUES list with parameters in it.
#[derive(Debug, Clone)]
pub struct InsertTemplate {}

impl InsertTemplate {
    /// The rows that these parameter rows make, in one batch. Values are text in the parameter's
    /// own type.
    pub fn rows(&self, parameter_rows: &[Vec<Option<String>>]) -> EngineResult<RecordBatch> {
        let _ = parameter_rows;
        Err(EngineError::new(ErrorCode::NotSupported, "parameters in INSERT"))
    }
}
