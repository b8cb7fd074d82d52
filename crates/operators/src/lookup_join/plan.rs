//! What a join by look-up is asked.

use std::sync::Arc;

use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::joins::utils::JoinFilter;

/// What becomes of a row, by whether its key is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupKind {
    /// It is joined to each held row of its key.
    Inner,
    /// The same; without one, to nulls.
    Outer,
    /// It stays if there is one.
    Semi,
    /// It stays if there is none.
    Anti,
    /// It stays, and whether there is one is a column.
    Mark,
}

/// Where an output column comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutputColumn {
    Probe(usize),
    Held(usize),
    Mark,
}

impl OutputColumn {
    /// Whether it is this column of the other side.
    pub(super) fn is_probe(self, column: usize) -> bool {
        matches!(self, Self::Probe(own) if own == column)
    }
}

/// A join of which one side is held.
pub struct LookupJoin {
    /// Keys of the other side, and of the held one.
    pub(crate) keys: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    pub(crate) kind: LookupKind,
    /// Whether a null equals another.
    pub(crate) nulls: bool,
    /// What has to hold of a pair beside equal keys; of an inner join alone.
    pub(crate) filter: Option<JoinFilter>,
    pub(crate) output: Vec<OutputColumn>,
    /// Which columns of the output are equal or constant: sorts and windows above rely on it.
    pub(crate) equal: EquivalenceProperties,
}
