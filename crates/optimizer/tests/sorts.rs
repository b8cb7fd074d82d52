//! Compares Tidemark's sorts and ranks with `DataFusion`'s, on random rows with every kind of key.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int16Array,
    Int64Array, RecordBatch, StringArray, StringViewArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SortOptions};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::functions_window::expr_fn::{dense_rank, rank, row_number};
use datafusion::logical_expr::{Expr, Operator, WindowFrame, WindowFunctionDefinition};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{WindowAggExec, create_window_expr};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use futures::StreamExt;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::random;
use tidemark_operators::{RankRows, SortRows};

const KINDS: usize = 7;

fn collected<A: Array + FromIterator<T> + 'static, T>(values: impl Iterator<Item = T>) -> ArrayRef {
    Arc::new(values.collect::<A>())
}

/// Properties of a key column.
#[derive(Clone, Copy)]
struct Shape {
    kind: usize,
    different: i64,
    nulls: f64,
}

impl Shape {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let different = [1, 3, 40, 1 << 40][rng.random_range(0..4)];
        let nulls = [0.0, 0.2, 1.0][rng.random_range(0..3_usize).min(rng.random_range(0..3))];
        Self { kind: rng.random_range(0..KINDS), different, nulls }
    }

    fn column(self, rng: &mut ChaCha8Rng, rows: usize, texts: &ArrayRef) -> ArrayRef {
        let mut values = Vec::with_capacity(rows);
        for _ in 0..rows {
            let value = rng.random_range(0..self.different) - self.different / 2;
            values.push((!rng.random_bool(self.nulls)).then_some(value));
        }
        let values = values.into_iter();
        match self.kind {
            0 => {
                let key = |value: i64| value.rem_euclid(texts.len() as i64) as i32;
                let keys = values.map(|value| value.map(key)).collect();
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(texts)).unwrap())
            }
            1 => {
                let ends = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MIN];
                let float = |value: i64| match value.rem_euclid(12) {
                    special @ 0..6 if self.different > 3 => ends[special as usize],
                    _ => value as f64 / 4.0,
                };
                collected::<Float64Array, _>(values.map(|value| value.map(float)))
            }
            2 => collected::<Int64Array, _>(values.map(|value| {
                let edge = value == Some(-1);
                value.map(|value| if edge { i64::MAX } else { value })
            })),
            3 => collected::<Int16Array, _>(values.map(|value| value.map(|value| value as i16))),
            4 => collected::<TimestampMicrosecondArray, _>(values),
            5 => collected::<Float32Array, _>(
                values.map(|value| value.map(|value| value as f32 / 8.0)),
            ),
            _ => collected::<BooleanArray, _>(values.map(|value| value.map(|value| value > 0))),
        }
    }
}

/// Dictionary strings, some of them duplicated.
fn texts(rng: &mut ChaCha8Rng) -> ArrayRef {
    let texts = (0..rng.random_range(1..30)).map(|_| Some(format!("t{}", rng.random_range(0..40))));
    collected::<StringArray, _>(texts)
}

/// Partitions of rows with these keys `k0`, `k1`, …, a row number and a string.
fn partitions(rng: &mut ChaCha8Rng, shapes: &[Shape], max: usize) -> Vec<Vec<RecordBatch>> {
    let shared = texts(rng);
    let own_dictionaries = rng.random_bool(0.2);
    let mut number = 0;
    let mut partition = |rng: &mut ChaCha8Rng| {
        let batches = (0..rng.random_range(1..4)).map(|_| {
            let rows = rng.random_range(0..=max);
            let texts = if own_dictionaries { texts(rng) } else { Arc::clone(&shared) };
            let keys = shapes.iter().map(|shape| shape.column(rng, rows, &texts));
            let mut columns: Vec<ArrayRef> = keys.collect();
            let numbers = number..number + rows as i64;
            columns.push(Arc::new(Int64Array::from_iter_values(numbers.clone())));
            columns.push(collected::<StringViewArray, _>(
                numbers.map(|number| Some(format!("a text of the row {number}"))),
            ));
            number += rows as i64;
            let types = columns.iter().map(|column| column.data_type().clone()).enumerate();
            let fields = types.map(|(at, own)| Field::new(format!("k{at}"), own, true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            RecordBatch::try_new(schema, columns).unwrap()
        });
        batches.collect::<Vec<_>>()
    };
    (0..rng.random_range(1..4)).map(|_| partition(rng)).collect()
}

fn in_memory(partitions: &[Vec<RecordBatch>]) -> Arc<dyn ExecutionPlan> {
    MemorySourceConfig::try_new_exec(partitions, partitions[0][0].schema(), None).unwrap()
}

fn column(at: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(&format!("k{at}"), at))
}

/// Sort keys that make `DataFusion` treat -0.0 and 0.0 as one key, as Tidemark's sorts do.
fn with_one_zero(keys: &[PhysicalSortExpr], schema: &Schema) -> Vec<PhysicalSortExpr> {
    let with_one_zero = |key: &PhysicalSortExpr| {
        if key.expr.data_type(schema).unwrap() != DataType::Float64 {
            return key.clone();
        }
        let sum = BinaryExpr::new(Arc::clone(&key.expr), Operator::Plus, lit(0.0));
        PhysicalSortExpr::new(Arc::new(sum), key.options)
    };
    keys.iter().map(with_one_zero).collect()
}

/// All partitions' rows, as strings.
async fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Vec<Vec<String>> {
    let mut rows = vec![];
    let partitions = plan.output_partitioning().partition_count();
    for partition in 0..partitions {
        let mut batches = plan.execute(partition, Arc::default()).unwrap();
        while let Some(batch) = batches.next().await {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                let cell = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
                rows.push(batch.columns().iter().map(cell).collect());
            }
        }
    }
    rows
}

fn order(rng: &mut ChaCha8Rng, keys: std::ops::Range<usize>) -> Vec<PhysicalSortExpr> {
    let mut key = |at| {
        let (descending, nulls_first) = (rng.random_bool(0.5), rng.random_bool(0.5));
        PhysicalSortExpr::new(column(at), SortOptions { descending, nulls_first })
    };
    keys.map(&mut key).collect()
}

fn sorted(input: Arc<dyn ExecutionPlan>, order: &LexOrdering) -> Arc<dyn ExecutionPlan> {
    let sort = SortExec::new(order.clone(), input).with_preserve_partitioning(true);
    Arc::new(SortPreservingMergeExec::new(order.clone(), Arc::new(sort)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sorts_match_datafusion() {
    let mut rng = random();
    let mut found = 0;
    for round in 0..300 {
        let count = rng.random_range(1..=3);
        let shapes: Vec<Shape> = (0..count).map(|_| Shape::random(&mut rng)).collect();
        let input = in_memory(&partitions(&mut rng, &shapes, [0, 3, 300, 3_000][round % 4]));
        let mut keys = order(&mut rng, 0..count);
        // The row number makes the order unique.
        keys.push(PhysicalSortExpr::new(column(count), SortOptions::default()));
        let of_library = with_one_zero(&keys, &input.schema());
        let whole = sorted(Arc::clone(&input), &LexOrdering::new(keys).unwrap());
        let (skip, fetch) = match rng.random_range(0..3) {
            0 => (0, None),
            1 => (rng.random_range(0..5_000), None),
            _ => (rng.random_range(0..3_000), Some(70_000)),
        };
        let limited = Arc::new(GlobalLimitExec::new(whole, skip, fetch)) as Arc<_>;
        let own = SortRows::try_replace(&limited).unwrap();
        let whole = sorted(input, &LexOrdering::new(of_library).unwrap());
        let expected = rows_of(&(Arc::new(GlobalLimitExec::new(whole, skip, fetch)) as _)).await;
        found += expected.len();
        assert_eq!(rows_of(&own).await, expected, "{}", shown(&own));
    }
    assert!(found > 100_000, "too few rows were sorted: {found}");
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

/// Rows with equal keys keep their input order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sorts_are_stable_and_respect_limits() {
    let rows = 200_000;
    let values = collected::<Float64Array, _>((0..rows).map(|row| Some(f64::from(row % 3))));
    let numbers = collected::<Int64Array, _>((0..i64::from(rows)).map(Some));
    let batch = RecordBatch::try_from_iter([("k0", values), ("k1", numbers)]).unwrap();
    let partitions = [vec![batch.slice(0, 90_000)], vec![batch.slice(90_000, 110_000)]];
    let key = PhysicalSortExpr::new(column(0), SortOptions::default());
    let sort = sorted(in_memory(&partitions), &LexOrdering::from([key]));
    let mut expected: Vec<i64> = (0..i64::from(rows)).collect();
    expected.sort_by_key(|row| row % 3);
    for (skip, fetch) in [(0, 200_000), (66_000, 70_000), (199_990, 100_000), (200_000, 100_000)] {
        let limited = Arc::new(GlobalLimitExec::new(Arc::clone(&sort), skip, Some(fetch)));
        let own = SortRows::try_replace(&(limited as Arc<_>)).unwrap();
        let found = rows_of(&own).await;
        let found: Vec<i64> = found.iter().map(|row| row[1].parse().unwrap()).collect();
        assert_eq!(found, expected.iter().copied().skip(skip).take(fetch).collect::<Vec<_>>());
    }
    // For a few rows, a heap is used instead.
    let few = Arc::new(GlobalLimitExec::new(Arc::clone(&sort), 5, Some(10)));
    assert!(SortRows::try_replace(&(few as Arc<_>)).is_none());
}

/// A window over the keys: PARTITION BY the first keys, ORDER BY the other keys.
fn window(
    input: &Arc<dyn ExecutionPlan>,
    by: usize,
    order: &[PhysicalSortExpr],
) -> Arc<dyn ExecutionPlan> {
    let by: Vec<_> = (0..by).map(column).collect();
    let function = |expr: Expr| {
        let Expr::WindowFunction(function) = expr else { unreachable!() };
        let WindowFunctionDefinition::WindowUDF(_) = &function.fun else { unreachable!() };
        let frame = Arc::new(WindowFrame::new(Some(false)));
        let name = function.fun.name().to_owned();
        let schema = input.schema();
        create_window_expr(&function.fun, name, &[], &by, order, frame, schema, false, false, None)
            .unwrap()
    };
    let functions = [rank(), dense_rank(), row_number()].map(function).to_vec();
    Arc::new(WindowAggExec::try_new(functions, Arc::clone(input), false).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_match_datafusion() {
    let mut rng = random();
    let mut found = 0;
    for round in 0..200 {
        let by = rng.random_range(0..=2);
        let count = by + rng.random_range(1..=2);
        let mut shapes: Vec<Shape> = (0..count).map(|_| Shape::random(&mut rng)).collect();
        shapes[..by].iter_mut().for_each(|shape| shape.kind = 0);
        let input = in_memory(&partitions(&mut rng, &shapes, [0, 3, 300, 3_000][round % 4]));
        let keys = order(&mut rng, by..count);
        // One fixed order, with ties broken by row number.
        let own_order = (0..by).map(|at| PhysicalSortExpr::new(column(at), SortOptions::default()));
        let number = PhysicalSortExpr::new(column(count), SortOptions::default());
        let of_library = with_one_zero(&keys, &input.schema());
        let all = own_order.chain(of_library.iter().cloned()).chain([number.clone()]);
        let sort = sorted(Arc::clone(&input), &LexOrdering::new(all).unwrap());
        let again = sorted(window(&sort, by, &of_library), &LexOrdering::from([number]));
        let expected = rows_of(&again).await;
        let own = RankRows::try_replace(&window(&input, by, &keys)).unwrap().unwrap();
        let got = rows_of(&own).await;
        found += got.len();
        assert_eq!(got, expected, "{}", shown(&own));
    }
    assert!(found > 50_000, "too few rows were ranked: {found}");
}

/// Rows with equal first keys are sorted by the other keys, in runs that are merged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_with_equal_first_keys_are_sorted_by_the_next_key() {
    let rows = 400_000_i64;
    let other = |row: i64| row.wrapping_mul(7_919) % 100_003;
    let ones = collected::<Float64Array, _>((0..rows).map(|_| Some(1.0)));
    let others = collected::<Int64Array, _>((0..rows).map(|row| Some(other(row))));
    let numbers = collected::<Int64Array, _>((0..rows).map(Some));
    let columns = [("k0", ones), ("k1", others), ("k2", numbers)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let partitions = [vec![batch.slice(0, 130_000)], vec![batch.slice(130_000, 270_000)]];
    let keys = (0..2).map(|at| PhysicalSortExpr::new(column(at), SortOptions::default()));
    let sort = sorted(in_memory(&partitions), &LexOrdering::new(keys).unwrap());
    let own = SortRows::try_replace(&sort).unwrap();
    let found = rows_of(&own).await;
    let found: Vec<i64> = found.iter().map(|row| row[2].parse().unwrap()).collect();
    let mut expected: Vec<i64> = (0..rows).collect();
    expected.sort_by_key(|&row| other(row));
    assert_eq!(found, expected);
}
