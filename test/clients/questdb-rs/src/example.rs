use questdb::ingress::{Sender, TimestampNanos};

fn main() -> questdb::Result<()> {
    let mut sender = Sender::from_conf("http::addr=127.0.0.1:9000;")?;
    let mut buffer = sender.new_buffer();
    buffer
        .table("readings")?
        .symbol("sensor", "north")?
        .column_f64("value", 1.5)?
        .at(TimestampNanos::new(1_767_261_600_000_000_000))?;
    sender.flush(&mut buffer)
}
