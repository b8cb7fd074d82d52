//! Describes a FILL.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;

use super::node::FillValue;
use crate::bucket::BucketSpec;

/// Adds the buckets that have no rows in the SAMPLE BY result.
pub(crate) struct FillPlan {
    pub(crate) timestamp: usize,
    pub(crate) keys: Vec<usize>,
    pub(crate) values: Vec<FillValue>,
    pub(crate) spec: BucketSpec,
    pub(crate) range: Option<(i64, i64)>,
}

impl FillPlan {
    /// Returns the bucket column.
    pub(super) fn label(&self, schema: &SchemaRef) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(schema.field(self.timestamp).name(), self.timestamp))
    }
}
