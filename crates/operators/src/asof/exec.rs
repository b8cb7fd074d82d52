//! Executes ASOF JOIN. The right side is read once, and each partition of the left side has its own
//! worker.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

use super::keys::{KeySpace, Side};
use super::node::AsofJoinNode;
use super::plan::AsofPlan;
use super::right::{RightSide, SideExprs};
use super::sides::{key_pairs, side};
use super::stream::Matcher;
use crate::lowering::{Inputs, Lower, Lowering, schema_of};
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
    order_of_first,
};
use crate::order::partitions_in_scan_order;
use crate::properties::{ascending_inputs, properties};

impl AsofPlan {
    /// Reads the right side.
    pub(crate) async fn read_right(&self, run: &Run, input: usize) -> Result<RightSide> {
        let keys = self.keys.iter().map(|(_, right)| Arc::clone(right)).collect();
        let exprs = SideExprs { timestamp: Arc::clone(&self.right_timestamp), keys };
        RightSide::read(run, input, &exprs, (Side::Right, KeySpace::new(&self.key_kind)?)).await
    }
}

impl fmt::Display for AsofPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}, {}", self.kind, self.left_timestamp, self.right_timestamp)?;
        for (left, right) in &self.keys {
            write!(f, ", {left} = {right}")?;
        }
        self.tolerance.map_or(Ok(()), |tolerance| write!(f, " tolerance={tolerance}"))
    }
}

impl Operator for AsofPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "AsofJoinExec",
            memory: Some("AsofJoin"),
            preserves: PreservedOrder {
                rows: true,
                partitions: true,
                direction: false,
                every_row: true,
            },
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
        [&self.left_timestamp, &self.right_timestamp].into_iter().chain(keys).collect()
    }

    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        partitions_in_scan_order(inputs)
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs([&self.left_timestamp, &self.right_timestamp])
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        of_first(column, inputs).or_else(|| {
            let column = column.checked_sub(inputs[0].schema().fields().len())?;
            Some(Lineage { input: 1, column, unmatched: true })
        })
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (left, schema) = (run.rows(0, run.partition)?, Arc::clone(&run.schema));
        Ok(Run::stream(Arc::clone(&schema), async move {
            let side = run.shared(self.read_right(&run, 1)).await?;
            let mut matcher = Matcher::new(self, side);
            Ok(left.map(move |batch| matcher.join(&batch?, &schema)))
        }))
    }
}

impl Lower for AsofJoinNode {
    fn lower(
        &self,
        inputs: &Inputs<'_>,
        lowering: &Lowering<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let left = side(inputs, 0, self.left_timestamp(), lowering)?;
        let right = side(inputs, 1, self.right_timestamp(), lowering)?;
        let (keys, key_kind) = key_pairs(self.keys(), (&left, &right), lowering)?;
        let plan = AsofPlan {
            left_timestamp: left.timestamp,
            right_timestamp: right.timestamp,
            keys,
            key_kind,
            kind: self.kind(),
            tolerance: self.tolerance(),
        };
        Ok(OperatorExec::plan(plan, vec![left.plan, right.plan], &schema_of(self)))
    }

    fn times(&self) -> Vec<&Expr> {
        vec![self.left_timestamp(), self.right_timestamp()]
    }
}
