//! Compares plans that compute repeated groups once with plans that compute them each time.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::JoinType;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::functions_aggregate::expr_fn::{count, max, sum};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::TryStreamExt;
use rand::Rng;
use support::*;
use tidemark_operators::SampleByNode;
use tidemark_optimizer::{PlanSession, SessionOptions};
use tidemark_storage::TableSnapshot;

/// Groups a table by symbol, over the rows whose number is above a minimum.
fn groups(table: &Arc<TableSnapshot>, min: Option<i32>, greatest: bool) -> LogicalPlan {
    let rows = LogicalPlanBuilder::from(scan("t", table, vec![]));
    let rows = match min {
        Some(min) => rows.filter(col("t.number").gt(lit(min))).unwrap(),
        None => rows,
    };
    let keys = vec![col("t.symbol")];
    let value = if greatest { max(col("t.size")) } else { sum(col("t.size")) };
    let values = vec![value.alias("v"), count(lit(1_i64)).alias("n")];
    let node = SampleByNode::try_new(rows.build().unwrap(), None, keys, values).unwrap();
    extension(node.in_any_order(true))
}

/// Joins two groupings by their keys.
fn joined(left: LogicalPlan, right: LogicalPlan, kind: JoinType) -> LogicalPlan {
    let left = LogicalPlanBuilder::from(left).alias("x").unwrap();
    let right = LogicalPlanBuilder::from(right).alias("y").unwrap().build().unwrap();
    let keys = (vec!["x.symbol"], vec!["y.symbol"]);
    left.join(right, kind, keys, None).unwrap().build().unwrap()
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

async fn rows_of(session: &PlanSession, plan: &Arc<dyn ExecutionPlan>) -> Vec<Vec<String>> {
    let copy = reset_plan_states(Arc::clone(plan)).unwrap();
    let batches = execute_stream(copy, session.task_ctx()).unwrap();
    let mut rows = cells(&batches.try_collect::<Vec<_>>().await.unwrap());
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_groups_match_separately_computed_groups() {
    let mut rng = random();
    let (store, mut shared, mut apart) = (Store::new(), 0, 0);
    for round in 0..80 {
        let len = [0, 1, 50, 2_000][rng.random_range(0..4)];
        let rows = rows(&mut rng, len, 1_000, 12);
        let table = store.table(&format!("t{round}"), rows.chunks(500).map(batch_of).collect());
        let mut one = || ([None, Some(2), Some(7)][rng.random_range(0..3)], rng.random_bool(0.3));
        let (left, right) = (one(), one());
        let kind = [JoinType::Inner, JoinType::Left, JoinType::Full][rng.random_range(0..3)];
        let plan = joined(groups(&table, left.0, left.1), groups(&table, right.0, right.1), kind);
        let plan = match rng.random_range(0..4) {
            0 => LogicalPlanBuilder::from(plan).limit(0, Some(0)).unwrap().build().unwrap(),
            1 => LogicalPlanBuilder::from(groups(&table, left.0, left.1))
                .union(groups(&table, right.0, right.1))
                .unwrap()
                .build()
                .unwrap(),
            _ => plan,
        };
        let own = SessionOptions {
            target_partitions: rng.random_range(1..5),
            scan_partition_rows: NonZeroUsize::new(rng.random_range(1..400)),
            ..SessionOptions::default()
        };
        let session = PlanSession::new(&own);
        let expected = rows_of(&session, &by_library(&plan, &own).await.unwrap()).await;
        let physical = session.physical_plan(&plan).await.unwrap();
        let text = shown(&physical);
        let is_shared = text.matches("SharedRowsExec").count() == 2;
        assert!(left == right || !is_shared, "{text}");
        shared += usize::from(is_shared);
        apart += usize::from(!is_shared);
        // A plan may have several concurrent executions.
        let (first, second) =
            tokio::join!(rows_of(&session, &physical), rows_of(&session, &physical));
        assert_eq!(first, expected, "{text}");
        assert_eq!(second, expected, "{text}");
    }
    assert!(shared > 5 && apart > 5, "{shared} plans share, {apart} do not");
}

/// A reader that ends immediately, or that reads one side before the other, does not block other
/// readers. Rows that exceed the memory limit are computed twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_shared_rows_do_not_block_each_other() {
    let mut rng = random();
    let (store, rows) = (Store::new(), rows(&mut rng, 3_000, 1_000, 12));
    let table = store.table("t", rows.chunks(500).map(batch_of).collect());
    let plan = joined(groups(&table, None, false), groups(&table, None, false), JoinType::Inner);
    let options = SessionOptions {
        target_partitions: 2,
        scan_partition_rows: NonZeroUsize::new(100),
        ..SessionOptions::default()
    };
    let session = PlanSession::new(&options);
    let physical = session.physical_plan(&plan).await.unwrap();
    let expected = rows_of(&session, &physical).await;
    let mut readers = vec![];
    find(&physical, &mut readers);
    assert_eq!(readers.len(), 2, "{}", shown(&physical));
    let context = session.task_ctx();
    // This reader is started, then dropped before its rows are computed.
    let mut dropped = readers[0].execute(0, Arc::clone(&context)).unwrap();
    let _ = futures::poll!(dropped.try_next());
    drop(dropped);
    // Reads sequentially, starting with the second reader.
    let read = |reader: usize| execute_stream(Arc::clone(&readers[reader]), Arc::clone(&context));
    let (second, first) = (read(1).unwrap(), read(0).unwrap());
    let second = cells(&second.try_collect::<Vec<_>>().await.unwrap());
    assert_eq!(cells(&first.try_collect::<Vec<_>>().await.unwrap()), second);
    assert!(!expected.is_empty() && !second.is_empty());
    let pool = Arc::new(FairSpillPool::new(2_000_000));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let small = PlanSession::new(&SessionOptions { runtime, ..options });
    assert_eq!(rows_of(&small, &physical).await, expected);
    // Cached rows are released with the plan that ran.
    drop((readers, physical));
    assert_eq!(small.runtime_env().memory_pool.reserved(), 0);
}

fn find(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<Arc<dyn ExecutionPlan>>) {
    if plan.name() == "SharedRowsExec" {
        found.push(Arc::clone(plan));
    }
    plan.children().into_iter().for_each(|child| find(child, found));
}
