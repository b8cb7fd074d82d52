//! Text that is parsed into columns, and rows that are formatted as text.

#![allow(clippy::expect_used, reason = "a failing entry ends the count")]

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use tidemark_border::{CsvAtomicity, LinePrecision};
use tidemark_ingest::{
    CsvColumn, CsvReader, CsvSpec, LineOptions, LineReader, MAX_LINE_BYTES, TableRows, TargetTable,
    Targets,
};
use tidemark_types::{EngineResult, Field, SqlType};
use tidemark_wire::{RowEncoder, RowFormat};

use super::entry::{Data, Entry};

/// Chunk size in which the server reads request bodies.
const CHUNK_BYTES: usize = 64 * 1024;
/// Number of rows per entry. It is smaller than for other kernels, because each row takes hundreds
/// of instructions.
const ROWS: usize = 4_096;

pub(super) fn entries(data: &Data) -> Vec<Entry> {
    let mut entries = vec![lines(data), csv(data)];
    let formats = [
        ("rows as JSON", RowFormat::Json { quote_large_numbers: false, columns: None }),
        ("rows as CSV", RowFormat::Csv { delimiter: b',', header: true }),
        ("rows as PostgreSQL text", RowFormat::Pg { format_codes: vec![], nanoseconds: true }),
        ("rows as PostgreSQL binary", RowFormat::Pg { format_codes: vec![1], nanoseconds: true }),
    ];
    entries.extend(formats.map(|(name, format)| encoding(data, name, format)));
    entries
}

fn fields() -> Vec<Field> {
    vec![
        Field::new("ts", SqlType::Timestamp),
        Field::new("symbol", SqlType::Symbol),
        Field::new("price", SqlType::Double),
    ]
}

struct NewTables;

impl Targets for NewTables {
    fn table(&mut self, _: &str) -> EngineResult<Option<TargetTable>> {
        Ok(None)
    }
}

fn lines(data: &Data) -> Entry {
    let mut text = String::new();
    for row in 0..ROWS {
        let (code, price, time) = (data.codes[row], data.prices[row], data.times[row]);
        let _ = writeln!(text, "trades,symbol=s{code} price={price},size={}i {time}000", row % 977);
    }
    let options = LineOptions {
        precision: LinePrecision::Nanos,
        create_tables: true,
        create_columns: true,
        max_columns: 4096,
        max_line_bytes: MAX_LINE_BYTES,
        max_pending_bytes: 1 << 30,
        is_continued: false,
    };
    Entry::new("lines read", ROWS, move || {
        let mut reader = LineReader::new(options);
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            reader.feed(chunk, &mut NewTables).expect("lines");
        }
        reader.finish(&mut NewTables).expect("the last line");
        let tables = reader.into_tables().expect("tables");
        assert_eq!(tables.iter().map(TableRows::rows).sum::<u64>(), ROWS as u64);
    })
}

fn csv(data: &Data) -> Entry {
    let mut text = String::new();
    for row in 0..ROWS {
        let (code, price, time) = (data.codes[row], data.prices[row], data.times[row]);
        let (second, micros) = (time / 1_000_000 % 60, time % 1_000_000);
        let _ = writeln!(text, "2024-01-01T07:11:{second:02}.{micros:06}Z,s{code},{price}");
    }
    let column = |index| CsvColumn { index, target: index, ..CsvColumn::default() };
    let spec = CsvSpec {
        delimiter: b',',
        header: false,
        columns: (0..fields().len()).map(column).collect(),
        atomicity: CsvAtomicity::Abort,
        skip_extra_values: false,
        line_fields: fields().len(),
        max_line_bytes: MAX_LINE_BYTES,
        target: fields(),
        timestamp: Some(0),
    };
    Entry::new("CSV read", ROWS, move || {
        let mut rows = 0;
        let mut sink = |batch: RecordBatch| {
            rows += batch.num_rows();
            Ok(())
        };
        let mut reader = CsvReader::new(spec.clone()).expect("a description");
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            reader.feed(chunk, &mut sink).expect("lines");
        }
        reader.finish(&mut sink).expect("the last line");
        assert_eq!(rows, ROWS);
    })
}

fn encoding(data: &Data, name: &'static str, format: RowFormat) -> Entry {
    let names: StringArray = (0..=99).map(|code| Some(format!("s{code}"))).collect();
    let codes = Int32Array::from(data.codes[..ROWS].to_vec());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMicrosecondArray::from(data.times[..ROWS].to_vec())),
        Arc::new(DictionaryArray::<Int32Type>::new(codes, Arc::new(names))),
        Arc::new(Float64Array::from(data.prices[..ROWS].to_vec())),
    ];
    let named = fields().into_iter().map(|field| field.name).zip(columns);
    let batch = RecordBatch::try_from_iter(named).expect("columns of equal length");
    Entry::new(name, ROWS, move || {
        let format = format.clone();
        let mut encoder = RowEncoder::new(&fields(), Some(0), format).expect("a format");
        let mut out = Vec::with_capacity(1 << 20);
        encoder.encode(&batch, &mut out).expect("rows");
        encoder.finish(&mut out).expect("the end");
        assert!(out.len() > 16 * ROWS);
        out
    })
}
