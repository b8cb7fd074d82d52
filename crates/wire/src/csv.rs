//! Rows as RFC 4180 CSV, with CRLF line ends, empty fields for nulls, and doubled quotes.
//!
//! Strings, timestamps, geohashes, decimals and arrays are always quoted, so that an empty string
//! differs from a null. Numbers, UUID, IPv4 and LONG256 values are unquoted.

use arrow_array::{Array, RecordBatch};
use tidemark_types::double_array::JSON_ARRAY;
use tidemark_types::{EngineResult, Field};

use crate::cells;
use crate::columns::{Column, columns_of, geohash_bits};
use crate::digits::{TimestampStyle, TimestampWriter, push_double, push_float, push_integer};
use crate::growth::Growth;
use crate::symbols::SymbolTexts;

/// Bytes assumed per cell in the initial estimate of a batch's size.
const CELL_BYTES_GUESS: usize = 16;

/// Encodes the rows of one result.
#[derive(Debug)]
pub(crate) struct CsvRows {
    fields: Vec<Field>,
    delimiter: u8,
    header_due: bool,
    states: Vec<CellState>,
}

/// Column state that is retained across rows.
#[derive(Debug)]
struct CellState {
    timestamps: TimestampWriter,
    symbols: SymbolTexts,
}

impl CsvRows {
    pub(crate) fn new(fields: &[Field], delimiter: u8, header: bool) -> Self {
        let states = fields
            .iter()
            .map(|_| CellState {
                timestamps: TimestampWriter::new(TimestampStyle::Iso),
                symbols: SymbolTexts::default(),
            })
            .collect();
        Self { fields: fields.to_vec(), delimiter, header_due: header, states }
    }

    pub(crate) fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> EngineResult<()> {
        let columns = columns_of(&self.fields, batch)?;
        self.push_header(out);
        for (column, state) in columns.iter().zip(&mut self.states) {
            if let Column::Symbol { shared, .. } = column {
                state.symbols.prepare(shared, batch.num_rows(), push_string);
            }
        }
        out.reserve(batch.num_rows() * columns.len() * CELL_BYTES_GUESS);
        let mut growth = Growth::of(out);
        for row in 0..batch.num_rows() {
            for (position, column) in columns.iter().enumerate() {
                if position > 0 {
                    out.push(self.delimiter);
                }
                push_cell(out, column, &mut self.states[position], row, self.delimiter);
                growth.check(out)?;
            }
            out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// An empty result also has a header.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.push_header(out);
    }

    fn push_header(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.header_due) {
            return;
        }
        for (position, field) in self.fields.iter().enumerate() {
            if position > 0 {
                out.push(self.delimiter);
            }
            push_string(out, &field.reported_name());
        }
        out.extend_from_slice(b"\r\n");
    }
}

#[inline]
fn bare<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    if let Some(value) = value {
        write(out, value);
    }
}

/// Writes `value` in quotes. Its text must not contain quotes.
#[inline]
fn quoted<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    if let Some(value) = value {
        out.push(b'"');
        write(out, value);
        out.push(b'"');
    }
}

#[inline]
fn push_cell(
    out: &mut Vec<u8>,
    column: &Column<'_>,
    state: &mut CellState,
    row: usize,
    delimiter: u8,
) {
    match column {
        Column::Long(values) => bare(out, values.get(row), push_integer),
        Column::Int(values) => bare(out, values.get(row), push_integer),
        Column::Double(values) => bare(out, values.get(row), push_double),
        Column::Float(values) => bare(out, values.get(row), push_float),
        Column::Micros(values) => {
            quoted(out, values.get(row), |out, ts| state.timestamps.push_micros(out, ts));
        }
        Column::Millis(values) => {
            quoted(out, values.get(row), |out, ts| state.timestamps.push_millis(out, ts));
        }
        Column::Nanos(values) => {
            quoted(out, values.get(row), |out, ts| state.timestamps.push_nanos(out, ts));
        }
        Column::Symbol { keys, values, .. } => {
            bare(out, keys.get(row), |out, key| match state.symbols.get(key as usize) {
                Some(text) => out.extend_from_slice(text),
                None => bare(out, values.get(key as usize), push_string),
            });
        }
        Column::Text(values) => bare(out, values.get(row), push_string),
        // These types are never null, but a join may produce a null, which is written as false or
        // 0.
        Column::Boolean(values) => {
            let is_true = values.is_valid(row) && values.value(row);
            out.extend_from_slice(if is_true { b"true" } else { b"false" });
        }
        Column::Byte(values) => push_integer(out, values.get(row).unwrap_or(0)),
        Column::Short(values) => push_integer(out, values.get(row).unwrap_or(0)),
        _ => push_rare_cell(out, column, row, delimiter),
    }
}

fn push_rare_cell(out: &mut Vec<u8>, column: &Column<'_>, row: usize, delimiter: u8) {
    match column {
        Column::Char(values) => {
            bare(out, values.get(row).filter(|unit| *unit != 0), |out, unit| {
                push_bare_char(out, unit, delimiter);
            });
        }
        Column::Uuid(values) => {
            bare(out, values.is_valid(row).then(|| values.value(row)), cells::push_uuid);
        }
        Column::Long256(values) => {
            bare(out, values.is_valid(row).then(|| values.value(row)), cells::push_long256);
        }
        Column::Ipv4(values) => bare(out, values.get(row), cells::push_ipv4),
        Column::Geohash { bits, array } => {
            quoted(out, geohash_bits(*array, row), |out, value| {
                cells::push_geohash(out, *bits, value);
            });
        }
        Column::Decimal(values) => {
            quoted(out, values.text(row), |out, text| out.extend_from_slice(text.as_bytes()));
        }
        Column::Doubles(arrays) => quoted(out, arrays.get(row), |out, array| {
            array.write_text(out, &JSON_ARRAY, push_double);
        }),
        Column::Period(values) => quoted(out, values.get(row), cells::push_period),
        Column::Interval { nulls, lo, hi } => {
            let valid = nulls.is_none_or(|nulls| nulls.is_valid(row)).then_some(());
            quoted(out, valid, |out, ()| cells::push_interval(out, [*lo, *hi], row));
        }
        // As in QuestDB, BINARY has no text form here, and NULL is an empty field.
        _ => {}
    }
}

/// As in QuestDB, CHAR is unquoted unless that would break the line.
fn push_bare_char(out: &mut Vec<u8>, unit: u16, delimiter: u8) {
    let breaks = [b'"', b'\r', b'\n', delimiter].map(u16::from).contains(&unit);
    if !breaks {
        return cells::push_char(out, unit);
    }
    let mut text = Vec::with_capacity(3);
    cells::push_char(&mut text, unit);
    push_string(out, std::str::from_utf8(&text).unwrap_or_default());
}

/// Writes a quoted field. Inner quotes are doubled; everything else is written unchanged.
fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(quote) = rest.iter().position(|byte| *byte == b'"') {
        out.extend_from_slice(&rest[..=quote]);
        out.push(b'"');
        rest = &rest[quote + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
