//! Connection handoffs: the engine itself serves a client connection for a limited time.

use serde::Deserialize;

use crate::RowFormat;

/// Handoff specification: the requests that the client may send.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HandoffSpec {
    /// The handoff's id, unique among running handoffs and queries.
    pub id: u64,
    /// Statement timeout in milliseconds; 0 means no limit.
    pub timeout_ms: u64,
    /// The protocol and its requests.
    pub conversation: Conversation,
}

/// The requests that a client may send in its protocol, and how the engine answers them.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "protocol", rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Conversation {
    /// `PostgreSQL` wire protocol.
    Pg(PgHandoff),
    /// HTTP.
    Http(Box<HttpHandoff>),
}

/// Prepared queries that a client executes with different values.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PgHandoff {
    /// Whether `TIMESTAMP_NS` in text format has nine fractional digits instead of six.
    pub nanoseconds: bool,
    /// The statements and how they are bound.
    pub statements: Vec<HandoffStatement>,
}

/// A statement that the client executes with different values. Byte arrays are lists of numbers
/// from 0 to 255.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HandoffStatement {
    /// Bind message body up to and including the number of values.
    pub head: Vec<u8>,
    /// Bind message body after the values.
    pub tail: Vec<u8>,
    /// Header of the encoded parameter row. The values of a Bind message follow it.
    pub header: Vec<u8>,
    /// Format code per column: 0 for text, 1 for binary.
    pub format_codes: Vec<i16>,
    /// The `RowDescription` message for these format codes.
    pub row_description: Vec<u8>,
}

/// Requests that are identical except for their SQL text.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HttpHandoff {
    /// The request bytes before the SQL text.
    pub before: String,
    /// The request bytes after the SQL text.
    pub after: String,
    /// Maximum request length in bytes.
    pub max_request_bytes: usize,
    /// The response head in three strings: the body length is inserted after the first string, the
    /// date after the second.
    pub head: [String; 3],
    /// Maximum response body length in bytes.
    pub max_body_bytes: usize,
    /// Whether the response repeats the SQL text.
    pub names_query: bool,
    /// The row encoding.
    pub rows: RowFormat,
    /// Number of rows to skip at the start.
    pub skip: u64,
    /// Maximum number of rows to return, after `skip`.
    pub take: Option<u64>,
    /// Whether rows beyond `take` are counted as well.
    pub count_all: bool,
    /// The response text after the row count.
    pub end: String,
    /// The queries.
    pub queries: Vec<HandoffQuery>,
}

/// One query, or all queries that differ only in their literals.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HandoffQuery {
    /// The SQL text, with parameters in place of literals if `types` is not empty.
    pub text: String,
    /// Literal types; the literals become the statement's parameters. `None` for strings.
    pub types: Vec<Option<String>>,
    /// The response text between the SQL text and the rows.
    pub columns: String,
}
