//! Reads the batches of a plan, one partition after another.
//!
//! Scans split a table into time-contiguous partitions. Reading these in sequence therefore returns
//! the rows in time order without a merge. All partitions run concurrently, each in its own task,
//! which may be up to [`BATCHES_AHEAD`] batches ahead of the reader.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use tidemark_types::{EngineResult, failpoint};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::runtime::guard;
use crate::runtime::work::following;
use tidemark_operators::from_datafusion;

/// Maximum number of batches that a partition computes ahead of the reader.
const BATCHES_AHEAD: usize = 2;

/// A source of batches.
pub(crate) enum BatchSource {
    /// A single partition. The reader polls it directly, without a task or channel.
    Single(SendableRecordBatchStream),
    /// Several partitions with one task each. Dropping the set stops the tasks.
    Partitioned {
        receivers: std::vec::IntoIter<mpsc::Receiver<EngineResult<RecordBatch>>>,
        current: Option<mpsc::Receiver<EngineResult<RecordBatch>>>,
        _tasks: JoinSet<()>,
    },
    /// Batches that already exist, such as the result of SHOW or EXPLAIN.
    Ready(std::vec::IntoIter<RecordBatch>),
}

impl BatchSource {
    /// Starts a plan. Must be called on the execution runtime.
    pub(crate) fn start(
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
    ) -> EngineResult<Self> {
        let partitions = plan.output_partitioning().partition_count();
        if partitions == 1 {
            let stream = plan.execute(0, Arc::clone(context)).map_err(from_datafusion)?;
            return Ok(Self::Single(stream));
        }
        let mut tasks = JoinSet::new();
        let mut receivers = Vec::with_capacity(partitions);
        for partition in 0..partitions {
            let stream = plan.execute(partition, Arc::clone(context)).map_err(from_datafusion)?;
            let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
            tasks.spawn(following(run_partition(stream, sender)));
            receivers.push(receiver);
        }
        Ok(Self::Partitioned { receivers: receivers.into_iter(), current: None, _tasks: tasks })
    }

    /// Returns the next non-empty batch; `None` at the end.
    pub(crate) async fn next(&mut self) -> EngineResult<Option<RecordBatch>> {
        loop {
            let batch = match self {
                Self::Single(stream) => stream.next().await.transpose().map_err(from_datafusion)?,
                Self::Ready(batches) => batches.next(),
                Self::Partitioned { receivers, current, .. } => {
                    next_in_order(receivers, current).await?
                }
            };
            match batch {
                Some(batch) if batch.num_rows() == 0 => {}
                other => return Ok(other),
            }
        }
    }
}

async fn next_in_order(
    receivers: &mut std::vec::IntoIter<mpsc::Receiver<EngineResult<RecordBatch>>>,
    current: &mut Option<mpsc::Receiver<EngineResult<RecordBatch>>>,
) -> EngineResult<Option<RecordBatch>> {
    loop {
        if current.is_none() {
            *current = receivers.next();
        }
        let Some(receiver) = current else { return Ok(None) };
        match receiver.recv().await {
            Some(result) => return result.map(Some),
            None => *current = None,
        }
    }
}

async fn run_partition(
    mut stream: SendableRecordBatchStream,
    sender: mpsc::Sender<EngineResult<RecordBatch>>,
) {
    let work = async {
        failpoint::hit("engine.partition")?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(from_datafusion)?;
            if sender.send(Ok(batch)).await.is_err() {
                break; // The reader needs no more batches.
            }
        }
        Ok(())
    };
    if let Err(error) = guard::catch_async("partition", work).await {
        // Sending fails if no reader is left to receive the error.
        let _ = sender.send(Err(error)).await;
    }
}
