//! How WINDOW JOIN runs: the right side is read and arranged once, the left side's partitions are
//! workers.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{
    ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;

use super::plan::{Computed, WindowPlan};
use super::side::WindowSide;
use super::stream::Worker;
use crate::operator::{
    Facts, Input, Keeps, Lineage, Operator, Run, Work, of_first, order_of_first,
};
use crate::order::partitions_in_scan_order;
use crate::properties::{ascending_inputs, properties};

impl fmt::Display for WindowPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.left_timestamp, self.right_timestamp)?;
        for (left, right) in &self.keys {
            write!(f, ", {left} = {right}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, ", {filter}")?;
        }
        let aggregates = self.aggregates.iter().map(|aggregate| {
            let how = if aggregate.computed == Computed::Pairs { "pairs" } else { "index" };
            format!("{} ({how})", aggregate.plan.function.name())
        });
        write!(f, " aggregates=[{}]", aggregates.collect::<Vec<_>>().join(", "))?;
        if self.include_prevailing { write!(f, " prevailing") } else { Ok(()) }
    }
}

impl Operator for WindowPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "WindowJoinExec",
            memory: Some("WindowJoin"),
            keeps: Keeps { rows: true, partitions: true, direction: false },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let partitions = inputs[0].output_partitioning().partition_count();
        properties(schema, order_of_first(inputs), partitions, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let keys = self.keys.iter().flat_map(|(left, right)| [left, right]);
        let ends =
            [&self.left_timestamp, &self.right_timestamp, &self.low.distance, &self.high.distance];
        let arguments = self.aggregates.iter().flat_map(|one| &one.plan.arguments);
        ends.into_iter().chain(keys).chain(&self.filter).chain(arguments).collect()
    }

    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        partitions_in_scan_order(inputs)
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs([&self.left_timestamp, &self.right_timestamp])
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        of_first(column, inputs)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (left, schema) = (run.rows(0, run.partition)?, Arc::clone(&run.schema));
        Ok(Run::stream(Arc::clone(&schema), async move {
            let side = run.shared(WindowSide::read(&run, &self)).await?;
            let worker = Worker::new(self, side, schema);
            let next = |(mut left, mut worker): (SendableRecordBatchStream, Worker)| async move {
                let Some(batch) = left.try_next().await? else { return Ok(None) };
                let joined = worker.join(&batch).await?;
                Ok(Some((joined, (left, worker))))
            };
            Ok(futures::stream::try_unfold((left, worker), next))
        }))
    }
}
