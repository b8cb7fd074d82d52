//! Statement context and description.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Permission, Shared, TextFormatRequest, TextShape};

/// The user and session of a statement. Never contains credentials.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StatementContext {
    /// The session's user, for `current_user()` and the list of active queries.
    pub user: String,
    /// Distinguishes users with the same name. If absent, the name alone identifies the user.
    pub identity: Option<String>,
    /// Owner of any view that the statement creates; if absent, the user.
    pub owner: Option<Owner>,
    /// The SQL text, for the list of active queries.
    #[cfg_attr(test, ts(as = "Option<String>", optional))]
    pub text: String,
    /// Types the client declared for `$1`, `$2`, …; null where it declared none.
    pub parameter_types: Option<Vec<Option<String>>>,
    /// Statement timeout in milliseconds; absent or 0 means no limit.
    pub timeout_ms: Option<u64>,
    /// Milliseconds of `timeoutMs` that have already elapsed since the statement arrived.
    #[cfg_attr(test, ts(as = "Option<u64>", optional))]
    pub elapsed_ms: u64,
    /// Id for cancelling this statement's binding, distinct from all execution ids.
    pub query_id: Option<String>,
    /// Whether to reject all writes.
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub read_only: bool,
    /// The visible subset of the catalog; everything when absent.
    #[cfg_attr(test, ts(as = "Option<Visibility>", optional))]
    pub visibility: Option<Shared<Visibility>>,
    /// Rows of `SHOW USERS` and similar statements, by key (`Users:`, `Permissions:name`,
    /// `all_permissions`). Contains only the lists that the statement requests.
    #[cfg_attr(test, ts(as = "Option<HashMap<String, ListedRows>>", optional))]
    pub lists: Shared<HashMap<String, ListedRows>>,
    /// The last value of each sequence in this session, least recent first. Contains only the
    /// sequences that the statement requests.
    #[cfg_attr(test, ts(as = "Option<Vec<SequenceValue>>", optional))]
    pub numbers: Shared<Vec<SequenceValue>>,
    /// Results of the permission checks that an earlier binding requested, by key. If absent,
    /// binding cannot request checks.
    pub answers: Option<HashMap<String, bool>>,
    /// Detected text file formats that an earlier binding requested, by key.
    #[cfg_attr(test, ts(as = "Option<HashMap<String, TextShape>>", optional))]
    pub texts: Shared<HashMap<String, TextShape>>,
}

/// The last value that a session obtained from a SERIAL or IDENTITY column's sequence.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SequenceValue {
    /// Name of the sequence, as used in SQL.
    pub sequence: String,
    /// The 64-bit value as a string.
    pub value: String,
}

impl StatementContext {
    /// Distinguishes the user from others with the same name.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.identity.as_deref().unwrap_or(&self.user)
    }
}

/// The owner of a view.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Owner {
    /// The name, for display.
    pub name: String,
    /// Distinguishes owners with the same name; null if an older version created the view.
    #[serde(default)]
    pub id: Option<String>,
}

/// Objects visible to a restricted user: the tables and columns the user has any permission on.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Visibility {
    /// Folded column names by folded table name. A null list means all columns; a null map means
    /// all tables.
    pub tables: Option<HashMap<String, Option<Vec<String>>>>,
    /// Like `tables`, but for the columns on which the user has SELECT.
    pub reads: Option<HashMap<String, Option<Vec<String>>>>,
    /// Whether the user may read files on the server.
    #[serde(default)]
    pub files: bool,
    /// Whether the user may see and cancel other users' queries.
    pub queries: bool,
}

/// Rows that the server supplies to the engine: users, groups, permissions.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ListedRows {
    /// Names and types of the columns.
    pub columns: Vec<(String, ListedType)>,
    /// The rows.
    pub rows: Vec<Vec<Option<ListedCell>>>,
}

/// Type of a column in server-supplied rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ListedType {
    /// STRING
    String,
    /// BOOLEAN
    Boolean,
}

/// A value in a server-supplied row.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ListedCell {
    /// BOOLEAN
    Boolean(bool),
    /// STRING
    Text(String),
}

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum StatementKind {
    /// Returns rows.
    Select,
    /// Adds rows.
    Insert,
    /// Changes rows.
    Update,
    /// Changes tables or the whole database.
    Ddl,
    /// Affects only the session.
    Session,
    /// An empty statement.
    Empty,
}

/// Description of a bound statement.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StatementDescription {
    /// The kind of the statement.
    pub kind: StatementKind,
    /// The command tag: `SELECT`, `CREATE TABLE`, …
    pub command: String,
    /// The result columns; empty if the statement returns no result.
    pub columns: Vec<ResultColumn>,
    /// Index of the designated timestamp in `columns`; -1 if the result has none.
    pub timestamp: i64,
    /// Inferred type of each parameter `$1`, `$2`, …
    pub parameters: Vec<String>,
    /// The tables and columns that the statement accesses.
    pub accesses: Vec<Access>,
    /// Notice to send on success if a requested option has no effect in this database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Permissions to check before binding, because binding already reads data. The caller must
    /// prepare the statement again with the results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<PermissionRequest>>", optional))]
    pub permission_requests: Vec<PermissionRequest>,
    /// Text files whose format must be detected before binding. The caller must prepare the
    /// statement again with the results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<TextFormatRequest>>", optional))]
    pub texts: Vec<TextFormatRequest>,
}

/// A permission check that binding requests.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PermissionRequest {
    /// Identifies the request.
    pub key: String,
    /// The access to check.
    pub access: Access,
}

/// A result column.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResultColumn {
    /// Name as displayed.
    pub name: String,
    /// Type name as `/exec` prints it: `DOUBLE`, `GEOHASH(5c)`, `ARRAY`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Number of array dimensions; 0 if the column is not an array.
    pub dimensions: u8,
    /// `PostgreSQL` type OID of a system-catalog column, if `type` does not determine it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oid: Option<i32>,
    /// The table column that the result column is selected from, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ColumnSource>,
}

/// A table column as `PostgreSQL` clients look it up in the catalog.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ColumnSource {
    /// The table's OID.
    pub table: i32,
    /// The column number in the table, from 1.
    pub number: i16,
    /// The type modifier in catalog encoding; -1 for none.
    pub modifier: i32,
}

/// A table, or some of its columns, that a statement reads or writes. Access is checked before the
/// statement runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Access {
    /// The table's name; empty for the database.
    pub table: String,
    /// The columns; empty for the whole table.
    pub columns: Vec<String>,
    /// The required permission.
    pub permission: Permission,
    /// The view whose query makes this access, if any. In that case the view's owner needs the
    /// permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Owner of that view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The table's designated timestamp, if the user's visibility is restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}
