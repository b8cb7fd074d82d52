//! Converts columnar-protocol messages to typed columns.
//!
//! - `bytes` reads with bounds checks.
//! - `gorilla` decodes timestamps.
//! - `dictionary` stores a connection's symbols.
//! - `block` reads a message's columns without copying their content.
//! - `convert` builds arrays with a table's column types.
//! - `table` collects the rows of one table.
//! - `reader` manages the tables of a commit.
//!
//! Before any memory is allocated, every count and length is checked against the remaining bytes,
//! and the required memory against a limit.

mod block;
mod bytes;
mod convert;
mod dictionary;
mod gorilla;
mod options;
mod reader;
mod table;
#[cfg(test)]
mod tests;

pub use options::QwpOptions;
pub use reader::QwpReader;

use tidemark_types::EngineError;

use crate::rows::RefusedTarget;

/// Why reading stopped.
#[derive(Debug)]
pub enum QwpFailure {
    /// A message was rejected as invalid.
    Refused(QwpRefusal),
    /// Every message would currently fail, regardless of its content.
    Failed(EngineError),
}

/// The error in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QwpRefusal {
    /// The protocol's error class.
    pub status: QwpStatus,
    /// The error message for the client.
    pub reason: String,
    /// The table that the error message may describe. Only clients that may write to this table may
    /// receive the description.
    pub target: Option<RefusedTarget>,
}

/// Error classes, with the protocol's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum QwpStatus {
    /// A value cannot be assigned to its column's type.
    SchemaMismatch = 3,
    /// The message is malformed or exceeds a limit.
    ParseError = 5,
    /// Dictionary entries are missing. The client must send them again.
    DictionaryGap = 13,
}

impl QwpFailure {
    fn refused(status: QwpStatus, reason: impl Into<String>) -> Self {
        Self::Refused(QwpRefusal { status, reason: reason.into(), target: None })
    }

    /// Sets the table that the error message describes.
    fn of(self, target: impl FnOnce() -> RefusedTarget) -> Self {
        match self {
            Self::Refused(refusal) => {
                Self::Refused(QwpRefusal { target: Some(target()), ..refusal })
            }
            failed @ Self::Failed(_) => failed,
        }
    }
}

impl From<EngineError> for QwpFailure {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

impl From<bytes::Malformed> for QwpFailure {
    fn from(bytes::Malformed { at, reason }: bytes::Malformed) -> Self {
        Self::refused(QwpStatus::ParseError, format!("{reason} (byte {at})"))
    }
}
