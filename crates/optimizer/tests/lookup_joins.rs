//! Compares lookup joins with `DataFusion`'s hash joins, on random rows with every kind of key.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    LargeListArray, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::disk_manager::DiskManagerMode::{Disabled, OsTmpDirectory};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::random;
use tidemark_operators::equi_join;

const KINDS: usize = 7;

/// A column of random keys with few distinct values, which may be far apart.
fn column(rng: &mut ChaCha8Rng, kind: usize, rows: usize, dictionary: &ArrayRef) -> ArrayRef {
    let different = [1, 3, 40][rng.random_range(0..3)];
    let apart = if rng.random_bool(0.3) { 1 << 40 } else { 1 };
    let nulls = [0.0, 0.2, 1.0][rng.random_range(0..3_usize).min(rng.random_range(0..3))];
    let mut values = Vec::with_capacity(rows);
    for _ in 0..rows {
        let value: i64 = rng.random_range(0..different);
        values.push((!rng.random_bool(nulls)).then_some(value - different / 2));
    }
    let values = values.into_iter();
    match kind {
        0 => {
            let texts = dictionary.len() as i64;
            let keys = values.map(|value| value.map(|value| value.rem_euclid(texts) as i32));
            let texts = Arc::clone(dictionary);
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys.collect(), texts).unwrap())
        }
        1 => collected::<StringViewArray, _>(
            values.map(|value| value.map(|value| format!("text {value}"))),
        ),
        2 => collected::<Int64Array, _>(values.map(|value| value.map(|value| value * apart))),
        3 => collected::<Int32Array, _>(values.map(|value| value.map(|value| value as i32))),
        4 => collected::<TimestampMicrosecondArray, _>(
            values.map(|value| value.map(|value| value * apart)),
        ),
        5 => {
            collected::<Float64Array, _>(values.map(|value| value.map(|value| value as f64 / 4.0)))
        }
        _ => collected::<BooleanArray, _>(values.map(|value| value.map(|value| value > 0))),
    }
}

fn collected<A: Array + FromIterator<T> + 'static, T>(values: impl Iterator<Item = T>) -> ArrayRef {
    Arc::new(values.collect::<A>())
}

/// Rows with these keys, and a row number.
fn side(rng: &mut ChaCha8Rng, kinds: &[usize], name: &str, max: usize) -> Vec<RecordBatch> {
    let texts = (0..rng.random_range(1..30)).map(|text| Some(format!("text {}", text - 9)));
    let dictionary = collected::<StringViewArray, _>(texts);
    let mut number = 0;
    let mut fields = vec![];
    let mut batches = vec![];
    for _ in 0..rng.random_range(1..5) {
        let rows = rng.random_range(0..=max);
        let mut columns: Vec<ArrayRef> =
            kinds.iter().map(|&kind| column(rng, kind, rows, &dictionary)).collect();
        columns.push(Arc::new(Int64Array::from_iter_values(number..number + rows as i64)));
        number += rows as i64;
        if fields.is_empty() {
            let types = columns.iter().map(|column| column.data_type().clone()).enumerate();
            fields = types.map(|(at, own)| Field::new(format!("{name}{at}"), own, true)).collect();
        }
        let schema = Arc::new(Schema::new(fields.clone()));
        batches.push(RecordBatch::try_new(schema, columns).unwrap());
    }
    batches
}

async fn rows_of(plan: Arc<dyn ExecutionPlan>) -> Vec<Vec<Vec<String>>> {
    let mut partitions = vec![];
    for partition in 0..plan.output_partitioning().partition_count() {
        let mut rows = vec![];
        let mut batches = plan.execute(partition, Arc::new(TaskContext::default())).unwrap();
        while let Some(batch) = batches.next().await {
            let batch = batch.unwrap();
            for row in 0..batch.num_rows() {
                let cell = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
                rows.push(batch.columns().iter().map(cell).collect());
            }
        }
        partitions.push(rows);
    }
    partitions
}

fn in_memory(partitions: &[Vec<RecordBatch>]) -> Arc<dyn ExecutionPlan> {
    let schema = partitions[0][0].schema();
    MemorySourceConfig::try_new_exec(partitions, schema, None).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lookup_joins_match_hash_joins() {
    let mut rng = random();
    let kinds_of_join = [
        JoinType::Inner,
        JoinType::Right,
        JoinType::RightSemi,
        JoinType::RightAnti,
        JoinType::RightMark,
    ];
    let mut found = 0;
    for _ in 0..600 {
        let keys = rng.random_range(1..=3);
        let kinds: Vec<usize> = (0..keys).map(|_| rng.random_range(0..KINDS)).collect();
        let held = in_memory(&[side(&mut rng, &kinds, "h", 40)]);
        let partitions = (0..rng.random_range(1..3)).map(|_| side(&mut rng, &kinds, "p", 60));
        let probe = in_memory(&partitions.collect::<Vec<_>>());
        let on = (0..keys).map(|at| {
            let key = |name: &str| {
                Arc::new(Column::new(&format!("{name}{at}"), at)) as Arc<dyn PhysicalExpr>
            };
            (key("h"), key("p"))
        });
        let kind = kinds_of_join[rng.random_range(0..kinds_of_join.len())];
        let nulls = if rng.random_bool(0.5) {
            NullEquality::NullEqualsNull
        } else {
            NullEquality::NullEqualsNothing
        };
        let mut join = HashJoinExecBuilder::new(held, probe, on.collect(), kind)
            .with_partition_mode(PartitionMode::CollectLeft)
            .with_null_equality(nulls);
        if kind == JoinType::Inner && rng.random_bool(0.4) {
            join = join.with_filter(Some(numbers_ascend(keys)));
        }
        let both = matches!(kind, JoinType::Inner | JoinType::Right);
        let projected = both && rng.random_bool(0.5);
        if projected {
            // Projects only the row numbers.
            join = join.with_projection(Some(vec![2 * keys + 1, keys]));
        }
        let join = join.build_exec().unwrap();
        let own = equi_join(Arc::clone(&join), usize::MAX, Ok).unwrap();
        let shown = format!("{kind:?} {nulls:?} {kinds:?} {projected}");
        let (expected, got) = (rows_of(join).await, rows_of(own).await);
        for (mut expected, mut got) in expected.into_iter().zip(got) {
            let number = |row: &Vec<String>| {
                let at = if projected { 0 } else { row.len() - 1 };
                row[at].parse::<i64>().unwrap()
            };
            if kind != JoinType::RightMark {
                assert!(got.iter().map(number).is_sorted(), "not in probe order: {shown}");
            }
            expected.sort();
            got.sort();
            found += got.len();
            assert_eq!(expected, got, "{shown}");
        }
    }
    assert!(found > 10_000, "too few rows were joined: {found}");
}

/// A condition on the row numbers.
fn numbers_ascend(keys: usize) -> JoinFilter {
    let index = |side| ColumnIndex { index: keys, side };
    let fields = ["h", "p"].map(|name| Field::new(name, arrow_schema::DataType::Int64, true));
    let number = |name: &str, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
    let less = BinaryExpr::new(number("h", 0), Operator::Lt, number("p", 1));
    JoinFilter::new(
        Arc::new(less),
        vec![index(JoinSide::Left), index(JoinSide::Right)],
        Arc::new(Schema::new(fields.to_vec())),
    )
}

/// A single join row produces a huge number of rows, in batches of the usual size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_with_many_matches_produces_small_batches() {
    let alike = |name: &str, rows: usize| {
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![7; rows]));
        let schema = Schema::new(vec![Field::new(name, keys.data_type().clone(), true)]);
        in_memory(&[vec![RecordBatch::try_new(Arc::new(schema), vec![keys]).unwrap()]])
    };
    let key = |name: &str| Arc::new(Column::new(name, 0)) as Arc<dyn PhysicalExpr>;
    let join = HashJoinExecBuilder::new(
        alike("h", 100_000),
        alike("p", 30),
        vec![(key("h"), key("p"))],
        JoinType::Inner,
    );
    let join = join.with_partition_mode(PartitionMode::CollectLeft).build_exec().unwrap();
    let own = equi_join(Arc::clone(&join), usize::MAX, Ok).unwrap();
    let mut batches = own.execute(0, Arc::new(TaskContext::default())).unwrap();
    let mut rows = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch.unwrap();
        assert!(batch.num_rows() <= 64 * 1024);
        rows += batch.num_rows();
    }
    assert_eq!(rows, 3_000_000);
}

/// Lists are copied, so a batch with long lists has few rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_list_values_produce_small_batches() {
    let keys = |rows: usize| Arc::new(Int64Array::from(vec![7; rows])) as ArrayRef;
    let long = vec![Some((0..100_000).map(|at| Some(f64::from(at))).collect::<Vec<_>>())];
    let lists: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<Float64Type, _, _>(long));
    let of = |columns: Vec<(&str, ArrayRef)>| {
        in_memory(&[vec![RecordBatch::try_from_iter(columns).unwrap()]])
    };
    let key = |name: &str| Arc::new(Column::new(name, 0)) as Arc<dyn PhysicalExpr>;
    let (held, probe) = (of(vec![("h", keys(1)), ("list", lists)]), of(vec![("p", keys(500))]));
    let on = vec![(key("h"), key("p"))];
    let join = HashJoinExecBuilder::new(held, probe, on, JoinType::Inner);
    let join = join.with_partition_mode(PartitionMode::CollectLeft).build_exec().unwrap();
    let own = equi_join(Arc::clone(&join), usize::MAX, Ok).unwrap();
    let mut batches = own.execute(0, Arc::new(TaskContext::default())).unwrap();
    let mut rows = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch.unwrap();
        assert!(batch.num_rows() <= 6, "{}", batch.num_rows());
        rows += batch.num_rows();
    }
    assert_eq!(rows, 500);
}

/// The memory for the keys is counted while IDs are assigned. If the limit is exceeded, the build
/// side is written to a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_exceed_the_memory_limit_spill_to_files() {
    let keys = |name: &str, rows: i64| {
        // The keys are too far apart for a table indexed by key to pay off.
        let keys = (0..rows).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
        let keys: ArrayRef = Arc::new(keys.collect::<Int64Array>());
        in_memory(&[vec![RecordBatch::try_from_iter([(name, keys)]).unwrap()]])
    };
    let key = |name: &str| Arc::new(Column::new(name, 0)) as Arc<dyn PhysicalExpr>;
    let on = vec![(key("h"), key("p"))];
    let join = HashJoinExecBuilder::new(keys("h", 1_000_000), keys("p", 10), on, JoinType::Inner);
    let join = join.with_partition_mode(PartitionMode::CollectLeft).build_exec().unwrap();
    for (mebibytes, files, fits) in
        [(40, Disabled, false), (40, OsTmpDirectory, true), (120, Disabled, true)]
    {
        let own = equi_join(Arc::clone(&join), usize::MAX, Ok).unwrap();
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(mebibytes << 20, 1.0);
        let files = DiskManagerBuilder::default().with_mode(files);
        let runtime = runtime.with_disk_manager_builder(files).build_arc().unwrap();
        let mut config = SessionConfig::new();
        config.options_mut().execution.sort_spill_reservation_bytes = 1 << 20;
        let context = TaskContext::default().with_session_config(config).with_runtime(runtime);
        let batches: Vec<_> = own.execute(0, Arc::new(context)).unwrap().collect().await;
        assert_eq!(batches.iter().all(Result::is_ok), fits, "{mebibytes} MiB: {batches:?}");
        let rows: usize = batches.iter().flatten().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, if fits { 10 } else { 0 }, "{mebibytes} MiB");
    }
}
