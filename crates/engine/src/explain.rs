//! EXPLAIN: the tree, the bound plan, the optimised plan, the physical plan.

use std::sync::Arc;

use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect_partitioned};
use tidemark_ast::ExplainStage;
use tidemark_operators::Analyze;
use tidemark_planner::{BoundExplain, BoundStatement, InsertSource};
use tidemark_types::EngineResult;

use crate::database::Database;
use crate::execution::yielding::let_joins_yield;
use crate::registry::Registration;
use tidemark_operators::from_datafusion;

/// The lines EXPLAIN answers with.
pub(crate) async fn lines(
    database: &Database,
    explain: &BoundExplain,
    query: &Registration,
) -> EngineResult<Vec<String>> {
    let text = match explain.stage {
        ExplainStage::Ast => return Ok(explain.tree.clone()),
        ExplainStage::Bound => match plan_of(&explain.statement) {
            Some(plan) => plan.display_indent().to_string(),
            None => explain.statement.command().to_owned(),
        },
        ExplainStage::Logical => match plan_of(&explain.statement) {
            Some(plan) => {
                let optimized = database.session.state().optimize(plan);
                optimized.map_err(from_datafusion)?.display_indent().to_string()
            }
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
    let Some(plan) = plan_of(&explain.statement) else {
        return Ok(explain.statement.command().to_owned());
    };
    let plan = database.session.physical_plan(plan).await;
    let plan: Arc<dyn ExecutionPlan> = plan.map_err(from_datafusion)?;
    if !explain.analyze {
        return Ok(DisplayableExecutionPlan::new(plan.as_ref()).indent(false).to_string());
    }
    let plan = let_joins_yield(plan)?;
    let _turn = database.turn(plan.as_ref()).await?;
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

fn plan_of(statement: &BoundStatement) -> Option<&datafusion::logical_expr::LogicalPlan> {
    match statement {
        BoundStatement::Query(query) => Some(&query.plan),
        BoundStatement::Update(update) => Some(&update.plan),
        BoundStatement::Delete(delete) => delete.plan.as_ref(),
        BoundStatement::CreateTable(create) => create.source.as_ref(),
        BoundStatement::Insert(insert) => match &insert.source {
            InsertSource::Plan(plan) => Some(plan),
            InsertSource::Batch(_) | InsertSource::Template(_) => None,
        },
        _ => None,
    }
}
