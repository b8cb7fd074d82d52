//! The physical rules that put an operator of ours in the place of others.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::{
    GraceHashJoin, GroupRows, LookupJoin, RankRows, SampleByPlan, SemiJoin, SortRows, TopRows,
};

type Plan = Arc<dyn ExecutionPlan>;

/// A rule with the operator that it makes of a plan, if there is one.
#[derive(Debug)]
pub(crate) struct Instead {
    name: &'static str,
    /// Whether a plan is looked at before what is below it.
    is_down: bool,
    of: fn(&Plan, &ConfigOptions) -> Result<Option<Plan>>,
}

impl Instead {
    /// Joins that ask whether rows exist. Runs when the sides of joins are chosen, and before
    /// groups become others: these joins need no DISTINCT.
    pub(crate) const SEMI_JOINS: Self =
        Self { name: "SemiJoins", is_down: false, of: |plan, _| SemiJoin::instead_of(plan) };

    /// Groups by the floor of the timestamp. Runs before the two steps of GROUP BY are parted.
    pub(crate) const FLOORS: Self =
        Self { name: "Floors", is_down: false, of: |plan, _| SampleByPlan::instead_of(plan) };

    /// Groups by keys with few values. The same.
    pub(crate) const SLOTS: Self =
        Self { name: "Slots", is_down: false, of: |plan, _| SampleByPlan::by_slots(plan) };

    /// Groups by many different keys. The same.
    pub(crate) const GROUPS: Self = Self {
        name: "Groups",
        is_down: false,
        of: |plan, config| GroupRows::instead_of(plan, config.execution.target_partitions),
    };

    /// Ranks. Runs before sorts are added: these need none.
    pub(crate) const RANKS: Self =
        Self { name: "Ranks", is_down: false, of: |plan, _| RankRows::instead_of(plan) };

    /// Joins that hold their left side. Runs when columns that nothing reads are gone.
    pub(crate) const LOOK_UPS: Self =
        Self { name: "LookUps", is_down: false, of: |plan, _| Ok(LookupJoin::instead_of(plan)) };

    /// Joins of two large sides. Runs when joins that keep an order have been looked at.
    pub(crate) const HASH_JOINS: Self =
        Self { name: "HashJoins", is_down: false, of: |plan, _| GraceHashJoin::instead_of(plan) };

    /// Sorts, with the limits above them. Runs when those that the order of time saves are gone.
    pub(crate) const SORTS: Self =
        Self { name: "Sorts", is_down: true, of: |plan, _| Ok(SortRows::instead_of(plan)) };

    /// Sorts of few rows of a scan. Runs when scans have their filters.
    pub(crate) const TOPS: Self =
        Self { name: "Tops", is_down: false, of: |plan, _| TopRows::below(plan) };
}

impl PhysicalOptimizerRule for Instead {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let ours = |plan: Plan| {
            let ours = (self.of)(&plan, config)?;
            Ok(ours.map_or_else(|| Transformed::no(plan), Transformed::yes))
        };
        if self.is_down { plan.transform_down(ours).data() } else { plan.transform_up(ours).data() }
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
