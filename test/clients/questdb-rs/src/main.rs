//! Writes rows through QuestDB's Rust client: `questdb-rs-client CONF TABLE VERSION`. Over the
//! columnar protocol (`ws::…`) it also reads the rows back and prints them. The VERSION `arrow`
//! uses Arrow batches; `stops` prints how stopped queries end.

mod frames;
mod stops;

use std::env::args;
use std::error::Error;
use std::time::Duration;

use questdb::egress::column::ColumnView;
use questdb::egress::reader::Reader;
use questdb::ingress::{AckLevel, Sender, TimestampMicros, TimestampNanos};

fn main() -> Result<(), Box<dyn Error>> {
    let [conf, table, version] = [1, 2, 3].map(|place| args().nth(place).unwrap_or_default());
    if version == "arrow" {
        return frames::run(&conf, &table);
    }
    if version == "stops" {
        return stops::run(&conf);
    }
    let version: u8 = version.parse().unwrap_or(1);
    let is_columnar = conf.starts_with("ws");
    let mut sender = Sender::from_conf(&conf)?;
    let mut buffer = sender.new_buffer();
    for row in 0..3_u8 {
        buffer
            .table(table.as_str())?
            .symbol("s", format!("x y,={row}"))?
            .column_f64("f", f64::from(row) + 0.5)?
            .column_i64("i", i64::from(row))?
            .column_bool("b", row > 0)?
            .column_str("v", format!("a \"quoted\"\nline \\ {row}"))?
            .column_ts("m", TimestampMicros::new(i64::from(row) + 1))?;
        if version >= 2 {
            buffer.column_arr("a", &vec![vec![f64::from(row), 1.5], vec![2.5, 3.5]])?;
        }
        if version >= 3 {
            buffer.column_dec("d", "-123.45")?;
        }
        buffer.at(TimestampNanos::new(1_700_000_000_000_000_000 + i64::from(row)))?;
    }
    sender.flush(&mut buffer)?;
    if is_columnar {
        sender.wait(AckLevel::Ok, Duration::from_secs(30))?;
        read(&conf, &table);
    }
    println!("sent");
    Ok(())
}

/// Prints all rows except the first.
fn read(conf: &str, table: &str) {
    let mut reader = Reader::from_conf(conf).expect("a connection that reads");
    let sql = format!("SELECT s, f, i, b, m, timestamp FROM {table} WHERE i >= $1");
    let mut cursor = reader.prepare(&sql).bind_i64(1).execute().expect("an answer");
    while let Some(batch) = cursor.next_batch().expect("a batch") {
        for row in 0..batch.row_count() {
            let cells: Vec<String> = (0..6)
                .map(|column| match batch.column(column).expect("a column") {
                    ColumnView::Symbol(column) => column.resolve(row).unwrap_or("null").to_owned(),
                    ColumnView::Double(column) => column.value(row).to_string(),
                    ColumnView::Long(column) => column.value(row).to_string(),
                    ColumnView::Boolean(column) => (column.value(row) != 0).to_string(),
                    ColumnView::Timestamp(column) => format!("{}us", column.value(row)),
                    ColumnView::TimestampNanos(column) => format!("{}ns", column.value(row)),
                    other => format!("{:?}", other.kind()),
                })
                .collect();
            println!("{}", cells.join("|"));
        }
    }
}
