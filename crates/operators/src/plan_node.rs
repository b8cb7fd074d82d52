//! The types of physical plan nodes that planning distinguishes. `DataFusion` has no common
//! interface for its nodes; our operators describe themselves ([`crate::operator::Operator`]).

use std::sync::Arc;

use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinType, Result};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_expr::{Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::InputOrderMode;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};

use crate::operator::OperatorExec;
use crate::scan::filtered::FilteredScan;
use crate::scan::kind::Scan;
use crate::sort::function::Place;

/// A plan node's type.
pub enum PlanNode<'a> {
    /// An operator of this crate.
    Operator(&'a OperatorExec),
    Projection(&'a ProjectionExec),
    Filter(&'a FilterExec),
    /// Yields between batches of its input.
    Cooperative,
    /// Computes subquery values, which are its other inputs, before its first input is read.
    Values,
    LocalLimit,
    GlobalLimit,
    Sort(&'a SortExec),
    /// Merges sorted partitions.
    Merge(&'a SortPreservingMergeExec),
    Union,
    /// A join that builds its left input and streams its right input.
    HoldingJoin,
    /// A join that streams both inputs.
    MergingJoin,
    /// One row without columns.
    OneRow,
    /// Rows in memory.
    Memory(&'a MemorySourceConfig),
    /// Any other node.
    Other,
}

impl<'a> PlanNode<'a> {
    /// Returns the type of a node, ignoring any wrappers.
    pub fn of(plan: &'a dyn ExecutionPlan) -> Self {
        if let Some(node) = plan.downcast_ref() {
            return Self::Operator(node);
        }
        if let Some(node) = plan.downcast_ref() {
            return Self::Projection(node);
        }
        if let Some(node) = plan.downcast_ref() {
            return Self::Filter(node);
        }
        if let Some(node) = plan.downcast_ref() {
            return Self::Sort(node);
        }
        if let Some(node) = plan.downcast_ref() {
            return Self::Merge(node);
        }
        Self::without_fields(plan).or_else(|| in_memory(plan)).unwrap_or(Self::Other)
    }

    fn without_fields(plan: &dyn ExecutionPlan) -> Option<Self> {
        let is_holding = |plan: &dyn ExecutionPlan| {
            plan.is::<HashJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<CrossJoinExec>()
        };
        Some(match plan {
            plan if plan.is::<CooperativeExec>() => Self::Cooperative,
            plan if plan.is::<ScalarSubqueryExec>() => Self::Values,
            plan if plan.is::<GlobalLimitExec>() => Self::GlobalLimit,
            plan if plan.is::<LocalLimitExec>() => Self::LocalLimit,
            plan if plan.is::<PlaceholderRowExec>() => Self::OneRow,
            plan if plan.is::<UnionExec>() => Self::Union,
            plan if plan.is::<SortMergeJoinExec>() => Self::MergingJoin,
            plan if is_holding(plan) => Self::HoldingJoin,
            _ => return None,
        })
    }

    /// Whether each row of the first input produces at most one output row, in the same order.
    pub fn is_row_wise(&self) -> bool {
        matches!(self, Self::Filter(_) | Self::Projection(_) | Self::LocalLimit | Self::Values)
    }

    /// Number of rows in a leaf node, if the rows exist before it runs.
    pub fn known_rows(&self) -> Option<usize> {
        match self {
            Self::OneRow => Some(1),
            Self::Memory(memory) => {
                let batches = memory.partitions().iter().flatten();
                Some(batches.map(arrow_array::RecordBatch::num_rows).sum())
            }
            _ => None,
        }
    }
}

fn in_memory(plan: &dyn ExecutionPlan) -> Option<PlanNode<'_>> {
    let source = plan.downcast_ref::<DataSourceExec>()?.data_source();
    source.downcast_ref().map(PlanNode::Memory)
}

/// Whether a plan is a join that streams its right side and returns all of its rows.
pub fn is_right_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let hash = plan.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let loops = || plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    hash.or_else(loops) == Some(JoinType::Right)
}

/// Returns the plan as a hash join, if it is one.
pub(crate) fn hash_join(plan: &Arc<dyn ExecutionPlan>) -> Option<&HashJoinExec> {
    plan.downcast_ref()
}

/// Whether a plan first computes subquery values. Its expressions share these values with copies of
/// the plan, so no two copies may run at the same time.
pub fn has_values(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_values =
        |plan: &Arc<dyn ExecutionPlan>| Ok(matches!(PlanNode::of(plan.as_ref()), PlanNode::Values));
    plan.exists(is_values).unwrap_or(true)
}

/// Replaces the first input of a plan, if it has one.
pub fn with_first_input(
    plan: Arc<dyn ExecutionPlan>,
    make: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut inputs: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
    let Some(first) = inputs.first_mut() else { return Ok(plan) };
    *first = make(Arc::clone(first))?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(inputs, options)
}

/// Returns how many rows a limit skips, the maximum number of rows it returns, and its input.
pub(crate) fn limit_of(
    plan: &Arc<dyn ExecutionPlan>,
) -> Option<(usize, Option<usize>, &Arc<dyn ExecutionPlan>)> {
    let limit = plan.downcast_ref::<GlobalLimitExec>()?;
    Some((limit.skip(), limit.fetch(), limit.input()))
}

/// Ranking window functions that share the same order.
pub(crate) struct Ranking<'a> {
    pub(crate) functions: Vec<Place>,
    pub(crate) partition_by: &'a [Arc<dyn PhysicalExpr>],
    pub(crate) order_by: &'a [PhysicalSortExpr],
    pub(crate) input: &'a Arc<dyn ExecutionPlan>,
}

/// Returns a window operator's rankings, if it does not compute anything else.
pub(crate) fn ranking(plan: &Arc<dyn ExecutionPlan>) -> Option<Ranking<'_>> {
    let bounded = plan.downcast_ref::<BoundedWindowAggExec>();
    let bounded = bounded.map(|window| (window.window_expr(), window.input()));
    let whole = || {
        let window = plan.downcast_ref::<WindowAggExec>()?;
        Some((window.window_expr(), window.input()))
    };
    let (windows, input) = bounded.or_else(whole)?;
    let rank = |window: &Arc<dyn WindowExpr>| {
        let function = window.as_any().downcast_ref::<StandardWindowExpr>()?;
        let function = function.get_standard_func_expr().as_any();
        Place::named(function.downcast_ref::<WindowUDFExpr>()?.fun().name())
    };
    let functions = windows.iter().map(rank).collect::<Option<_>>()?;
    let (partition_by, order_by) = (windows.first()?.partition_by(), windows.first()?.order_by());
    Some(Ranking { functions, partition_by, order_by, input })
}

/// A GROUP BY in two steps.
pub(crate) struct Grouping<'a> {
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) functions: &'a [Arc<AggregateFunctionExpr>],
    pub(crate) filters: &'a [Option<Arc<dyn PhysicalExpr>>],
    pub(crate) input: &'a Arc<dyn ExecutionPlan>,
}

/// Returns the components of a two-step GROUP BY whose input is not ordered by its keys, before an
/// exchange is inserted between the steps.
pub(crate) fn grouping(plan: &Arc<dyn ExecutionPlan>) -> Option<Grouping<'_>> {
    let last = plan.downcast_ref::<AggregateExec>()?;
    let first = last.input().downcast_ref::<AggregateExec>()?;
    let is_pair = matches!(last.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned)
        && *first.mode() == AggregateMode::Partial;
    let groups = first.group_expr();
    let is_plain = groups.is_single()
        && !groups.is_empty()
        && *first.input_order_mode() == InputOrderMode::Linear
        && first.limit_options().is_none()
        && last.limit_options().is_none();
    (is_pair && is_plain).then(|| Grouping {
        keys: groups.input_exprs(),
        functions: first.aggr_expr(),
        filters: first.filter_expr(),
        input: first.input(),
    })
}

/// Returns the first step of a two-step GROUP BY, if the plan is the second step.
pub fn first_step(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let last = plan.downcast_ref::<AggregateExec>()?;
    matches!(last.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned)
        .then(|| last.input())
}

/// Combines two steps of GROUP BY that have no exchange between them.
pub fn in_one_step(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(last) = plan.downcast_ref::<AggregateExec>() else { return Ok(None) };
    let Some(first) = last.input().downcast_ref::<AggregateExec>() else { return Ok(None) };
    let mode = match last.mode() {
        AggregateMode::Final => AggregateMode::Single,
        AggregateMode::FinalPartitioned => AggregateMode::SinglePartitioned,
        _ => return Ok(None),
    };
    let one = AggregateExec::try_new(
        mode,
        first.group_expr().clone(),
        first.aggr_expr().to_vec(),
        first.filter_expr().to_vec(),
        Arc::clone(first.input()),
        first.input_schema(),
    )?;
    Ok(Some(Arc::new(one)))
}

/// Applies the two steps of GROUP BY to a different input, with an exchange between them.
pub(crate) fn grouped_over(
    plan: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    with_first_input(Arc::clone(plan), |first| {
        let keys = first.downcast_ref::<AggregateExec>().map(AggregateExec::output_group_expr);
        let first = with_first_input(first, |_| Ok(input))?;
        Ok(match keys {
            Some(keys) if partitions > 1 => {
                let by = Partitioning::Hash(keys, partitions);
                Arc::new(RepartitionExec::try_new(first, by)?)
            }
            _ => Arc::new(CoalescePartitionsExec::new(first)),
        })
    })
}

/// Returns the node as a scan, if it is one.
pub fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&Scan> {
    match PlanNode::of(plan.as_ref()) {
        PlanNode::Operator(operator) => operator.facts().scan,
        _ => None,
    }
}

/// Returns a scan that applies the filter, if the plan is a filter above a scan.
pub fn filtered_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let PlanNode::Filter(filter) = PlanNode::of(plan.as_ref()) else { return None };
    let table = scan_of(filter.input()).and_then(Scan::unfiltered)?;
    Some(FilteredScan::of(filter, table.clone()).plan())
}
