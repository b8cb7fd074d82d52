//! The engine's error type. `native` converts it to the JSON object `{code, message, start, end,
//! detail, hint, retryable}`, which `ts/engine` parses.

use serde::{Deserialize, Serialize};

/// A half-open range of UTF-16 offsets into the SQL text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Span {
    /// Offset of the first UTF-16 unit.
    pub start: u32,
    /// Offset after the last UTF-16 unit.
    pub end: u32,
}

impl Span {
    /// Creates a span from `start` to `end`.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }
}

/// Closed list of error codes.
///
/// The TypeScript list is generated from it. `ts/session/status.ts` maps each code to an HTTP
/// status, an SQLSTATE and a log level; a missing code is a compile error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ErrorCode {
    /// The SQL text is not a valid statement.
    Syntax,
    /// The statement is too long, is nested too deeply or has too many terms.
    StatementTooComplex,
    /// The table does not exist.
    TableNotFound,
    /// The table already exists.
    TableExists,
    /// The column does not exist.
    ColumnNotFound,
    /// A column name occurs twice.
    DuplicateColumn,
    /// A name matches several columns.
    AmbiguousColumn,
    /// The function does not exist.
    FunctionNotFound,
    /// The types are incompatible.
    TypeMismatch,
    /// A value cannot be converted or is out of range.
    InvalidValue,
    /// A value in a row cannot be converted; the span covers the converted expression.
    InvalidCell,
    /// A column that is NOT NULL gets no value.
    NullValue,
    /// Invalid UTF-8, or a string that contains a NUL byte.
    InvalidEncoding,
    /// A binary value does not match its declared type.
    InvalidBinary,
    /// COPY data does not match its declared format.
    InvalidCopyData,
    /// An invalid identifier.
    InvalidName,
    /// The session is not in the required state.
    InvalidState,
    /// A feature that is recognized but not supported.
    NotSupported,
    /// The catalog has changed since `prepare`. The caller must prepare and authorize the statement
    /// again, once.
    Replan,
    /// Cancelled by the client or by CANCEL QUERY.
    Cancelled,
    /// The statement's time limit expired.
    Timeout,
    /// A size or count limit was reached; the message names it.
    ResourceLimit,
    /// Too many queries are running and waiting. The same call may succeed later.
    Busy,
    /// The statement needs more memory than its limit allows, or more than is currently free.
    OutOfMemory,
    /// The disk is full or below its watermark.
    DiskFull,
    /// Reading or writing a file failed.
    Io,
    /// A checksum or a reference on disk is invalid.
    Damaged,
    /// Another process uses the root directory.
    RootLocked,
    /// The database is closing or closed.
    Closed,
    /// The engine is read-only.
    ReadOnly,
    /// The requested history is no longer available.
    HistoryGone,
    /// The user lacks a required permission.
    AccessDenied,
    /// An internal defect. The message contains an ID; the log contains the details.
    Internal,
}

/// An error with all the information that a client may see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct EngineError {
    /// Kind of error.
    pub code: ErrorCode,
    /// The message, in lower case. It names the value found and what was expected.
    pub message: String,
    /// Position of the offending token.
    pub span: Option<Span>,
    /// Human-readable details.
    pub detail: Option<String>,
    /// Suggested action.
    pub hint: Option<String>,
    /// Whether the same call may succeed later without changes.
    pub retryable: bool,
    /// Library error message, or details of an internal defect; only for the log.
    #[serde(skip)]
    pub inner: Option<String>,
}

/// Result of fallible engine functions.
pub type EngineResult<T> = Result<T, EngineError>;

/// Maximum length of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Truncates a message that is too long, and appends its original length.
fn bounded_message(message: String) -> String {
    let length = message.len();
    if length <= MAX_MESSAGE_BYTES {
        return message;
    }
    let retained = &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)];
    format!("{retained}… [message={length} bytes]")
}

impl EngineError {
    /// Creates an error without a position. A message that quotes a long value is truncated.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: bounded_message(message.into()),
            span: None,
            detail: None,
            hint: None,
            retryable: matches!(
                code,
                ErrorCode::Replan | ErrorCode::Busy | ErrorCode::OutOfMemory | ErrorCode::DiskFull
            ),
            inner: None,
        }
    }

    /// Creates an error for an internal defect. Only the log contains the message; the client sees
    /// a reference to it.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, "internal error").with_inner(message)
    }

    /// Returns the message for operators, including the details of internal defects.
    pub fn reason(&self) -> &str {
        self.inner.as_deref().unwrap_or(&self.message)
    }

    /// Creates an error for a failed file operation. `what` names the operation and the file.
    pub fn io(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                ErrorCode::DiskFull
            }
            _ => ErrorCode::Io,
        };
        Self::new(code, format!("{what}: {error}"))
    }

    /// Sets the position to `span`.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Sets the position to `span`, unless the error already has one.
    #[must_use]
    pub fn at_if_missing(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// Adds details that only the log contains.
    #[must_use]
    pub fn with_inner(mut self, inner: impl Into<String>) -> Self {
        self.inner = Some(inner.into());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineError, ErrorCode, MAX_MESSAGE_BYTES};

    #[test]
    fn a_message_that_quotes_a_long_value_is_truncated() {
        let error = EngineError::new(ErrorCode::InvalidValue, "é".repeat(1 << 20));
        assert!(error.message.len() < MAX_MESSAGE_BYTES + 64);
        assert!(error.message.ends_with("é… [message=2097152 bytes]"), "{}", error.message);
    }
}

#[cfg(test)]
mod typescript {
    use ts_rs::TS;

    use super::ErrorCode;

    /// Writes the list of codes for TypeScript, in the same way that `crates/border` writes its
    /// types.
    #[test]
    fn typescript_types_are_generated() {
        let codes = ErrorCode::inline().replace(" | ", ", ");
        assert!(codes.starts_with("\"Syntax\", "), "{codes}");
        let text = format!(
            "/** What can go wrong: the engine's closed list. */\n\
             export const ERROR_CODES = [{codes}] as const;\n\
             export type ErrorCode = (typeof ERROR_CODES)[number];\n"
        );
        if let Some(folder) = std::env::var_os("TIDEMARK_TYPESCRIPT") {
            let file = std::path::Path::new(&folder).join("errors.ts");
            std::fs::write(file, text).expect("the file can be written");
        }
    }
}
