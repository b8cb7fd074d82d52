//! Writes an Arrow batch through QuestDB's Rust client and reads the table back as Arrow:
//! `questdb-rs-client CONF TABLE arrow`.

use std::error::Error;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt32Array,
};
use arrow::datatypes::{Float64Type, Int32Type};
use arrow::util::display::array_value_to_string;
use questdb::QuestDb;
use questdb::egress::reader::Reader;
use questdb::ingress::ColumnName;
use questdb::ingress::column_sender::ArrowColumnOverride;

const ROWS: i64 = 3;

pub fn run(conf: &str, table: &str) -> Result<(), Box<dyn Error>> {
    let overrides = [
        ArrowColumnOverride::Symbol { column: "text_symbol" },
        ArrowColumnOverride::Uuid { column: "u" },
        ArrowColumnOverride::Ipv4 { column: "ip" },
    ];
    let db = QuestDb::connect(conf)?;
    let at = Some(ColumnName::new("ts")?);
    db.flush_arrow_batch(table, &batch()?, at, &overrides, None)?;
    // The second batch of a connection reuses the symbols of the first.
    db.flush_arrow_batch(table, &batch()?.slice(1, 1), at, &overrides, None)?;
    read(conf, table)
}

/// Three rows, the last with nulls, with one column for each Arrow type that a table accepts.
fn batch() -> Result<RecordBatch, Box<dyn Error>> {
    let symbols: DictionaryArray<Int32Type> = [Some("a"), Some("b"), None].into_iter().collect();
    let lists = ListArray::from_iter_primitive::<Float64Type, _, _>([
        Some(vec![Some(1.0), Some(2.0)]),
        Some(vec![]),
        None,
    ]);
    let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some([0x11_u8; 16]), Some([0xfe; 16]), None].into_iter(),
        16,
    )?;
    let decimals = Decimal128Array::from(vec![Some(-123_450), Some(1), None])
        .with_precision_and_scale(18, 3)?;
    let start = 1_700_000_000_000_000_000;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("symbol", Arc::new(symbols)),
        ("text_symbol", Arc::new(StringArray::from(vec![Some("x"), Some("y"), None]))),
        ("text", Arc::new(StringArray::from(vec![Some("a \"b\"\nä"), Some(""), None]))),
        ("d", Arc::new(Float64Array::from(vec![Some(1.5), Some(-0.5), None]))),
        ("f", Arc::new(Float32Array::from(vec![Some(2.5), Some(0.5), None]))),
        ("l", Arc::new(Int64Array::from(vec![Some(1 << 40), Some(-2), None]))),
        ("i", Arc::new(Int32Array::from(vec![Some(7), Some(-8), None]))),
        ("b", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("m", Arc::new(TimestampMicrosecondArray::from(vec![Some(1), Some(2), None]))),
        ("ms", Arc::new(TimestampMillisecondArray::from(vec![Some(1), Some(2), None]))),
        ("day", Arc::new(Date32Array::from(vec![Some(1), Some(2), None]))),
        ("ip", Arc::new(UInt32Array::from(vec![Some(0x0a00_0001), Some(0x0a00_0002), None]))),
        ("u", Arc::new(uuids)),
        ("dec", Arc::new(decimals)),
        ("a", Arc::new(lists)),
        (
            "ts",
            Arc::new(TimestampNanosecondArray::from_iter_values((0..ROWS).map(|row| start + row))),
        ),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Prints the columns with their Arrow types, and the rows.
fn read(conf: &str, table: &str) -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::from_conf(conf)?;
    let sql = format!("SELECT * FROM {table} WHERE timestamp > $1");
    let mut cursor = reader.prepare(&sql).bind_timestamp_micros(0).execute()?;
    let (schema, batches) = cursor.fetch_all_arrow()?;
    for field in schema.fields() {
        println!("{} {}", field.name(), field.data_type());
    }
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let cells: Result<Vec<String>, _> = batch
                .columns()
                .iter()
                .map(|column| match column.is_null(row) {
                    true => Ok("null".to_owned()),
                    false => array_value_to_string(column, row),
                })
                .collect();
            println!("{}", cells?.join("|"));
        }
    }
    Ok(())
}
