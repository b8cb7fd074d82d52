//! Measures how many rows of trades per second each format encodes: `cargo run --release --example
//! row_speed`.
#![allow(clippy::print_stdout, clippy::expect_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use tidemark_types::{Field, SqlType};
use tidemark_wire::{ParquetOptions, RowEncoder, RowFormat};

const BATCH_ROWS: usize = 65_536;
const BATCHES: usize = 40;

fn trades() -> (Vec<Field>, RecordBatch) {
    let symbols = |names: &[&str], spread: usize| -> ArrayRef {
        let keys: Int32Array =
            (0..BATCH_ROWS).map(|row| Some((row * spread % names.len()) as i32)).collect();
        let values = Arc::new(StringArray::from(names.to_vec()));
        Arc::new(DictionaryArray::new(keys, values))
    };
    let ts = (0..BATCH_ROWS as i64).map(|row| 1_704_164_645_678_901 + row * 137_113);
    let price = (0..BATCH_ROWS).map(|row| (4_000_000 + row * 7 % 100_000) as f64 / 100.0);
    let amount = (0..BATCH_ROWS).map(|row| (row * 7_919 % 1_000_003) as f64 / 1e6);
    let columns: Vec<(&str, SqlType, ArrayRef)> = vec![
        ("ts", SqlType::Timestamp, Arc::new(TimestampMicrosecondArray::from_iter_values(ts))),
        ("symbol", SqlType::Symbol, symbols(&["BTC-USD", "ETH-USD", "SOL-USD", "ADA-USD"], 7)),
        ("side", SqlType::Symbol, symbols(&["buy", "sell"], 3)),
        ("price", SqlType::Double, Arc::new(Float64Array::from_iter_values(price))),
        ("amount", SqlType::Double, Arc::new(Float64Array::from_iter_values(amount))),
    ];
    let fields = columns.iter().map(|(name, sql_type, _)| Field::new(*name, *sql_type)).collect();
    let batch =
        RecordBatch::try_from_iter(columns.into_iter().map(|(name, _, array)| (name, array)));
    (fields, batch.expect("columns of equal length"))
}

/// Returns this thread's CPU time, which is independent of other load on the machine. Returns
/// elapsed time if the system does not report CPU time.
fn processor_time(start: Instant) -> Duration {
    let nanos = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn main() {
    let origin = Instant::now();
    let (fields, batch) = trades();
    let formats = [
        ("json", RowFormat::Json { quote_large_numbers: false, columns: None }),
        ("csv", RowFormat::Csv { delimiter: b',', header: true }),
        ("pg text", RowFormat::Pg { format_codes: vec![], nanoseconds: true }),
        ("pg binary", RowFormat::Pg { format_codes: vec![1], nanoseconds: true }),
        ("arrow", RowFormat::Arrow),
        ("parquet", RowFormat::Parquet(ParquetOptions::default())),
    ];
    for (name, format) in formats {
        let mut best = f64::INFINITY;
        let mut bytes = 0;
        for _ in 0..3 {
            let mut encoder = RowEncoder::new(&fields, Some(0), format.clone()).expect("format");
            let mut out = Vec::new();
            bytes = 0;
            let start = processor_time(origin);
            for _ in 0..BATCHES {
                encoder.encode(&batch, &mut out).expect("rows");
                bytes += out.len();
                out.clear();
            }
            encoder.finish(&mut out).expect("end");
            best = best.min(processor_time(origin).saturating_sub(start).as_secs_f64());
        }
        let rows = (BATCH_ROWS * BATCHES) as f64;
        println!("{name:10} {:6.1} M rows/s {:6} MB", rows / best / 1e6, bytes / 1_000_000);
    }
}
