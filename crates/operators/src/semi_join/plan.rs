//! What a semi-join is asked, and which joins of `DataFusion` it takes the place of.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use hashbrown::DefaultHashBuilder;

use super::keys::KeySet;
use crate::lookup_join::plan::OutputColumn;
use crate::operator::{Input, OperatorExec};
use crate::plan_node::{Grouping, grouping, hash_join};
use crate::sample_by::plan::SampleByPlan;

/// The outer side's rows are input 0, the inner one's input 1.
pub(super) const OUTER: usize = 0;
pub(super) const INNER: usize = 1;

/// The outer side is held where the inner one has more than so many times its rows.
const ROWS_PER_OUTER_ROW: usize = 8;
/// So few inner rows are looked up by other joins, which do so by symbols' codes.
const FEW_ROWS: usize = 1 << 16;

/// What becomes of a row of the outer side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It stays if a row with its keys exists.
    Semi,
    /// It stays if none does.
    Anti,
    /// It stays, and whether one does is a column.
    Mark,
}

/// What is held of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The keys of the inner one.
    InnerKeys,
    /// The rows of the outer one.
    OuterRows,
}

/// A join that asks whether rows exist.
#[derive(Clone)]
pub struct SemiJoin {
    pub(super) kind: Kind,
    /// Keys of the outer side, and of the inner one.
    pub(super) keys: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    /// The same without dictionaries, in this schema.
    pub(super) plain: [Vec<Arc<dyn PhysicalExpr>>; 2],
    pub(super) key_schema: SchemaRef,
    /// Whether a null equals another.
    pub(super) nulls: bool,
    pub(super) output: Vec<OutputColumn>,
    /// Which columns of the output are equal or constant.
    pub(super) equal: EquivalenceProperties,
    pub(super) holds: Holds,
    /// That of all its sets.
    pub(super) hasher: DefaultHashBuilder,
}

/// The join, and whether its left side is the outer one.
fn kind_of(join: JoinType) -> Option<(Kind, bool)> {
    Some(match join {
        JoinType::LeftSemi => (Kind::Semi, true),
        JoinType::LeftAnti => (Kind::Anti, true),
        JoinType::LeftMark => (Kind::Mark, true),
        JoinType::RightSemi => (Kind::Semi, false),
        JoinType::RightAnti => (Kind::Anti, false),
        JoinType::RightMark => (Kind::Mark, false),
        _ => return None,
    })
}

/// The key as a value of its own.
fn plain(key: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(match key.data_type(schema)? {
        DataType::Dictionary(_, values) => {
            Arc::new(CastExpr::new(Arc::clone(key), values.as_ref().clone(), None))
        }
        _ => Arc::clone(key),
    })
}

/// The hash join that holds few inner rows, of which others look up what they have.
fn looked_up(join: &HashJoinExec, few: Input, is_left: bool) -> Result<Input> {
    if is_left {
        let sides = vec![Arc::clone(join.left()), few];
        let join = join.builder().with_new_children(sides)?.build()?;
        return join.swap_inputs(PartitionMode::CollectLeft);
    }
    let sides = vec![few, Arc::clone(join.right())];
    let join = join.builder().with_new_children(sides)?;
    join.with_partition_mode(PartitionMode::CollectLeft).recompute_properties().build_exec()
}

/// How many rows a plan makes, about.
fn rows_of(plan: &Input) -> Result<Option<usize>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(statistics.num_rows.get_value().copied())
}

impl SemiJoin {
    /// The join that takes the place of a hash join, before its sides are spread by their keys.
    pub fn instead_of(plan: &Input) -> Result<Option<Input>> {
        let Some(join) = hash_join(plan) else { return Ok(None) };
        let Some((_, is_left)) = kind_of(*join.join_type()) else { return Ok(None) };
        let Some((operator, outer, inner)) = Self::of(join, is_left)? else { return Ok(None) };
        let is_looked_up = !is_left && *join.partition_mode() == PartitionMode::CollectLeft;
        if let Some(few) = SampleByPlan::by_slots(&inner)? {
            return Ok(if is_looked_up { None } else { Some(looked_up(join, few, is_left)?) });
        }
        if is_looked_up && rows_of(&inner)?.is_some_and(|rows| rows <= FEW_ROWS) {
            return Ok(None);
        }
        let (mut own, inner) = operator.of_all(inner)?;
        if let [Some(outer), Some(inner)] = [rows_of(&outer)?, rows_of(&inner)?]
            && inner > outer.saturating_mul(ROWS_PER_OUTER_ROW)
        {
            own.holds = Holds::OuterRows;
        }
        Ok(Some(OperatorExec::plan(own, vec![outer, inner], &join.schema())))
    }

    /// What a hash join is asked, and its sides; `None`: it is asked more.
    fn of(join: &HashJoinExec, is_left: bool) -> Result<Option<(Self, Input, Input)>> {
        let Some((kind, _)) = kind_of(*join.join_type()) else { return Ok(None) };
        let (mut outer, mut inner) = (join.left(), join.right());
        let keys = join.on().iter().cloned();
        let keys = if is_left {
            keys.collect()
        } else {
            (outer, inner) = (inner, outer);
            keys.map(|(inner, outer)| (outer, inner)).collect::<Vec<_>>()
        };
        let schemas = [outer.schema(), inner.schema()];
        let own =
            keys.iter().map(|(own, _)| plain(own, &schemas[0])).collect::<Result<Vec<_>>>()?;
        let other =
            keys.iter().map(|(_, other)| plain(other, &schemas[1])).collect::<Result<Vec<_>>>()?;
        let types = |keys: &[Arc<dyn PhysicalExpr>], schema: &Schema| {
            keys.iter().map(|key| key.data_type(schema)).collect::<Result<Vec<_>>>()
        };
        let (types, others) = (types(&own, &schemas[0])?, types(&other, &schemas[1])?);
        let is_more = join.filter().is_some() || join.null_aware || join.fetch().is_some();
        if is_more || types != others || !KeySet::suits(&types) {
            return Ok(None);
        }
        let width = schemas[0].fields().len();
        let column = |at| if at < width { OutputColumn::Probe(at) } else { OutputColumn::Mark };
        let output = match &join.projection {
            Some(projection) => projection.iter().map(|&at| column(at)).collect(),
            None => (0..width + usize::from(kind == Kind::Mark)).map(column).collect(),
        };
        let fields = types.into_iter().enumerate();
        let fields = fields.map(|(at, own)| Field::new(format!("k{at}"), own, true));
        let mut equal = join.properties().equivalence_properties().clone();
        equal.clear_orderings();
        let operator = Self {
            kind,
            keys,
            plain: [own, other],
            key_schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            nulls: join.null_equality() == NullEquality::NullEqualsNull,
            output,
            equal,
            holds: Holds::InnerKeys,
            hasher: DefaultHashBuilder::default(),
        };
        Ok(Some((operator, Arc::clone(outer), Arc::clone(inner))))
    }

    /// The join with the rows below a DISTINCT on its inner side: it holds each key once anyway.
    fn of_all(self, inner: Input) -> Result<(Self, Input)> {
        let Some(Grouping { keys, functions: [], input, .. }) = grouping(&inner) else {
            return Ok((self, inner));
        };
        let below = |(own, other): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
            let other = keys.get(other.downcast_ref::<Column>()?.index())?;
            Some((Arc::clone(own), Arc::clone(other)))
        };
        let Some(keys) = self.keys.iter().map(below).collect::<Option<Vec<_>>>() else {
            return Ok((self, inner));
        };
        let schema = input.schema();
        let other = keys.iter().map(|(_, other)| plain(other, &schema)).collect::<Result<_>>()?;
        let [own, _] = self.plain;
        Ok((Self { keys, plain: [own, other], ..self }, Arc::clone(input)))
    }

    /// The partitions of its rows.
    pub(super) fn partitions(&self, inputs: &[Input]) -> usize {
        let side = match self.holds {
            Holds::InnerKeys => OUTER,
            Holds::OuterRows => INNER,
        };
        inputs[side].output_partitioning().partition_count()
    }
}

impl fmt::Display for SemiJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holds = match self.holds {
            Holds::InnerKeys => "keys",
            Holds::OuterRows => "rows",
        };
        write!(f, "{:?} by {holds}", self.kind)?;
        for (outer, inner) in &self.keys {
            write!(f, ", {outer} = {inner}")?;
        }
        Ok(())
    }
}
