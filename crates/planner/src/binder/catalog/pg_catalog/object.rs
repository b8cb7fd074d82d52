//! What the tables of the catalog are about: tables, views and their columns.

use tidemark_storage::{ColumnSchema, Constraint, ConstraintKind, TableId};
use tidemark_types::identifier;

use super::numbers::index_oid;
use super::types;

pub(crate) const DATABASE: &str = "qdb";
/// How a column numbers its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbering {
    /// The number of the first row.
    pub(crate) first: i64,
    /// From one number to the next, at least 1.
    pub(crate) step: i64,
}

impl Numbering {
    /// Of a default `next_id()` or `next_id(first, step)`; `None` for another.
    pub(crate) fn of_default(text: &str) -> Option<Self> {
        let numbers = text.strip_prefix("next_id(")?.strip_suffix(')')?;
        if numbers.is_empty() {
            return Some(Self { first: 1, step: 1 });
        }
        let (first, step) = numbers.split_once(',')?;
        let numbering = Self { first: first.trim().parse().ok()?, step: step.trim().parse().ok()? };
        (numbering.step > 0).then_some(numbering)
    }
}

/// A table or a view, as the catalog shows it.
pub(crate) struct Object {
    pub(crate) oid: i32,
    pub(crate) name: String,
    /// `r` for a table, `v` for a view, `m` for a materialized one.
    pub(crate) kind: &'static str,
    pub(crate) columns: Vec<ColumnSchema>,
    /// Place of its designated timestamp.
    pub(crate) timestamp: Option<usize>,
    /// By which keys of other tables refer to it.
    pub(crate) identity: TableId,
    /// Its keys and indexes, as far as their columns are seen.
    pub(crate) constraints: Vec<Constraint>,
    /// A view's query.
    pub(crate) query: Option<String>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Object {
    /// The numbers and names that the sequences of its columns have elsewhere, and the columns'
    /// places from 1.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = (i32, String, i32)> {
        let columns = self.columns.iter().zip(1..);
        columns.filter(|(column, _)| is_numbered(column)).map(|(column, place)| {
            let name = sequence_name(&self.name, &column.name);
            (index_oid(self.oid, &name), name, place)
        })
    }

    /// Whether its rows are stored: a table's, or a materialized view's.
    pub(crate) fn is_stored(&self) -> bool {
        self.kind != "v"
    }

    /// Whether it has an index.
    pub(crate) fn has_index(&self) -> bool {
        self.constraints.iter().any(has_index)
    }

    /// The place of a column.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| identifier::same(&column.name, name))
    }
}

/// A default as `PostgreSQL` shows it: words small, a constant in quotes with its type. Mappers
/// read the value of a default out of that.
fn constant_default(text: &str, column: &ColumnSchema) -> String {
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    if inner.is_some_and(|inner| !inner.replace("''", "").contains('\'')) {
        return format!("{text}::{}", types::of_column(column).title);
    }
    let small = text.to_ascii_lowercase();
    if matches!(small.as_str(), "true" | "false" | "null") { small } else { text.to_owned() }
}

/// Whether a column numbers its rows.
pub(crate) fn is_numbered(column: &ColumnSchema) -> bool {
    let default = column.default.as_ref();
    default.is_some_and(|default| Numbering::of_default(&default.text).is_some())
}

/// What `PostgreSQL` calls the sequence of such a column.
pub(crate) fn sequence_name(table: &str, column: &str) -> String {
    format!("{table}_{column}_seq")
}

/// A column's default as clients see it: of one that numbers its rows as `PostgreSQL` has it, by
/// which they know such a column.
pub(crate) fn shown_default(table: &str, column: &ColumnSchema) -> Option<String> {
    let text = &column.default.as_ref()?.text;
    if Numbering::of_default(text).is_none() {
        return Some(constant_default(text, column));
    }
    let name = sequence_name(table, &column.name);
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let name = if is_plain { name } else { format!("\"{name}\"") };
    Some(format!("nextval('{name}'::regclass)"))
}

/// Whether there is an index of it.
pub(super) fn has_index(constraint: &Constraint) -> bool {
    constraint.kind != ConstraintKind::ForeignKey
}
