//! Who runs a statement, and what the statement is.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{Permission, Shared, TextAsk, TextShape};

/// Who asks, in which setting. Never credentials.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StatementContext {
    /// The session's user, for `current_user()` and the list of active queries.
    pub user: String,
    /// Tells the user apart from others of the same name; absent: the name does.
    pub identity: Option<String>,
    /// Who owns a view that the statement makes; absent: the user.
    pub owner: Option<Owner>,
    /// The statement's text, for the list of active queries.
    #[cfg_attr(test, ts(as = "Option<String>", optional))]
    pub text: String,
    /// Type texts the client declared for `$1`, `$2`, …; null where it left them open.
    pub parameter_types: Option<Vec<Option<String>>>,
    /// Milliseconds until the statement is given up; absent or 0: no limit.
    pub timeout_ms: Option<u64>,
    /// Milliseconds of `timeoutMs` that are over: from the statement's arrival to here.
    #[cfg_attr(test, ts(as = "Option<u64>", optional))]
    pub elapsed_ms: u64,
    /// What cancels its binding: a number that no execution has.
    pub query_id: Option<String>,
    /// Refuse everything that writes.
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub read_only: bool,
    /// What of the catalog is seen; absent: everything.
    #[cfg_attr(test, ts(as = "Option<Visibility>", optional))]
    pub visibility: Option<Shared<Visibility>>,
    /// What `SHOW USERS` and its kind answer, by `Users:`, `Permissions:name`, `all_permissions`,
    /// as far as the statement asks for them.
    #[cfg_attr(test, ts(as = "Option<HashMap<String, ListedRows>>", optional))]
    pub lists: Shared<HashMap<String, ListedRows>>,
    /// The last number of each sequence that the session drew from, in that order, as far as the
    /// statement asks for them.
    #[cfg_attr(test, ts(as = "Option<Vec<DrawnNumber>>", optional))]
    pub numbers: Shared<Vec<DrawnNumber>>,
    /// What is granted, by the keys of what an earlier binding asked; absent: nothing can be asked.
    pub answers: Option<HashMap<String, bool>>,
    /// How the texts in files are read, by the keys of what an earlier binding asked.
    #[cfg_attr(test, ts(as = "Option<HashMap<String, TextShape>>", optional))]
    pub texts: Shared<HashMap<String, TextShape>>,
}

/// The last number that a session drew from a sequence: of a column of SERIAL or IDENTITY.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DrawnNumber {
    /// The name that the sequence has elsewhere.
    pub sequence: String,
    /// The number: 64 bits, as text.
    pub value: String,
}

impl StatementContext {
    /// Tells the user apart from others.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.identity.as_deref().unwrap_or(&self.user)
    }
}

/// The owner of a view.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Owner {
    /// The name, for people.
    pub name: String,
    /// Tells one apart from others of the name; null where an older version made the view.
    #[serde(default)]
    pub id: Option<String>,
}

/// What a user may see who may not see everything: the tables and columns they have some right on.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Visibility {
    /// By folded name the folded names of the columns, null for all of them; null in its place:
    /// every table.
    pub tables: Option<HashMap<String, Option<Vec<String>>>>,
    /// The same for what may be read, with SELECT alone.
    pub reads: Option<HashMap<String, Option<Vec<String>>>>,
    /// Whether files of the server may be read.
    #[serde(default)]
    pub files: bool,
    /// Whether others' running queries are seen and may be cancelled.
    pub queries: bool,
}

/// Rows that the server knows and the engine does not: users, groups, rights.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ListedRows {
    /// Names and types.
    pub columns: Vec<(String, ListedType)>,
    /// The rows.
    pub rows: Vec<Vec<Option<ListedCell>>>,
}

/// A type of what the server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ListedType {
    /// STRING
    String,
    /// BOOLEAN
    Boolean,
}

/// A cell of what the server tells.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ListedCell {
    /// BOOLEAN
    Boolean(bool),
    /// STRING
    Text(String),
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum StatementKind {
    /// Yields rows.
    Select,
    /// Adds rows.
    Insert,
    /// Changes rows.
    Update,
    /// Changes tables, or the database as a whole.
    Ddl,
    /// Concerns the session alone.
    Session,
    /// An empty text.
    Empty,
}

/// What a bound statement is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct StatementDescription {
    /// What it does.
    pub kind: StatementKind,
    /// Words of the command tag: `SELECT`, `CREATE TABLE`, …
    pub command: String,
    /// Columns of the result; empty when there is none.
    pub columns: Vec<ResultColumn>,
    /// Index of the designated timestamp in `columns`, or -1.
    pub timestamp: i64,
    /// Type text of each parameter `$1`, `$2`, … as inferred.
    pub parameters: Vec<String>,
    /// What it touches.
    pub accesses: Vec<Access>,
    /// What it asks for and has no effect here: notices beside its success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// What must be known to be granted or not before it can be bound: it reads while it is bound.
    /// Prepare it again with the answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<Ask>>", optional))]
    pub asks: Vec<Ask>,
    /// Texts whose shape must be known before it can be bound. Prepare it again with what is found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<TextAsk>>", optional))]
    pub texts: Vec<TextAsk>,
}

/// A question of binding: whether something is granted.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Ask {
    /// Tells it apart from other questions.
    pub key: String,
    /// What is to be granted.
    pub access: Access,
}

/// One column of a result.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResultColumn {
    /// Name as shown.
    pub name: String,
    /// Type text as `/exec` prints it: `DOUBLE`, `GEOHASH(5c)`, `ARRAY`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Dimensions of an array, else 0.
    pub dimensions: u8,
    /// Of a column of the catalog of `PostgreSQL`: the number of its type there, where `type` does
    /// not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oid: Option<i32>,
    /// The column of a table that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ColumnSource>,
}

/// A column of a table, as clients of `PostgreSQL` ask the catalog about it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ColumnSource {
    /// The number of the table.
    pub table: i32,
    /// The number of the column in it, from 1.
    pub number: i16,
    /// What narrows its type, as the catalog packs it; -1 for nothing.
    pub modifier: i32,
}

/// A table or columns that a statement reads or writes; checked before it runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Access {
    /// The table; empty for the database.
    pub table: String,
    /// The columns; empty when the whole table is meant.
    pub columns: Vec<String>,
    /// What it takes.
    pub permission: Permission,
    /// The view whose query touches it: the right is that of the view's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Of that view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The table's designated timestamp, where the user does not see everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}
