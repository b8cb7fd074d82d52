//! How SAMPLE BY and GROUP BY run: a partial per partition, merged in time order.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{
    ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;

use super::groups::KeyPlan;
use super::partial::Partial;
use super::plan::SampleByPlan;
use crate::error::join_error;
use crate::operator::{Facts, Input, Keeps, Lineage, Operator, Run, Work};
use crate::order::follows_scan_order;
use crate::properties::{ascending, ascending_inputs, properties};

/// Aggregates one partition of the input.
async fn aggregate(
    plan: Arc<SampleByPlan>,
    mut rows: SendableRecordBatchStream,
    memory: MemoryReservation,
) -> Result<Partial> {
    let mut partial = Partial::new(&plan)?;
    while let Some(batch) = rows.try_next().await? {
        partial.update(&batch)?;
        memory.try_resize(partial.size())?;
    }
    Ok(partial)
}

async fn aggregate_all(run: Run, plan: Arc<SampleByPlan>) -> Result<RecordBatch> {
    let memory = run.memory();
    let share = |partition: usize| {
        let rows = run.rows(0, partition)?;
        Ok::<_, DataFusionError>(aggregate(Arc::clone(&plan), rows, memory.new_empty()))
    };
    let partitions = run.inputs[0].output_partitioning().partition_count();
    if partitions == 1 {
        return share(0)?.await?.finish();
    }
    let tasks = (0..partitions).map(|partition| Ok(SpawnedTask::spawn(share(partition)?)));
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let mut whole: Option<Partial> = None;
    for task in tasks {
        let partial = task.join().await.map_err(join_error)??;
        match &mut whole {
            None => whole = Some(partial),
            Some(whole) => whole.absorb(partial)?,
        }
        memory.try_resize(whole.as_ref().map_or(0, Partial::size))?;
    }
    whole.map_or_else(|| Partial::new(&plan)?.finish(), Partial::finish)
}

impl fmt::Display for SampleByPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bucket) = &self.bucket {
            write!(f, "{} by {} ", bucket.timestamp, bucket.spec)?;
        }
        let how = match &self.key_plan {
            KeyPlan::None => "none",
            KeyPlan::Symbols(_) => "slots",
            KeyPlan::Hashed(_) => "hashed",
        };
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let names: Vec<&str> =
            self.aggregates.iter().map(|aggregate| aggregate.function.name()).collect();
        write!(f, "keys=[{}] ({how}) aggregates=[{}]", keys.join(", "), names.join(", "))
    }
}

impl Operator for SampleByPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "SampleByExec",
            memory: Some("SampleBy"),
            keeps: Keeps::NOTHING,
            work: Work::Inputs,
            suits_any_rows: true,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        let order = self.bucket.as_ref().map(|_| {
            let label: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(0).name(), 0));
            vec![ascending(&label)]
        });
        properties(schema, order, 1, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let timestamp = self.bucket.iter().map(|bucket| &bucket.timestamp);
        let arguments = self
            .aggregates
            .iter()
            .flat_map(|aggregate| aggregate.arguments.iter().chain(&aggregate.filter));
        timestamp.chain(&self.keys).chain(arguments).collect()
    }

    /// Partials are merged in partition order, so partitions must follow each other in time.
    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        vec![if self.bucket.is_none() || follows_scan_order(&inputs[0]) {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        }]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        match &self.bucket {
            Some(bucket) => ascending_inputs([&bucket.timestamp]),
            None => vec![None],
        }
    }

    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::batches(Arc::clone(&run.schema), aggregate_all(run, self)))
    }
}
