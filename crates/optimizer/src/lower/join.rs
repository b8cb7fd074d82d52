//! Equi-joins, joins on other conditions, and cross joins.

use std::sync::Arc;

use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Expr, Join};
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode,
};
use tidemark_operators::{equi_join, with_files};

use super::planned::{Plan, Planned, Requirements, narrowed};
use super::sides::{Read, pairs, sides_of_output};
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn join(&self, join: &Join, requirements: &Requirements) -> Result<Planned> {
        let kind = join.join_type;
        let keeps_order = requirements.keeps_join_order && kind == JoinType::Right;
        let read = Read::of(join, requirements)?;
        // If a side is only tested for existence, its GROUP BY may be dropped.
        let (of_left, of_right) = sides_of_output(kind);
        let are_columns = |key: fn(&(Expr, Expr)) -> &Expr| {
            !join.on.is_empty() && join.on.iter().all(|on| matches!(key(on), Expr::Column(_)))
        };
        let left = Requirements {
            in_two_steps: !of_left && are_columns(|on| &on.0),
            ..Requirements::columns(read.left.clone()).in_any_order()
        };
        let right = Requirements {
            in_two_steps: !of_right && are_columns(|on| &on.1),
            ..if keeps_order || (requirements.is_read_in_order && follows_right_side(kind)) {
                Requirements::columns(read.right.clone())
            } else {
                Requirements::columns(read.right.clone()).in_any_order()
            }
        };
        let left = self.with_keys(self.node(&join.left, &left)?, join.on.iter().map(|on| &on.0))?;
        let right =
            self.with_keys(self.node(&join.right, &right)?, join.on.iter().map(|on| &on.1))?;
        let filter = join.filter.as_ref();
        let filter = filter.map(|filter| self.join_filter(filter, &left.input, &right.input));
        let filter = filter.transpose()?;
        let inputs = [&left.input.plan, &right.input.plan];
        let output = read.output(kind, requirements, inputs);
        let [own, other] = inputs.map(Arc::clone);
        let schema = narrowed(&join.schema, &requirements.columns)?;
        if !join.on.is_empty() {
            let hash = HashJoinExec::try_new(
                own,
                other,
                pairs(&left.keys, &right.keys),
                filter,
                &kind,
                Some(output),
                PartitionMode::Auto,
                join.null_equality,
                join.null_aware,
            )?;
            let plan = self.by_keys(self.with_build_side_left(&hash, keeps_order)?)?;
            return Ok(Planned { plan, schema });
        }
        if filter.is_none() && kind == JoinType::Inner {
            return self.all_pairs(own, other, join, &read, requirements);
        }
        let swaps = !keeps_order && kind.supports_swap() && self.swaps(&own, &other)?;
        let loops = NestedLoopJoinExec::try_new(own, other, filter, &kind, Some(output))?;
        let plan = if swaps { loops.swap_inputs()? } else { Arc::new(loops) };
        Ok(Planned { plan: self.with_inputs(&plan)?, schema })
    }

    /// Chooses the operator for an equi-join.
    fn by_keys(&self, hash: Plan) -> Result<Plan> {
        // With one worker, the left side of every join is the build side, regardless of its number
        // of rows.
        let most_held = match self.workers() {
            1 => {
                let options = &self.session.config_options().optimizer;
                options.hash_join_single_partition_threshold_rows
            }
            _ => usize::MAX,
        };
        let join = equi_join(hash, most_held, |side| self.grouped(side))?;
        with_files(self.with_inputs(&join)?)
    }

    fn all_pairs(
        &self,
        left: Plan,
        right: Plan,
        join: &Join,
        read: &Read,
        requirements: &Requirements,
    ) -> Result<Planned> {
        let swaps = self.swaps(&left, &right)?;
        let known = [Arc::clone(&left), Arc::clone(&right)];
        let cross = CrossJoinExec::new(left, right);
        let plan = if swaps { cross.swap_inputs()? } else { Arc::new(cross) };
        // If the inputs were swapped, a projection above the join restores the column order.
        let plan = self.with_inputs_above(&known, &plan)?;
        let columns = [read.left.as_slice(), read.right.as_slice()].concat();
        let schema = narrowed(&join.schema, &columns)?;
        Planned { plan, schema }.narrowed_to(requirements, &columns)
    }
}

/// Whether this join type outputs rows in the right side's order if the left side is the build
/// side.
fn follows_right_side(kind: JoinType) -> bool {
    matches!(
        kind,
        JoinType::Inner
            | JoinType::Right
            | JoinType::RightAnti
            | JoinType::RightSemi
            | JoinType::RightMark
    )
}
