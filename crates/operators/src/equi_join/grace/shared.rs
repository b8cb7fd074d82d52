//! A left side shared by all right partitions.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::{JoinType, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{
    EmptyRecordBatchStream, ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream,
};

use super::build_rows::MaterializedRows;
use super::join::{Side, Spread};
use super::joiner::{Joiner, LEFT, RIGHT, settled};
use super::numbers::{Numbered, SortBudget, numbered};
use super::spread::{By, File, Spreader};
use super::texts::{Texts, symbols};
use crate::bounded::paced::paced;
use crate::materialize::again;
use crate::operator::{Input, Run};

/// Rows that do not fit in memory for all partitions may still fit for a single partition.
const ONCE: Spread = Spread { level: 1, is_one_key: false };

/// The left side, read once.
pub(super) enum Shared {
    /// The join shared by all partitions, and its task context.
    InMemory(Input, Arc<TaskContext>),
    Spilled(Spilled),
}

/// A left side that has been written to a file.
pub(crate) struct Spilled {
    /// `None` if the side has no rows.
    file: Option<File>,
}

/// Whether each right row's output is independent of all other right rows.
fn is_by_right(kind: JoinType) -> bool {
    use JoinType::{Inner, Right, RightAnti, RightMark, RightSemi};
    matches!(kind, Inner | Right | RightSemi | RightAnti | RightMark)
}

impl Shared {
    /// Reads the left side.
    pub(super) async fn read(joiner: &Joiner) -> Result<Self> {
        let (run, kind) = (&joiner.run, *joiner.join.join_type());
        let rows = run.rows(LEFT, 0)?;
        let (materialized, rest) =
            MaterializedRows::read(run, rows.into(), joiner.memory_limits(0)).await?;
        if let Some(rest) = rest {
            let rows = materialized.and(rest);
            let rows = if is_by_right(kind) { numbered(rows) } else { rows };
            return Ok(Self::Spilled(Spilled::write(run, LEFT, rows).await?));
        }
        let (left, memory) = materialized.prepaid();
        let order = run.inputs[RIGHT].output_ordering();
        let right = (0..run.inputs[RIGHT].output_partitioning().partition_count())
            .map(|at| Ok(paced(settled(&memory, run.rows(RIGHT, at)?))));
        let right = again(right.collect::<Result<_>>()?, &joiner.schema_of(RIGHT), order);
        Ok(Self::InMemory(
            joiner.over(left, right)?.build_exec()?,
            memory.query_context(&run.context),
        ))
    }

    /// Returns the rows of a partition.
    pub(super) fn rows(&self, joiner: Joiner) -> Result<SendableRecordBatchStream> {
        let run = &joiner.run;
        let spilled = match self {
            Self::InMemory(join, context) => {
                return join.execute(run.partition, Arc::clone(context));
            }
            Self::Spilled(spilled) => spilled,
        };
        if is_by_right(*joiner.join.join_type()) {
            return spilled.joined(&joiner.join, joiner.run, [LEFT, RIGHT], false);
        }
        if run.partition > 0 {
            return Ok(Box::pin(EmptyRecordBatchStream::new(joiner.schema())));
        }
        let right = CoalescePartitionsExec::new(Arc::clone(&run.inputs[RIGHT]));
        let right = right.execute(0, Arc::clone(&run.context))?;
        let left = spilled.side(joiner.schema_of(LEFT));
        Ok(Arc::new(joiner).joined(left, Side::Rows(right), ONCE))
    }
}

impl Spilled {
    /// Writes an input's rows to a file.
    async fn write(run: &Run, input: usize, rows: SendableRecordBatchStream) -> Result<Self> {
        let symbols = symbols(&run.inputs[input]);
        let spreader = Spreader { run, symbols: &symbols, by: By::Nothing };
        Ok(Self { file: spreader.write(rows).await?.swap_remove(0) })
    }

    /// Like `write`, but adds row positions so that the rows can be joined in the other side's
    /// order.
    pub(crate) async fn write_numbered(
        run: &Run,
        input: usize,
        rows: SendableRecordBatchStream,
    ) -> Result<Self> {
        Self::write(run, input, numbered(rows)).await
    }

    fn side(&self, schema: SchemaRef) -> Side {
        self.file.clone().map_or(Side::None(schema), Side::File)
    }

    /// Joins one partition of the other side with the written rows, in the order of the other side.
    /// `sides` are the indexes of the left and right sides among the inputs of `run`. Rows with the
    /// same right row are in left-side order, or in reverse order with `backward`.
    pub(crate) fn joined(
        &self,
        join: &HashJoinExec,
        run: Run,
        sides: [usize; 2],
        backward: bool,
    ) -> Result<SendableRecordBatchStream> {
        let right = numbered(run.rows(sides[RIGHT], run.partition)?);
        let ordered = Numbered::of(join)?;
        let joiner = Joiner::new(Arc::clone(&ordered.join), run, sides);
        let left = self.side(joiner.schema_of(LEFT));
        let texts = Texts::of(joiner.schema(), &joiner.symbols());
        let budget = SortBudget::of(&joiner.run, joiner.partitions);
        let rows = Arc::new(joiner).joined(left, Side::Rows(right), ONCE);
        ordered.in_order(rows, texts, backward, budget)
    }
}
