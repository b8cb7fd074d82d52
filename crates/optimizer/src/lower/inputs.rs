//! Supplies operators with inputs in the required partitioning and order.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::{
    Distribution, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ChildSatisfactionOptions, ExecutionPlanProperties, InputDistributionRequirements,
};
use tidemark_operators::{PlanNode, TimeConcat, follows_scan_order, is_right_join, origin};

use super::planned::Plan;
use super::walk::Walk;

impl Walk<'_> {
    /// Returns the plan with each input in the partitioning and order that the plan requires.
    pub(super) fn with_inputs(&self, plan: &Plan) -> Result<Plan> {
        let distributions = plan.input_distribution_requirements();
        let spreads = self.spreads(plan, &distributions)?;
        let (orderings, keeps) = (plan.required_input_ordering(), plan.maintains_input_order());
        let children = plan.children();
        let mut inputs = Vec::with_capacity(children.len());
        for (at, ordering) in orderings.into_iter().enumerate() {
            let input = Arc::clone(children[at]);
            let required = distributions.child_distribution(at);
            inputs.push(match required {
                Some(Distribution::SinglePartition) => {
                    let input = self.ordered(input, ordering, true)?;
                    in_one_partition(input, keeps[at])
                }
                Some(Distribution::KeyPartitioned(keys)) if spreads => {
                    let input = self.spread(input, keys, &distributions, at)?;
                    self.ordered(input, ordering, false)?
                }
                _ => self.ordered(input, ordering, false)?,
            });
        }
        replace_children_if_necessary(Arc::clone(plan), inputs)
    }

    /// Like [`Self::with_inputs`], but for all operators above the plans in `known`. The inputs of
    /// the known plans already meet the requirements.
    pub(super) fn with_inputs_above(&self, known: &[Plan], plan: &Plan) -> Result<Plan> {
        let above = |input: &Plan| {
            let is_known = known.iter().any(|known| Arc::ptr_eq(known, input));
            if is_known { Ok(Arc::clone(input)) } else { self.with_inputs_above(known, input) }
        };
        let inputs = plan.children().into_iter().map(above).collect::<Result<_>>()?;
        self.with_inputs(&replace_children_if_necessary(Arc::clone(plan), inputs)?)
    }

    /// Whether inputs that must be partitioned by key are repartitioned. True if any input has
    /// several partitions, or enough rows for several.
    fn spreads(&self, plan: &Plan, distributions: &InputDistributionRequirements) -> Result<bool> {
        let benefits = plan.benefits_from_input_partitioning();
        for (at, child) in plan.children().into_iter().enumerate() {
            let is_keyed = matches!(
                distributions.child_distribution(at),
                Some(Distribution::KeyPartitioned(_))
            );
            if is_keyed
                && (child.output_partitioning().partition_count() > 1
                    || (self.workers() > 1 && benefits[at] && self.has_many_rows(child)?))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_many_rows(&self, plan: &Plan) -> Result<bool> {
        let rows = self.size(plan)?.num_rows.get_value().copied();
        Ok(rows.is_none_or(|rows| rows > self.session.config().batch_size()))
    }

    /// Repartitions the input by its keys across all workers; with one worker, merges it into one
    /// partition.
    fn spread(
        &self,
        input: Plan,
        keys: &[Arc<dyn PhysicalExpr>],
        distributions: &InputDistributionRequirements,
        at: usize,
    ) -> Result<Plan> {
        let workers = self.workers();
        if workers == 1 {
            return Ok(in_one_partition(input, false));
        }
        let is_spread = distributions
            .child_satisfaction(at, input.as_ref(), ChildSatisfactionOptions::default())?
            .is_satisfied();
        if is_spread && input.output_partitioning().partition_count() >= workers {
            return Ok(input);
        }
        let by = Distribution::KeyPartitioned(keys.to_vec()).create_partitioning(workers);
        Ok(Arc::new(RepartitionExec::try_new(input, by)?))
    }

    /// Returns the input in the required order, if an order is required. With `into_one`, the
    /// result has a single partition.
    fn ordered(
        &self,
        input: Plan,
        required: Option<OrderingRequirements>,
        into_one: bool,
    ) -> Result<Plan> {
        let Some(required) = required.map(OrderingRequirements::into_single) else {
            return Ok(input);
        };
        let order = LexOrdering::new(required.iter().cloned().map(PhysicalSortExpr::from));
        let Some(order) = order else { return Ok(input) };
        if input.equivalence_properties().ordering_satisfy_requirement(required)? {
            return Ok(if into_one { merged(input, &order, None) } else { input });
        }
        self.sorted(input, &order, into_one, None, None)
    }
}

/// Merges sorted partitions into one partition in the same order.
pub(super) fn merged(plan: Plan, order: &LexOrdering, rows: Option<usize>) -> Plan {
    if plan.output_partitioning().partition_count() == 1 {
        return plan;
    }
    if follows_scan_order(&plan)
        && let [key] = order.as_ref()
        && sorts_by_time(&plan, key).is_some()
    {
        return TimeConcat::plan(plan);
    }
    Arc::new(SortPreservingMergeExec::new(order.clone(), plan).with_fetch(rows))
}

/// Merges all rows into one partition; with `keeps_order`, preserves their order.
pub(super) fn in_one_partition(plan: Plan, keeps_order: bool) -> Plan {
    if plan.output_partitioning().partition_count() == 1 {
        return plan;
    }
    if is_read_sequentially(&plan) || (keeps_order && is_joined_sequentially(&plan)) {
        return TimeConcat::plan(plan);
    }
    match plan.output_ordering().cloned().filter(|_| keeps_order) {
        Some(order) => merged(plan, &order, None),
        None => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

/// Merges a scan's rows into one partition. Results are read partition by partition anyway.
pub(super) fn in_scan_order(plan: Plan) -> Plan {
    let is_one = plan.output_partitioning().partition_count() == 1;
    if !is_one && follows_scan_order(&plan) { TimeConcat::plan(plan) } else { plan }
}

/// Whether reading the partitions one after another yields the rows in order. True for a scan, and
/// for a UNION ALL, which outputs its inputs in statement order.
fn is_read_sequentially(plan: &Plan) -> bool {
    let node = PlanNode::of(plan.as_ref());
    match plan.children().as_slice() {
        _ if follows_scan_order(plan) => true,
        [first, ..] if node.is_row_wise() => is_read_sequentially(first),
        sides => {
            matches!(node, PlanNode::Union) && sides.iter().all(|side| is_read_sequentially(side))
        }
    }
}

/// Like [`is_read_sequentially`], but also looks through joins that build one side and keep all of
/// the other side's rows in order.
fn is_joined_sequentially(plan: &Plan) -> bool {
    let node = PlanNode::of(plan.as_ref());
    match plan.children().as_slice() {
        [_, read] if is_right_join(plan) => {
            is_read_sequentially(read) || is_joined_sequentially(read)
        }
        [input, ..] if node.is_row_wise() => is_joined_sequentially(input),
        _ => false,
    }
}

/// For an order by the scan's designated timestamp, returns whether it is opposite to the scan's
/// direction. Returns `None` for any other order.
pub(super) fn sorts_by_time(input: &Plan, order: &PhysicalSortExpr) -> Option<bool> {
    let (scan, output) = origin(input, &order.expr)?;
    scan.is_timestamp(output).then(|| scan.is_backward() != order.options.descending)
}
