//! EXPLAIN: the syntax tree, the bound plan, the optimized plan, and the physical plan.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlanProperties, collect_partitioned};
use tidemark_ast::ExplainStage;
use tidemark_operators::Analyze;
use tidemark_planner::BoundExplain;
use tidemark_types::EngineResult;
use tidemark_types::bounded::deep;

use crate::database::Database;
use crate::database::physical::{on_enough_stack, physical_plan};
use crate::runtime::registry::Registration;
use tidemark_operators::from_datafusion;

/// Returns EXPLAIN's output lines.
pub(crate) async fn lines(
    database: &Database,
    explain: &BoundExplain,
    query: &Registration,
) -> EngineResult<Vec<String>> {
    let text = match explain.stage {
        ExplainStage::Ast => return Ok(explain.tree.clone()),
        ExplainStage::Bound => match explain.statement.plan() {
            Some(plan) => deep(|| plan.display_indent().to_string()),
            None => explain.statement.command().to_owned(),
        },
        ExplainStage::Logical => match explain.statement.plan() {
            Some(plan) => deep(|| {
                let optimized = database.session.optimize(plan);
                optimized.map(|plan| plan.display_indent().to_string())
            })
            .map_err(from_datafusion)?,
            None => explain.statement.command().to_owned(),
        },
        ExplainStage::Default | ExplainStage::Physical => {
            physical(database, explain, query).await?
        }
    };
    Ok(text.lines().map(str::to_owned).collect())
}

async fn physical(
    database: &Database,
    explain: &BoundExplain,
    query: &Registration,
) -> EngineResult<String> {
    let Some(plan) = explain.statement.plan() else {
        return Ok(explain.statement.command().to_owned());
    };
    if !explain.analyze {
        return on_enough_stack(plan, async {
            let plan = database.session.physical_plan(plan).await.map_err(from_datafusion)?;
            Ok(DisplayableExecutionPlan::new(plan.as_ref()).indent(false).to_string())
        })
        .await;
    }
    let plan = physical_plan(database, plan).await?;
    let _turn = database.admit(plan.as_ref(), query).await?;
    let started = std::time::Instant::now();
    let context = database.own_context(query)?;
    let config = context.session_config().clone().with_extension(Arc::new(Analyze));
    let context = Arc::new(context.with_session_config(config));
    let partitions = collect_partitioned(Arc::clone(&plan), context).await;
    let partitions = partitions.map_err(from_datafusion)?;
    let rows: usize = partitions.iter().flatten().map(arrow::array::RecordBatch::num_rows).sum();
    let text = DisplayableExecutionPlan::with_metrics(plan.as_ref()).indent(false).to_string();
    Ok(format!(
        "{text}Rows: {rows}\nPartitions: {}\nTime: {:.3} ms",
        plan.output_partitioning().partition_count(),
        started.elapsed().as_secs_f64() * 1e3,
    ))
}
