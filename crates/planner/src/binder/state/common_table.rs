//! Common table expressions: what WITH names.

use tidemark_ast::{Name, NodeId, Span};

use crate::binder::state::scope::Relation;

/// A common table expression in scope: bound anew wherever it is named.
#[derive(Debug, Clone)]
pub(crate) struct CommonTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<Name>,
    pub(crate) query: NodeId,
    /// Whether it may name itself.
    pub(crate) recursive: bool,
    /// What its name means inside of itself.
    pub(crate) last_rows: Option<LastRows>,
}

/// The rows of a recursive query that came last, while its right side is bound.
#[derive(Debug, Clone)]
pub(crate) struct LastRows {
    pub(crate) rows: Relation,
    /// Where they are read.
    pub(crate) read_at: Option<Span>,
}
