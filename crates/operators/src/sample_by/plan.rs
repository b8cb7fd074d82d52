//! Describes SAMPLE BY and GROUP BY.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::group_cache::GroupCache;
use super::groups::KeyPlan;
use crate::bucket::BucketSpec;

/// The time axis, expressed in terms of the physical input.
#[derive(Debug, Clone)]
pub(crate) struct BucketPlan {
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) spec: BucketSpec,
}

/// An aggregate, expressed in terms of the physical input.
#[derive(Debug, Clone)]
pub(crate) struct AggregatePlan {
    pub(crate) function: Arc<AggregateFunctionExpr>,
    pub(crate) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    /// Number of symbols, if the argument is a symbol from a single table column.
    pub(crate) symbols: Option<usize>,
}

/// Aggregates by bucket and key. Each partition of the input is aggregated by a separate task.
/// Partial results are merged in partition order, which is also time order.
#[derive(Clone)]
pub struct SampleByPlan {
    pub(crate) bucket: Option<BucketPlan>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) key_plan: KeyPlan,
    pub(crate) aggregates: Vec<AggregatePlan>,
    /// Maximum number of groups, if the query needs only the group keys. Reading stops once all
    /// groups have been found.
    pub(crate) max_groups: Option<usize>,
    pub(crate) input_schema: SchemaRef,
    pub(crate) output_schema: SchemaRef,
    /// Cache that keeps the open bucket's groups between executions, if any.
    pub(crate) cache: Option<GroupCache>,
}

impl SampleByPlan {
    /// Whether the result is always a single row.
    pub(crate) fn is_global(&self) -> bool {
        self.bucket.is_none() && self.keys.is_empty()
    }
}
