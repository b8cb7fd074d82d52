//! Settings shared by all workers of an ASOF join.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;

use super::keys::KeyKind;
use super::node::AsofKind;

/// Joins each left row with the last right row before it.
pub(crate) struct AsofPlan {
    pub(crate) left_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) right_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    pub(crate) key_kind: KeyKind,
    pub(crate) kind: AsofKind,
    pub(crate) tolerance: Option<i64>,
}
