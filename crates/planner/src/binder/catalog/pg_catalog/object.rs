//! Objects described by the catalog: tables, views and their columns.

use tidemark_storage::{ColumnSchema, Constraint, ConstraintKind, TableId};
use tidemark_types::identifier;

use super::numbers::index_oid;
use super::types;

pub(crate) const DATABASE: &str = "qdb";
/// The sequence of a SERIAL or IDENTITY column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbering {
    /// The first value.
    pub(crate) first: i64,
    /// The increment, at least 1.
    pub(crate) step: i64,
}

impl Numbering {
    /// Parses a default `next_id()` or `next_id(first, step)`; `None` for other defaults.
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

/// A table or a view, as the catalog describes it.
pub(crate) struct Object {
    pub(crate) oid: i32,
    pub(crate) name: String,
    /// `r` for a table, `v` for a view, `m` for a materialized view.
    pub(crate) kind: &'static str,
    pub(crate) columns: Vec<ColumnSchema>,
    /// Index of the designated timestamp.
    pub(crate) timestamp: Option<usize>,
    /// The table ID by which foreign keys in other tables reference it.
    pub(crate) identity: TableId,
    /// The keys and indexes whose columns are all visible.
    pub(crate) constraints: Vec<Constraint>,
    /// A view's query.
    pub(crate) query: Option<String>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Object {
    /// The sequences that `PostgreSQL` would have for SERIAL and IDENTITY columns: OID, name, and
    /// column number counted from 1.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = (i32, String, i32)> {
        let columns = self.columns.iter().zip(1..);
        columns.filter(|(column, _)| is_numbered(column)).map(|(column, index)| {
            let name = sequence_name(&self.name, &column.name);
            (index_oid(self.oid, &name), name, index)
        })
    }

    /// Whether the object stores rows, as a table or a materialized view does.
    pub(crate) fn is_stored(&self) -> bool {
        self.kind != "v"
    }

    /// Whether the object has an index.
    pub(crate) fn has_index(&self) -> bool {
        self.constraints.iter().any(has_index)
    }

    /// Returns the index of the column with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| identifier::same(&column.name, name))
    }
}

/// Formats a default as in `PostgreSQL`: keywords in lower case, quoted constants with a type cast.
/// ORMs parse this to get the default value.
fn constant_default(text: &str, column: &ColumnSchema) -> String {
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    if inner.is_some_and(|inner| !inner.replace("''", "").contains('\'')) {
        return format!("{text}::{}", types::of_column(column).title);
    }
    let small = text.to_ascii_lowercase();
    if matches!(small.as_str(), "true" | "false" | "null") { small } else { text.to_owned() }
}

/// Whether the column's default is a sequence.
pub(crate) fn is_numbered(column: &ColumnSchema) -> bool {
    let default = column.default.as_ref();
    default.is_some_and(|default| Numbering::of_default(&default.text).is_some())
}

/// The name that `PostgreSQL` would give the column's sequence.
pub(crate) fn sequence_name(table: &str, column: &str) -> String {
    format!("{table}_{column}_seq")
}

/// A column's default as shown to clients. A sequence is shown as `nextval(…)`, which is how
/// clients recognise SERIAL and IDENTITY columns.
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

/// Whether the constraint has an index.
pub(super) fn has_index(constraint: &Constraint) -> bool {
    constraint.kind != ConstraintKind::ForeignKey
}
