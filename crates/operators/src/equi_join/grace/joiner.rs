//! The hash join of a single partition and its memory limits.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::{JoinType, Result};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

use super::build_rows::{MaterializedRows, MemoryLimits};
use super::memory_budget::MemoryBudget;
use super::spread::{By, Spreader};
use super::texts::symbols;
use crate::bounded::paced::paced;
use crate::materialize::again;
use crate::operator::{Input, Run};

pub(super) const LEFT: usize = 0;
pub(super) const RIGHT: usize = 1;

/// A join of files may use up to 1/n of the memory for joins. Several such joins may run at once,
/// with sorts above them.
const FILES_MEMORY_DIVISOR: usize = 4;
/// A join of files is guaranteed 1/n of the memory for joins.
const MIN_MEMORY_DIVISOR: usize = 64;

/// The join of a single partition.
pub(super) struct Joiner {
    pub(super) join: Arc<HashJoinExec>,
    pub(super) run: Run,
    /// Number of partitions that run this join.
    pub(super) partitions: usize,
    /// For each side, whether each column contains symbols from a single table.
    symbols: [Vec<bool>; 2],
}

impl Joiner {
    /// Creates a join of these two inputs.
    pub(super) fn new(join: Arc<HashJoinExec>, run: Run, sides: [usize; 2]) -> Self {
        let partitions = run.inputs[sides[RIGHT]].output_partitioning().partition_count().max(1);
        let of = |side: usize, schema: SchemaRef| {
            let mut symbols = symbols(&run.inputs[sides[side]]);
            // The join's input may have one additional column.
            symbols.resize(schema.fields().len(), false);
            symbols
        };
        let symbols = [of(LEFT, join.left().schema()), of(RIGHT, join.right().schema())];
        Self { join, run, partitions, symbols }
    }

    /// Schema of the join's rows.
    pub(super) fn schema(&self) -> SchemaRef {
        self.join.schema()
    }

    /// Schema of a side's rows.
    pub(super) fn schema_of(&self, side: usize) -> SchemaRef {
        if side == LEFT { self.join.left().schema() } else { self.join.right().schema() }
    }

    /// Whether each output column contains symbols from a single table.
    pub(super) fn symbols(&self) -> Vec<bool> {
        use JoinType::{RightAnti, RightMark, RightSemi};
        let [left, right] = &self.symbols;
        let columns = match *self.join.join_type() {
            RightSemi | RightAnti | RightMark => [right.as_slice(), &[false]].concat(),
            _ => [left.as_slice(), right].concat(),
        };
        match &self.join.projection {
            Some(projection) => projection.iter().map(|&column| columns[column]).collect(),
            None => columns,
        }
    }

    /// Returns the writer for a side's spill files.
    pub(super) fn spreader<'a>(&'a self, side: usize, by: By<'a>) -> Spreader<'a> {
        Spreader { run: &self.run, symbols: &self.symbols[side], by }
    }

    /// Memory limits for the left side.
    pub(super) fn memory_limits(&self, level: usize) -> MemoryLimits {
        let all = self.run.memory_limit();
        let max = MemoryLimits { own: all, all, guaranteed: 0, at_least_one: false };
        if level == 0 {
            return max;
        }
        let shared = all / self.partitions;
        MemoryLimits {
            own: shared / FILES_MEMORY_DIVISOR,
            guaranteed: shared / MIN_MEMORY_DIVISOR,
            ..max
        }
    }

    /// Memory limits for a block.
    pub(super) fn block(&self) -> MemoryLimits {
        MemoryLimits { at_least_one: true, ..self.memory_limits(1) }
    }

    /// Executes the hash join with a materialized left side.
    pub(super) fn execute_materialized(
        &self,
        left: MaterializedRows,
        right: SendableRecordBatchStream,
    ) -> Result<SendableRecordBatchStream> {
        let (left, memory) = left.prepaid();
        let right = settled(&memory, right);
        self.execute(left, &memory, right, |join| join)
    }

    /// Executes the hash join with a materialized left side, after `change` has adapted the join.
    pub(super) fn execute(
        &self,
        left: Vec<RecordBatch>,
        memory: &Arc<MemoryBudget>,
        right: SendableRecordBatchStream,
        change: impl FnOnce(HashJoinExecBuilder) -> HashJoinExecBuilder,
    ) -> Result<SendableRecordBatchStream> {
        let right = again(vec![paced(right)], &self.schema_of(RIGHT), None);
        let join = change(self.over(left, right)?).build()?;
        join.execute(0, memory.query_context(&self.run.context))
    }

    /// Builds the hash join with a materialized left side, which all right partitions share.
    pub(super) fn over(&self, left: Vec<RecordBatch>, right: Input) -> Result<HashJoinExecBuilder> {
        let schema = self.schema_of(LEFT);
        let left = futures::stream::iter(left).map(Ok);
        let left = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), left));
        let join = self.join.builder().reset_state();
        let join = join.with_partition_mode(PartitionMode::CollectLeft);
        join.with_new_children(vec![again(vec![left], &schema, None), right])
    }
}

/// Returns the right rows. The hash join reads them only after it has built the left table, so the
/// first read releases unused memory.
pub(super) fn settled(
    memory: &Arc<MemoryBudget>,
    rows: SendableRecordBatchStream,
) -> SendableRecordBatchStream {
    let memory = Arc::clone(memory);
    Run::stream(rows.schema(), async move {
        memory.settle();
        Ok(rows)
    })
}
