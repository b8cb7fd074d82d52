//! A connection that the engine answers by itself for a while.

use serde::Deserialize;

use crate::RowFormat;

/// What its client may send.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HandoffSpec {
    /// What the handoff is called, as queries are: nothing else that runs may have it.
    pub id: u64,
    /// Milliseconds until a statement is given up; 0: no limit.
    pub timeout_ms: u64,
    /// How client and server talk.
    pub conversation: Conversation,
}

/// What a client may send in the words of its protocol, and how it is answered.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "protocol", rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Conversation {
    /// The wire protocol of `PostgreSQL`.
    Pg(PgHandoff),
    /// HTTP.
    Http(Box<HttpHandoff>),
}

/// Prepared queries that a client binds to other values.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PgHandoff {
    /// Nine digits of a second in the texts of `TIMESTAMP_NS`, not six.
    pub nanoseconds: bool,
    /// How each statement is bound.
    pub statements: Vec<HandoffStatement>,
}

/// A statement that its client binds to other values. Bytes are numbers of 8 bits.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HandoffStatement {
    /// The body of its Bind up to the count of the values.
    pub head: Vec<u8>,
    /// The body of its Bind behind the values.
    pub tail: Vec<u8>,
    /// The beginning of rows of parameters that are sent so.
    pub header: Vec<u8>,
    /// 0 text, 1 binary, one per column.
    pub format_codes: Vec<i16>,
    /// The `RowDescription` for these.
    pub row_description: Vec<u8>,
}

/// Requests that are alike but for the text of their query.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HttpHandoff {
    /// What a request begins with, up to the text of its query.
    pub before: String,
    /// What follows the text, to the end of the request.
    pub after: String,
    /// Bytes of a request, at most.
    pub longest: usize,
    /// The head of an answer, without its length, which follows the first part, and its date, which
    /// follows the second one.
    pub head: [String; 3],
    /// Bytes of the body of an answer, at most.
    pub largest: usize,
    /// Whether the answer repeats the text of the query.
    pub names_query: bool,
    /// How rows are written.
    pub rows: RowFormat,
    /// Rows left out at the start.
    pub skip: u64,
    /// Most rows returned, after `skip`.
    pub take: Option<u64>,
    /// Whether the rows behind those are counted, too.
    pub count_all: bool,
    /// What follows the count of the rows.
    pub end: String,
    /// The queries.
    pub queries: Vec<HandoffQuery>,
}

/// A query, or all queries that differ in their literals alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HandoffQuery {
    /// The text of the query, or of the query with parameters that texts are lifted to.
    pub text: String,
    /// The types of its literals, which are the parameters of the statement; none for texts.
    pub types: Vec<Option<String>>,
    /// What the answer says between the text of the query and the rows.
    pub columns: String,
}
