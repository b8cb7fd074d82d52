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

/// Why reading stopped.
#[derive(Debug)]
pub enum LineFailure {
    /// A line was rejected as invalid.
    Refused(Refusal),
    /// No line can be accepted at present, whatever it contains.
    Failed(EngineError),
}

/// The error in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Line number, from 1. A line feed inside a value does not start a new line; empty lines and
    /// comments count.
    pub line: u64,
    /// Byte offset of the line in the message.
    pub at: u64,
    /// The reason, for the sender.
    pub reason: String,
    /// Whether the rows together are too large although no single row is wrong.
    pub is_too_large: bool,
    /// Table that the line names, if it was resolved. The reason may describe this table, so it is
    /// meant only for clients that may write to it.
    pub target: Option<RefusedTarget>,
}

impl From<EngineError> for LineFailure {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}
