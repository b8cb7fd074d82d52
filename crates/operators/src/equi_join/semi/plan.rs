//! Describes semi-joins. Also determines which `DataFusion` joins they replace.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::common::{JoinSide, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use hashbrown::DefaultHashBuilder;

use crate::equi_join::join::{EquiJoin, FIRST, Kind, OTHER};
use crate::keys::set::KeySet;
use crate::keys::values::compared_as;
use crate::operator::{Input, OperatorExec};
use crate::plan_node::{Grouping, grouping, hash_join};
use crate::sample_by::plan::SampleByPlan;

/// If the inner side has more than this many rows per outer row, the outer rows are kept in memory.
const ROWS_PER_OUTER_ROW: usize = 8;

/// The side that is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemorySide {
    /// The keys of the inner side.
    InnerKeys,
    /// The rows of the outer side.
    OuterRows,
}

/// A join that tests whether matching rows exist. The outer side is the first side.
#[derive(Clone)]
pub(crate) struct SemiJoin {
    /// A join that does not return columns of the other side.
    pub(super) join: EquiJoin,
    /// The key columns, in the form used for comparison.
    pub(super) key_schema: SchemaRef,
    pub(super) memory_side: MemorySide,
    /// Hasher used by all key sets.
    pub(super) hasher: DefaultHashBuilder,
}

/// Estimates the number of rows in a plan.
fn rows_of(plan: &Input) -> Result<Option<usize>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(statistics.num_rows.get_value().copied())
}

impl SemiJoin {
    /// Returns the replacement for a hash join, before its sides are partitioned by their keys.
    pub(crate) fn try_replace(plan: &Input) -> Result<Option<Input>> {
        let Some(join) = hash_join(plan) else { return Ok(None) };
        let is_left = Kind::of(*join.join_type(), JoinSide::Left).is_some();
        let first = if is_left { JoinSide::Left } else { JoinSide::Right };
        let Some((operator, [outer, inner])) = Self::of(join, first)? else { return Ok(None) };
        let (mut own, inner) = match SampleByPlan::by_slots(&inner)? {
            Some(few) => (operator, few),
            None => operator.of_all(inner),
        };
        let outer = own.join.below_projection(&outer).unwrap_or(outer);
        if let [Some(outer), Some(inner)] = [rows_of(&outer)?, rows_of(&inner)?]
            && inner > outer.saturating_mul(ROWS_PER_OUTER_ROW)
        {
            own.memory_side = MemorySide::OuterRows;
        }
        Ok(Some(OperatorExec::plan(own, vec![outer, inner], &join.schema())))
    }

    /// Describes a hash join and its sides; `None` if the hash join has properties that this
    /// description cannot express.
    fn of(join: &HashJoinExec, first: JoinSide) -> Result<Option<(Self, [Input; 2])>> {
        let own = EquiJoin::of(join, first);
        let own = own.filter(|own| !own.kind.is_of_rows() && own.filter.is_none());
        let Some(own) = own else { return Ok(None) };
        let mut sides = [Arc::clone(join.left()), Arc::clone(join.right())];
        if first == JoinSide::Right {
            sides.reverse();
        }
        let schemas = sides.each_ref().map(|side| side.schema());
        let mut types = vec![];
        for (own, other) in &own.keys {
            types.push(compared_as(&own.data_type(&schemas[FIRST])?));
            if types.last() != Some(&compared_as(&other.data_type(&schemas[OTHER])?)) {
                return Ok(None);
            }
        }
        if !KeySet::suits(&types) {
            return Ok(None);
        }
        let fields = types.into_iter().enumerate();
        let fields = fields.map(|(at, own)| Field::new(format!("k{at}"), own, true));
        let key_schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (holds, hasher) = (MemorySide::InnerKeys, DefaultHashBuilder::default());
        Ok(Some((Self { join: own, key_schema, memory_side: holds, hasher }, sides)))
    }

    /// Removes a DISTINCT from the inner side, since the join stores each key only once anyway.
    fn of_all(mut self, inner: Input) -> (Self, Input) {
        let Some(Grouping { keys, functions: [], input, .. }) = grouping(&inner) else {
            return (self, inner);
        };
        let below = |(own, other): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
            let other = keys.get(other.downcast_ref::<Column>()?.index())?;
            Some((Arc::clone(own), Arc::clone(other)))
        };
        let Some(keys) = self.join.keys.iter().map(below).collect() else { return (self, inner) };
        self.join.keys = keys;
        (self, Arc::clone(input))
    }

    /// Returns the number of output partitions.
    pub(super) fn partitions(&self, inputs: &[Input]) -> usize {
        let side = match self.memory_side {
            MemorySide::InnerKeys => FIRST,
            MemorySide::OuterRows => OTHER,
        };
        inputs[side].output_partitioning().partition_count()
    }
}

impl fmt::Display for SemiJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holds = match self.memory_side {
            MemorySide::InnerKeys => "keys",
            MemorySide::OuterRows => "rows",
        };
        write!(f, "{:?} by {holds}", self.join.kind)?;
        self.join.show(f)
    }
}
