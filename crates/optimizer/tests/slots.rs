//! Compares the results of GROUP BY on low-cardinality keys with those of `DataFusion` and of plain
//! loops.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::functions_aggregate::expr_fn::{count, max, sum};
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::TryStreamExt;
use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use support::*;
use tidemark_optimizer::{PlanSession, SessionOptions};
use tidemark_storage::{Change, TableSnapshot};

/// Returns the sorted cells of a plan's result, and whether the plan grouped rows by slots.
async fn answer(plan: &LogicalPlan, options: &SessionOptions) -> (Vec<Vec<String>>, bool) {
    let physical = PlanSession::new(options).physical_plan(plan).await.unwrap();
    answer_of(physical, options).await
}

async fn answer_of(
    plan: Arc<dyn ExecutionPlan>,
    options: &SessionOptions,
) -> (Vec<Vec<String>>, bool) {
    let context = PlanSession::new(options).task_ctx();
    let batches = execute_stream(Arc::clone(&plan), context).unwrap();
    let mut rows = cells(&batches.try_collect::<Vec<_>>().await.unwrap());
    rows.sort();
    let text = displayable(plan.as_ref()).indent(false).to_string();
    (rows, text.contains("SampleByExec: keys=") && text.contains("(slots)"))
}

fn small_partitions(rng: &mut ChaCha8Rng) -> SessionOptions {
    SessionOptions {
        target_partitions: rng.random_range(1..5),
        scan_partition_rows: NonZeroUsize::new(rng.random_range(1..400)),
        ..SessionOptions::default()
    }
}

/// The range of a column's random values, and whether the range is small.
fn range(rng: &mut ChaCha8Rng) -> (RangeInclusive<i64>, bool) {
    let start = rng.random_range(-1_000_000..1_000_000);
    match rng.random_range(0..8) {
        0 => (start..=start, true),
        1 => (start..=start + 100, true),
        2 => (start..=start + 1_000, true),
        3 => (start..=start + 100_000, false),
        4 => (i64::MIN + 1..=i64::MIN + 50, true),
        5 => (i64::MAX - 50..=i64::MAX, true),
        6 => (i64::MIN + 1..=i64::MAX, false),
        _ => (-40..=40, true),
    }
}

fn numbered(rng: &mut ChaCha8Rng, len: usize, sizes: RangeInclusive<i64>) -> Vec<Row> {
    let mut rows = rows(rng, len, 1 << 30, 6);
    let nulls = [0.0, 0.0, 0.3, 1.0][rng.random_range(0..4)];
    for row in &mut rows {
        row.size = (!rng.random_bool(nulls)).then(|| rng.random_range(sizes.clone()));
    }
    rows
}

fn grouping(rng: &mut ChaCha8Rng, input: LogicalPlan) -> LogicalPlan {
    let column = |name: &str| col(format!("t.{name}"));
    let mut keys = vec![column("number"), column("symbol"), column("price").gt(lit(0.0))];
    keys.shuffle(rng);
    keys.truncate(rng.random_range(0..3));
    keys.insert(rng.random_range(0..=keys.len()), column("size"));
    let positive = column("price").gt(lit(10.0));
    let mut aggregates = aggregates("t");
    aggregates.push(sum(column("price")).filter(positive).build().unwrap().alias("positive"));
    aggregates.shuffle(rng);
    aggregates.truncate(rng.random_range(0..=7));
    let plan = LogicalPlanBuilder::from(input);
    let plan = match rng.random_range(0..3) {
        0 => plan.filter(column("number").gt(lit(3))).unwrap(),
        _ => plan,
    };
    plan.aggregate(keys, aggregates).unwrap().build().unwrap()
}

/// Rows that are partly stored in files.
fn stored(store: &Store, name: &str, rows: &[Row], rng: &mut ChaCha8Rng) -> Arc<TableSnapshot> {
    let table = store.table(name, rows.chunks(500).map(batch_of).collect());
    if rng.random_bool(0.5) {
        return table;
    }
    store.storage.flush().unwrap();
    store.storage.snapshot().table(name).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_over_a_narrow_number_range_match_datafusion() {
    let mut rng = random();
    let (mut found, mut by_slots, mut by_hashes) = (0, 0, 0);
    let store = Store::new();
    for round in 0..60 {
        let len = rng.random_range(0..2_000);
        let (sizes, are_near) = range(&mut rng);
        let rows = numbered(&mut rng, len, sizes);
        let table = stored(&store, &format!("t{round}"), &rows, &mut rng);
        for _ in 0..5 {
            let plan = grouping(&mut rng, scan("t", &table, vec![]));
            let own = small_partitions(&mut rng);
            let plain = SessionOptions { target_partitions: 1, ..own.clone() };
            let library = by_library(&plan, &plain).await.unwrap();
            let (expected, is_ours) = answer_of(library, &plain).await;
            assert!(!is_ours);
            let runtime = RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::new(FairSpillPool::new(64 << 20)))
                .build_arc()
                .unwrap();
            let (got, has_slots) = answer(&plan, &SessionOptions { runtime, ..own }).await;
            assert_eq!(got, expected, "{}", plan.display_indent());
            found += got.len();
            by_slots += usize::from(has_slots);
            by_hashes += usize::from(!has_slots);
            let is_far = !are_near && rows.iter().filter(|row| row.size.is_some()).count() > 100;
            assert!(!(is_far && has_slots), "{}", plan.display_indent());
        }
    }
    assert!(found > 10_000, "too few groups: {found}");
    assert!(by_slots > 80 && by_hashes > 20, "{by_slots} by slots, {by_hashes} by hashes");
}

/// Compares counts and maximums with a plain loop. Later rows have values far outside the previous
/// range.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_rows_are_lost_when_the_number_range_grows() {
    let mut rng = random();
    let store = Store::new();
    let mut all = numbered(&mut rng, 3_000, 7..=90);
    let mut table = stored(&store, "t", &all, &mut rng);
    let mut had_slots = vec![];
    for later in [7..=300, -900..=-3, i64::MIN + 1..=i64::MAX] {
        let mut expected: BTreeMap<Option<i64>, (i64, i32)> = BTreeMap::new();
        for row in &all {
            let (count, limit) = expected.entry(row.size).or_default();
            (*count, *limit) = (*count + 1, row.number.max(*limit));
        }
        let null = show(None::<i64>);
        let line = |(size, (count, limit)): (&Option<i64>, &(i64, i32))| {
            let size = size.map_or_else(|| null.clone(), |size| size.to_string());
            vec![size, count.to_string(), limit.to_string()]
        };
        let mut expected: Vec<_> = expected.iter().map(line).collect();
        expected.sort();
        let plan = LogicalPlanBuilder::from(scan("t", &table, vec![]));
        let aggregates = vec![count(lit(1_i64)).alias("c"), max(col("t.number")).alias("m")];
        let plan = plan.aggregate(vec![col("t.size")], aggregates).unwrap().build().unwrap();
        let (got, has_slots) = answer(&plan, &small_partitions(&mut rng)).await;
        assert_eq!(got, expected);
        had_slots.push(has_slots);
        let more = numbered(&mut rng, 2_000, later);
        let (id, version) = (table.schema().id, table.schema().version);
        let change = Change::Append { table: id, schema_version: version, batch: batch_of(&more) };
        store.storage.commit(vec![change]).unwrap();
        all.extend(more);
        table = store.storage.snapshot().table("t").unwrap();
    }
    assert_eq!(had_slots, [true, true, true]);
    let plan = LogicalPlanBuilder::from(scan("t", &table, vec![]));
    let aggregates: Vec<Expr> = vec![count(lit(1_i64)).alias("c")];
    let plan = plan.aggregate(vec![col("t.size")], aggregates).unwrap().build().unwrap();
    let (got, has_slots) = answer(&plan, &small_partitions(&mut rng)).await;
    let mut different: Vec<_> = all.iter().map(|row| row.size).collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!(got.len(), different.len());
    assert!(!has_slots || different.len() < 1_200);
}
