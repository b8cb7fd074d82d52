//! Tables of seeded random rows, and plans over them; shared by the tests and the benchmark.
#![allow(dead_code, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail by panicking")]

use std::sync::Arc;

use arrow::array::DictionaryArray;
use arrow::array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;
use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::functions_aggregate::expr_fn::{avg, count, max, min, sum};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    AggregateUDF, Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode,
    Volatility, col, create_udaf, lit,
};
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::TryStreamExt;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tidemark_operators::{LogicalNode, Lowering, SnapshotTable, plan_sample_by};
use tidemark_optimizer::{PlanSession, SessionOptions};
use tidemark_storage::{
    Change, ColumnSchema, Storage, StorageOptions, TableSchema, TableSnapshot, TimeRange,
};
use tidemark_types::{PartitionBy, SqlType};
use tidemark_vfs::RealVfs;

/// A test table row: ts, symbol, price, size, note.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub ts: i64,
    pub symbol: Option<String>,
    pub price: Option<f64>,
    pub size: Option<i64>,
    pub note: Option<String>,
    pub number: i32,
}

pub fn random() -> ChaCha8Rng {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(1);
    println!("SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

/// Rows in timestamp order, with many equal timestamps.
pub fn rows(rng: &mut ChaCha8Rng, len: usize, span: i64, symbols: u32) -> Vec<Row> {
    let nulls = rng.random_bool(0.5);
    let mut row = || {
        let null = |rng: &mut ChaCha8Rng| nulls && rng.random_bool(0.2);
        let rng = &mut *rng;
        Row {
            ts: rng.random_range(0..span),
            symbol: (!null(rng)).then(|| format!("S{}", rng.random_range(0..symbols))),
            price: (!null(rng)).then(|| f64::from(rng.random_range(-100..100))),
            size: (!null(rng)).then(|| rng.random_range(-1_000..1_000)),
            note: (!null(rng)).then(|| format!("note {}", rng.random_range(0..3))),
            number: rng.random_range(0..10),
        }
    };
    let mut rows: Vec<Row> = (0..len).map(|_| row()).collect();
    rows.sort_by_key(|row| row.ts);
    rows
}

pub fn batch_of(rows: &[Row]) -> RecordBatch {
    let symbols: DictionaryArray<Int32Type> =
        rows.iter().map(|row| row.symbol.as_deref()).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.ts))),
        Arc::new(symbols),
        Arc::new(rows.iter().map(|row| row.price).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| row.size).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.note.as_deref()).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(|row| row.number).collect::<Int32Array>()),
    ];
    let fields: Vec<Field> = columns_of_table()
        .iter()
        .map(|column| Field::new(&column.name, column.sql_type.arrow_type(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn columns_of_table() -> Vec<ColumnSchema> {
    let column = |(id, (name, sql_type)): (usize, (&str, SqlType))| ColumnSchema {
        id: id as u32,
        ..ColumnSchema::new(name, sql_type)
    };
    let columns = [
        ("ts", SqlType::Timestamp),
        ("symbol", SqlType::Symbol),
        ("price", SqlType::Double),
        ("size", SqlType::Long),
        ("note", SqlType::Varchar),
        ("number", SqlType::Int),
    ];
    columns.into_iter().enumerate().map(column).collect()
}

/// A separate root directory with tables, which exists as long as this value does.
pub struct Store {
    pub storage: Arc<Storage>,
    _root: tempfile::TempDir,
}

impl Store {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let vfs = Arc::new(RealVfs::new(root.path()).unwrap());
        let storage = Storage::open(vfs, StorageOptions::default()).unwrap();
        Self { storage, _root: root }
    }

    /// Creates a table and commits the batches one by one.
    pub fn table(&self, name: &str, batches: Vec<RecordBatch>) -> Arc<TableSnapshot> {
        let schema = TableSchema {
            id: 0,
            name: name.into(),
            version: 0,
            columns: columns_of_table(),
            timestamp: Some(0),
            partition_by: PartitionBy::Day,
            wal: true,
            max_uncommitted_rows: 500_000,
            o3_max_lag_micros: 0,
            dedup_keys: vec![],
            constraints: Vec::new(),
            ttl_hours_or_months: 0,
            policy: None,
            in_place_of: 0,
        };
        self.storage.commit(vec![Change::CreateTable(schema)]).unwrap();
        let created = self.storage.snapshot().table(name).unwrap();
        let (table, schema_version) = (created.schema().id, created.schema().version);
        for batch in batches {
            let append = Change::Append { table, schema_version, batch };
            self.storage.commit(vec![append]).unwrap();
        }
        self.storage.snapshot().table(name).unwrap()
    }
}

/// A scan of a table, its columns qualified by `name`.
pub fn scan(name: &str, table: &Arc<TableSnapshot>, ranges: Vec<TimeRange>) -> LogicalPlan {
    let provider = Arc::new(SnapshotTable::new(Arc::clone(table)).within(ranges));
    let source = provider_as_source(provider);
    LogicalPlanBuilder::scan(name, source, None).unwrap().build().unwrap()
}

pub fn extension(node: impl UserDefinedLogicalNode + 'static) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(node) })
}

/// An aggregate that only Tidemark's kernels can run, such as `first` or `last`.
pub fn edge(name: &str, argument: Expr, data_type: DataType) -> Expr {
    let never = |_: datafusion::logical_expr::function::AccumulatorArgs| {
        Err(DataFusionError::NotImplemented("kernels only".into()))
    };
    let (input, output) = (vec![data_type.clone()], Arc::new(data_type.clone()));
    let state = Arc::new(vec![data_type]);
    let udaf: AggregateUDF =
        create_udaf(name, input, output, Volatility::Immutable, Arc::new(never), state);
    let parameters = (vec![argument], false, None, vec![], None);
    let (args, distinct, filter, order_by, treatment) = parameters;
    let udaf = Arc::new(udaf);
    Expr::AggregateFunction(AggregateFunction::new_udf(
        udaf, args, distinct, filter, order_by, treatment,
    ))
}

pub fn session(partitions: usize) -> PlanSession {
    let options = SessionOptions { target_partitions: partitions, ..SessionOptions::default() };
    PlanSession::new(&options)
}

/// Optimises a plan and lowers it.
pub async fn physical(plan: LogicalPlan, partitions: usize) -> Result<Arc<dyn ExecutionPlan>> {
    session(partitions).physical_plan(&plan).await
}

/// `DataFusion`'s plan: its planner and its operators, over Tidemark's scans.
pub async fn by_library(
    plan: &LogicalPlan,
    options: &SessionOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let session = PlanSession::new(options);
    let logical = session.optimize(plan)?;
    let state = SessionStateBuilder::new()
        .with_config(session.config().clone())
        .with_physical_optimizer_rules(vec![
            Arc::new(JoinSelection::new()),
            Arc::new(EnsureRequirements::new()),
        ])
        .build();
    let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(OwnGroups)]);
    planner.create_physical_plan(&logical, &state).await
}

/// GROUP BY with Tidemark's operator, which `DataFusion`'s planner does not support.
struct OwnGroups;

#[async_trait]
impl ExtensionPlanner for OwnGroups {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical: &[&LogicalPlan],
        physical: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(LogicalNode::SampleBy(node)) = LogicalNode::of(node) else { return Ok(None) };
        let (schema, input) = (logical[0].schema(), Arc::clone(&physical[0]));
        plan_sample_by(node, schema, input, &Lowering { session, context }).map(Some)
    }
}

/// Runs a plan and returns its batches in order.
pub async fn run_physical(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    execute_stream(plan, session(1).task_ctx())?.try_collect().await
}

/// Plans and runs a logical plan; returns its batches in order.
pub async fn run(plan: LogicalPlan, partitions: usize) -> Result<Vec<RecordBatch>> {
    run_physical(physical(plan, partitions).await?).await
}

/// All cells as strings, row by row; doubles and nulls are formatted unambiguously for comparison.
pub fn cells(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let mut rows = vec![];
    for batch in batches {
        let columns: Vec<ArrayRef> = batch
            .columns()
            .iter()
            .map(|column| {
                let plain = match column.data_type() {
                    DataType::Timestamp(_, _) => DataType::Int64,
                    _ => DataType::Utf8,
                };
                let column = arrow::compute::cast(column, &plain).unwrap();
                arrow::compute::cast(&column, &DataType::Utf8).unwrap()
            })
            .collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| {
                let text = column.as_any().downcast_ref::<StringArray>().unwrap();
                let text: &StringArray = text;
                if arrow::array::Array::is_null(text, row) {
                    "null".to_string()
                } else {
                    text.value(row).to_string()
                }
            };
            rows.push(columns.iter().map(cell).collect());
        }
    }
    rows
}

/// Formats a value like [`cells`].
pub fn show<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "null".into(), |value| value.to_string())
}

/// Formats a double like [`cells`].
pub fn show_f64(value: Option<f64>) -> String {
    value.map_or_else(|| "null".into(), |value| format!("{value:?}"))
}

/// Aggregates of all kinds over a table's columns.
pub fn aggregates(table: &str) -> Vec<Expr> {
    let column = |name: &str| col(format!("{table}.{name}"));
    vec![
        count(lit(1_i64)).alias("count"),
        count(column("note")).alias("notes"),
        sum(column("size")).alias("sum"),
        avg(column("price")).alias("avg"),
        min(column("price")).alias("min"),
        max(column("number")).alias("max"),
    ]
}
