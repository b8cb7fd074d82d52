//! Optimized and physical plans of bound queries.

use std::pin::pin;
use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::from_datafusion;
use tidemark_optimizer::PlanSize;
use tidemark_types::bounded::Deep;
use tidemark_types::{EngineResult, failpoint};

use crate::database::Database;

pub(crate) async fn physical_plan(
    database: &Database,
    plan: &LogicalPlan,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    failpoint::hit("engine.plan")?;
    on_enough_stack(plan, async {
        database.session.physical_plan(plan).await.map_err(from_datafusion)
    })
    .await
}

/// Runs work on a plan. If the plan is large, the work runs on a separate stack.
pub(crate) async fn on_enough_stack<T>(
    plan: &LogicalPlan,
    work: impl Future<Output = EngineResult<T>>,
) -> EngineResult<T> {
    let work = pin!(work);
    if PlanSize::of(plan)?.is_large() { Deep(work).await } else { work.await }
}
