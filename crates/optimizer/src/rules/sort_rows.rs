//! The physical rules that give sorts of many rows, and ranks in an order that rows do not have, to
//! operators of ours, where the keys are numbers and symbols.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::{RankRows, SortRows, TopRows};

fn replaced(
    plan: Arc<dyn ExecutionPlan>,
    by: Option<Arc<dyn ExecutionPlan>>,
) -> Transformed<Arc<dyn ExecutionPlan>> {
    by.map_or_else(|| Transformed::no(plan), Transformed::yes)
}

/// Ranks. Runs before sorts are added: these need none.
#[derive(Debug)]
pub(crate) struct Ranks;

impl PhysicalOptimizerRule for Ranks {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ours = |plan: Arc<dyn ExecutionPlan>| {
            let ranks = RankRows::instead_of(&plan)?;
            Ok(replaced(plan, ranks))
        };
        plan.transform_up(ours).data()
    }

    fn name(&self) -> &'static str {
        "Ranks"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Sorts, with the limits above them. Runs when those that the order of time saves are gone.
#[derive(Debug)]
pub(crate) struct Sorts;

impl PhysicalOptimizerRule for Sorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ours = |plan: Arc<dyn ExecutionPlan>| {
            let sort = SortRows::instead_of(&plan);
            Ok(replaced(plan, sort))
        };
        plan.transform_down(ours).data()
    }

    fn name(&self) -> &'static str {
        "Sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Sorts of few rows of a scan. Runs when scans have their filters.
#[derive(Debug)]
pub(crate) struct Tops;

impl PhysicalOptimizerRule for Tops {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ours = |plan: Arc<dyn ExecutionPlan>| {
            let top = TopRows::below(&plan)?;
            Ok(replaced(plan, top))
        };
        plan.transform_up(ours).data()
    }

    fn name(&self) -> &'static str {
        "Tops"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
