//! Runs sqlx against a server and prints a JSON object with one entry per check.

use std::env;
use std::path::Path;

use serde_json::{Map, Value, json};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolCopyExt, PgPoolOptions};
use sqlx::types::Uuid;
use sqlx::types::chrono::NaiveDateTime;
use sqlx::{Column, Connection, Executor, PgConnection, Row, TypeInfo};

type Result<T> = std::result::Result<T, sqlx::Error>;

async fn migrations(pool: &PgPool) -> Result<Value> {
    let folder = env::args().nth(2).unwrap_or_else(|| "migrations".to_owned());
    let migrator = Migrator::new(Path::new(&folder)).await?;
    migrator.run(pool).await?;
    migrator.run(pool).await?;
    let rows = sqlx::query("SELECT version, description, success FROM _sqlx_migrations ORDER BY 1")
        .fetch_all(pool)
        .await?;
    let row = |row: &sqlx::postgres::PgRow| -> Value {
        json!([row.get::<i64, _>(0), row.get::<String, _>(1), row.get::<bool, _>(2)])
    };
    Ok(rows.iter().map(row).collect())
}

async fn types(pool: &PgPool) -> Result<Value> {
    sqlx::query(
        "CREATE TABLE sqlx_types (ts TIMESTAMP, b BOOLEAN, i2 SHORT, i4 INT, i8 LONG, f4 FLOAT, \
         f8 DOUBLE, s SYMBOL, v VARCHAR, u UUID, bin BINARY) TIMESTAMP(ts) PARTITION BY DAY",
    )
    .execute(pool)
    .await?;
    let at: NaiveDateTime = "2024-01-01T00:00:00.000007".parse().expect("a time");
    let id = Uuid::from_u128(0x1111_1111_2222_3333_4444_5555_5555_5555);
    let done =
        sqlx::query("INSERT INTO sqlx_types VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)")
            .bind(at)
            .bind(true)
            .bind(-7_i16)
            .bind(123_456_i32)
            .bind(9_007_199_254_740_993_i64)
            .bind(1.5_f32)
            .bind(-2.25_f64)
            .bind("sym")
            .bind(None::<String>)
            .bind(id)
            .bind(&b"\x00\xff"[..])
            .execute(pool)
            .await?;
    let row = sqlx::query("SELECT * FROM sqlx_types").fetch_one(pool).await?;
    let kinds: Vec<&str> = row.columns().iter().map(|of| of.type_info().name()).collect();
    Ok(json!([
        done.rows_affected(),
        kinds,
        row.get::<NaiveDateTime, _>(0) == at,
        row.get::<bool, _>(1),
        row.get::<i16, _>(2),
        row.get::<i32, _>(3),
        row.get::<i64, _>(4).to_string(),
        row.get::<f32, _>(5),
        row.get::<f64, _>(6),
        row.get::<String, _>(7),
        row.get::<Option<String>, _>(8),
        row.get::<Uuid, _>(9) == id,
        row.get::<Vec<u8>, _>(10),
    ]))
}

/// Describes a query the way sqlx's macros do at compile time.
async fn described(pool: &PgPool) -> Result<Value> {
    let query = "SELECT id, name, height + 1 AS more FROM sqlx_places WHERE id = $1";
    let found = pool.describe(query).await?;
    let kinds: Vec<&str> = found.columns().iter().map(|of| of.type_info().name()).collect();
    let nullable: Vec<Option<bool>> = (0..3).map(|index| found.nullable(index)).collect();
    Ok(json!([kinds, nullable]))
}

async fn places(pool: &PgPool) -> Result<Value> {
    let insert = "INSERT INTO sqlx_places (name, height) VALUES ($1, $2) RETURNING id";
    let mut ids = Vec::new();
    for (name, height) in [("a", Some(1.5)), ("b", None)] {
        let row = sqlx::query(insert).bind(name).bind(height).fetch_one(pool).await?;
        ids.push(row.get::<i64, _>(0));
    }
    let names: Vec<(String,)> =
        sqlx::query_as("SELECT name FROM sqlx_places WHERE id = ANY($1) ORDER BY id")
            .bind(&ids)
            .fetch_all(pool)
            .await?;
    Ok(json!([ids, names.into_iter().map(|(name,)| name).collect::<Vec<_>>()]))
}

async fn transactions(pool: &PgPool) -> Result<Value> {
    let count = "SELECT count(*) FROM sqlx_notes";
    let mut counts = Vec::new();
    let mut undone = pool.begin().await?;
    sqlx::query("INSERT INTO sqlx_notes (id, note) VALUES (1, 'x')").execute(&mut *undone).await?;
    counts.push(sqlx::query(count).fetch_one(&mut *undone).await?.get::<i64, _>(0));
    undone.rollback().await?;
    counts.push(sqlx::query(count).fetch_one(pool).await?.get::<i64, _>(0));
    let mut kept = pool.begin().await?;
    for id in 1..=3_i64 {
        let mut nested = kept.begin().await?;
        sqlx::query("INSERT INTO sqlx_notes (id) VALUES ($1)")
            .bind(id)
            .execute(&mut *nested)
            .await?;
        if id == 2 { nested.rollback().await? } else { nested.commit().await? }
    }
    kept.commit().await?;
    counts.push(sqlx::query(count).fetch_one(pool).await?.get::<i64, _>(0));
    Ok(json!(counts))
}

async fn failures(pool: &PgPool) -> Result<Value> {
    let missing = sqlx::query("SELECT * FROM sqlx_none").fetch_one(pool).await;
    let error = missing.err().and_then(|error| {
        error.as_database_error().and_then(|error| error.code().map(|code| code.to_string()))
    });
    let empty = sqlx::query("SELECT * FROM sqlx_types WHERE i4 = 0").fetch_optional(pool).await?;
    Ok(json!([error, empty.is_none()]))
}

async fn copied(pool: &PgPool) -> Result<Value> {
    let mut copy =
        pool.copy_in_raw("COPY sqlx_notes (id, note) FROM STDIN WITH (FORMAT csv)").await?;
    copy.send(&b"11,eleven\n12,\n"[..]).await?;
    let rows = copy.finish().await?;
    let notes: Vec<(i64, Option<String>)> =
        sqlx::query_as("SELECT id, note FROM sqlx_notes WHERE id > 10 ORDER BY id")
            .fetch_all(pool)
            .await?;
    Ok(json!([rows, notes]))
}

/// LISTEN is accepted; no session sends notifications.
async fn listened(options: &PgConnectOptions) -> Result<Value> {
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen("channel").await?;
    Ok(json!(true))
}

async fn pinged(options: &PgConnectOptions) -> Result<Value> {
    let mut connection = PgConnection::connect_with(options).await?;
    connection.ping().await?;
    let version = sqlx::query("SELECT current_database()").fetch_one(&mut connection).await?;
    let name = version.get::<String, _>(0);
    connection.close().await?;
    Ok(json!(name))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let port = env::args().nth(1).and_then(|port| port.parse().ok()).expect("a port");
    let options = PgConnectOptions::new()
        .host("127.0.0.1")
        .port(port)
        .username("admin")
        .password("quest")
        .database("qdb");
    let pool = PgPoolOptions::new().max_connections(3).connect_with(options.clone()).await;
    let pool = pool.expect("a connection");
    let mut seen = Map::new();
    let mut note = |name: &str, result: Result<Value>| {
        let value = result.unwrap_or_else(|error| json!(format!("error: {error}")));
        seen.insert(name.to_owned(), value);
    };
    note("migrations", migrations(&pool).await);
    note("types", types(&pool).await);
    note("described", described(&pool).await);
    note("places", places(&pool).await);
    note("transactions", transactions(&pool).await);
    note("failures", failures(&pool).await);
    note("copied", copied(&pool).await);
    note("listened", listened(&options).await);
    note("pinged", pinged(&options).await);
    println!("{}", Value::Object(seen));
}
