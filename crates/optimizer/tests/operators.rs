//! Compares every operator with a naive implementation, using optimised plans over stored tables.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod reference_operators;
mod support;

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::datatypes::Float64Type;
use arrow_schema::DataType;
use datafusion::catalog::Session;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::{avg, count, count_distinct, max, min, sum};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Volatility,
    col, create_udf, lit,
};
use datafusion::physical_plan::displayable;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use reference_operators::{asof, groups, latest};
use support::*;
use tidemark_operators::{
    AsofJoinNode, AsofKind, Bucket, BucketSpec, FillNode, FillValue, GroupCache, LatestOnNode,
    Rows, SampleByNode, StateMemory, StepUnit,
};
use tidemark_storage::{TableSnapshot, TimeRange};
use tidemark_types::SYMBOL_EQUAL;

const SECOND: i64 = 1_000_000;

/// Stores a table of random rows in several commits; also returns its rows in timestamp order.
fn table(store: &Store, rng: &mut ChaCha8Rng, name: &str) -> (Arc<TableSnapshot>, Vec<Row>) {
    let len = rng.random_range(0..600);
    let symbols = rng.random_range(1..12);
    let span = [20, 3_600 * SECOND, 4 * 86_400 * SECOND][rng.random_range(0..3)];
    let rows = rows(rng, len, span, symbols);
    let size = rng.random_range(1..300);
    let table = store.table(name, rows.chunks(size).map(batch_of).collect());
    (table, rows)
}

fn aggregates() -> Vec<Expr> {
    let (price, size) = (|| col("t.price"), || col("t.size"));
    vec![
        count(lit(1_i64)).alias("count"),
        count(price()).alias("prices"),
        sum(size()).alias("sum"),
        avg(price()).alias("avg"),
        min(price()).alias("min"),
        max(size()).alias("max"),
        edge("first", price(), DataType::Float64).alias("first"),
        edge("last", size(), DataType::Int64).alias("last"),
        edge("first_not_null", size(), DataType::Int64).alias("first_not_null"),
        edge("last_not_null", price(), DataType::Float64).alias("last_not_null"),
        count_distinct(col("t.note")).alias("notes"),
        count_distinct(col("t.symbol")).alias("symbols"),
    ]
}

/// Merging partial results rounds differently, so these aggregates are only tested with one
/// partition.
fn distances() -> Vec<Expr> {
    let of = |name: &str| edge(name, col("t.price"), DataType::Float64).alias(name);
    ["stddev_samp", "stddev_pop", "var_samp", "var_pop"].map(of).into()
}

fn expected_distances(rows: &[Row]) -> [String; 4] {
    let prices: Vec<f64> = rows.iter().filter_map(|row| row.price).collect();
    let (count, second) = (prices.len() as f64, second_moment(&prices));
    let sample = (count > 1.0).then(|| second / (count - 1.0));
    let all = (count > 0.0).then(|| second / count);
    [sample.map(f64::sqrt), all.map(f64::sqrt), sample, all].map(show_f64)
}

/// Sum of squared distances from the mean, row by row.
fn second_moment(values: &[f64]) -> f64 {
    let (mut mean, mut second) = (0.0, 0.0);
    for (before, value) in values.iter().enumerate() {
        let before = before as f64;
        let delta = value - mean;
        let step = delta / (before + 1.0);
        second += before * delta * step;
        mean += step;
    }
    second
}

fn expected_aggregates(rows: &[Row]) -> Vec<String> {
    let prices: Vec<f64> = rows.iter().filter_map(|row| row.price).collect();
    let sizes: Vec<i64> = rows.iter().filter_map(|row| row.size).collect();
    let different = |text: &dyn Fn(&Row) -> Option<String>| {
        rows.iter().filter_map(text).collect::<std::collections::HashSet<_>>().len().to_string()
    };
    let mean = prices.iter().sum::<f64>() / prices.len() as f64;
    vec![
        rows.len().to_string(),
        prices.len().to_string(),
        show((!sizes.is_empty()).then(|| sizes.iter().sum::<i64>())),
        show_f64((!prices.is_empty()).then_some(mean)),
        show_f64(prices.iter().copied().reduce(f64::min)),
        show(sizes.iter().max()),
        show_f64(rows.first().and_then(|row| row.price)),
        show(rows.last().and_then(|row| row.size)),
        show(sizes.first()),
        show_f64(prices.last().copied()),
        different(&|row| row.note.clone()),
        different(&|row| row.symbol.clone()),
    ]
}

/// A naive row-by-row comparison of doubles that has the production function's name.
fn double_comparison(name: &str, holds: fn(f64, f64) -> bool) -> ScalarUDF {
    let compare = move |arguments: &[ColumnarValue]| {
        let sides = ColumnarValue::values_to_arrays(arguments)?;
        let [left, right] = [0, 1].map(|side: usize| sides[side].as_primitive::<Float64Type>());
        let both = |(left, right): (Option<f64>, Option<f64>)| {
            Some(left.zip(right).is_some_and(|(left, right)| holds(left, right)))
        };
        let found: BooleanArray = left.iter().zip(right.iter()).map(both).collect();
        Ok(ColumnarValue::Array(Arc::new(found)))
    };
    let (types, returns) = (vec![DataType::Float64; 2], DataType::Boolean);
    create_udf(name, types, returns, Volatility::Immutable, Arc::new(compare))
}

/// Evaluates a condition on a row.
type Test = Box<dyn Fn(&Row) -> bool>;

/// A random condition, and its evaluation on a row.
fn condition(rng: &mut ChaCha8Rng) -> (Expr, Test) {
    let (size, number) = (rng.random_range(-1_000..1_000_i64), rng.random_range(-1..11));
    let price = f64::from(rng.random_range(-100..100));
    match rng.random_range(0..7) {
        0 => (
            col("t.size").lt(lit(size)).is_true(),
            Box::new(move |row| row.size.is_some_and(|of| of < size)),
        ),
        1 => (
            col("t.size").gt_eq(lit(size)).is_true(),
            Box::new(move |row| row.size.is_some_and(|of| of >= size)),
        ),
        2 => (
            lit(number).lt_eq(col("t.number")).is_true(),
            Box::new(move |row| row.number >= number),
        ),
        3 => (
            double_comparison("double_greater", |a, b| a > b)
                .call(vec![col("t.price"), lit(price)]),
            Box::new(move |row| row.price.is_some_and(|of| of > price)),
        ),
        4 => (
            double_comparison("double_less_or_equal", |a, b| a <= b)
                .call(vec![col("t.price"), lit(price)]),
            Box::new(move |row| row.price.is_some_and(|of| of <= price)),
        ),
        5 => (
            col("t.note").is_not_null().or(col("t.size").is_null()),
            Box::new(|row| row.note.is_some() || row.size.is_none()),
        ),
        _ => (col("t.symbol").is_not_null(), Box::new(|row| row.symbol.is_some())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_match_a_naive_loop() {
    let mut rng = random();
    let mut retained = 0;
    for _ in 0..60 {
        let store = Store::new();
        let (table, rows) = table(&store, &mut rng, "t");
        let conditions: Vec<_> = (0..rng.random_range(1..5)).map(|_| condition(&mut rng)).collect();
        let all = conditions.iter().map(|(expr, _)| expr.clone()).reduce(Expr::and).unwrap();
        let input = LogicalPlanBuilder::from(scan("t", &table, vec![]));
        let plan = input.filter(all.clone()).unwrap().build().unwrap();
        let physical = physical(plan.clone(), 2).await.unwrap();
        let shown = displayable(physical.as_ref()).indent(false).to_string();
        assert!(shown.contains("FilteredScanExec"), "{shown}");
        let found = cells(&run(plan, 2).await.unwrap());
        let holds = |row: &&Row| conditions.iter().all(|(_, holds)| holds(row));
        let expected: Vec<Row> = rows.iter().filter(holds).cloned().collect();
        let expected = if expected.is_empty() { vec![] } else { cells(&[batch_of(&expected)]) };
        assert_eq!(found, expected, "{all}");
        retained += found.len();
    }
    assert!(retained > 500, "too few rows: {retained}");
}

fn bucket(count: u32, unit: StepUnit) -> Bucket {
    Bucket { timestamp: col("t.ts"), spec: BucketSpec::new(count, unit) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sample_by_matches_a_naive_loop() {
    let mut rng = random();
    for _ in 0..40 {
        let store = Store::new();
        let (table, rows) = table(&store, &mut rng, "t");
        let step = [
            Some((7, StepUnit::Microsecond, 7)),
            Some((5, StepUnit::Minute, 300 * SECOND)),
            Some((1, StepUnit::Day, 86_400 * SECOND)),
            None,
        ][rng.random_range(0..4)];
        // Grouping keys: none, one symbol, the same symbol twice (combined slots), or a symbol and
        // a hashed key.
        let keys = match rng.random_range(0..4) {
            0 => vec![],
            1 => vec![col("t.symbol")],
            2 => vec![col("t.symbol"), col("t.symbol").alias("again")],
            _ => vec![col("t.symbol"), lit(3_i64).alias("three")],
        };
        let node = SampleByNode::try_new(
            scan("t", &table, vec![]),
            step.map(|(count, unit, _)| bucket(count, unit)),
            keys.clone(),
            [aggregates(), distances()].concat(),
        );
        let found = cells(&run(extension(node.unwrap()), 3).await.unwrap());
        let mut expected = vec![];
        for ((label, symbol), members) in groups(&rows, step.map(|step| step.2), !keys.is_empty()) {
            let mut row = vec![];
            row.extend(step.map(|_| label.to_string()));
            let key = show(symbol);
            match keys.len() {
                0 => {}
                1 => row.push(key),
                _ if keys[1] == lit(3_i64).alias("three") => row.extend([key, "3".into()]),
                _ => row.extend([key.clone(), key]),
            }
            row.extend(expected_aggregates(&members));
            row.extend(expected_distances(&members));
            expected.push(row);
        }
        if expected.is_empty() && step.is_none() && keys.is_empty() {
            let mut row = expected_aggregates(&[]);
            row.extend(expected_distances(&[]));
            expected.push(row);
        }
        // Groups with hashed keys are returned in hash order.
        let (mut found, mut expected) = (found, expected);
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

/// Random filters, projections, buckets and limits over one table.
fn plan_of_one_table(
    rng: &mut ChaCha8Rng,
    table: &Arc<TableSnapshot>,
    ranges: &[TimeRange],
) -> LogicalPlan {
    let mut plan = LogicalPlanBuilder::from(scan("t", table, ranges.to_vec()));
    for _ in 0..rng.random_range(0..3) {
        let value = ScalarValue::TimestampMicrosecond(Some(rng.random_range(0..SECOND)), None);
        let test = match rng.random_range(0..5) {
            0 => col("t.ts").gt(lit(value)),
            1 => col("t.symbol").is_not_null(),
            2 => col("t.size").gt(lit(rng.random_range(-50..50_i64)) + lit(1_i64)),
            3 => col("t.size").lt(lit(20_i64)).and(col("t.ts").lt_eq(lit(value))),
            _ => lit(false).or(col("t.price").lt(lit(0.5))),
        };
        plan = plan.filter(test).unwrap();
    }
    let mut qualified = "t.";
    if rng.random_bool(0.3) {
        plan = plan.alias("u").unwrap();
        qualified = "u.";
    }
    let column = |name: &str| col(format!("{qualified}{name}"));
    let by_time = rng.random_bool(0.4).then(|| rng.random_bool(0.5));
    let sorted = |plan: LogicalPlanBuilder| match by_time {
        Some(asc) => plan.sort([column("ts").sort(asc, asc)]).unwrap(),
        None => plan,
    };
    let top = match rng.random_range(0..5) {
        0 => sorted(plan),
        4 => {
            let built = sorted(plan).build().unwrap();
            let keys = vec![column(if rng.random_bool(0.7) { "symbol" } else { "note" })];
            let node = LatestOnNode::try_new(built, column("ts"), keys).unwrap();
            let latest = LogicalPlanBuilder::from(extension(node));
            latest.project([column("size"), column("symbol")]).unwrap()
        }
        1 => {
            let list = [
                column("size"),
                column("ts"),
                column("size") + lit(1_i64),
                column("size").alias("again"),
            ];
            sorted(plan.project(list).unwrap())
        }
        2 => {
            let inner =
                [column("note").alias("n"), column("ts").alias("at"), lit(1_i64) + lit(2_i64)];
            plan.project(inner).unwrap().project([col("at"), col("n")]).unwrap()
        }
        _ => {
            let sampled =
                Bucket { timestamp: column("ts"), spec: BucketSpec::new(1, StepUnit::Minute) };
            let values = vec![sum(column("size")).alias("sum"), count(lit(1_i64)).alias("rows")];
            let keys = if rng.random_bool(0.5) { vec![column("symbol")] } else { vec![] };
            let built = plan.build().unwrap();
            let node = SampleByNode::try_new(built, Some(sampled), keys, values).unwrap();
            LogicalPlanBuilder::from(extension(node)).project([col("sum"), col("rows")]).unwrap()
        }
    };
    match rng.random_range(0..3) {
        0 => top.limit(rng.random_range(0..5), Some(rng.random_range(0..30))).unwrap(),
        1 => top.limit(3, None).unwrap(),
        _ => top,
    }
    .build()
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unoptimised_and_optimised_plans_return_the_same_rows() {
    let mut rng = random();
    for _ in 0..20 {
        let store = Store::new();
        let (table, _) = table(&store, &mut rng, "t");
        for _ in 0..20 {
            let plan = plan_of_one_table(&mut rng, &table, &[]);
            let shown = plan.display_indent().to_string();
            let ruled = physical(session(2).optimize(&plan).unwrap(), 2).await.unwrap();
            let walked = physical(plan, 2).await.unwrap();
            assert_eq!(walked.schema().fields().len(), ruled.schema().fields().len(), "{shown}");
            let ruled = cells(&run_physical(ruled).await.unwrap());
            let walked = cells(&run_physical(walked).await.unwrap());
            assert_eq!(walked, ruled, "{shown}");
        }
    }
}

/// UNION ALL has one partition per input, even if one worker runs them all.
#[tokio::test]
async fn windows_see_the_rows_of_all_partitions() {
    let store = Store::new();
    let mut rng = random();
    let rows = rows(&mut rng, 300, 40, 5);
    let table = store.table("t", rows.chunks(90).map(batch_of).collect());
    let side = || LogicalPlanBuilder::from(scan("t", &table, vec![]));
    let all = side().union(side().build().unwrap()).unwrap();
    let count = WindowFunction::new(count_udaf(), vec![lit(1_i64)]);
    let total = Expr::from(count).partition_by(vec![col("ts")]).build().unwrap().alias("n");
    let columns = [col("ts"), col("n")];
    let plan = all.window([total]).unwrap().project(columns).unwrap().build().unwrap();
    let counted = |row: &Row| 2 * rows.iter().filter(|other| other.ts == row.ts).count();
    let expected = rows.iter().map(|row| vec![row.ts.to_string(), counted(row).to_string()]);
    let mut expected: Vec<_> = expected.clone().chain(expected).collect();
    expected.sort();
    for workers in 1..4 {
        let mut got = cells(&run(plan.clone(), workers).await.unwrap());
        got.sort();
        assert_eq!(got, expected, "{workers} workers");
    }
}

/// Returns either one time range or two ranges in ascending order.
fn ranges(rng: &mut ChaCha8Rng) -> Vec<TimeRange> {
    let end = |_| {
        let span = [25, 4_000 * SECOND][rng.random_range(0..2)];
        rng.random_range(-5..span)
    };
    let mut ends: Vec<i64> = (0..4).map(end).collect();
    ends.sort_unstable();
    let pairs = ends.chunks(2).map(|pair| TimeRange { lo: pair[0], hi: pair[1] + 1 });
    let pairs: Vec<_> = pairs.collect();
    let apart = pairs[0].hi < pairs[1].lo && rng.random_bool(0.5);
    pairs.into_iter().take(if apart { 2 } else { 1 }).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_reused_for_different_rows_matches_a_new_plan() {
    let mut rng = random();
    let (mut moved, mut all) = (0, 0);
    for _ in 0..20 {
        let store = Store::new();
        let (table, _) = table(&store, &mut rng, "t");
        for _ in 0..20 {
            let (known, other) = (ranges(&mut rng), ranges(&mut rng));
            let plan = plan_of_one_table(&mut rng.clone(), &table, &known);
            let expected = plan_of_one_table(&mut rng, &table, &other);
            let shown = expected.display_indent().to_string();
            let plan = physical(plan, 2).await.unwrap();
            let expected = physical(expected, 2).await.unwrap();
            all += 1;
            let reading = |known, ranges, predicate| {
                let predicate: Option<&Expr> = predicate;
                let predicate = predicate.map(tidemark_operators::Test::Named);
                let rows = Rows { known, ranges, predicate };
                session(2).reading(&plan, rows).unwrap()
            };
            assert!(reading(&other, &known, None).is_none() || known == other);
            let in_time = col("t.ts").gt(lit(ScalarValue::TimestampMicrosecond(Some(5), None)));
            assert!(reading(&known, &other, Some(&in_time)).is_none(), "{shown}");
            let Some(found) = reading(&known, &other, None) else { continue };
            moved += 1;
            let text = |plan| displayable(plan).indent(true).to_string();
            assert_eq!(text(found.as_ref()), text(expected.as_ref()), "{shown}");
            let found = cells(&run_physical(found).await.unwrap());
            assert_eq!(found, cells(&run_physical(expected).await.unwrap()), "{shown}");
        }
    }
    assert!(moved * 2 > all, "only {moved} of {all} plans could be reused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_reused_with_different_values_matches_a_new_plan() {
    let mut rng = random();
    let mut moved = 0;
    for _ in 0..20 {
        let store = Store::new();
        let (table, _) = table(&store, &mut rng, "t");
        for _ in 0..20 {
            let view = |text: String| ScalarValue::Utf8View(Some(text));
            let test = |rng: &mut ChaCha8Rng, kind: u32| match kind {
                0 => col("t.symbol").eq(lit(format!("S{}", rng.random_range(0..12)))),
                1 => col("t.size").gt(lit(rng.random_range(-900..900_i64)) + lit(1_i64)),
                2 => {
                    let limit = lit(f64::from(rng.random_range(-90..90)));
                    col("t.price")
                        .lt(limit.clone())
                        .or(col("t.size").gt(lit(3_i64)).and(col("t.price").is_null()))
                }
                _ => col("t.note")
                    .eq(lit(view(format!("note {}", rng.random_range(0..4)))))
                    .and(col("t.size").lt(lit(rng.random_range(-90..900_i64)))),
            };
            let kind = rng.random_range(0..4);
            let (known, ranges) = (ranges(&mut rng), ranges(&mut rng));
            let (before, predicate) = (test(&mut rng, kind), test(&mut rng, kind));
            let wide = rng.random_bool(0.5);
            let plan_of = |ranges: &[TimeRange], test: &Expr| {
                let plan = LogicalPlanBuilder::from(scan("t", &table, ranges.to_vec()));
                let plan = plan.filter(test.clone()).unwrap();
                let plan =
                    if wide { plan } else { plan.project([col("t.note"), col("t.ts")]).unwrap() };
                plan.limit(0, Some(50)).unwrap().build().unwrap()
            };
            let plan = physical(plan_of(&known, &before), 2).await.unwrap();
            let expected = physical(plan_of(&ranges, &predicate), 2).await.unwrap();
            let rows = Rows {
                known: &known,
                ranges: &ranges,
                predicate: Some(tidemark_operators::Test::Named(&predicate)),
            };
            let Some(found) = session(2).reading(&plan, rows).unwrap() else { continue };
            moved += 1;
            let text = |plan| displayable(plan).indent(true).to_string();
            assert_eq!(text(found.as_ref()), text(expected.as_ref()));
            let found = cells(&run_physical(found).await.unwrap());
            assert_eq!(found, cells(&run_physical(expected).await.unwrap()), "{predicate}");
        }
    }
    assert!(moved > 200, "only {moved} of 400 plans could be reused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_results_of_several_workers_merge_in_time_order() {
    let mut rng = random();
    let store = Store::new();
    let rows = rows(&mut rng, 400_000, 2 * 86_400 * SECOND, 20);
    let table = store.table("t", rows.chunks(150_000).map(batch_of).collect());
    for keys in [vec![], vec![col("t.symbol")]] {
        for step in [Some((5, StepUnit::Hour)), None] {
            let plan = || {
                let bucket = step.map(|(count, unit)| bucket(count, unit));
                let input = scan("t", &table, vec![]);
                let node = SampleByNode::try_new(input, bucket, keys.clone(), aggregates());
                extension(node.unwrap())
            };
            let alone = cells(&run(plan(), 1).await.unwrap());
            let together = cells(&run(plan(), 3).await.unwrap());
            assert_eq!(alone, together);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asof_join_matches_a_naive_loop() {
    let mut rng = random();
    for _ in 0..40 {
        let store = Store::new();
        let (left_table, left) = table(&store, &mut rng, "l");
        let (right_table, right) = table(&store, &mut rng, "r");
        let kind = [AsofKind::Asof, AsofKind::Lt][rng.random_range(0..2)];
        let tolerance = [None, Some(3), Some(60 * SECOND)][rng.random_range(0..3)];
        let keys = match rng.random_range(0..3) {
            0 => vec![],
            1 => vec![(col("l.symbol"), col("r.symbol"))],
            _ => {
                let keys = (col("l.symbol"), col("r.symbol"));
                vec![keys.clone(), keys]
            }
        };
        let keyed = !keys.is_empty();
        let (left_input, right_input) =
            (scan("l", &left_table, vec![]), scan("r", &right_table, vec![]));
        let (left_ts, right_ts) = (col("l.ts"), col("r.ts"));
        let node = AsofJoinNode::try_new(
            left_input,
            right_input,
            left_ts,
            right_ts,
            keys,
            kind,
            tolerance,
        );
        let columns =
            ["l.ts", "l.symbol", "l.size", "r.ts", "r.symbol", "r.price", "r.size", "r.note"];
        let plan = LogicalPlanBuilder::from(extension(node.unwrap()));
        let plan = plan.project(columns.map(col)).unwrap().build().unwrap();
        let found = cells(&run(plan, 2).await.unwrap());
        let expected: Vec<Vec<String>> = left
            .iter()
            .map(|row| {
                let matched = asof(row, &right, keyed, kind == AsofKind::Lt, tolerance);
                vec![
                    row.ts.to_string(),
                    show(row.symbol.clone()),
                    show(row.size),
                    show(matched.map(|row| row.ts)),
                    show(matched.and_then(|row| row.symbol.clone())),
                    show_f64(matched.and_then(|row| row.price)),
                    show(matched.and_then(|row| row.size)),
                    show(matched.and_then(|row| row.note.clone())),
                ]
            })
            .collect();
        assert_eq!(found, expected);
    }
}

/// The physical plan in EXPLAIN format.
async fn explain(plan: LogicalPlan) -> String {
    let plan = physical(plan, 2).await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

fn all_cells(rows: &[Row]) -> Vec<Vec<String>> {
    cells(&[batch_of(rows)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_on_matches_a_naive_loop() {
    let mut rng = random();
    for _ in 0..40 {
        let store = Store::new();
        let (table, mut rows) = table(&store, &mut rng, "t");
        let mut input = scan("t", &table, vec![]);
        if rng.random_bool(0.5) {
            let builder = LogicalPlanBuilder::from(input);
            input = builder.filter(col("t.number").gt(lit(4))).unwrap().build().unwrap();
            rows.retain(|row| row.number > 4);
        }
        let mut keys = vec![col("t.symbol")];
        if rng.random_bool(0.5) {
            keys.push(lit(1_i64));
        }
        let node = LatestOnNode::try_new(input, col("t.ts"), keys).unwrap();
        let found = cells(&run(extension(node), 2).await.unwrap());
        assert_eq!(found, all_cells(&latest(&rows)));
    }
}

/// A predicate's naive implementation.
type NaivePredicate<'a> = Box<dyn Fn(&Row) -> bool + 'a>;

/// Filters that a scan evaluates on the dictionary, on the rows, and on both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filtered_scans_match_a_naive_loop() {
    let mut rng = random();
    for _ in 0..20 {
        let store = Store::new();
        let (table, rows) = table(&store, &mut rng, "t");
        let symbol = rows.iter().find_map(|row| row.symbol.clone()).unwrap_or_default();
        let (equals, number) = (col("t.symbol").eq(lit(symbol.as_str())), rng.random_range(0..8));
        let above = col("t.number").gt(lit(number));
        let is = |row: &Row| row.symbol.as_ref() == Some(&symbol);
        let cases: [(Expr, NaivePredicate<'_>); 5] = [
            (equals.clone(), Box::new(is)),
            (col("t.symbol").is_null(), Box::new(|row| row.symbol.is_none())),
            (equals.clone().or(col("t.symbol").is_null()), {
                Box::new(|row| is(row) || row.symbol.is_none())
            }),
            (above.clone().and(equals.clone()), Box::new(|row| row.number > number && is(row))),
            (above.or(equals), Box::new(|row| row.number > number || is(row))),
        ];
        for (predicate, keeps) in cases {
            let retained: Vec<Row> = rows.iter().filter(|row| keeps(row)).cloned().collect();
            let filtered = LogicalPlanBuilder::from(scan("t", &table, vec![]));
            let filtered = filtered.filter(predicate).unwrap().build().unwrap();
            assert!(explain(filtered.clone()).await.contains("FilteredScanExec"));
            assert_eq!(cells(&run(filtered.clone(), 2).await.unwrap()), all_cells(&retained));
            let keys = vec![col("t.symbol")];
            let latest_on = LatestOnNode::try_new(filtered, col("t.ts"), keys).unwrap();
            let found = cells(&run(extension(latest_on), 2).await.unwrap());
            assert_eq!(found, all_cells(&latest(&retained)));
        }
    }
}

/// An equality with a symbol that has the production function's name. Scans look up the symbol, so
/// the function itself is never evaluated.
fn symbol_equal(text: &str) -> Expr {
    let symbol = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let computed = |_: &[ColumnarValue]| Err(DataFusionError::NotImplemented("looked up".into()));
    let (types, returns) = (vec![symbol, DataType::Utf8View], DataType::Boolean);
    let (volatility, computed) = (Volatility::Immutable, Arc::new(computed));
    let function = create_udf(SYMBOL_EQUAL, types, returns, volatility, computed);
    function.call(vec![col("t.symbol"), lit(ScalarValue::Utf8View(Some(text.to_owned())))])
}

/// Uses tables large enough that scans begin to cache the last row of each symbol during the test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_rows_of_given_symbols_match_a_naive_loop() {
    let mut rng = random();
    for round in 0..3 {
        let store = Store::new();
        let symbols = [3, 200, 2_000][round];
        let rows = rows(&mut rng, 30_000, 2 * 86_400 * SECOND, symbols);
        // Every second row arrives late.
        let late = |at: usize| rows.iter().skip(at).step_by(2).cloned().collect::<Vec<_>>();
        let partitions = if round == 1 { vec![late(0), late(1)] } else { vec![rows.clone()] };
        let table = store.table("t", partitions.iter().map(|rows| batch_of(rows)).collect());
        let mut stored = partitions.concat();
        stored.sort_by_key(|row| row.ts);
        for _ in 0..120 {
            let names: Vec<String> = (0..rng.random_range(1..4))
                .map(|_| format!("S{}", rng.random_range(0..symbols + 1)))
                .collect();
            let mut predicate = names.iter().map(|name| symbol_equal(name)).reduce(Expr::or);
            let until = rng.random_range(0..2 * 86_400 * SECOND);
            let range = rng.random_bool(0.3).then_some(TimeRange { lo: 0, hi: until });
            let min = if rng.random_bool(0.3) { rng.random_range(0..9) } else { -1 };
            if min >= 0 {
                predicate = predicate.map(|named| named.and(col("t.number").gt(lit(min))));
            }
            let is_named = |row: &Row| row.symbol.as_ref().is_some_and(|own| names.contains(own));
            let keeps = |row: &&Row| {
                is_named(row) && row.number > min && range.is_none_or(|range| row.ts < range.hi)
            };
            let retained: Vec<Row> = stored.iter().filter(keeps).cloned().collect();
            let input = scan("t", &table, range.into_iter().collect());
            let input = LogicalPlanBuilder::from(input).filter(predicate.unwrap()).unwrap();
            let keys = vec![col("t.symbol")];
            let node = LatestOnNode::try_new(input.build().unwrap(), col("t.ts"), keys).unwrap();
            let found = cells(&run(extension(node), 2).await.unwrap());
            assert_eq!(found, all_cells(&latest(&retained)), "{names:?} {range:?} {min}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_keep_time_order_and_read_no_more_rows_than_needed() {
    let mut rng = random();
    let store = Store::new();
    let rows = rows(&mut rng, 300_000, 86_400 * SECOND, 5);
    let table = store.table("t", rows.chunks(100_000).map(batch_of).collect());
    let times = |plan: LogicalPlan| async {
        let plan = LogicalPlanBuilder::from(plan).project(vec![col("t.ts")]).unwrap();
        cells(&run(plan.build().unwrap(), 2).await.unwrap()).concat()
    };
    let all: Vec<String> = rows.iter().map(|row| row.ts.to_string()).collect();
    assert_eq!(times(scan("t", &table, vec![])).await, all);
    let newest = LogicalPlanBuilder::from(scan("t", &table, vec![]))
        .sort(vec![col("t.ts").sort(false, false)])
        .unwrap();
    let backward: Vec<String> = all.iter().rev().cloned().collect();
    assert_eq!(times(newest.clone().build().unwrap()).await, backward);
    let top = newest.limit(0, Some(5)).unwrap().build().unwrap();
    let text = explain(top.clone()).await;
    assert!(text.contains("backward") && text.contains("rows=5"), "{text}");
    assert_eq!(times(top).await, backward[..5]);
    let (lo, hi) = (rows[1_000].ts, rows[2_000].ts);
    let inside: Vec<String> = rows
        .iter()
        .filter(|row| row.ts >= lo && row.ts < hi)
        .map(|row| row.ts.to_string())
        .collect();
    assert_eq!(times(scan("t", &table, vec![TimeRange { lo, hi }])).await, inside);
    let micros = |value| lit(ScalarValue::TimestampMicrosecond(Some(value), None));
    let filter = col("t.ts").gt_eq(micros(lo)).and(col("t.ts").lt(micros(hi)));
    let filtered = LogicalPlanBuilder::from(scan("t", &table, vec![])).filter(filter).unwrap();
    let filtered = filtered.build().unwrap();
    let text = explain(filtered.clone()).await;
    assert!(!text.contains("FilterExec"), "{text}");
    assert_eq!(times(filtered).await, inside);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_counts_and_min_max_timestamps_need_no_scan() {
    let mut rng = random();
    let store = Store::new();
    let rows = rows(&mut rng, 1_000, 86_400 * SECOND, 5);
    let table = store.table("t", vec![batch_of(&rows)]);
    let aggregates = vec![count(lit(1_i64)), min(col("t.ts")), max(col("t.ts"))];
    let node = SampleByNode::try_new(scan("t", &table, vec![]), None, vec![], aggregates);
    let plan = extension(node.unwrap());
    let text = explain(plan.clone()).await;
    assert!(!text.contains("TableScanExec"), "{text}");
    let found = cells(&run(plan, 2).await.unwrap());
    let ends = [rows[0].ts.to_string(), rows[999].ts.to_string()];
    assert_eq!(found, [["1000".to_string(), ends[0].clone(), ends[1].clone()]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fill_adds_every_missing_bucket() {
    let mut rng = random();
    for _ in 0..20 {
        let store = Store::new();
        let rows = rows(&mut rng, 30, 3_600 * SECOND, 4);
        let table = store.table("t", vec![batch_of(&rows)]);
        let keyed = rng.random_bool(0.5);
        let keys = if keyed { vec![col("t.symbol")] } else { vec![] };
        let step = 60 * SECOND;
        let spec = bucket(1, StepUnit::Minute);
        let size = edge("last", col("t.size"), DataType::Int64);
        let aggregates = vec![count(lit(1_i64)), size];
        let input = scan("t", &table, vec![]);
        let sampled = SampleByNode::try_new(input, Some(spec.clone()), keys, aggregates).unwrap();
        let zero = FillValue::Constant(ScalarValue::Int64(Some(0)));
        let values = vec![zero, FillValue::Prev];
        let keys = if keyed { vec![1] } else { vec![] };
        let fill = FillNode::try_new(extension(sampled), 0, keys, values, spec.spec, None).unwrap();
        let found = cells(&run(extension(fill), 2).await.unwrap());

        let known = groups(&rows, Some(step), keyed);
        let mut symbols: Vec<Option<String>> = vec![];
        for ((_, symbol), _) in &known {
            if !symbols.contains(symbol) {
                symbols.push(symbol.clone());
            }
        }
        let (first, last) = (known[0].0.0, known[known.len() - 1].0.0);
        let mut expected = vec![];
        for symbol in &symbols {
            let mut previous = None;
            for label in (first..=last).step_by(step as usize) {
                let key = (label, symbol.clone());
                let members = known.iter().find(|(known, _)| *known == key);
                if let Some((_, members)) = members {
                    previous = members.last().and_then(|row| row.size);
                }
                let count = members.map_or(0, |(_, members)| members.len());
                let mut row = vec![label.to_string()];
                row.extend(keyed.then(|| show(symbol.clone())));
                row.extend([count.to_string(), show(previous)]);
                expected.push(row);
            }
        }
        let mut sorted = found.clone();
        sorted.sort();
        expected.sort();
        assert_eq!(sorted, expected);
        let labels: Vec<i64> = found.iter().map(|row| row[0].parse().unwrap()).collect();
        assert!(labels.is_sorted());
    }
}

/// Aggregates whose states can be cached.
fn copied_aggregates() -> Vec<Expr> {
    let mut aggregates = aggregates();
    aggregates.truncate(aggregates.len() - 2);
    aggregates
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregation_resumes_from_cached_groups_at_the_watermark() {
    let mut rng = random();
    let mut resumed = 0;
    for _ in 0..40 {
        let store = Store::new();
        let (table, rows) = table(&store, &mut rng, "t");
        let step = [7, 300 * SECOND, 86_400 * SECOND][rng.random_range(0..3)];
        let spec = match step {
            7 => bucket(7, StepUnit::Microsecond),
            86_400_000_000 => bucket(1, StepUnit::Day),
            _ => bucket(5, StepUnit::Minute),
        };
        let keys =
            [vec![], vec![col("t.symbol")], vec![col("t.symbol"), col("t.symbol").alias("b")]]
                [rng.random_range(0..3)]
            .clone();
        let plan = |range: Vec<TimeRange>| {
            let (spec, keys) = (Some(spec.clone()), keys.clone());
            let input = scan("t", &table, range);
            extension(SampleByNode::try_new(input, spec, keys, copied_aggregates()).unwrap())
        };
        let memory = StateMemory::new(1 << 20);
        let retained = GroupCache::new(&memory);
        let whole = run(plan(vec![]), 3).await.unwrap();
        let (mut from, mut read_from) = (i64::MIN, i64::MIN);
        for _ in 0..3 {
            let Some(row) = rows.get(rng.random_range(0..rows.len().max(1))) else { break };
            let mark = row.ts.max(read_from);
            let floor = mark.div_euclid(step) * step;
            retained.mark_at(mark, floor);
            let read = vec![TimeRange { lo: read_from, hi: i64::MAX }];
            let on = retained.in_plan(plan(read)).unwrap().unwrap();
            let mut found = cells(&run(on, 3).await.unwrap());
            let mut expected = cells(&whole);
            expected.retain(|row| row[0].parse::<i64>().unwrap() >= from);
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "read from {read_from}, marked at {mark}");
            assert_eq!(retained.marked(), Some(mark));
            assert!(memory.used() <= 1 << 20);
            resumed += usize::from(read_from != i64::MIN);
            (from, read_from) = (floor, mark);
        }
        drop(retained);
        assert_eq!(memory.used(), 0, "the cached groups release their memory");
    }
    assert!(resumed > 20);
}

#[tokio::test]
async fn groups_are_cached_if_they_fit_in_memory_and_can_be_copied() {
    let mut rng = random();
    let store = Store::new();
    let rows = rows(&mut rng, 500, 3_600 * SECOND, 4);
    let table = store.table("t", vec![batch_of(&rows)]);
    let plan = |aggregates, keys| {
        let spec = Some(bucket(1, StepUnit::Day));
        extension(SampleByNode::try_new(scan("t", &table, vec![]), spec, keys, aggregates).unwrap())
    };
    let symbol = || vec![col("t.symbol")];
    let cases = [
        (1 << 20, copied_aggregates(), symbol(), true),
        (16, copied_aggregates(), symbol(), false),
        (1 << 20, aggregates(), symbol(), false),
        (1 << 20, copied_aggregates(), vec![col("t.note")], false),
    ];
    for (max, aggregates, keys, is_kept) in cases {
        let memory = StateMemory::new(max);
        let retained = GroupCache::new(&memory);
        retained.mark_at(rows[400].ts, 0);
        let expected = cells(&run(plan(aggregates.clone(), keys.clone()), 2).await.unwrap());
        let on = retained.in_plan(plan(aggregates, keys)).unwrap().unwrap();
        let mut found = cells(&run(on, 2).await.unwrap());
        let mut expected = expected;
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(retained.marked().is_some(), is_kept, "{max}");
        assert_eq!(memory.used() > 0, is_kept);
    }
    let memory = StateMemory::new(1 << 20);
    let whole = SampleByNode::try_new(scan("t", &table, vec![]), None, symbol(), aggregates());
    let without_buckets = GroupCache::new(&memory).in_plan(extension(whole.unwrap())).unwrap();
    assert!(without_buckets.is_none());
}

#[tokio::test]
async fn from_and_to_bounds_filter_the_rows_and_anchor_the_buckets() {
    let mut rng = random();
    let store = Store::new();
    let rows = rows(&mut rng, 500, 3_600 * SECOND, 4);
    let table = store.table("t", vec![batch_of(&rows)]);
    let (from, to) = (601 * SECOND, 2_000 * SECOND);
    let mut spec = bucket(7, StepUnit::Minute);
    spec.spec.from = Some(from);
    spec.spec.to = Some(to);
    let input = scan("t", &table, vec![]);
    let node = SampleByNode::try_new(input, Some(spec), vec![], vec![count(lit(1_i64))]).unwrap();
    let found = cells(&run(extension(node), 2).await.unwrap());
    let step = 420 * SECOND;
    let mut expected: Vec<Vec<String>> = vec![];
    for label in (from..to).step_by(step as usize) {
        let end = to.min(label + step);
        let count = rows.iter().filter(|row| row.ts >= label && row.ts < end).count();
        if count > 0 {
            expected.push(vec![label.to_string(), count.to_string()]);
        }
    }
    assert_eq!(found, expected);
}
