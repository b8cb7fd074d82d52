//! Compares spilling joins with nested loops, on random rows with every kind of key. Memory is so
//! limited that `DataFusion`'s hash join rejects many of the joins; Tidemark's operators reject
//! none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringViewArray,
};
use arrow_schema::{DataType, Field, Schema};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::common::{JoinSide, JoinType, NullEquality, Result, resources_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::{
    Distribution, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::random;
use tidemark_operators::{equi_join, with_files};

const KEY_KINDS: usize = 4;
/// Rounds whose inputs do not fit in memory.
const LARGE_ROUNDS: usize = 10;
const JOINS: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
    JoinType::LeftMark,
    JoinType::RightMark,
];

type Cells = Vec<Option<String>>;

/// A column of keys; each batch of symbols has a separate dictionary.
fn column(rng: &mut ChaCha8Rng, kind: usize, rows: usize, different: i64, nulls: f64) -> ArrayRef {
    let mut values = Vec::with_capacity(rows);
    for _ in 0..rows {
        let value = rng.random_range(0..different);
        values.push((!rng.random_bool(nulls)).then_some(value));
    }
    let values = values.into_iter();
    match kind {
        0 => {
            let texts = values.map(|value| value.map(|value| format!("symbol number {value}")));
            let texts: Vec<Option<String>> = texts.collect();
            let texts = texts.iter().map(Option::as_deref);
            Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
        }
        1 => {
            let texts = values.map(|value| value.map(|value| format!("a longer text, {value}")));
            Arc::new(texts.collect::<StringViewArray>())
        }
        2 => Arc::new(values.map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
        _ => {
            let double = |value| match value {
                0 => f64::NAN,
                1 => -0.0,
                2 => 0.0,
                other => other as f64 / 4.0,
            };
            Arc::new(values.map(|value| value.map(double)).collect::<Float64Array>())
        }
    }
}

/// Rows with these keys, a row number and a string.
fn side(rng: &mut ChaCha8Rng, kinds: &[usize], name: &str, max: usize) -> Vec<RecordBatch> {
    let is_many = max > 5_000;
    let count = rng.random_range(if is_many { max } else { 0 }..=max);
    // Rows with the same key form a cross product.
    let different = if is_many { 20_000 } else { [1, 3, 40, 10_000][rng.random_range(0..4)] };
    let nulls = if is_many { 0.02 } else { [0.0, 0.0, 0.2, 1.0][rng.random_range(0..4)] };
    let types = [DataType::Utf8View, DataType::Int32, DataType::Float64];
    let symbols = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
    let types = kinds.iter().map(|&kind| match kind {
        0 => symbols.clone(),
        kind => types[kind - 1].clone(),
    });
    let types = types.chain([DataType::Int64, DataType::Utf8View]).enumerate();
    let fields = types.map(|(at, own)| Field::new(format!("{name}{at}"), own, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let (mut batches, mut number) = (vec![RecordBatch::new_empty(Arc::clone(&schema))], 0);
    while number < count {
        let rows = rng.random_range(1..=2_000).min(count - number);
        let mut columns: Vec<ArrayRef> =
            kinds.iter().map(|&kind| column(rng, kind, rows, different, nulls)).collect();
        let numbers = (number..number + rows).map(|number| number as i64);
        columns.push(Arc::new(Int64Array::from_iter_values(numbers.clone())));
        let texts = numbers.map(|number| format!("{}{number}", "-".repeat(number as usize % 40)));
        columns.push(Arc::new(StringViewArray::from_iter_values(texts)));
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns).unwrap());
        number += rows;
    }
    batches
}

fn cells(batches: &[RecordBatch]) -> Vec<Cells> {
    let mut rows = vec![];
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| {
                let is_null = column.logical_nulls().is_some_and(|nulls| nulls.is_null(row));
                (!is_null).then(|| array_value_to_string(column, row).unwrap())
            };
            rows.push(batch.columns().iter().map(cell).collect());
        }
    }
    rows
}

/// The join under test.
#[derive(Debug, Clone)]
struct Join {
    kind: JoinType,
    keys: usize,
    nulls: NullEquality,
    filtered: bool,
    projected: bool,
}

impl Join {
    fn random(rng: &mut ChaCha8Rng, keys: usize) -> Self {
        let equal = [NullEquality::NullEqualsNull, NullEquality::NullEqualsNothing];
        let nulls = equal[rng.random_range(0..2)];
        let kind = JOINS[rng.random_range(0..JOINS.len())];
        Self { kind, keys, nulls, filtered: rng.random_bool(0.3), projected: rng.random_bool(0.3) }
    }

    /// The first rounds cover each of Tidemark's joins, with inputs that do not fit in memory.
    fn of_round(rng: &mut ChaCha8Rng, round: usize, keys: usize, is_shared: bool) -> Self {
        use JoinType::*;
        let mut join = Self::random(rng, keys);
        let kinds: &[_] = match (round, is_shared) {
            // Partitioned joins of all other kinds preserve an order, so Tidemark's joins do not
            // replace them.
            (..6, false) => &[Left, Full, LeftSemi],
            (..6, true) if round % 3 == 2 => &[Inner, Right, RightSemi],
            // With a shared build side, the left side is the outer side.
            (6..LARGE_ROUNDS, true) => &[LeftSemi, LeftAnti, LeftMark],
            (6..LARGE_ROUNDS, false) => {
                &[LeftSemi, LeftAnti, LeftMark, RightSemi, RightAnti, RightMark]
            }
            _ => return join,
        };
        join.kind = kinds[rng.random_range(0..kinds.len())];
        join.filtered &= round < 6 && !is_shared;
        join
    }

    /// Projects the last column, then the first.
    fn projection(&self, width: usize) -> Option<Vec<usize>> {
        self.projected.then(|| vec![width - 1, 0])
    }

    /// Returns the key by which a row matches other rows; `None` if the row matches none.
    fn key(&self, row: &Cells) -> Option<Cells> {
        let is_null = row[..self.keys].iter().any(Option::is_none);
        if is_null && self.nulls == NullEquality::NullEqualsNothing {
            return None;
        }
        // Both zeros count as one key.
        let key = |cell: &Option<String>| cell.as_ref().map(|text| text.replace("-0.0", "0.0"));
        Some(row[..self.keys].iter().map(key).collect())
    }

    fn passes(&self, left: &Cells, right: &Cells) -> bool {
        let number = |row: &Cells| row[self.keys].as_ref().unwrap().parse::<i64>().unwrap();
        !self.filtered || number(left) < number(right)
    }

    /// Computes the join by looping over the rows for each key.
    fn by_loops(&self, left: &[Cells], right: &[Cells]) -> Vec<Cells> {
        use JoinType::*;
        let (keeps_left, keeps_right) =
            (matches!(self.kind, Left | Full), matches!(self.kind, Right | Full));
        let width = self.keys + 2;
        let mark = |is_found: bool| Some(is_found.to_string());
        let (mut found, mut rows) = (vec![false; right.len()], vec![]);
        let mut by_key: HashMap<Cells, Vec<usize>> = HashMap::new();
        for (at, row) in right.iter().enumerate() {
            if let Some(key) = self.key(row) {
                by_key.entry(key).or_default().push(at);
            }
        }
        for row in left {
            let mut is_found = false;
            let with_key = self.key(row).and_then(|key| by_key.get(&key));
            for &at in with_key.into_iter().flatten() {
                if self.passes(row, &right[at]) {
                    (is_found, found[at]) = (true, true);
                    if keeps_left || keeps_right || self.kind == Inner {
                        rows.push([row.clone(), right[at].clone()].concat());
                    }
                }
            }
            match self.kind {
                LeftSemi if is_found => rows.push(row.clone()),
                LeftAnti if !is_found => rows.push(row.clone()),
                LeftMark => rows.push([row.clone(), vec![mark(is_found)]].concat()),
                _ if keeps_left && !is_found => {
                    rows.push([row.clone(), vec![None; width]].concat());
                }
                _ => {}
            }
        }
        for (row, is_found) in right.iter().zip(found) {
            match self.kind {
                RightSemi if is_found => rows.push(row.clone()),
                RightAnti if !is_found => rows.push(row.clone()),
                RightMark => rows.push([row.clone(), vec![mark(is_found)]].concat()),
                _ if keeps_right && !is_found => {
                    rows.push([vec![None; width], row.clone()].concat());
                }
                _ => {}
            }
        }
        for row in &mut rows {
            if let Some(columns) = self.projection(row.len()) {
                *row = columns.into_iter().map(|column| row[column].clone()).collect();
            }
        }
        rows
    }

    /// Returns whether the rows are in the order that the join must preserve, if any. This is the
    /// right side's order, or the left side's for left semi, anti and mark joins.
    fn is_in_order(&self, ours: Ours, rows: &[Cells]) -> bool {
        use JoinType::*;
        let right = match self.kind {
            Inner | Right => self.keys + 2 + self.keys,
            RightSemi | RightAnti | RightMark => self.keys,
            // These join types preserve the outer side's order, whichever side is the outer one.
            LeftSemi | LeftAnti | LeftMark if ours == Ours::Semi => self.keys,
            _ => return true,
        };
        if self.projected {
            return true;
        }
        let number = |row: &Cells| row[right].as_ref().unwrap().parse::<i64>().unwrap();
        rows.is_sorted_by_key(number)
    }

    fn width(&self) -> usize {
        use JoinType::*;
        match self.kind {
            Inner | Left | Right | Full => 2 * (self.keys + 2),
            LeftMark | RightMark => self.keys + 3,
            _ => self.keys + 2,
        }
    }

    /// Plans the same join as a hash join, either with both sides partitioned or with a build side
    /// that all partitions share.
    fn plan(
        &self,
        left: &[RecordBatch],
        right: &[RecordBatch],
        (mode, partitions): (PartitionMode, usize),
    ) -> Arc<dyn ExecutionPlan> {
        let key = |name: &str, at: usize| {
            Arc::new(Column::new(&format!("{name}{at}"), at)) as Arc<dyn PhysicalExpr>
        };
        let side = |batches: &[RecordBatch], name: &str| {
            let schema = batches[0].schema();
            let is_shared = mode == PartitionMode::CollectLeft;
            let partition_count = if is_shared && name == "r" { partitions } else { 1 };
            let length = batches.len().div_ceil(partition_count).max(1);
            let mut batches: Vec<_> = batches.chunks(length).map(<[_]>::to_vec).collect();
            batches.resize(partition_count, vec![]);
            let rows = MemorySourceConfig::try_new(&batches, schema, None).unwrap();
            // The rows are ordered by their row numbers.
            let order = LexOrdering::from([PhysicalSortExpr::new_default(key(name, self.keys))]);
            let rows = rows.try_with_sort_information(vec![order]).unwrap();
            let rows = DataSourceExec::from_data_source(rows) as Arc<dyn ExecutionPlan>;
            if is_shared {
                return rows;
            }
            let keys = (0..self.keys).map(|at| key(name, at)).collect();
            let by = Partitioning::Hash(keys, partitions);
            Arc::new(RepartitionExec::try_new(rows, by).unwrap())
        };
        let on = (0..self.keys).map(|at| (key("l", at), key("r", at))).collect();
        HashJoinExecBuilder::new(side(left, "l"), side(right, "r"), on, self.kind)
            .with_partition_mode(mode)
            .with_null_equality(self.nulls)
            .with_filter(self.filtered.then(|| numbers_ascend(self.keys)))
            .with_projection(self.projection(self.width()))
            .build_exec()
            .unwrap()
    }
}

/// A condition on the row numbers.
fn numbers_ascend(keys: usize) -> JoinFilter {
    let index = |side| ColumnIndex { index: keys, side };
    let fields = ["l", "r"].map(|name| Field::new(name, DataType::Int64, true));
    let number = |name: &str, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
    let less = BinaryExpr::new(number("l", 0), Operator::Lt, number("r", 1));
    JoinFilter::new(
        Arc::new(less),
        vec![index(JoinSide::Left), index(JoinSide::Right)],
        Arc::new(Schema::new(fields.to_vec())),
    )
}

/// A memory pool like the engine's. Consumers that can spill get equal shares of the memory that
/// other consumers do not use, and leave an eighth of the limit free.
#[derive(Debug)]
struct Shared {
    pool: GreedyMemoryPool,
    spilling: AtomicUsize,
    spillable: AtomicUsize,
}

impl Shared {
    fn count(&self, reservation: &MemoryReservation, change: isize) {
        if reservation.consumer().can_spill() {
            self.spillable.fetch_add(change as usize, Ordering::SeqCst);
        }
    }
}

impl MemoryPool for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.spilling.fetch_add(usize::from(consumer.can_spill()), Ordering::SeqCst);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.spilling.fetch_sub(usize::from(consumer.can_spill()), Ordering::SeqCst);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.count(reservation, additional as isize);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.count(reservation, -(shrink as isize));
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let MemoryLimit::Finite(limit) = self.pool.memory_limit() else { return Ok(()) };
        let fixed = self.pool.reserved().saturating_sub(self.spillable.load(Ordering::SeqCst));
        let shared = limit.saturating_sub(fixed + limit / 8);
        let budget = shared / self.spilling.load(Ordering::SeqCst).max(1);
        if reservation.consumer().can_spill() && reservation.size() + additional > budget {
            return resources_err!("{additional} bytes are more than one that spills may have");
        }
        self.pool.try_grow(reservation, additional)?;
        self.count(reservation, additional as isize);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.pool)
    }
}

fn with_memory(bytes: usize) -> Arc<RuntimeEnv> {
    let pool = GreedyMemoryPool::new(bytes);
    let (spilling, spillable) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let pool = Arc::new(Shared { pool, spilling, spillable });
    RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap()
}

/// Returns the rows of each partition; all partitions run concurrently.
async fn rows_of(
    plan: &Arc<dyn ExecutionPlan>,
    runtime: &Arc<RuntimeEnv>,
) -> Result<Vec<Vec<Cells>>> {
    let mut config = SessionConfig::new().with_batch_size(512);
    let execution = &mut config.options_mut().execution;
    execution.sort_spill_reservation_bytes = 16 << 10;
    // Disables in-place sorting, which would count the strings again for each of these small
    // batches.
    execution.sort_in_place_threshold_bytes = 0;
    let context = TaskContext::default().with_session_config(config);
    let context = context.with_runtime(Arc::clone(runtime));
    let context = Arc::new(context);
    let partitions = plan.output_partitioning().partition_count();
    let tasks = (0..partitions).map(|partition| {
        let rows = plan.execute(partition, Arc::clone(&context));
        async move { rows?.try_collect::<Vec<_>>().await }
    });
    let batches = futures::future::try_join_all(tasks).await?;
    for batch in batches.iter().flatten() {
        assert_eq!(batch.schema(), plan.schema());
    }
    Ok(batches.iter().map(|batches| cells(batches)).collect())
}

/// The Tidemark join that replaces a hash join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ours {
    Grace,
    Lookup,
    Semi,
}

/// Returns the Tidemark joins that replace a hash join.
fn replacements(plan: &Arc<dyn ExecutionPlan>) -> Vec<(Ours, Arc<dyn ExecutionPlan>)> {
    let grace = with_files(Arc::clone(plan)).unwrap();
    let in_memory = equi_join(Arc::clone(plan), usize::MAX, Ok).unwrap();
    let in_memory = match in_memory.name() {
        "LookupJoinExec" => Some((Ours::Lookup, in_memory)),
        "SemiJoinExec" => Some((Ours::Semi, as_required(in_memory))),
        _ => None,
    };
    let grace = (grace.name() == "GraceHashJoinExec").then_some((Ours::Grace, grace));
    grace.into_iter().chain(in_memory).collect()
}

/// Returns a join with its sides merged into one partition if the join requires it.
fn as_required(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let requirements = plan.input_distribution_requirements().into_per_child();
    let required = |(child, expected): (&Arc<dyn ExecutionPlan>, _)| match expected {
        Distribution::SinglePartition => Arc::new(CoalescePartitionsExec::new(Arc::clone(child))),
        _ => Arc::clone(child),
    };
    let children = plan.children().into_iter().zip(requirements).map(required).collect();
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(children, options).unwrap()
}

async fn assert_memory_released(runtime: &Arc<RuntimeEnv>, shown: &str) {
    // The aborted tasks of an exchange end slightly later.
    for _ in 0..500 {
        if runtime.memory_pool.reserved() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    assert_eq!(runtime.memory_pool.reserved(), 0, "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_that_spill_to_files_match_nested_loops() {
    let mut rng = random();
    let (mut found, mut refused) = (0, [0; 4]);
    for round in 0..LARGE_ROUNDS + 6 {
        let keys = rng.random_range(1..=2);
        let kinds: Vec<usize> = (0..keys).map(|_| rng.random_range(0..KEY_KINDS)).collect();
        let is_large = round < LARGE_ROUNDS;
        let is_shared = if is_large { round % 3 > 0 } else { rng.random_bool(0.7) };
        let join = Join::of_round(&mut rng, round, keys, is_shared);
        // 50,000 rows with one narrow key just fit in memory.
        let max = if is_large { 60_000 } else { [0, 30, 2_000][rng.random_range(0..3)] };
        let left = side(&mut rng, &kinds, "l", max);
        let right = side(&mut rng, &kinds, "r", max / 4);
        let mode = if is_shared { PartitionMode::CollectLeft } else { PartitionMode::Partitioned };
        let sides = (mode, rng.random_range(1..=3));
        let mut expected = join.by_loops(&cells(&left), &cells(&right));
        expected.sort();
        for memory in [usize::MAX >> 1, 4 << 20] {
            let runtime = with_memory(memory);
            // An exchange can only run once.
            let plan = || join.plan(&left, &right, sides);
            let is_refused = rows_of(&plan(), &runtime).await.is_err();
            for (which, (ours, _)) in replacements(&plan()).into_iter().enumerate() {
                let shown =
                    format!("round {round}, {which} {ours:?}: {join:?} {kinds:?} {sides:?}");
                let (_, own) = replacements(&plan()).swap_remove(which);
                let got = rows_of(&own, &runtime).await;
                drop(own);
                assert_memory_released(&runtime, &shown).await;
                let partition_count =
                    got.unwrap_or_else(|error| panic!("{shown} in {memory}: {error}"));
                if sides.0 == PartitionMode::CollectLeft {
                    assert!(
                        partition_count.iter().all(|rows| join.is_in_order(ours, rows)),
                        "{shown} in {memory}"
                    );
                }
                let mut got = partition_count.concat();
                got.sort();
                assert!(
                    got == expected,
                    "{shown} in {memory}: {} of {}",
                    got.len(),
                    expected.len()
                );
                found += got.len();
                let kind = match ours {
                    Ours::Semi => 3,
                    Ours::Lookup => 2,
                    Ours::Grace => usize::from(sides.0 == PartitionMode::CollectLeft),
                };
                refused[kind] += usize::from(is_refused);
            }
        }
    }
    println!("{found} rows, {refused:?} joins that a hash join refuses");
    assert!(found > 100_000, "too few rows were joined: {found}");
    assert!(refused.iter().all(|&refused| refused > 0), "too few joins spilled: {refused:?}");
}
