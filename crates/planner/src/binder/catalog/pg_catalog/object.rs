//! What the tables of the catalog are about: tables, views and their columns.

use tidemark_storage::ColumnSchema;

pub(crate) const DATABASE: &str = "qdb";
/// The default of a column that numbers its rows.
pub(crate) const NEXT_NUMBER: &str = "next_id()";

/// A table or a view, as the catalog shows it.
pub(crate) struct Object {
    pub(crate) oid: i32,
    pub(crate) name: String,
    /// `r` for a table, `v` for a view.
    pub(crate) kind: &'static str,
    pub(crate) columns: Vec<ColumnSchema>,
    /// Places of the columns of its key, and of its designated timestamp.
    pub(crate) keys: Vec<usize>,
    pub(crate) timestamp: Option<usize>,
    /// A view's query.
    pub(crate) query: Option<String>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// A column's default as clients see it: of one that numbers its rows as `PostgreSQL` has it, by
/// which they know such a column.
pub(crate) fn shown_default(table: &str, column: &ColumnSchema) -> Option<String> {
    let text = &column.default.as_ref()?.text;
    if text != NEXT_NUMBER {
        return Some(text.clone());
    }
    let name = format!("{table}_{}_seq", column.name);
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let name = if is_plain { name } else { format!("\"{name}\"") };
    Some(format!("nextval('{name}'::regclass)"))
}
