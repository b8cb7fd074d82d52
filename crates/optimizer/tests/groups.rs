//! Compares Tidemark's grouping with `DataFusion`'s, on random rows in small partitions.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_schema::{DataType, TimeUnit};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::functions_aggregate::expr_fn::{avg, count, max};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, Volatility, col, create_udf, lit,
};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::TryStreamExt;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use support::*;
use tidemark_optimizer::{PlanSession, SessionOptions};

fn grouping(rng: &mut ChaCha8Rng, input: LogicalPlan) -> LogicalPlan {
    let column = |name: &str| col(format!("t.{name}"));
    let mut keys: Vec<Expr> =
        ["price", "size", "number", "note", "symbol", "ts"].into_iter().map(column).collect();
    keys.push(column("size") + lit(1_i64));
    keys.push(column("price") * lit(0.0));
    keys.shuffle(rng);
    // A single numeric key uses a specialised table.
    keys.truncate(if rng.random_bool(0.5) { 1 } else { rng.random_range(2..4) });
    let mut aggregates = aggregates("t");
    aggregates.shuffle(rng);
    aggregates.truncate(rng.random_range(0..=6));
    let plan = LogicalPlanBuilder::from(input);
    let plan = match rng.random_range(0..3) {
        0 => plan.filter(column("number").gt(lit(3))).unwrap(),
        _ => plan,
    };
    plan.aggregate(keys, aggregates).unwrap().build().unwrap()
}

struct Answer {
    rows: Vec<Vec<String>>,
    plan: String,
}

async fn answer(plan: &LogicalPlan, options: &SessionOptions) -> Answer {
    let physical = PlanSession::new(options).physical_plan(plan).await.unwrap();
    answer_of(physical, options).await.unwrap()
}

/// Computes the same result with `DataFusion`'s operators.
async fn plain_answer(plan: &LogicalPlan, options: &SessionOptions) -> Result<Answer> {
    answer_of(by_library(plan, options).await?, options).await
}

async fn answer_of(plan: Arc<dyn ExecutionPlan>, options: &SessionOptions) -> Result<Answer> {
    let context = PlanSession::new(options).task_ctx();
    let batches = execute_stream(Arc::clone(&plan), context)?;
    let mut rows = cells(&batches.try_collect::<Vec<_>>().await?);
    rows.sort();
    Ok(Answer { rows, plan: displayable(plan.as_ref()).indent(false).to_string() })
}

/// A memory pool that spilling operators share evenly, as in a query. If the first operator could
/// allocate all the memory, chance would decide whether the others have enough left to spill.
fn with_memory(bytes: usize) -> Arc<RuntimeEnv> {
    let pool = Arc::new(FairSpillPool::new(bytes));
    RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap()
}

/// `timestamp_floor(step, ts)`, row by row.
fn floor(step: &str) -> Expr {
    let micros = match step {
        "s" => 1_000_000,
        "5m" => 300_000_000,
        "hour" => 3_600_000_000,
        _ => 86_400_000_000,
    };
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    let floored = move |arguments: &[ColumnarValue]| {
        let times = ColumnarValue::values_to_arrays(arguments)?.pop().unwrap();
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let floored = times.unary::<_, TimestampMicrosecondType>(|ts| ts - ts.rem_euclid(micros));
        Ok(ColumnarValue::Array(Arc::new(floored)))
    };
    let types = vec![DataType::Utf8, time.clone()];
    let function = Arc::new(floored);
    let udf = create_udf("timestamp_floor", types, time, Volatility::Immutable, function);
    udf.call(vec![lit(step), col("t.ts")])
}

/// Groups by the timestamp's floor, with and without a symbol before or after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timestamp_floors_are_planned_as_buckets() {
    let mut rng = random();
    let (mut found, mut ours) = (0, 0);
    let store = Store::new();
    for round in 0..60 {
        let len = rng.random_range(0..2_000);
        let span = [20, 3_600_000_000, 4 * 86_400_000_000][rng.random_range(0..3)];
        let rows = rows(&mut rng, len, span, 12);
        let table = store.table(&format!("t{round}"), rows.chunks(500).map(batch_of).collect());
        for step in ["s", "5m", "hour", "d"] {
            let input = LogicalPlanBuilder::from(scan("t", &table, vec![]));
            let input = match rng.random_range(0..3) {
                0 => input.filter(col("t.number").gt(lit(3))).unwrap(),
                _ => input,
            };
            let mut keys = vec![floor(step), col("t.symbol")];
            keys.rotate_left(rng.random_range(0..2));
            keys.retain(|key| *key != col("t.symbol") || rng.random_bool(0.5));
            let aggregates = vec![
                count(lit(1_i64)).alias("count"),
                avg(col("t.price")).alias("avg"),
                max(col("t.number")).alias("max"),
            ];
            let plan = input.aggregate(keys, aggregates).unwrap().build().unwrap();
            let own = SessionOptions {
                target_partitions: rng.random_range(1..5),
                scan_partition_rows: NonZeroUsize::new(rng.random_range(1..400)),
                ..SessionOptions::default()
            };
            let expected = plain_answer(&plan, &own).await.unwrap();
            let got = answer(&plan, &own).await;
            assert!(!expected.plan.contains("SampleByExec"), "{}", expected.plan);
            assert_eq!(got.rows, expected.rows, "{}", got.plan);
            found += got.rows.len();
            ours += usize::from(got.plan.contains("SampleByExec: ts@0 by"));
        }
    }
    assert!(found > 5_000, "too few groups: {found}");
    assert!(ours > 100, "too few plans with buckets: {ours}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_match_datafusion() {
    let mut rng = random();
    let (mut found, mut ours) = (0, 0);
    let store = Store::new();
    for round in 0..60 {
        let (len, span) = (rng.random_range(0..3_000), rng.random_range(1..10_000));
        let rows = rows(&mut rng, len, span, 12);
        let table = store.table(&format!("t{round}"), rows.chunks(500).map(batch_of).collect());
        for _ in 0..5 {
            let plan = grouping(&mut rng, scan("t", &table, vec![]));
            let small = NonZeroUsize::new(rng.random_range(1..400));
            let own = SessionOptions {
                target_partitions: rng.random_range(1..5),
                scan_partition_rows: small,
                ..SessionOptions::default()
            };
            let plain = SessionOptions { target_partitions: 1, ..own.clone() };
            let expected = plain_answer(&plan, &plain).await.unwrap();
            assert!(!expected.plan.contains("GroupRowsExec"), "{}", expected.plan);
            // Either unlimited memory, or barely more than a sort reserves.
            for memory in [usize::MAX >> 1, 64 << 20] {
                let own = SessionOptions { runtime: with_memory(memory), ..own.clone() };
                let got = answer(&plan, &own).await;
                assert_eq!(got.rows, expected.rows, "{}", got.plan);
                ours += usize::from(got.plan.contains("GroupRowsExec"));
            }
            found += expected.rows.len();
        }
    }
    assert!(found > 20_000, "too few groups: {found}");
    assert!(ours > 300, "too few plans with Tidemark's groups: {ours}");
}

/// Rows that exceed the memory limit are passed to the spilling operators.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_exceed_the_memory_limit_spill() {
    let mut rng = random();
    let store = Store::new();
    let mut all = rows(&mut rng, 300_000, 1 << 40, 12);
    for (size, row) in all.iter_mut().enumerate() {
        row.size = Some(size as i64);
    }
    let table = store.table("t", vec![batch_of(&all)]);
    let own = SessionOptions {
        target_partitions: 2,
        scan_partition_rows: NonZeroUsize::new(2_000),
        ..SessionOptions::default()
    };
    let aggregates = vec![count(lit(1_i64)).alias("count"), max(col("t.number")).alias("max")];
    let plan = LogicalPlanBuilder::from(scan("t", &table, vec![]));
    let plan = plan.aggregate(vec![col("t.size")], aggregates).unwrap().build().unwrap();
    let all = answer(&plan, &own).await;
    assert_eq!(all.rows.len(), 300_000);
    let mut answered = 0;
    for memory in [8, 12, 16, 24, 32].map(|mebibytes| mebibytes << 20) {
        let options = SessionOptions {
            runtime: with_memory(memory),
            query_memory_bytes: memory,
            ..own.clone()
        };
        let plain = SessionOptions { runtime: with_memory(memory), ..options.clone() };
        // A query that `DataFusion`'s operators can answer is not rejected.
        if plain_answer(&plan, &plain).await.is_err() {
            continue;
        }
        let got = answer(&plan, &options).await;
        assert!(got.plan.contains("GroupRowsExec"), "{}", got.plan);
        assert_eq!(got.rows, all.rows);
        answered += 1;
    }
    assert!(answered > 3);
}
