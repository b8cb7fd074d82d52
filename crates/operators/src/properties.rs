//! Operator orderings and plan properties, for `DataFusion`.

use std::sync::Arc;

use arrow_schema::{SchemaRef, SortOptions};
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::{Partitioning, PlanProperties};

/// Returns the properties of output with these orderings.
pub(crate) fn properties(
    schema: &SchemaRef,
    orders: impl IntoIterator<Item = Vec<PhysicalSortExpr>>,
    partitions: usize,
    emission: EmissionType,
) -> Arc<PlanProperties> {
    let mut equivalence = EquivalenceProperties::new(Arc::clone(schema));
    for order in orders {
        equivalence.add_ordering(order);
    }
    properties_of(equivalence, partitions, emission)
}

/// Returns the properties of output with these equivalences.
pub(crate) fn properties_of(
    equivalence: EquivalenceProperties,
    partitions: usize,
    emission: EmissionType,
) -> Arc<PlanProperties> {
    let partitioning = Partitioning::UnknownPartitioning(partitions);
    let properties = PlanProperties::new(equivalence, partitioning, emission, Boundedness::Bounded);
    Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative))
}

/// Returns the ascending order by one column.
pub(crate) fn ascending(timestamp: &Arc<dyn PhysicalExpr>) -> PhysicalSortExpr {
    let options = SortOptions { descending: false, nulls_first: true };
    PhysicalSortExpr::new(Arc::clone(timestamp), options)
}

/// Requires each input to be in ascending order of its timestamp.
pub(crate) fn ascending_inputs<'a>(
    timestamps: impl IntoIterator<Item = &'a Arc<dyn PhysicalExpr>>,
) -> Vec<Option<OrderingRequirements>> {
    let by = |column| Some(OrderingRequirements::from(LexOrdering::from([ascending(column)])));
    timestamps.into_iter().map(by).collect()
}
