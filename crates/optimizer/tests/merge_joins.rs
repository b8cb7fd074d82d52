//! Compares joins of two ordered inputs with nested loops, using optimised plans over stored
//! tables.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::JoinType;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::{StreamExt, TryStreamExt};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::*;
use tidemark_optimizer::{PlanSession, SessionOptions};

fn session_of(partitions: usize, part_rows: usize) -> PlanSession {
    PlanSession::new(&SessionOptions {
        target_partitions: partitions,
        scan_partition_rows: NonZeroUsize::new(part_rows),
        ..SessionOptions::default()
    })
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

async fn run_in(session: &PlanSession, plan: &LogicalPlan) -> (String, Vec<Vec<String>>) {
    let plan = session.physical_plan(plan).await.unwrap();
    let batches = execute_stream(Arc::clone(&plan), session.task_ctx()).unwrap();
    let batches: Vec<_> = batches.try_collect().await.unwrap();
    (shown(&plan), cells(&batches))
}

/// Stores a table of random rows in any number of commits.
fn stored(store: &Store, rng: &mut ChaCha8Rng, name: &str, span: i64) -> (LogicalPlan, Vec<Row>) {
    let max = [1, 30, 400][rng.random_range(0..3)];
    let len = rng.random_range(0..=max);
    let rows = rows(rng, len, span, 5);
    let size = rng.random_range(1..200);
    let table = store.table(name, rows.chunks(size).map(batch_of).collect());
    (scan(name, &table, vec![]), rows)
}

/// Either all rows of an input, or only the rows that satisfy a condition.
fn side(
    rng: &mut ChaCha8Rng,
    (plan, rows): (LogicalPlan, Vec<Row>),
    name: &str,
) -> (LogicalPlan, Vec<Row>) {
    let max = rng.random_range(0..10);
    if rng.random_bool(0.5) {
        return (plan, rows);
    }
    let condition = col(format!("{name}.number")).lt(lit(max));
    let plan = LogicalPlanBuilder::from(plan).filter(condition).unwrap().build().unwrap();
    (plan, rows.into_iter().filter(|row| row.number < max).collect())
}

fn cells_of(row: Option<&Row>) -> [String; 4] {
    [
        show(row.map(|row| row.ts)),
        show(row.and_then(|row| row.symbol.clone())),
        show(row.and_then(|row| row.size)),
        show(row.and_then(|row| row.note.clone())),
    ]
}

fn columns_of(name: &str) -> [Expr; 4] {
    ["ts", "symbol", "size", "note"].map(|column| col(format!("{name}.{column}")))
}

/// Every pair of rows, and rows without a match.
fn pairs(
    left: &[Row],
    right: &[Row],
    kind: JoinType,
    holds: impl Fn(&Row, &Row) -> bool,
) -> Vec<Vec<String>> {
    let mut pairs = vec![];
    let mut push = |left: Option<&Row>, right: Option<&Row>| {
        pairs.push([cells_of(left), cells_of(right)].concat());
    };
    let is_pair = |left: &Row, right: &Row| left.ts == right.ts && holds(left, right);
    for one in left {
        let own: Vec<_> = right.iter().filter(|other| is_pair(one, other)).collect();
        for other in &own {
            push(Some(one), Some(other));
        }
        if own.is_empty() && kind == JoinType::Left {
            push(Some(one), None);
        }
    }
    for other in right {
        if kind == JoinType::Right && !left.iter().any(|one| is_pair(one, other)) {
            push(None, Some(other));
        }
    }
    pairs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merge_joins_match_nested_loops() {
    let mut rng = random();
    let (mut found, mut merged) = (0, 0);
    for _ in 0..120 {
        let store = Store::new();
        let span = [1, 20, 400, 4 * 86_400_000_000][rng.random_range(0..4)];
        let (t, u) = (stored(&store, &mut rng, "t", span), stored(&store, &mut rng, "u", span));
        let (t, u) = (side(&mut rng, t, "t"), side(&mut rng, u, "u"));
        let kind = [JoinType::Inner, JoinType::Left, JoinType::Right][rng.random_range(0..3)];
        let is_filtered = kind == JoinType::Inner && rng.random_bool(0.3);
        let condition = is_filtered.then(|| col("t.number").lt_eq(col("u.number")));
        let on = (vec!["t.ts"], vec!["u.ts"]);
        let plan = LogicalPlanBuilder::from(t.0).join(u.0, kind, on, condition).unwrap();
        let columns = columns_of("t").into_iter().chain(columns_of("u"));
        let plan = plan.project(columns).unwrap().build().unwrap();
        let (partitions, part_rows) = (rng.random_range(1..4), rng.random_range(1..60));
        let (shown, mut got) = run_in(&session_of(partitions, part_rows), &plan).await;
        let about = format!("{kind:?}, {partitions} of {part_rows}\n{shown}");
        merged += usize::from(shown.contains("MergeJoinExec"));
        let time = if kind == JoinType::Right { 4 } else { 0 };
        let times = got.iter().map(|row| row[time].parse::<i64>().unwrap());
        assert!(times.is_sorted(), "rows must be in time order: {about}");
        let mut expected =
            pairs(&t.1, &u.1, kind, |one, other| !is_filtered || one.number <= other.number);
        found += expected.len();
        expected.sort();
        got.sort();
        assert_eq!(got, expected, "{about}");
    }
    assert!(found > 10_000 && merged > 110, "{found} rows, {merged} merged");
}

/// Merge joins whose result is joined with a third table, aggregated, or reduced to few or no
/// columns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merge_joins_feed_merge_joins_and_aggregates() {
    let mut rng = random();
    for _ in 0..30 {
        let store = Store::new();
        let (t, t_rows) = stored(&store, &mut rng, "t", 60);
        let (u, u_rows) = stored(&store, &mut rng, "u", 60);
        let (v, v_rows) = stored(&store, &mut rng, "v", 60);
        let join = |left: LogicalPlan, right: LogicalPlan, name: &str| {
            let on = (vec!["t.ts".to_string()], vec![format!("{name}.ts")]);
            let join = LogicalPlanBuilder::from(left).join(right, JoinType::Inner, on, None);
            join.unwrap().build().unwrap()
        };
        let both = join(join(t, u, "u"), v, "v");
        let aggregates = vec![count(lit(1_i64)), sum(col("v.size"))];
        let no_keys: Vec<Expr> = vec![];
        let plan = LogicalPlanBuilder::from(both).aggregate(no_keys, aggregates).unwrap();
        let session = session_of(rng.random_range(1..4), rng.random_range(1..40));
        let (shown, got) = run_in(&session, &plan.build().unwrap()).await;
        assert_eq!(shown.matches("MergeJoinExec").count(), 2, "{shown}");
        let (mut rows, mut sizes, mut total) = (0, 0, 0);
        for v in &v_rows {
            let of = |rows: &[Row]| rows.iter().filter(|row| row.ts == v.ts).count() as i64;
            let pairs = of(&t_rows) * of(&u_rows);
            rows += pairs;
            sizes += if v.size.is_some() { pairs } else { 0 };
            total += pairs * v.size.unwrap_or(0);
        }
        let total = show((sizes > 0).then_some(total));
        assert_eq!(got, [[rows.to_string(), total]], "{shown}");
    }
}

fn one_time(number: i32) -> Row {
    Row { ts: 7, symbol: None, price: None, size: Some(1), note: None, number }
}

/// All rows have the same timestamp. The join must return its pairs in batches of the usual size,
/// and must count the memory of the rows that a filter copies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_rows_with_one_timestamp_stay_within_the_memory_limit() {
    let store = Store::new();
    let many: Vec<Row> = (0..200_000).map(|at| one_time(at % 10)).collect();
    let few: Vec<Row> = (0..15).map(one_time).collect();
    let many = store.table("m", vec![batch_of(&many)]);
    let few = store.table("f", vec![batch_of(&few)]);
    // The rows that pass a filter are copied.
    let held = LogicalPlanBuilder::from(scan("m", &many, vec![]));
    let held = held.filter(col("m.number").lt(lit(9))).unwrap().build().unwrap();
    let on = (vec!["f.ts"], vec!["m.ts"]);
    let plan = LogicalPlanBuilder::from(scan("f", &few, vec![]));
    let plan = plan.join(held, JoinType::Left, on, None).unwrap();
    let columns = [col("f.number"), col("m.size"), col("m.ts")];
    let plan = plan.project(columns).unwrap().build().unwrap();
    for (mebibytes, fits) in [(1, false), (64, true)] {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(mebibytes << 20, 1.0);
        let session = PlanSession::new(&SessionOptions {
            target_partitions: 2,
            scan_partition_rows: NonZeroUsize::new(1_000),
            runtime: runtime.build_arc().unwrap(),
            ..SessionOptions::default()
        });
        let plan = session.physical_plan(&plan).await.unwrap();
        assert!(shown(&plan).contains("MergeJoinExec: Outer"), "{}", shown(&plan));
        let mut batches = execute_stream(plan, session.task_ctx()).unwrap();
        let (mut rows, mut is_refused) = (0, false);
        while let Some(batch) = batches.next().await {
            match batch {
                Ok(batch) => {
                    assert!(batch.num_rows() <= 64 * 1024);
                    rows += batch.num_rows();
                }
                Err(error) => {
                    is_refused = true;
                    assert!(error.to_string().contains("MergeJoin"), "{error}");
                    break;
                }
            }
        }
        assert_eq!((!is_refused, rows), (fits, if fits { 15 * 180_000 } else { 0 }));
    }
}

/// Inputs that suit a lookup table better, and unordered inputs, are not merged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_inputs_use_a_lookup_join() {
    let store = Store::new();
    let mut rng = random();
    let (t, _) = stored(&store, &mut rng, "t", 60);
    let (u, _) = stored(&store, &mut rng, "u", 60);
    let join = |on: (Vec<&str>, Vec<&str>)| {
        let join = LogicalPlanBuilder::from(t.clone()).join(u.clone(), JoinType::Inner, on, None);
        join.unwrap().project([col("t.ts")]).unwrap().build().unwrap()
    };
    let by_time = || join((vec!["t.ts"], vec!["u.ts"]));
    let (shown, _) = run_in(&session(2), &by_time()).await;
    assert!(shown.contains("LookupJoinExec"), "{shown}");
    let (shown, _) = run_in(&session_of(2, 10), &by_time()).await;
    assert!(shown.contains("MergeJoinExec"), "{shown}");
    let (shown, _) = run_in(&session_of(2, 10), &join((vec!["t.size"], vec!["u.size"]))).await;
    assert!(!shown.contains("MergeJoinExec"), "{shown}");
    let more = join((vec!["t.ts", "t.size"], vec!["u.ts", "u.size"]));
    let (shown, _) = run_in(&session_of(2, 10), &more).await;
    assert!(!shown.contains("MergeJoinExec"), "{shown}");
}
