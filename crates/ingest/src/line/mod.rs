//! Bytes of the line protocol to typed columns.
//!
//! `lexer` finds the parts of one line and copies nothing, `value` says what a value is, `table`
//! collects the rows of one table, `template` reads lines that differ from the last one in their
//! values alone, `reader` takes bytes as they come and knows the tables of a message.

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

/// Why no more lines are read.
#[derive(Debug)]
pub enum LineFailure {
    /// A line is wrong.
    Refused(Refusal),
    /// They cannot be taken, whatever they are.
    Failed(EngineError),
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which one, from 1. Line feeds within values begin no line; empty lines and comments count.
    pub line: u64,
    /// Bytes of the message before it.
    pub at: u64,
    /// Why, for the sender.
    pub reason: String,
    /// Whether the rows together are too many, and not one of them wrong.
    pub is_too_large: bool,
    /// The table of the line, where it came that far: the reason may tell of it, to those who may
    /// write it.
    pub target: Option<RefusedTarget>,
}

impl From<EngineError> for LineFailure {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}
