//! The Grace hash join as a plan operator: which joins are eligible, and the operator's properties.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};

use super::join::{Side, Spread};
use super::joiner::{Joiner, LEFT, RIGHT};
use super::shared::Shared;
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::plan_node::hash_join;

/// An equi-join that does not require either side to fit in memory.
pub(crate) struct GraceHashJoin {
    join: Arc<HashJoinExec>,
}

impl GraceHashJoin {
    /// Returns the operator that replaces a hash join, if the join is eligible.
    pub(crate) fn try_replace(plan: &Input) -> Result<Option<Input>> {
        let Some(join) = hash_join(plan) else { return Ok(None) };
        let has_order = plan.output_ordering().is_some();
        let suits = match join.partition_mode() {
            PartitionMode::Partitioned => !has_order,
            PartitionMode::CollectLeft => true,
            PartitionMode::Auto => false,
        };
        if !suits || join.null_aware || join.fetch().is_some() {
            return Ok(None);
        }
        let inputs = vec![Arc::clone(join.left()), Arc::clone(join.right())];
        let join = Arc::new(join.builder().build()?);
        Ok(Some(OperatorExec::plan(Self { join }, inputs, &plan.schema())))
    }

    /// Whether all partitions of the right side share a single left side.
    fn is_shared(&self) -> bool {
        *self.join.partition_mode() == PartitionMode::CollectLeft
    }
}

impl fmt::Display for GraceHashJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.join.join_type())?;
        for (left, right) in self.join.on() {
            write!(f, ", {left} = {right}")?;
        }
        match self.join.filter() {
            Some(filter) => write!(f, ", {}", filter.expression()),
            None => Ok(()),
        }
    }
}

impl Operator for GraceHashJoin {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "GraceHashJoinExec",
            memory: Some("GraceHashJoin"),
            preserves: PreservedOrder::NOTHING,
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    /// The properties of the replaced join, whose output is partitioned by the keys like its
    /// inputs.
    fn properties(&self, _: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        let mut properties = PlanProperties::clone(self.join.properties());
        properties.emission_type = EmissionType::Final;
        Arc::new(properties)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let keys = self.join.on().iter().flat_map(|(left, right)| [left, right]);
        keys.chain(self.join.filter().map(JoinFilter::expression)).collect()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        if self.is_shared() {
            return vec![Distribution::SinglePartition, Distribution::UnspecifiedDistribution];
        }
        let (left, right) = self.join.on().iter().cloned().unzip();
        vec![Distribution::KeyPartitioned(left), Distribution::KeyPartitioned(right)]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None, None]
    }

    /// Rows that were joined in blocks have keys from different dictionaries.
    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows[LEFT].max(rows[RIGHT])
    }

    fn over(self: Arc<Self>, inputs: &[Input]) -> Result<Arc<dyn Operator>> {
        let join = self.join.builder().with_new_children(inputs.to_vec())?.build()?;
        Ok(Arc::new(Self { join: Arc::new(join) }))
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let joiner = |run| Joiner::new(Arc::clone(&self.join), run, [LEFT, RIGHT]);
        if self.is_shared() {
            let joiner = joiner(run);
            return Ok(Run::stream(joiner.schema(), async move {
                let shared = joiner.run.shared(Shared::read(&joiner)).await?;
                shared.rows(joiner)
            }));
        }
        let left = Side::Rows(run.rows(LEFT, run.partition)?);
        let right = Side::Rows(run.rows(RIGHT, run.partition)?);
        Ok(Arc::new(joiner(run)).joined(left, right, Spread::default()))
    }
}
