//! Measures CSV reader throughput for trades, in megabytes per second.
//!
//! `cargo run --release --example csv_speed`
#![allow(clippy::print_stdout, clippy::expect_used)]

use std::fmt::Write;
use std::time::{Duration, Instant};

use tidemark_border::CsvAtomicity;
use tidemark_ingest::{CsvColumn, CsvReader, CsvSpec};
use tidemark_types::{Field, SqlType};

const ROWS: usize = 2_000_000;
const CHUNK_BYTES: usize = 64 * 1024;

fn trades() -> String {
    let mut text = String::from("ts,symbol,side,price,amount\n");
    for row in 0..ROWS {
        let (second, micros) = (row / 37 % 60, row * 7_919 % 1_000_000);
        let (minute, hour) = (row / 2_220 % 60, row / 133_200 % 24);
        writeln!(
            text,
            "2024-01-02T{hour:02}:{minute:02}:{second:02}.{micros:06}Z,{},{},{}.{:02},{}.{:06}",
            ["BTC-USD", "ETH-USD", "SOL-USD", "ADA-USD"][row * 7 % 4],
            ["buy", "sell"][row % 2],
            40_000 + row % 999,
            row % 100,
            row % 10,
            row * 31 % 1_000_000,
        )
        .expect("text grows");
    }
    text
}

/// Returns this thread's CPU time, which is independent of other load on the machine. Returns
/// wall-clock time if the system does not report CPU time.
fn processor_time(start: Instant) -> Duration {
    let nanos = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn main() {
    let origin = Instant::now();
    let columns = [
        ("ts", SqlType::Timestamp),
        ("symbol", SqlType::Symbol),
        ("side", SqlType::Symbol),
        ("price", SqlType::Double),
        ("amount", SqlType::Double),
    ];
    let text = trades();
    for text_type in [SqlType::Symbol, SqlType::Varchar] {
        let target: Vec<Field> = columns
            .iter()
            .map(|(name, sql_type)| {
                let sql_type = if *sql_type == SqlType::Symbol { text_type } else { *sql_type };
                Field::new(*name, sql_type)
            })
            .collect();
        let spec = CsvSpec {
            delimiter: b',',
            header: true,
            columns: (0..columns.len())
                .map(|index| CsvColumn { index, target: index, ..CsvColumn::default() })
                .collect(),
            atomicity: CsvAtomicity::SkipCol,
            skip_extra_values: false,
            max_line_bytes: tidemark_ingest::MAX_LINE_BYTES,
            line_fields: columns.len(),
            target,
            timestamp: Some(0),
        };
        let mut best = f64::INFINITY;
        let mut rows = 0;
        for _ in 0..3 {
            let start = processor_time(origin);
            let mut reader = CsvReader::new(spec.clone()).expect("spec");
            let mut sink = |_| Ok(());
            for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
                reader.feed(chunk, &mut sink).expect("chunk");
            }
            reader.finish(&mut sink).expect("end");
            rows = reader.report().rows_imported;
            best = best.min(processor_time(origin).saturating_sub(start).as_secs_f64());
        }
        println!(
            "{:8} {rows} rows: {:.0} MB/s, {:.1} M rows/s",
            text_type.name(),
            text.len() as f64 / best / 1e6,
            rows as f64 / best / 1e6
        );
    }
}
