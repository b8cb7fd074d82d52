//! Measures line protocol parsing on one core. Each line has 8 columns, 2 of them symbols, and
//! belongs to one of 1,000 series. A request contains 75,000 rows. `cargo run --release -p
//! tidemark-ingest --example line_speed`

#![allow(clippy::print_stdout)]

use std::fmt::Write as _;
use std::time::Instant;

use tidemark_border::LinePrecision;
use tidemark_ingest::{LineFailure, LineOptions, LineReader, TableRows, TargetTable, Targets};
use tidemark_types::EngineResult;

const ROWS: usize = 75_000;
const ROUNDS: usize = 20;
/// Chunk size in which the server reads request bodies.
const CHUNK_BYTES: usize = 64 * 1024;

struct Nothing;

impl Targets for Nothing {
    fn table(&mut self, _: &str) -> EngineResult<Option<TargetTable>> {
        Ok(None)
    }
}

/// Lines with binary doubles, as written by clients that use protocol versions 2 and 3.
fn binary_lines() -> Vec<u8> {
    let mut lines = Vec::new();
    for row in 0..ROWS {
        let random = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let (series, price) = (random % 1000, (random % 1_000_003) as f64 / 997.0);
        let side = if row % 2 == 0 { "buy" } else { "sell" };
        lines.extend(format!("trades,sym=s{series},side={side} ").into_bytes());
        for (name, value) in [("price", price), ("amount", price / 7.0), ("bid", price - 1.0)] {
            lines.extend(format!("{name}==\x10").into_bytes());
            lines.extend(value.to_le_bytes());
            lines.push(b',');
        }
        let at = 1_700_000_000_000_000 + row * 1_000;
        lines.extend(format!("qty={series}i,venue={}i {at}t\n", random % 50).into_bytes());
    }
    lines
}

fn lines() -> String {
    let mut lines = String::new();
    for row in 0..ROWS {
        let random = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let (series, price, quantity) = (random % 1000, random % 100_000, random % 99_991);
        let side = if row % 2 == 0 { "buy" } else { "sell" };
        let (cents, is_ok) = (price % 100, if row % 3 == 0 { 't' } else { 'f' });
        let _ = write!(lines, "trades,sym=s{series},side={side} ");
        let _ = write!(lines, "price={}.{cents:02},amount=0.{quantity:05},", price / 100);
        let _ = write!(lines, "bid={quantity}.5,qty={quantity}i,venue={}i,", random % 50);
        let _ = writeln!(lines, "ok={is_ok} {}", 1_700_000_000_000_000_000 + row * 1_000_000);
    }
    lines
}

fn main() -> Result<(), LineFailure> {
    measure("texts", lines().as_bytes())?;
    measure("binary doubles", &binary_lines())
}

fn measure(name: &str, lines: &[u8]) -> Result<(), LineFailure> {
    let options = LineOptions {
        precision: LinePrecision::Nanos,
        create_tables: true,
        create_columns: true,
        max_columns: 4096,
        max_line_bytes: 16 << 20,
        max_pending_bytes: 1 << 30,
        is_continued: false,
    };
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut reader = LineReader::new(options);
        for chunk in lines.chunks(CHUNK_BYTES) {
            reader.feed(chunk, &mut Nothing)?;
        }
        reader.finish(&mut Nothing)?;
        let tables = reader.into_tables()?;
        best = best.min(started.elapsed().as_secs_f64());
        assert_eq!(tables.iter().map(TableRows::rows).sum::<u64>(), ROWS as u64);
    }
    let (rows, bytes) = (ROWS as f64 / best / 1e6, lines.len() as f64 / best / 1e6);
    println!("{name}: {rows:.2} M rows/s, {bytes:.0} MB/s");
    Ok(())
}
