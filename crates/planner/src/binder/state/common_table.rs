//! CTEs, defined by WITH.

use tidemark_ast::{Cte, Name, NodeId, Span};

use crate::binder::state::scope::Relation;

/// A CTE in scope. It is bound again for each reference, unless its rows are volatile.
#[derive(Debug, Clone)]
pub(crate) struct CommonTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<Name>,
    pub(crate) query: NodeId,
    /// Whether the CTE may reference itself.
    pub(crate) recursive: bool,
    /// Number of enclosing DECLARE scopes.
    pub(crate) scopes: usize,
    /// The rows that the CTE's name refers to inside its own recursive query.
    pub(crate) last_rows: Option<LastRows>,
    /// The CTE's rows, if all references must read the same rows.
    pub(crate) shared: Option<Relation>,
}

impl CommonTable {
    /// A CTE defined by WITH inside `scopes` DECLARE scopes.
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

/// The previous step's rows in a recursive query, while the query's right side is bound.
#[derive(Debug, Clone)]
pub(crate) struct LastRows {
    pub(crate) rows: Relation,
    /// Position of the reference to these rows, if any.
    pub(crate) read_at: Option<Span>,
}
