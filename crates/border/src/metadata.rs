//! Descriptions of tables and of running queries.

use serde::Serialize;

/// What `tableMetadata` answers.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TableMetadata {
    /// Name as created.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<TableColumn>,
    /// NONE, HOUR, DAY, WEEK, MONTH, YEAR.
    pub partition_by: &'static str,
    /// Name of the designated timestamp.
    pub timestamp: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Type text.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether it is the designated timestamp.
    pub designated: bool,
}

/// A running query.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ActiveQuery {
    /// Its id, for `cancelQuery`.
    pub query_id: u64,
    /// Who runs it.
    pub user: String,
    /// Tells them apart from others of the same name.
    #[serde(skip)]
    pub identity: String,
    /// Its text.
    pub text: String,
    /// Microseconds since 1970 at its start.
    pub started_micros: i64,
}
