//! What LATEST ON is asked.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::physical_expr::PhysicalExpr;

/// How keys are distinguished.
#[derive(Debug, Clone)]
pub(crate) enum KeyKind {
    /// One symbol column of a table, which has so many symbols.
    Symbol { symbols: usize },
    /// Values of these types.
    Hashed(Vec<DataType>),
}

/// The last row of each key.
pub(crate) struct LatestOnPlan {
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) kind: KeyKind,
    /// Whether the input was turned around and yields its newest row first.
    pub(crate) newest_first: bool,
}
