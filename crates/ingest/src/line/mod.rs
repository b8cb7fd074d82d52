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
    /// A line is invalid.
    Refused(Refusal),
    /// Lines cannot be accepted, whatever they contain.
    Failed(EngineError),
}

/// The error in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Line number, from 1. Line feeds inside values start no line; empty lines and comments count.
    pub line: u64,
    /// Bytes of the message before the line.
    pub at: u64,
    /// Reason for the sender.
    pub reason: String,
    /// Whether the rows together are too large, with no error in a single row.
    pub is_too_large: bool,
    /// Table of the line, if it was resolved. The reason may describe the table, so it is meant for
    /// clients that may write it.
    pub target: Option<RefusedTarget>,
}

impl From<EngineError> for LineFailure {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}
