//! Descriptions of tables and running queries.

use serde::Serialize;

/// Result of `tableMetadata`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TableMetadata {
    /// The table's name as created.
    pub name: String,
    /// The columns in order.
    pub columns: Vec<TableColumn>,
    /// NONE, HOUR, DAY, WEEK, MONTH or YEAR.
    pub partition_by: &'static str,
    /// Name of the designated timestamp, if any.
    pub timestamp: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// The SQL type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether this column is the designated timestamp.
    pub designated: bool,
}

/// A running query.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ActiveQuery {
    /// The query's id, for `cancelQuery`.
    pub query_id: u64,
    /// Name of the user who runs the query.
    pub user: String,
    /// Distinguishes users with the same name.
    #[serde(skip)]
    pub identity: String,
    /// The SQL text.
    pub text: String,
    /// Start time in microseconds since 1970.
    pub started_micros: i64,
}
