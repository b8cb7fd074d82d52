//! The Rust driver tokio-postgres against a server: `tokio-postgres-client PORT`. Prints one line
//! of JSON.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, connect};
use uuid::Uuid;

type Answer<T> = Result<T, Box<dyn Error>>;

const SLOW: &str = "SELECT sum(sqrt(x)) AS tokio FROM long_sequence(100000000000)";

/// Results as members of a JSON object.
#[derive(Default)]
struct Seen(String);

impl Seen {
    fn tell(&mut self, name: &str, value: impl std::fmt::Debug) {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Numbers, and strings without special characters, have the same form in Rust and JSON.
        let _ = write!(self.0, "{comma}{name:?}:{value:?}");
    }
}

/// Returns the SQLSTATE and position of an error.
fn state_of(error: &tokio_postgres::Error) -> String {
    let Some(failure) = error.as_db_error() else { return error.to_string() };
    let place = match failure.position() {
        Some(ErrorPosition::Original(position)) => position.to_string(),
        _ => failure.where_().unwrap_or_default().to_owned(),
    };
    format!("{} {place}", failure.code().code()).trim_end().to_owned()
}

fn moment(micros: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros)
}

async fn count(client: &Client, query: &str) -> Answer<i64> {
    Ok(client.query_one(query, &[]).await?.get(0))
}

/// Binary values in both directions; the driver supports no other format for them.
async fn types(client: &Client, seen: &mut Seen) -> Answer<()> {
    let create = "CREATE TABLE tp (ts TIMESTAMP, b BOOLEAN, h SHORT, i INT, l LONG, f FLOAT, \
                  d DOUBLE, s SYMBOL, v VARCHAR, u UUID, a DOUBLE[]) \
                  TIMESTAMP(ts) PARTITION BY DAY";
    client.batch_execute(create).await?;
    let id = Uuid::parse_str("11111111-2222-3333-4444-555555555555")?;
    let insert = "INSERT INTO tp VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let when = moment(1_704_067_200_000_007);
    let long = (1_i64 << 53) + 1;
    let none: Option<&str> = None;
    let written = client
        .execute(
            insert,
            &[
                &when,
                &true,
                &-7_i16,
                &123_456_i32,
                &long,
                &1.5_f32,
                &-2.25_f64,
                &"sym",
                &none,
                &id,
                &vec![1.5_f64, 2.5],
            ],
        )
        .await?;
    seen.tell("written", written);
    let select =
        client.prepare("SELECT * FROM tp WHERE i = $1 AND u = $2 AND ts = $3 AND s = $4").await?;
    let kinds: Vec<&str> = select.columns().iter().map(|column| column.type_().name()).collect();
    seen.tell("kinds", kinds);
    let row = client.query_one(&select, &[&123_456_i32, &id, &when, &"sym"]).await?;
    let micros = row.get::<_, SystemTime>(0).duration_since(UNIX_EPOCH)?.as_micros();
    seen.tell(
        "types",
        [
            micros.to_string(),
            row.get::<_, bool>(1).to_string(),
            row.get::<_, i16>(2).to_string(),
            row.get::<_, i32>(3).to_string(),
            row.get::<_, i64>(4).to_string(),
            row.get::<_, f32>(5).to_string(),
            row.get::<_, f64>(6).to_string(),
            row.get::<_, &str>(7).to_owned(),
            row.get::<_, Option<&str>>(8).unwrap_or("null").to_owned(),
            row.get::<_, Uuid>(9).to_string(),
            format!("{:?}", row.get::<_, Vec<f64>>(10)),
        ],
    );
    // A simple query returns strings.
    let mut texts = Vec::new();
    for message in client.simple_query("SELECT i, d, s, v FROM tp; SELECT 1").await? {
        if let SimpleQueryMessage::Row(row) = message {
            texts.extend((0..row.len()).map(|index| row.get(index).unwrap_or("null").to_owned()));
        }
    }
    seen.tell("texts", texts);
    Ok(())
}

/// A pipeline, in which responses are awaited only at the end.
async fn batch(client: &Client, seen: &mut Seen) -> Answer<()> {
    let insert = client.prepare("INSERT INTO tp (ts, i) VALUES ($1, $2)").await?;
    let rows: Vec<(SystemTime, i32)> = (0..500).map(|n| (moment(0), n)).collect();
    let runs = rows.iter().map(|(when, n)| {
        let insert = &insert;
        async move { client.execute(insert, &[when, n]).await }
    });
    let written: u64 = future::try_join_all(runs).await?.into_iter().sum();
    let all = count(client, "SELECT count() FROM tp").await?;
    seen.tell("many", [i64::try_from(written)?, all]);
    Ok(())
}

async fn cursor(client: &mut Client, seen: &mut Seen) -> Answer<()> {
    let block = client.transaction().await?;
    let portal = block.bind("SELECT x FROM long_sequence(100)", &[]).await?;
    let mut steps = Vec::new();
    let mut sum = 0;
    loop {
        let rows = block.query_portal(&portal, 30).await?;
        steps.push(rows.len());
        sum += rows.iter().map(|row| row.get::<_, i64>(0)).sum::<i64>();
        if rows.len() < 30 {
            break;
        }
    }
    block.commit().await?;
    seen.tell("cursor", steps);
    seen.tell("sum", sum);
    Ok(())
}

/// Nested transactions are savepoints.
async fn nested(client: &mut Client, seen: &mut Seen) -> Answer<()> {
    let mut outer = client.transaction().await?;
    outer.execute("INSERT INTO tp (ts, i) VALUES (0, -1)", &[]).await?;
    let inner = outer.transaction().await?;
    inner.execute("INSERT INTO tp (ts, i) VALUES (0, -1)", &[]).await?;
    let own: i64 = inner.query_one("SELECT count() FROM tp WHERE i = -1", &[]).await?.get(0);
    if let Err(error) = inner.query("SELECT * FROM nowhere", &[]).await {
        seen.tell("error", state_of(&error));
    }
    inner.rollback().await?;
    let kept: i64 = outer.query_one("SELECT count() FROM tp WHERE i = -1", &[]).await?.get(0);
    outer.commit().await?;
    let after = count(client, "SELECT count() FROM tp WHERE i = -1").await?;
    seen.tell("nested", [own, kept, after]);
    Ok(())
}

async fn copies(client: &Client, seen: &mut Seen) -> Answer<()> {
    client.batch_execute("CREATE TABLE tpc (a INT, v VARCHAR)").await?;
    let mut sink = pin!(client.copy_in("COPY tpc FROM STDIN (FORMAT csv)").await?);
    sink.send(Bytes::from_static(b"1,\"a,b\"\n")).await?;
    sink.send(Bytes::from("2,\n".repeat(9_999))).await?;
    let copied = sink.as_mut().finish().await?;
    let types = [Type::INT4, Type::VARCHAR];
    let sink = client.copy_in::<_, Bytes>("COPY tpc FROM STDIN BINARY").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
    for n in 0..10_000_i32 {
        writer.as_mut().write(&[&n, &"x"]).await?;
    }
    let binary = writer.finish().await?;
    seen.tell("copied", [copied, binary]);
    let source = client.copy_out("COPY (SELECT * FROM tpc LIMIT 2) TO STDOUT").await?;
    let parts: Vec<Bytes> = source.try_collect().await?;
    seen.tell("text", String::from_utf8(parts.concat())?.replace("\\N", "null"));
    let source = client.copy_out("COPY tpc TO STDOUT BINARY").await?;
    let mut rows = pin!(BinaryCopyOutStream::new(source, &types));
    let mut sum = 0;
    while let Some(row) = rows.next().await {
        sum += i64::from(row?.get::<i32>(0));
    }
    seen.tell("binary", sum);
    let mut sink = pin!(client.copy_in("COPY tpc FROM STDIN").await?);
    sink.send(Bytes::from_static(b"1\tx\nno\ty\n")).await?;
    if let Err(error) = sink.finish().await {
        seen.tell("copyError", state_of(&error));
    }
    Ok(())
}

async fn cancel(client: &Client, seen: &mut Seen) -> Answer<()> {
    let token = client.cancel_token();
    let stop = async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        token.cancel_query(NoTls).await
    };
    let (answer, asked) = future::join(client.query(SLOW, &[]), stop).await;
    asked?;
    if let Err(error) = answer {
        seen.tell("cancelled", state_of(&error));
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Answer<()> {
    let port = env::args().nth(1).ok_or("expected a port")?;
    let address = format!("host=127.0.0.1 port={port} user=admin password=quest dbname=qdb");
    let (mut client, connection) = connect(&address, NoTls).await?;
    let session = tokio::spawn(connection);
    let mut seen = Seen::default();
    types(&client, &mut seen).await?;
    batch(&client, &mut seen).await?;
    cursor(&mut client, &mut seen).await?;
    nested(&mut client, &mut seen).await?;
    copies(&client, &mut seen).await?;
    cancel(&client, &mut seen).await?;
    let tables = client
        .query("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'tp%'", &[])
        .await?;
    seen.tell("tables", tables.len());
    drop(client);
    session.await??;
    println!("{{{}}}", seen.0);
    Ok(())
}
