//! Executes SPLICE JOIN. Both sides are read and then merged in one pass. Mapped tables are read
//! without copying.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, SendableRecordBatchStream};

use super::merge::Merge;
use super::node::SpliceJoinNode;
use crate::asof::keys::{KeyKind, KeySpace, Side};
use crate::asof::right::{RightSide, SideExprs};
use crate::asof::sides::{key_pairs, side};
use crate::lowering::{Inputs, Lower, Lowering, schema_of};
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::order::partitions_in_scan_order;
use crate::properties::{ascending_inputs, properties};
use crate::scan::rows::BATCH_ROWS;

/// Merges two sides by time. Each row is joined with the other side's last row.
pub(crate) struct SplicePlan {
    pub(crate) left: SideExprs,
    pub(crate) right: SideExprs,
    pub(crate) key_kind: KeyKind,
}

/// Both sides and the merge in progress.
struct Splice {
    left: RightSide,
    right: RightSide,
    merge: Merge,
    schema: SchemaRef,
    memory: MemoryReservation,
}

impl Splice {
    async fn read(run: &Run, plan: &SplicePlan) -> Result<Self> {
        let space = (Side::Right, KeySpace::new(&plan.key_kind)?);
        let mut right = RightSide::read(run, 1, &plan.right, space).await?;
        let space = (Side::Left, right.take_space());
        let left = RightSide::read(run, 0, &plan.left, space).await?;
        let (schema, memory) = (Arc::clone(&run.schema), run.memory());
        Ok(Self { left, right, merge: Merge::default(), schema, memory })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let pairs = self.merge.next(self.left.chunks(), self.right.chunks(), BATCH_ROWS);
        if pairs.left.is_empty() {
            return Ok(None);
        }
        self.memory.try_resize(self.merge.size())?;
        let mut columns = self.left.gather(&pairs.left)?;
        columns.extend(self.right.gather(&pairs.right)?);
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

impl fmt::Display for SplicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.left.timestamp, self.right.timestamp)?;
        for (left, right) in self.left.keys.iter().zip(&self.right.keys) {
            write!(f, ", {left} = {right}")?;
        }
        Ok(())
    }
}

impl Operator for SplicePlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "SpliceJoinExec",
            memory: Some("SpliceJoin"),
            preserves: PreservedOrder::NOTHING,
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        properties(schema, [], 1, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let times = [&self.left.timestamp, &self.right.timestamp];
        times.into_iter().chain(&self.left.keys).chain(&self.right.keys).collect()
    }

    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        partitions_in_scan_order(inputs)
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs([&self.left.timestamp, &self.right.timestamp])
    }

    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        let [left, right] = rows else { return None };
        Some((*left)?.saturating_add((*right)?))
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::stream(Arc::clone(&run.schema), async move {
            let splice = Splice::read(&run, &self).await?;
            Ok(futures::stream::try_unfold(splice, |mut splice| async move {
                Ok(splice.next()?.map(|batch| (batch, splice)))
            }))
        }))
    }
}

impl Lower for SpliceJoinNode {
    fn lower(
        &self,
        inputs: &Inputs<'_>,
        lowering: &Lowering<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (left_timestamp, right_timestamp) = self.timestamps();
        let left = side(inputs, 0, left_timestamp, lowering)?;
        let right = side(inputs, 1, right_timestamp, lowering)?;
        let (keys, key_kind) = key_pairs(self.keys(), (&left, &right), lowering)?;
        let (left_keys, right_keys) = keys.into_iter().unzip();
        let plan = SplicePlan {
            left: SideExprs { timestamp: left.timestamp, keys: left_keys },
            right: SideExprs { timestamp: right.timestamp, keys: right_keys },
            key_kind,
        };
        Ok(OperatorExec::plan(plan, vec![left.plan, right.plan], &schema_of(self)))
    }

    fn times(&self) -> Vec<&Expr> {
        let (left, right) = self.timestamps();
        vec![left, right]
    }
}
