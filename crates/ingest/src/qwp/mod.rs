//! Messages of the columnar protocol to typed columns.
//!
//! `bytes` takes what is there and no more, `gorilla` decodes instants, `dictionary` holds the
//! symbols of a connection, `block` reads the columns of a message without copying what they say,
//! `convert` makes arrays of them in the types of a table, `table` collects those of one table,
//! `reader` knows the tables of a commit. Every count and length is held against the bytes that are
//! left, and what it would take in memory against a limit, before anything is made of it.

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

/// Why no more messages are read.
#[derive(Debug)]
pub enum QwpFailure {
    /// A message is wrong.
    Refused(QwpRefusal),
    /// They cannot be taken, whatever they are.
    Failed(EngineError),
}

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QwpRefusal {
    /// As the protocol classes it.
    pub status: QwpStatus,
    /// Why, for the sender.
    pub reason: String,
    /// The table that the reason may tell of, to those who may write it.
    pub target: Option<RefusedTarget>,
}

/// Classes of refusals; the numbers are the protocol's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum QwpStatus {
    /// A value does not go into its column.
    SchemaMismatch = 3,
    /// The message is malformed, or over a limit.
    ParseError = 5,
    /// Entries of the dictionary are missing: the client sends them again.
    DictionaryGap = 13,
}

impl QwpFailure {
    fn refused(status: QwpStatus, reason: impl Into<String>) -> Self {
        Self::Refused(QwpRefusal { status, reason: reason.into(), target: None })
    }

    /// Says which table the reason tells of.
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
