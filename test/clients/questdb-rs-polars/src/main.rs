//! Writes a Polars frame through QuestDB's Rust client and reads the table back as a frame:
//! `questdb-rs-polars CONF TABLE`.

use std::env::args;
use std::error::Error;

use polars::prelude::{
    Column, DataFrame, DataType, IntoColumn, NamedFrom, PlSmallStr, Series, TimeUnit, TimeZone,
};
use questdb::QuestDb;
use questdb::egress::Reader;
use questdb::ingress::ColumnName;
use questdb::ingress::column_sender::ArrowColumnOverride;
use questdb::ingress::polars::PolarsIngestOptions;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = args().skip(1);
    let (Some(conf), Some(table)) = (args.next(), args.next()) else {
        return Err("expected CONF TABLE".into());
    };
    let db = QuestDb::connect(&conf)?;
    let overrides = [ArrowColumnOverride::Symbol { column: "symbol" }];
    let options = PolarsIngestOptions::new()
        .max_rows(2)
        .timestamp_column(ColumnName::new("ts")?)
        .overrides(&overrides);
    db.flush_polars_dataframe(table.as_str(), &frame()?, &options)?;
    let sql = format!("SELECT * FROM {table} WHERE timestamp > $1");
    let mut reader = Reader::from_conf(&conf)?;
    let mut cursor = reader.prepare(&sql).bind_timestamp_micros(0).execute()?;
    print(&cursor.fetch_all_polars()?);
    Ok(())
}

/// Three rows, the last with nulls, with one column for each Polars type that a table accepts.
fn frame() -> Result<DataFrame, Box<dyn Error>> {
    let start = 1_700_000_000_000_000_i64;
    let micros = DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC));
    let columns = vec![
        column("symbol", &[Some("x"), Some("y"), None]),
        column("text", &[Some("a \"b\"\nä"), Some(""), None]),
        column("d", &[Some(1.5), Some(-0.5), None]),
        column("f", &[Some(2.5_f32), Some(0.5), None]),
        column("l", &[Some(1_i64 << 40), Some(-2), None]),
        column("i", &[Some(7_i32), Some(-8), None]),
        column("b", &[Some(true), Some(false), Some(true)]),
        column("day", &[Some(1_i32), Some(2), None]).cast(&DataType::Date)?,
        column("ts", &[Some(start), Some(start + 1), Some(start + 2)]).cast(&micros)?,
    ];
    Ok(DataFrame::new(3, columns)?)
}

fn column<T>(name: &str, values: &[T]) -> Column
where
    Series: for<'v> NamedFrom<&'v [T], [T]>,
{
    Series::new(PlSmallStr::from(name), values).into_column()
}

/// Prints the columns with their Polars types, and the rows.
fn print(frame: &DataFrame) {
    for column in frame.columns() {
        println!("{} {}", column.name(), column.dtype());
    }
    for row in 0..frame.height() {
        let cells = frame.columns().iter().map(|column| {
            column.get(row).map_or_else(|error| error.to_string(), |cell| cell.to_string())
        });
        println!("{}", cells.collect::<Vec<_>>().join("|"));
    }
}
