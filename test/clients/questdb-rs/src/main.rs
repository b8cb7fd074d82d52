//! Rows through QuestDB's Rust client: `questdb-rs-client CONF TABLE VERSION`.

use std::env::args;

use questdb::ingress::{Sender, TimestampMicros, TimestampNanos};

fn main() -> questdb::Result<()> {
    let [conf, table, version] = [1, 2, 3].map(|place| args().nth(place).unwrap_or_default());
    let version: u8 = version.parse().unwrap_or(1);
    let mut sender = Sender::from_conf(conf)?;
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
    println!("sent");
    Ok(())
}
