//! Converts line protocol bytes to typed columns.
//!
//! - `lexer` tokenises one line without copying.
//! - `value` interprets a value.
//! - `table` collects the rows of one table.
//! - `template` parses lines that differ from the previous line only in their values.
//! - `reader` accepts chunks of bytes and tracks the tables of a message.

mod lexer;
mod reader;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod value;

pub use reader::{LineOptions, LineReader};

use tidemark_types::EngineError;

use crate::rows::RefusedTarget;

/// Why reading stopped.
#[derive(Debug)]
pub enum LineFailure {
    /// A line was rejected as invalid.
    Refused(Refusal),
    /// Every line would currently fail, regardless of its content.
    Failed(EngineError),
}

/// The error in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Line number, counted from 1. Empty lines and comments count, but a line feed inside a value
    /// does not start a new line.
    pub line: u64,
    /// Byte offset of the line in the message.
    pub at: u64,
    /// The error message for the client.
    pub reason: String,
    /// Whether the rows combined are too large, even though each row is valid.
    pub is_too_large: bool,
    /// The table that the line names, if it was resolved. The error message may describe this
    /// table, so only clients that may write to the table may receive the message.
    pub target: Option<RefusedTarget>,
}

impl From<EngineError> for LineFailure {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}
