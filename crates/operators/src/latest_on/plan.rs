//! Describes a LATEST ON.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::physical_expr::PhysicalExpr;

/// How the keys are represented.
#[derive(Debug, Clone)]
pub(crate) enum KeyKind {
    /// A single symbol column of a table, with this many symbols.
    Symbol { symbols: usize },
    /// Key values of these types.
    Hashed(Vec<DataType>),
}

/// Selects the last row of each key.
pub(crate) struct LatestOnPlan {
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) kind: KeyKind,
    /// Whether the input has been reversed and returns its newest row first.
    pub(crate) newest_first: bool,
}
