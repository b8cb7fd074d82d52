//! What SAMPLE BY and GROUP BY are asked.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::groups::KeyPlan;
use super::kept::KeptGroups;
use crate::bucket::BucketSpec;

/// The time axis over the physical input.
#[derive(Debug, Clone)]
pub(crate) struct BucketPlan {
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) spec: BucketSpec,
}

/// One aggregate over the physical input.
#[derive(Debug, Clone)]
pub(crate) struct AggregatePlan {
    pub(crate) function: Arc<AggregateFunctionExpr>,
    pub(crate) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    /// How many symbols there are, when the argument is a symbol of one table column.
    pub(crate) symbols: Option<usize>,
}

/// Aggregates over buckets and keys. Every partition of the input is aggregated by a task of
/// its own; the partial results, each later in time than the one before, are merged in order.
#[derive(Clone)]
pub struct SampleByPlan {
    pub(crate) bucket: Option<BucketPlan>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) key_plan: KeyPlan,
    pub(crate) aggregates: Vec<AggregatePlan>,
    /// As many groups as there can be, where nothing is asked of one but that it exists: no row
    /// is read once all are found.
    pub(crate) most_groups: Option<usize>,
    pub(crate) input_schema: SchemaRef,
    pub(crate) output_schema: SchemaRef,
    /// Where groups of the open bucket are kept between executions.
    pub(crate) kept: Option<KeptGroups>,
}

impl SampleByPlan {
    /// Whether the result is one row, whatever the input.
    pub(crate) fn is_global(&self) -> bool {
        self.bucket.is_none() && self.keys.is_empty()
    }
}
