//! Executes the merge join. Also determines which `DataFusion` joins it replaces.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::{JoinSide, JoinType, Result, internal_err};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};

use super::cut::{cut, spans};
use super::merger::Merger;
use super::plan::MergeJoin;
use crate::bounded::bytes::has_lists;
use crate::equi_join::join::{EquiJoin, FIRST, OTHER, OutputColumn};
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::plan_node::{hash_join, scan_of};
use crate::properties::{ascending, ascending_inputs, properties_of};
use crate::scan::exec::SliceScan;
use crate::scan::kind::Scan;
use crate::symbols::origin;

/// One side of a hash join, and the designated timestamp that is its key.
struct Ordered<'a> {
    plan: &'a Input,
    time: &'a Arc<dyn PhysicalExpr>,
    scan: &'a SliceScan,
}

impl<'a> Ordered<'a> {
    /// Returns `None` if the rows are not ordered by the key, or if the key is not a designated
    /// timestamp.
    fn of(plan: &'a Input, time: &'a Arc<dyn PhysicalExpr>) -> Result<Option<Self>> {
        let Some((scan, output)) = origin(plan, time) else { return Ok(None) };
        let order = LexOrdering::from([ascending(time)]);
        let is_ordered = scan.is_timestamp(output)
            && !scan.is_backward()
            && plan.equivalence_properties().ordering_satisfy(order)?;
        Ok(is_ordered.then_some(Self { plan, time, scan }))
    }
}

impl MergeJoin {
    /// Returns the replacement for a hash join of two large sides that are ordered by their key.
    /// Other joins build a side of up to `most_held` rows in memory.
    pub(crate) fn try_replace(plan: &Input, most_held: usize) -> Result<Option<Input>> {
        let Some(join) = hash_join(plan) else { return Ok(None) };
        let [(left, right)] = join.on() else { return Ok(None) };
        let types =
            [left.data_type(&join.left().schema())?, right.data_type(&join.right().schema())?];
        let lists = has_lists(join.schema().fields())
            || join.filter().is_some_and(|filter| has_lists(filter.schema().fields()));
        if join.fetch().is_some() || join.null_aware || lists || types[0] != types[1] {
            return Ok(None);
        }
        let (Some(left), Some(right)) =
            (Ordered::of(join.left(), left)?, Ordered::of(join.right(), right)?)
        else {
            return Ok(None);
        };
        let is_large = *join.partition_mode() == PartitionMode::Partitioned
            || left.scan.row_count() > most_held
            || left.scan.is_cut_small();
        if !is_large {
            return Ok(None);
        }
        match join.join_type() {
            // Tries the right side as the leading side first, because the left side has fewer rows.
            JoinType::Inner => match Self::of(join, &right, &left, JoinSide::Right)? {
                None => Self::of(join, &left, &right, JoinSide::Left),
                chosen => Ok(chosen),
            },
            JoinType::Right if join.filter().is_none() => {
                Self::of(join, &right, &left, JoinSide::Right)
            }
            JoinType::Left if join.filter().is_none() => {
                Self::of(join, &left, &right, JoinSide::Left)
            }
            _ => Ok(None),
        }
    }

    /// Returns the join with the given side as the leading side.
    fn of(
        join: &HashJoinExec,
        lead: &Ordered<'_>,
        other: &Ordered<'_>,
        leads: JoinSide,
    ) -> Result<Option<Input>> {
        let Some(spans) = spans(lead.plan, lead.scan)? else { return Ok(None) };
        let Some(cut) = cut(other.plan, &spans)? else { return Ok(None) };
        let is_mapped = scan_of(&cut).and_then(Scan::unfiltered).is_some();
        let inputs = vec![Arc::clone(lead.plan), cut];
        let times = [Arc::clone(lead.time), Arc::clone(other.time)];
        let operator = EquiJoin::of(join, leads).map(|own| Self { join: own, times, is_mapped });
        Ok(operator.map(|operator| OperatorExec::plan(operator, inputs, &join.schema())))
    }

    /// Returns the output columns that contain the timestamp by which the rows are ordered.
    fn times_of_output(&self) -> impl Iterator<Item = usize> {
        let column = |side: usize| self.times[side].downcast_ref::<Column>().map(Column::index);
        let (lead, other) = (column(FIRST), column(OTHER));
        let is_time = move |column: &OutputColumn| match *column {
            OutputColumn::First(column) => Some(column) == lead,
            // Null in rows that have no match.
            OutputColumn::Other(column) => Some(column) == other && !self.is_outer(),
            OutputColumn::Mark => false,
        };
        let output = &self.join.output;
        (0..output.len()).filter(move |&column| is_time(&output[column]))
    }
}

impl fmt::Display for MergeJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.join.kind)?;
        self.join.show(f)
    }
}

impl Operator for MergeJoin {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "MergeJoinExec",
            memory: Some("MergeJoin"),
            preserves: PreservedOrder {
                rows: true,
                partitions: true,
                direction: false,
                every_row: self.join.kind.preserves_every_row(),
            },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let partitions = inputs[FIRST].output_partitioning().partition_count();
        let mut equal = self.join.equal.clone();
        for column in self.times_of_output() {
            let time: Arc<dyn PhysicalExpr> =
                Arc::new(Column::new(schema.field(column).name(), column));
            equal.add_ordering([ascending(&time)]);
        }
        properties_of(equal, partitions, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.join.expressions()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution, Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs(&self.times)
    }

    fn lineage(&self, column: usize, _: &[Input]) -> Option<Lineage> {
        let time = self.times[FIRST].downcast_ref::<Column>();
        if let Some(time) = time.filter(|_| self.times_of_output().any(|own| own == column)) {
            return Some(Lineage { input: FIRST, column: time.index(), unmatched: false });
        }
        self.join.lineage(column)
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows[FIRST]
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let partitions_of =
            |input: usize| run.inputs[input].output_partitioning().partition_count();
        if partitions_of(FIRST) != partitions_of(OTHER) {
            return internal_err!(
                "the inputs have {} and {} partitions",
                partitions_of(FIRST),
                partitions_of(OTHER)
            );
        }
        Ok(Run::stream(Arc::clone(&run.schema), async move {
            let merger = Merger::new(self, &run).await?;
            Ok(futures::stream::try_unfold(merger, |mut merger| async move {
                Ok(merger.next().await?.map(|batch| (batch, merger)))
            }))
        }))
    }
}
