//! A connection that the engine answers by itself for a while.

use serde::Deserialize;

/// What its client may send.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LoanSpec {
    /// What the loan is called, as queries are: nothing else that runs may have it.
    pub id: u64,
    /// Milliseconds until a statement is given up; 0: no limit.
    pub timeout_ms: u64,
    /// Nine digits of a second in the texts of `TIMESTAMP_NS`, not six.
    pub nanoseconds: bool,
    /// How each statement is bound.
    pub statements: Vec<LentStatement>,
}

/// A statement that its client binds to other values. Bytes are numbers of 8 bits.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LentStatement {
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
