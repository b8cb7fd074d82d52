//! Computes shared rows. The first reader starts a task that computes the rows, and all readers use
//! its result. If the rows do not fit in memory, each reader computes them again, unless that would
//! produce different rows.

use std::fmt;
use std::sync::{Arc, Weak};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, SendableRecordBatchStream};
use futures::future::{BoxFuture, Shared, WeakShared};
use futures::{FutureExt, StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::equal::{are_same, is_worth_sharing};
use crate::bounded::bytes::memory_bytes;
use crate::error::join_error;
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, order_of_first,
};
use crate::properties::properties;

/// Maximum number of distinct groupings in a plan that are checked for duplicates.
const MAX_GROUPS: usize = 32;

/// A plan's rows, shared by several readers.
#[derive(Clone, Default)]
pub struct SharedRows {
    pending: Arc<Mutex<Vec<PendingRows>>>,
    /// Whether computing the rows again would produce different rows. If so, every reader waits for
    /// the same rows.
    once: bool,
}

/// Rows that one reader has started to compute and that other readers share.
struct PendingRows {
    /// Limits the entry to a single execution, because a cached plan runs many times, sometimes
    /// concurrently.
    context: Weak<TaskContext>,
    input: Weak<dyn ExecutionPlan>,
    rows: WeakShared<Rows>,
}

/// `None` if the rows do not fit in memory.
type Rows =
    BoxFuture<'static, std::result::Result<Option<Arc<MaterializedRows>>, Arc<DataFusionError>>>;

struct MaterializedRows {
    batches: Vec<RecordBatch>,
    /// Released when the last reader is done.
    _memory: MemoryReservation,
}

impl SharedRows {
    /// Creates rows that are computed only once.
    pub(super) fn once() -> Self {
        Self { once: true, ..Self::default() }
    }

    /// Whether both values share the same rows.
    pub(super) fn are(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pending, &other.pending)
    }

    /// Shares groupings that occur more than once in a plan.
    pub fn in_plan(plan: Input) -> Result<Input> {
        let mut found: Vec<(Input, usize)> = vec![];
        plan.apply(|node| {
            if is_worth_sharing(node) {
                match found.iter().position(|(known, _)| are_same(known, node)) {
                    Some(known) => found[known].1 += 1,
                    None if found.len() < MAX_GROUPS => found.push((Arc::clone(node), 1)),
                    None => {}
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let shared = found.into_iter().filter(|(_, uses)| *uses > 1);
        let shared: Vec<_> = shared.map(|(plan, _)| (plan, Self::default())).collect();
        if shared.is_empty() {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            if !is_worth_sharing(&node) {
                return Ok(Transformed::no(node));
            }
            let Some((_, rows)) = shared.iter().find(|(known, _)| are_same(known, &node)) else {
                return Ok(Transformed::no(node));
            };
            let schema = node.schema();
            Ok(Transformed::yes(OperatorExec::plan(rows.clone(), vec![node], &schema)))
        })
        .data()
    }

    /// Returns the rows that are being computed in this execution, or starts computing them.
    fn pending_rows(&self, run: &Run) -> Shared<Rows> {
        let (context, input) = (Arc::downgrade(&run.context), &run.inputs[0]);
        let mut pending = self.pending.lock();
        pending.retain(|making| making.context.strong_count() > 0);
        let known = pending.iter().filter(|making| making.context.ptr_eq(&context));
        // Values in the plan may have been replaced after the entry was created.
        let mut known = known.filter(|making| {
            self.once || making.input.upgrade().is_some_and(|other| are_same(&other, input))
        });
        if let Some(rows) = known.find_map(|making| making.rows.upgrade()) {
            return rows;
        }
        let (context_of_work, memory) = (Arc::clone(&run.context), run.memory());
        let work = materialize(Arc::clone(input), context_of_work, memory, self.once);
        // Runs as a separate task so that waiting readers do not depend on another reader's
        // progress.
        let work = async {
            let materialized = SpawnedTask::spawn(work).join().await.map_err(join_error);
            materialized.and_then(|materialized| materialized).map_err(Arc::new)
        };
        let rows = work.boxed().shared();
        if let Some(rows) = rows.downgrade() {
            pending.push(PendingRows { context, input: Arc::downgrade(input), rows });
        }
        rows
    }
}

/// Reads all rows of a plan into memory. If they do not fit, returns `None`, or an error if `must`
/// is true.
async fn materialize(
    input: Input,
    context: Arc<TaskContext>,
    memory: MemoryReservation,
    must: bool,
) -> Result<Option<Arc<MaterializedRows>>> {
    let mut rows = input.execute(0, context)?;
    let mut batches = vec![];
    while let Some(batch) = rows.try_next().await? {
        match memory.try_grow(memory_bytes(&batch)) {
            Err(failure) if must => return Err(failure),
            Err(_) => return Ok(None),
            Ok(()) => batches.push(batch),
        }
    }
    Ok(Some(Arc::new(MaterializedRows { batches, _memory: memory })))
}

impl fmt::Debug for SharedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedRows")
    }
}

impl fmt::Display for SharedRows {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Operator for SharedRows {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "SharedRowsExec",
            memory: Some("SharedRows"),
            // An order requested by one reader must not change the other readers' rows.
            preserves: PreservedOrder { rows: !self.once, ..PreservedOrder::NOTHING },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let order = order_of_first(inputs).filter(|_| !self.once);
        properties(schema, order, 1, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![]
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    /// Preserves the order in which the rows are computed, since no reader's sort may move below
    /// this node.
    fn input_order(&self, inputs: &[Input]) -> Vec<Option<OrderingRequirements>> {
        let order = order_of_first(inputs).filter(|_| self.once);
        vec![order.and_then(LexOrdering::new).map(OrderingRequirements::from)]
    }

    fn lineage(&self, column: usize, _: &[Input]) -> Option<Lineage> {
        (!self.once).then_some(Lineage { input: 0, column, unmatched: false })
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::stream(Arc::clone(&run.schema), async move {
            // Stored with this execution's plan, so that a later reader still finds the rows after
            // another reader has finished.
            let rows = run.shared(async { Ok(self.pending_rows(&run)) }).await?;
            match rows.as_ref().clone().await.map_err(DataFusionError::Shared)? {
                Some(materialized) => {
                    let batches = (0..materialized.batches.len())
                        .map(move |at| materialized.batches[at].clone());
                    Ok(futures::stream::iter(batches.map(Ok)).left_stream())
                }
                None => Ok(run.rows(0, 0)?.right_stream()),
            }
        }))
    }
}
