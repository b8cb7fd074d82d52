//! Converts line protocol bytes to typed columns.
//!
//! - `lexer` tokenises one line without copying.
//! - `value` interprets a value.
//! - `table` collects the rows of one table.
//! - `template` parses lines that differ from the previous one only in their values.
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

/// The reason why reading stopped.
#[derive(Debug)]
pub enum LineFailure {
    /// A line was rejected as invalid.
    Refused(Refusal),
    /// At present every line would fail, regardless of its content.
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
    /// Whether all rows together are too large although each single row is valid.
    pub is_too_large: bool,
    /// The table that the line names, if it was resolved. The error message may describe this
    /// table, so only clients that may write to it may receive it.
    pub target: Option<RefusedTarget>,
}

impl From<EngineError> for LineFailure {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}
