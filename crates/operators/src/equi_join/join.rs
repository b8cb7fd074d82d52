//! Describes an equi-join. The description is shared by the operators that materialize one side's
//! rows, only its keys, or nothing.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::common::{JoinSide, JoinType, NullEquality, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use crate::lowering::symbol_of_text;
use crate::materialize::with_schema;
use crate::operator::{Input, Lineage, order_of_first};
use crate::plan_node::PlanNode;
use crate::properties::properties_of;

/// Input 0 is the first side, whose row order the output follows. Input 1 is the other side.
pub(crate) const FIRST: usize = 0;
pub(crate) const OTHER: usize = 1;

/// What the join returns for a row of the first side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The row is joined to each matching row of the other side.
    Inner,
    /// Like `Inner`, but a row without a match is joined to nulls.
    Outer,
    /// The row is returned if it has a match.
    Semi,
    /// The row is returned if it has no match.
    Anti,
    /// The row is returned with an additional column that indicates whether it has a match.
    Mark,
}

impl Kind {
    /// Returns the kind of a hash join when `first` is taken as its first side.
    pub(crate) fn of(join: JoinType, first: JoinSide) -> Option<Self> {
        let join = if first == JoinSide::Left { join.swap() } else { join };
        Some(match join {
            JoinType::Inner => Self::Inner,
            JoinType::Right => Self::Outer,
            JoinType::RightSemi => Self::Semi,
            JoinType::RightAnti => Self::Anti,
            JoinType::RightMark => Self::Mark,
            _ => return None,
        })
    }

    /// Whether the output contains every row of the first side.
    pub(crate) fn preserves_every_row(self) -> bool {
        matches!(self, Self::Outer | Self::Mark)
    }

    /// Whether the output contains columns of the other side.
    pub(crate) fn is_of_rows(self) -> bool {
        matches!(self, Self::Inner | Self::Outer)
    }
}

/// Source of an output column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputColumn {
    First(usize),
    Other(usize),
    Mark,
}

/// Key expressions of the first side and of the other side.
pub(crate) type KeyPairs = Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>;

/// See the module documentation.
#[derive(Clone)]
pub(crate) struct EquiJoin {
    pub(crate) kind: Kind,
    pub(crate) keys: KeyPairs,
    /// Whether null equals null.
    pub(crate) nulls: bool,
    /// Condition on pairs, in addition to equal keys.
    pub(crate) filter: Option<JoinFilter>,
    /// The side of the original hash join that is the first side here. The condition refers to the
    /// sides of the original hash join.
    pub(crate) first: JoinSide,
    pub(crate) output: Vec<OutputColumn>,
    /// Equal and constant output columns, which sorts and windows above rely on.
    pub(crate) equal: EquivalenceProperties,
}

impl EquiJoin {
    /// Describes a hash join with `first` as the first side. Returns `None` if the hash join has
    /// properties that this description cannot express.
    pub(crate) fn of(join: &HashJoinExec, first: JoinSide) -> Option<Self> {
        let kind = Kind::of(*join.join_type(), first)?;
        if join.null_aware || join.fetch().is_some() {
            return None;
        }
        let side = |plan: &Input, side: JoinSide| {
            let column = if side == first { OutputColumn::First } else { OutputColumn::Other };
            (0..plan.schema().fields().len()).map(column)
        };
        let all = side(join.left(), JoinSide::Left).chain(side(join.right(), JoinSide::Right));
        let is_shown =
            |column: &OutputColumn| kind.is_of_rows() || matches!(column, OutputColumn::First(_));
        let mark = (kind == Kind::Mark).then_some(OutputColumn::Mark);
        let columns: Vec<_> = all.filter(is_shown).chain(mark).collect();
        let output = match &join.projection {
            Some(projection) => projection.iter().map(|&column| columns[column]).collect(),
            None => columns,
        };
        let keys = join.on().iter().cloned().map(|(left, right)| {
            if first == JoinSide::Left { (left, right) } else { (right, left) }
        });
        let nulls = join.null_equality() == NullEquality::NullEqualsNull;
        let mut equal = join.properties().equivalence_properties().clone();
        equal.clear_orderings();
        let (keys, filter) = (keys.collect(), join.filter().cloned());
        Some(Self { kind, keys, nulls, filter, first, output, equal })
    }

    /// If the first side is a projection that computes only keys, takes the projection's input as
    /// the first side and returns it. Strings made from symbols are then compared as symbols.
    pub(crate) fn below_projection(&mut self, first: &Input) -> Option<Input> {
        let PlanNode::Projection(projection) = PlanNode::of(first.as_ref()) else { return None };
        if self.filter.is_some() {
            return None;
        }
        let below = |column: usize| {
            let expr = &projection.expr().get(column)?.expr;
            Some(expr.downcast_ref::<Column>()?.index())
        };
        let output = self.output.iter().map(|column| match *column {
            OutputColumn::First(column) => below(column).map(OutputColumn::First),
            other => Some(other),
        });
        let output = output.collect::<Option<Vec<_>>>()?;
        let input = projection.input();
        let key = |(own, other): &(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)| {
            let computed = projection.expr().get(own.downcast_ref::<Column>()?.index())?;
            let symbol = symbol_of_text(&computed.expr, &input.schema());
            Some((symbol.unwrap_or_else(|| Arc::clone(&computed.expr)), Arc::clone(other)))
        };
        self.keys = self.keys.iter().map(key).collect::<Option<_>>()?;
        self.output = output;
        Some(Arc::clone(input))
    }

    /// Returns the output position of a first-side column, if the output contains it.
    fn output_position(&self, column: usize) -> Option<usize> {
        self.output.iter().position(|output| *output == OutputColumn::First(column))
    }

    /// Returns plan properties with the order of the first side, as far as its columns are in the
    /// output.
    pub(crate) fn properties(
        &self,
        schema: &SchemaRef,
        inputs: &[Input],
        partitions: usize,
        emission: EmissionType,
    ) -> Arc<PlanProperties> {
        let passed_on = |sort: PhysicalSortExpr| {
            let position = self.output_position(sort.expr.downcast_ref::<Column>()?.index())?;
            let column = Column::new(schema.field(position).name(), position);
            Some(PhysicalSortExpr::new(Arc::new(column), sort.options))
        };
        let order = order_of_first(inputs).into_iter().flatten().map_while(passed_on);
        let mut equal = self.equal.clone();
        equal.add_ordering(order.collect::<Vec<_>>());
        properties_of(equal, partitions, emission)
    }

    pub(crate) fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let keys = self.keys.iter().flat_map(|(first, other)| [first, other]);
        keys.chain(self.filter.iter().map(JoinFilter::expression)).collect()
    }

    pub(crate) fn lineage(&self, column: usize) -> Option<Lineage> {
        let (input, column, unmatched) = match *self.output.get(column)? {
            OutputColumn::First(column) => (FIRST, column, false),
            OutputColumn::Other(column) => (OTHER, column, self.kind == Kind::Outer),
            OutputColumn::Mark => return None,
        };
        Some(Lineage { input, column, unmatched })
    }

    /// Evaluates the condition on `pairs` pairs. `column` returns a column from the first side
    /// (`true`) or the other side.
    pub(crate) fn passing(
        &self,
        condition: &JoinFilter,
        pairs: usize,
        column: impl Fn(bool, usize) -> Result<ArrayRef>,
    ) -> Result<BooleanArray> {
        let column = |of: &ColumnIndex| column(of.side == self.first, of.index);
        let columns = condition.column_indices().iter().map(column).collect::<Result<_>>()?;
        let batch = with_schema(condition.schema(), columns, pairs)?;
        let found = condition.expression().evaluate(&batch)?.into_array(pairs)?;
        let found = arrow_array::cast::as_boolean_array(&found);
        Ok(if found.null_count() > 0 { prep_null_mask_filter(found) } else { found.clone() })
    }

    /// Writes the keys and the condition.
    pub(crate) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (first, other) in &self.keys {
            write!(f, ", {first} = {other}")?;
        }
        self.filter.iter().try_for_each(|filter| write!(f, ", {}", filter.expression()))
    }
}
