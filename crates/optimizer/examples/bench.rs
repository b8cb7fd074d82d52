//! Measures the operators in milliseconds on a table of random trades and quotes.
//!
//! `cargo run --release -p tidemark-optimizer --example bench -- 20000000`
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "prints its measurements")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StringViewArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::{avg, count, max, min, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::physical_plan::{displayable, execute_stream};
use futures::TryStreamExt;
use rand::Rng;
use support::{Store, edge, extension, scan};
use tidemark_operators::{
    AsofJoinNode, AsofKind, Bucket, BucketSpec, LatestOnNode, SampleByNode, StepUnit,
};
use tidemark_optimizer::{PlanSession, SessionOptions};
use tidemark_types::SqlType;

const SYMBOLS: usize = 100;

/// Batches of random rows over thirty days, in time order.
fn batches(rows: usize, seed: u64) -> Vec<RecordBatch> {
    let mut rng = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(seed);
    let span = 30 * 86_400_000_000_i64;
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..SYMBOLS).map(|symbol| format!("SYM{symbol}"))));
    let per_batch = 1_000_000;
    (0..rows.div_ceil(per_batch))
        .map(|batch| {
            let start = batch * per_batch;
            let len = per_batch.min(rows - start);
            let step = span / rows as i64;
            let ts = (0..len).map(|row| (start + row) as i64 * step + rng.random_range(0..step));
            let ts = TimestampMicrosecondArray::from_iter_values(ts);
            // Skewed: low symbol codes are more frequent.
            let codes = (0..len).map(|_| {
                let unit: f64 = rng.random();
                (unit * unit * SYMBOLS as f64) as i32
            });
            let codes = Int32Array::from_iter_values(codes);
            let price = (0..len).map(|_| 100.0 + rng.random::<f64>());
            let price = Float64Array::from_iter_values(price);
            let size = Int64Array::from_iter_values((0..len).map(|_| rng.random_range(1..1_000)));
            let columns: Vec<ArrayRef> = vec![
                Arc::new(ts),
                Arc::new(DictionaryArray::try_new(codes, Arc::clone(&names)).unwrap()),
                Arc::new(price),
                Arc::new(size),
                Arc::new(StringViewArray::from_iter_values((0..len).map(|_| "x"))),
                Arc::new(Int32Array::from_iter_values((0..len).map(|row| row as i32))),
            ];
            let types = [
                ("ts", SqlType::Timestamp),
                ("symbol", SqlType::Symbol),
                ("price", SqlType::Double),
                ("size", SqlType::Long),
                ("note", SqlType::Varchar),
                ("number", SqlType::Int),
            ];
            let fields: Vec<Field> = types
                .iter()
                .map(|(name, sql_type)| Field::new(*name, sql_type.arrow_type(), true))
                .collect();
            RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
        })
        .collect()
}

fn aggregate(
    input: LogicalPlan,
    step: Option<(u32, StepUnit)>,
    keys: Vec<Expr>,
    aggregates: Vec<Expr>,
) -> LogicalPlan {
    let bucket = step.map(|(count, unit)| Bucket {
        timestamp: col("trades.ts"),
        spec: BucketSpec::new(count, unit),
    });
    extension(SampleByNode::try_new(input, bucket, keys, aggregates).unwrap())
}

async fn measure(name: &str, plan: LogicalPlan) -> Result<()> {
    let state = PlanSession::new(&SessionOptions::default());
    let mut best = f64::MAX;
    let (mut rows, mut text) = (0, String::new());
    let mut planning = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        let physical = state.physical_plan(&plan).await?;
        planning = planning.min(start.elapsed().as_secs_f64() * 1e3);
        text = displayable(physical.as_ref()).indent(false).to_string();
        let mut batches = execute_stream(physical, state.task_ctx())?;
        rows = 0;
        while let Some(batch) = batches.try_next().await? {
            rows += batch.num_rows();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("{name:<24} {best:>9.2} ms  plan {planning:>6.3} ms  {rows:>9} rows");
    if std::env::var("EXPLAIN").is_ok() {
        println!("{text}");
    }
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let rows: usize =
        std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2_000_000);
    let store = Store::new();
    let start = Instant::now();
    let trades = store.table("trades", batches(rows, 1));
    let quotes = store.table("quotes", batches(rows, 2));
    if std::env::var("CHECKPOINT").is_ok() {
        store.storage.checkpoint().unwrap();
    }
    println!("{rows} rows twice loaded in {:.1} s", start.elapsed().as_secs_f64());
    let (trades, quotes) = (
        store.storage.snapshot().table(&trades.schema().name).unwrap(),
        store.storage.snapshot().table(&quotes.schema().name).unwrap(),
    );
    println!("slices: {}", trades.slices().unwrap().len());
    let all = || scan("trades", &trades, vec![]);
    let price = || col("trades.price");
    let symbol = || col("trades.symbol");
    let double = DataType::Float64;
    let ohlc = || {
        vec![
            edge("first", price(), double.clone()),
            max(price()),
            min(price()),
            edge("last", price(), double.clone()),
            sum(col("trades.size")),
        ]
    };
    let hour = Some((1, StepUnit::Hour));
    let minute = Some((1, StepUnit::Minute));
    measure("count", aggregate(all(), None, vec![], vec![count(lit(1_i64))])).await?;
    measure("sum", aggregate(all(), None, vec![], vec![sum(price())])).await?;
    let filtered = LogicalPlanBuilder::from(all()).filter(price().gt(lit(100.5)))?.build()?;
    measure("filter count", aggregate(filtered, None, vec![], vec![count(lit(1_i64))])).await?;
    let averages = || vec![count(lit(1_i64)), avg(price())];
    measure("group by symbol", aggregate(all(), None, vec![symbol()], averages())).await?;
    measure("sample by 1h", aggregate(all(), hour, vec![], vec![avg(price())])).await?;
    measure("sample by 1m", aggregate(all(), minute, vec![], vec![avg(price())])).await?;
    measure("ohlc 1m", aggregate(all(), minute, vec![], ohlc())).await?;
    measure("sample by 1h keyed", aggregate(all(), hour, vec![symbol()], vec![avg(price())]))
        .await?;
    let keyed = vec![avg(price()), max(price())];
    measure("sample by 1m keyed", aggregate(all(), minute, vec![symbol()], keyed)).await?;
    measure("ohlc 1h keyed", aggregate(all(), hour, vec![symbol()], ohlc())).await?;
    for keyed in [false, true] {
        let keys = if keyed { vec![(symbol(), col("quotes.symbol"))] } else { vec![] };
        let right = scan("quotes", &quotes, vec![]);
        let (left_ts, right_ts) = (col("trades.ts"), col("quotes.ts"));
        let join =
            AsofJoinNode::try_new(all(), right, left_ts, right_ts, keys, AsofKind::Asof, None)?;
        let difference = sum(price() - col("quotes.price"));
        let plan = aggregate(extension(join), None, vec![], vec![difference]);
        measure(if keyed { "asof keyed" } else { "asof unkeyed" }, plan).await?;
    }
    let latest = LatestOnNode::try_new(all(), col("trades.ts"), vec![symbol()])?;
    measure("latest on", extension(latest)).await?;
    let newest = LogicalPlanBuilder::from(all()).sort(vec![col("trades.ts").sort(false, false)])?;
    measure("last 100 by ts", newest.limit(0, Some(100))?.build()?).await?;
    Ok(())
}
