//! A join's two inputs: the columns to read, and the choice of the build side.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, JoinType, Result, Statistics, plan_err};
use datafusion::logical_expr::{Expr, Join};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::utils::{JoinFilter, JoinOn};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::planned::{Plan, Planned, Requirements, mark_columns};
use super::walk::Walk;

/// Number of rows up to which a side is cheap to hold in memory, regardless of the other side's
/// size.
const FEW_ROWS: usize = 1 << 16;

/// The columns to read from the two sides.
pub(super) struct Read {
    pub(super) left: Vec<bool>,
    pub(super) right: Vec<bool>,
}

/// Returns whether a join outputs the columns of its left side and of its right side. A column
/// after both sides' columns is the join's mark.
pub(super) fn sides_of_output(kind: JoinType) -> (bool, bool) {
    match kind {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (false, true),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => (true, true),
    }
}

impl Read {
    pub(super) fn of(join: &Join, requirements: &Requirements) -> Result<Self> {
        let (left, right) = (join.left.schema(), join.right.schema());
        let mut read = Self {
            left: vec![false; left.fields().len()],
            right: vec![false; right.fields().len()],
        };
        let (of_left, of_right) = sides_of_output(join.join_type);
        let mut output = requirements.columns.iter();
        for (is_output, columns) in [(of_left, &mut read.left), (of_right, &mut read.right)] {
            if is_output {
                columns
                    .iter_mut()
                    .zip(&mut output)
                    .for_each(|(own, is_required)| *own = *is_required);
            }
        }
        for (own, other) in &join.on {
            mark_columns(own, left, &mut read.left)?;
            mark_columns(other, right, &mut read.right)?;
        }
        for column in join.filter.iter().flat_map(Expr::column_refs) {
            if let Some(at) = left.maybe_index_of_column(column) {
                read.left[at] = true;
            } else if let Some(at) = right.maybe_index_of_column(column) {
                read.right[at] = true;
            } else {
                return plan_err!("a join has no column {column}");
            }
        }
        Ok(read)
    }

    /// Returns the positions of the needed columns in the output of an operator with these inputs.
    pub(super) fn output(
        &self,
        kind: JoinType,
        requirements: &Requirements,
        inputs: [&Plan; 2],
    ) -> Vec<usize> {
        let (of_left, of_right) = sides_of_output(kind);
        let (mut output, mut before, mut at) = (vec![], 0, 0);
        for (is_output, columns, input) in
            [(of_left, &self.left, inputs[0]), (of_right, &self.right, inputs[1])]
        {
            if !is_output {
                continue;
            }
            let mut own = before;
            for is_read in columns {
                if requirements.columns[at] {
                    output.push(own);
                }
                own += usize::from(*is_read);
                at += 1;
            }
            before += input.schema().fields().len();
        }
        // The mark column.
        output.extend(requirements.columns[at..].contains(&true).then_some(before));
        output
    }
}

/// A join side with its keys; computed keys are appended as columns.
pub(super) struct Side {
    pub(super) input: Planned,
    pub(super) keys: Vec<Arc<dyn PhysicalExpr>>,
}

impl Walk<'_> {
    pub(super) fn with_keys<'e>(
        &self,
        input: Planned,
        keys: impl Iterator<Item = &'e Expr>,
    ) -> Result<Side> {
        let schema = input.plan.schema();
        let mut outputs: Vec<ProjectionExpr> = vec![];
        for (at, field) in schema.fields().iter().enumerate() {
            let expr = Arc::new(Column::new(field.name(), at));
            outputs.push(ProjectionExpr { expr, alias: field.name().clone() });
        }
        let mut columns: Vec<Arc<dyn PhysicalExpr>> = vec![];
        for key in keys {
            let key_expr = self.lowering.expr(key, &input.schema)?;
            if key_expr.is::<Column>() {
                columns.push(key_expr);
                continue;
            }
            let known = outputs.iter().position(|own| own.expr.eq(&key_expr));
            let at = known.unwrap_or(outputs.len());
            if known.is_none() {
                outputs.push(ProjectionExpr { expr: key_expr, alias: key.to_string() });
            }
            columns.push(Arc::new(Column::new(&outputs[at].alias, at)));
        }
        if outputs.len() == schema.fields().len() {
            return Ok(Side { input, keys: columns });
        }
        let plan = Arc::new(ProjectionExec::try_new(outputs, input.plan)?);
        Ok(Side { input: Planned { plan, ..input }, keys: columns })
    }

    /// Lowers a join's condition, excluding its keys.
    pub(super) fn join_filter(
        &self,
        filter: &Expr,
        left: &Planned,
        right: &Planned,
    ) -> Result<JoinFilter> {
        let (mut own, mut other) = (vec![], vec![]);
        for column in filter.column_refs() {
            match left.schema.maybe_index_of_column(column) {
                Some(at) => own.push(at),
                None => other.push(right.schema.index_of_column(column)?),
            }
        }
        own.sort_unstable();
        other.sort_unstable();
        let field = |side: &Planned, at: usize| {
            let (qualifier, _) = side.schema.qualified_field(at);
            (qualifier.cloned(), Arc::new(side.plan.schema().field(at).clone()))
        };
        let fields = own.iter().map(|&at| field(left, at));
        let fields = fields.chain(other.iter().map(|&at| field(right, at))).collect();
        let schema = DFSchema::new_with_metadata(fields, HashMap::new())?;
        let expr = self.lowering.expr(filter, &schema)?;
        let columns = JoinFilter::build_column_indices(own, other);
        Ok(JoinFilter::new(expr, columns, Arc::clone(schema.inner())))
    }

    /// Returns the join with its build side on the left: the smaller side, unless an order must be
    /// preserved.
    pub(super) fn with_build_side_left(
        &self,
        join: &HashJoinExec,
        keeps_order: bool,
    ) -> Result<Plan> {
        let held_left = |join: &HashJoinExec| -> Result<Plan> {
            let mode = PartitionMode::CollectLeft;
            Ok(Arc::new(join.builder().with_partition_mode(mode).build()?))
        };
        if keeps_order {
            return held_left(join);
        }
        let may_swap = join.join_type().supports_swap() && !join.null_aware;
        let sizes = [self.size(join.left())?, self.size(join.right())?];
        let has_few = sizes[1].num_rows.get_value().is_some_and(|rows| *rows <= FEW_ROWS);
        // In a left join, a small right side becomes the lookup table.
        let is_looked_up = *join.join_type() == JoinType::Left && has_few;
        let swaps = may_swap && (is_looked_up || is_larger(&sizes[0], &sizes[1]));
        let is_one = self.workers() == 1 || join.null_aware;
        let [left, right] = sizes.map(|size| is_one || self.is_shareable(&size));
        match (left, right) {
            (true, true) if swaps => join.swap_inputs(PartitionMode::CollectLeft),
            (false, true) if may_swap => join.swap_inputs(PartitionMode::CollectLeft),
            (true, _) => held_left(join),
            _ if swaps => join.swap_inputs(PartitionMode::Partitioned),
            _ => {
                let mode = PartitionMode::Partitioned;
                Ok(Arc::new(join.builder().with_partition_mode(mode).build()?))
            }
        }
    }

    /// Whether a keyless join's left side is larger than its right side.
    pub(super) fn swaps(&self, left: &Plan, right: &Plan) -> Result<bool> {
        let (left, right) = (self.size(left)?, self.size(right)?);
        Ok(is_larger(&left, &right))
    }

    /// Whether a side of this size may be a build side shared by all workers.
    fn is_shareable(&self, size: &Statistics) -> bool {
        let options = &self.session.config_options().optimizer;
        if let Some(bytes) = size.total_byte_size.get_value() {
            return *bytes < options.hash_join_single_partition_threshold;
        }
        let max = options.hash_join_single_partition_threshold_rows;
        size.num_rows.get_value().is_some_and(|rows| *rows < max)
    }

    pub(super) fn size(&self, plan: &Plan) -> Result<Arc<Statistics>> {
        match self.session.statistics_registry() {
            Some(registry) => Ok(Arc::clone(registry.compute(plan.as_ref())?.base_arc())),
            None => StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()),
        }
    }
}

fn is_larger(left: &Statistics, right: &Statistics) -> bool {
    let bytes = (left.total_byte_size.get_value(), right.total_byte_size.get_value());
    if let (Some(left), Some(right)) = bytes {
        return left > right;
    }
    match (left.num_rows.get_value(), right.num_rows.get_value()) {
        (Some(left), Some(right)) => left > right,
        _ => false,
    }
}

/// Pairs the keys of both sides.
pub(super) fn pairs(left: &[Arc<dyn PhysicalExpr>], right: &[Arc<dyn PhysicalExpr>]) -> JoinOn {
    left.iter().zip(right).map(|(own, other)| (Arc::clone(own), Arc::clone(other))).collect()
}
