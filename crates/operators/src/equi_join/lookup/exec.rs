//! Executes the lookup join. Also determines which `DataFusion` joins it replaces.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use datafusion::common::{JoinSide, JoinType, NullEquality, Result};
use datafusion::physical_expr::expressions::cast;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::{
    EmptyRecordBatchStream, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::build_side::BuildResult;
use super::probe::Prober;
use crate::equi_join::join::{EquiJoin, FIRST, Kind, OTHER, OutputColumn};
use crate::keys::values::is_comparable;
use crate::materialize::with_schema;
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::plan_node::{hash_join, scan_of};

/// A join that builds its other side in memory.
pub(crate) struct LookupJoin {
    pub(crate) join: Arc<EquiJoin>,
}

impl LookupJoin {
    /// Returns the replacement for a join that builds its left side.
    pub(crate) fn try_replace(plan: &Input) -> Option<Input> {
        let join = hash_join(plan)?;
        if *join.partition_mode() != PartitionMode::CollectLeft {
            return None;
        }
        let mut own = EquiJoin::of(join, JoinSide::Right)?;
        let (left, right) = (join.left(), join.right());
        let is_comparable = |(one, other): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
            let one = one.data_type(&right.schema());
            let types = one.and_then(|one| Ok((one, other.data_type(&left.schema())?)));
            types.is_ok_and(|(one, other)| is_comparable(&one, &other))
        };
        let is_filtered = own.filter.is_some() && own.kind == Kind::Outer;
        if !own.kind.is_of_rows() || is_filtered || !own.keys.iter().all(is_comparable) {
            return None;
        }
        let first = own.below_projection(right).unwrap_or_else(|| Arc::clone(right));
        let own = Self { join: Arc::new(own) };
        Some(OperatorExec::plan(own, vec![first, Arc::clone(left)], &join.schema()))
    }

    /// Builds the hash join that returns the same rows.
    fn hash_join(&self, inputs: &[Input]) -> Result<HashJoinExec> {
        let EquiJoin { kind, keys, nulls, filter, output, .. } = self.join.as_ref();
        let (build_schema, first) = (inputs[OTHER].schema(), inputs[FIRST].schema());
        let on = keys.iter().map(|(own, other)| {
            let types = (other.data_type(&build_schema)?, own.data_type(&first)?);
            let (own, other) = (Arc::clone(own), Arc::clone(other));
            if types.0 == types.1 {
                return Ok((other, own));
            }
            // One side has strings and the other has symbols.
            let text = DataType::Utf8View;
            Ok((cast(other, &build_schema, text.clone())?, cast(own, &first, text)?))
        });
        let on = on.collect::<Result<_>>()?;
        let width = build_schema.fields().len();
        let output = output.iter().filter_map(|column| match *column {
            OutputColumn::Other(column) => Some(column),
            OutputColumn::First(column) => Some(width + column),
            OutputColumn::Mark => None,
        });
        let nulls =
            if *nulls { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing };
        let kind = if *kind == Kind::Outer { JoinType::Right } else { JoinType::Inner };
        let empty = |schema| Arc::new(EmptyExec::new(schema)) as Input;
        HashJoinExecBuilder::new(empty(build_schema), empty(first), on, kind)
            .with_partition_mode(PartitionMode::CollectLeft)
            .with_null_equality(nulls)
            .with_filter(filter.clone())
            .with_projection(Some(output.collect()))
            .build()
    }
}

/// Whether the scan below a plan runs backward.
fn is_backward(plan: &Input) -> bool {
    match scan_of(plan) {
        Some(scan) => scan.table().is_backward(),
        None => plan.children().first().is_some_and(|input| is_backward(input)),
    }
}

impl fmt::Display for LookupJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.join.kind)?;
        self.join.show(f)
    }
}

impl Operator for LookupJoin {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "LookupJoinExec",
            memory: Some("LookupJoin"),
            preserves: PreservedOrder {
                rows: true,
                partitions: true,
                direction: true,
                every_row: self.join.kind.preserves_every_row(),
            },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let partitions = inputs[FIRST].output_partitioning().partition_count();
        self.join.properties(schema, inputs, partitions, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.join.expressions()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution, Distribution::SinglePartition]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None, None]
    }

    fn lineage(&self, column: usize, _: &[Input]) -> Option<Lineage> {
        self.join.lineage(column)
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows[FIRST]
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&run.schema);
        Ok(Run::stream(Arc::clone(&schema), async move {
            let side = run.shared(BuildResult::read(&run, &self.join)).await?;
            let backward = is_backward(&run.inputs[FIRST]);
            let rows = match side.as_ref() {
                BuildResult::Rows(build_schema)
                    if build_schema.is_empty() && self.join.kind == Kind::Inner =>
                {
                    EmptyRecordBatchStream::new(schema).boxed()
                }
                BuildResult::Rows(build_side) => {
                    let join = Arc::clone(&self.join);
                    let probe = run.rows(FIRST, run.partition)?;
                    let mut prober = Prober::new(join, Arc::clone(build_side), schema, backward);
                    let joined = move |batch| prober.join(batch?).map(futures::stream::iter);
                    probe.map(joined).try_flatten().boxed()
                }
                BuildResult::Spilled(spilled) => {
                    let join = self.hash_join(&run.inputs)?;
                    let rows = spilled.joined(&join, run, [OTHER, FIRST], backward)?;
                    let own = move |batch: RecordBatch| {
                        with_schema(&schema, batch.columns().to_vec(), batch.num_rows())
                    };
                    rows.map(move |batch| own(batch?)).boxed()
                }
            };
            Ok(rows)
        }))
    }
}
