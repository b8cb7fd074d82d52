use std::env::args;
use std::error::Error;
use std::time::Duration;

use questdb::egress::column::ColumnView;
use questdb::egress::reader::Reader;
use questdb::ingress::{AckLevel, Sender, TimestampNanos};

fn main() -> Result<(), Box<dyn Error>> {
    let server = args().nth(1).unwrap_or("ws::addr=127.0.0.1:9000;".to_owned());
    let mut sender = Sender::from_conf(&server)?;
    let mut buffer = sender.new_buffer();
    buffer
        .table("readings")?
        .symbol("sensor", "north")?
        .column_f64("value", 1.5)?
        .at(TimestampNanos::new(1_767_261_600_000_000_000))?;
    sender.flush(&mut buffer)?;
    sender.wait(AckLevel::Ok, Duration::from_secs(30))?;

    let mut reader = Reader::from_conf(&server)?;
    let sql = "SELECT value FROM readings WHERE sensor = $1";
    let mut answer = reader.prepare(sql).bind_varchar("north").execute()?;
    while let Some(batch) = answer.next_batch()? {
        if let ColumnView::Double(values) = batch.column(0)? {
            (0..batch.row_count()).for_each(|row| println!("{}", values.value(row)));
        }
    }
    Ok(())
}
