//! Common table expressions: what WITH names.

use tidemark_ast::{Cte, Name, NodeId, Span};

use crate::binder::state::scope::Relation;

/// A common table expression in scope: bound anew wherever it is named, but for rows that would
/// be others each time.
#[derive(Debug, Clone)]
pub(crate) struct CommonTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<Name>,
    pub(crate) query: NodeId,
    /// Whether it may name itself.
    pub(crate) recursive: bool,
    /// How many scopes of DECLARE are around it.
    pub(crate) scopes: usize,
    /// What its name means inside of itself.
    pub(crate) last_rows: Option<LastRows>,
    /// Its rows, where each of its names means the same ones.
    pub(crate) shared: Option<Relation>,
}

impl CommonTable {
    /// What WITH defines within so many scopes of DECLARE.
    pub(crate) fn of(written: &Cte, scopes: usize) -> Self {
        let Cte { name, columns, query, recursive } = written;
        let (name, columns) = (name.text.clone(), columns.clone());
        Self {
            name,
            columns,
            query: *query,
            recursive: *recursive,
            scopes,
            last_rows: None,
            shared: None,
        }
    }
}

/// The rows of a recursive query that came last, while its right side is bound.
#[derive(Debug, Clone)]
pub(crate) struct LastRows {
    pub(crate) rows: Relation,
    /// Where they are read.
    pub(crate) read_at: Option<Span>,
}
