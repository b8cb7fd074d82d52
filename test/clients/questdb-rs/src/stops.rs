//! Queries stopped by their own timeout, or cancelled midway, with and without credit. In each case
//! the connection remains usable.

use std::error::Error;
use std::time::{Duration, Instant};

use questdb::egress::reader::Reader;

const LONG: &str = "SELECT x, x / 2.0 FROM long_sequence(9000000000)";
const SILENT: &str = "SELECT count() FROM long_sequence(900000000000) WHERE x % 7 = 3";
const CREDIT_BYTES: u64 = 64 * 1024;

pub fn run(conf: &str) -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::from_conf(conf)?;
    for credit in [0, CREDIT_BYTES] {
        for batches in [0, 1, 20] {
            let mut cursor = reader.prepare(LONG).initial_credit(credit).execute()?;
            for _ in 0..batches {
                cursor.next_batch()?;
            }
            let began = Instant::now();
            cursor.cancel()?;
            cursor.cancel()?;
            drop(cursor);
            let is_quick = began.elapsed() < Duration::from_secs(10);
            println!("cancelled {credit} {batches} {is_quick} {}", next(&mut reader)?);
        }
    }
    for sql in [LONG, SILENT] {
        println!("late {} {}", late(&mut reader, sql, Some(200)), next(&mut reader)?);
    }
    let mut impatient = Reader::from_conf(format!("{conf}query_timeout_ms=200;"))?;
    println!("late {} {}", late(&mut impatient, LONG, None), next(&mut impatient)?);
    Ok(())
}

/// Returns the error of a query that takes too long.
fn late(reader: &mut Reader, sql: &str, timeout_ms: Option<u64>) -> String {
    let query = reader.prepare(sql);
    let query = match timeout_ms {
        Some(timeout_ms) => query.timeout(Duration::from_millis(timeout_ms)),
        None => query,
    };
    let rows = query.execute().and_then(|mut cursor| {
        while cursor.next_batch()?.is_some() {}
        Ok(())
    });
    rows.err().map_or_else(|| "ended".to_owned(), |error| format!("{:?}", error.code()))
}

/// Runs the next query on the connection and returns the number of batches in its result.
fn next(reader: &mut Reader) -> Result<u32, Box<dyn Error>> {
    let mut cursor = reader.prepare("SELECT 1").execute()?;
    let mut batches = 0;
    while cursor.next_batch()?.is_some() {
        batches += 1;
    }
    Ok(batches)
}
