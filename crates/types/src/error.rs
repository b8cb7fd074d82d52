//! The one error type of the engine. `native` turns it into the JSON object
//! `{code, message, start, end, detail, hint, retryable}`; `ts/engine` reads it back.

use serde::{Deserialize, Serialize};

/// Half-open range of UTF-16 offsets into the statement text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Span {
    /// Offset of the first UTF-16 unit.
    pub start: u32,
    /// Offset after the last UTF-16 unit.
    pub end: u32,
}

impl Span {
    /// A span from `start` to `end`.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }
}

/// Closed list of what can go wrong. TypeScript's list is generated from it; `ts/session/status.ts`
/// maps each to an HTTP status, an SQLSTATE and a log level, and a code missing there fails to
/// compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ErrorCode {
    /// The text is not a statement of the dialect.
    Syntax,
    /// A statement is too deep, too long or has too many terms.
    StatementTooComplex,
    /// No such table.
    TableNotFound,
    /// The table is there already.
    TableExists,
    /// No such column.
    ColumnNotFound,
    /// A column name is there twice.
    DuplicateColumn,
    /// A name could mean several columns.
    AmbiguousColumn,
    /// No such function.
    FunctionNotFound,
    /// Types that do not go together.
    TypeMismatch,
    /// A value that cannot be converted, or is out of its range.
    InvalidValue,
    /// A value of a row that cannot be converted; its span is what was to be converted.
    InvalidCell,
    /// Bytes that are no text of UTF-8, or text with a zero byte.
    InvalidEncoding,
    /// A value in binary that is not of the type it is said to be.
    InvalidBinary,
    /// Data of COPY that are not in the format that they are said to have.
    InvalidCopyData,
    /// An identifier that is not allowed.
    InvalidName,
    /// What the session would have to have done before.
    InvalidState,
    /// Understood, and not supported.
    NotSupported,
    /// The catalog moved since `prepare`: prepare and authorise again, once.
    Replan,
    /// Cancelled by the client or by CANCEL QUERY.
    Cancelled,
    /// The statement's time is up.
    Timeout,
    /// A limit on sizes or numbers was reached; the message names it.
    ResourceLimit,
    /// More queries than may run and wait: the same call succeeds later.
    Busy,
    /// The statement needs more memory than it may have, or than there is just now.
    OutOfMemory,
    /// The disk is full or below its watermark.
    DiskFull,
    /// Reading or writing a file failed.
    Io,
    /// A checksum or a reference on disk does not hold.
    Damaged,
    /// The root directory is used by another process.
    RootLocked,
    /// The database is closing or closed.
    Closed,
    /// The engine is read-only.
    ReadOnly,
    /// What happened then is not known any more.
    HistoryGone,
    /// The user lacks a right.
    AccessDenied,
    /// A defect of ours. The message carries an id; the log carries the rest.
    Internal,
}

/// An error with everything a client may be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct EngineError {
    /// What kind of error.
    pub code: ErrorCode,
    /// Lower case, names what was found and what was expected.
    pub message: String,
    /// The offending token.
    pub span: Option<Span>,
    /// More, for people.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether the same call may succeed later without a change.
    pub retryable: bool,
    /// What a library or a defect of ours has to say about it: for the log alone.
    #[serde(skip)]
    pub inner: Option<String>,
}

/// Result of everything that can fail in the engine.
pub type EngineResult<T> = Result<T, EngineError>;

/// The most bytes of a message.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// The beginning of a message that is too long, and how long it was.
fn bounded_message(message: String) -> String {
    let length = message.len();
    if length <= MAX_MESSAGE_BYTES {
        return message;
    }
    let kept = &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)];
    format!("{kept}… [message={length} bytes]")
}

impl EngineError {
    /// An error without a position. A message that quotes a long value is cut.
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

    /// A defect of ours, in our words: a client is shown where the log has them.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, "internal error").with_inner(message)
    }

    /// What is wrong, for texts that people who run a server read: defects of ours in our words.
    pub fn reason(&self) -> &str {
        self.inner.as_deref().unwrap_or(&self.message)
    }

    /// A file operation that failed: `what` names the operation and the file.
    pub fn io(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                ErrorCode::DiskFull
            }
            _ => ErrorCode::Io,
        };
        Self::new(code, format!("{what}: {error}"))
    }

    /// The same error, at `span`.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// The same error at `span`, unless it has a position already.
    #[must_use]
    pub fn at_if_missing(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// The same error with what only the log gets to know.
    #[must_use]
    pub fn with_inner(mut self, inner: impl Into<String>) -> Self {
        self.inner = Some(inner.into());
        self
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with a detail.
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
    fn a_message_that_quotes_a_long_value_is_cut() {
        let error = EngineError::new(ErrorCode::InvalidValue, "é".repeat(1 << 20));
        assert!(error.message.len() < MAX_MESSAGE_BYTES + 64);
        assert!(error.message.ends_with("é… [message=2097152 bytes]"), "{}", error.message);
    }
}

#[cfg(test)]
mod typescript {
    use ts_rs::TS;

    use super::ErrorCode;

    /// Writes the list of codes for TypeScript, as `crates/border` writes its types.
    #[test]
    fn typescript_twin_is_written() {
        let codes = ErrorCode::inline().replace(" | ", ", ");
        assert!(codes.starts_with("\"Syntax\", "), "{codes}");
        let text = format!(
            "/** What can go wrong: the engine's closed list. */\n\
             export const ERROR_CODES = [{codes}] as const;\n\
             export type ErrorCode = (typeof ERROR_CODES)[number];\n"
        );
        if let Some(folder) = std::env::var_os("TIDEMARK_TYPESCRIPT") {
            let file = std::path::Path::new(&folder).join("errors.ts");
            std::fs::write(file, text).expect("the folder takes a file");
        }
    }
}
