//! Rows as JSON arrays in `/exec` format: `[1,"a"],[2,"b"]`.

use arrow_array::{Array, RecordBatch};
use tidemark_types::double_array::JSON_ARRAY;
use tidemark_types::{EngineError, EngineResult, Field};

use crate::cells;
use crate::columns::{Column, columns_of, geohash_bits};
use crate::digits::{TimestampStyle, TimestampWriter, push_double, push_float, push_integer};
use crate::growth::Growth;
use crate::symbols::SymbolTexts;

const NULL: &[u8] = b"null";

/// Bytes assumed per cell in the initial estimate of a batch's size.
const CELL_BYTES_GUESS: usize = 16;

/// Encodes the rows of one result.
#[derive(Debug)]
pub(crate) struct JsonRows {
    fields: Vec<Field>,
    quote_large_numbers: bool,
    selection: Vec<usize>,
    states: Vec<CellState>,
    any_row: bool,
}

/// Column state that is retained across rows.
#[derive(Debug)]
struct CellState {
    timestamps: TimestampWriter,
    symbols: SymbolTexts,
}

impl JsonRows {
    pub(crate) fn new(
        fields: &[Field],
        quote_large_numbers: bool,
        columns: Option<Vec<usize>>,
    ) -> EngineResult<Self> {
        let selection = columns.unwrap_or_else(|| (0..fields.len()).collect());
        if let Some(index) = selection.iter().find(|index| **index >= fields.len()) {
            return Err(EngineError::internal(format!(
                "column {index} of {} was requested",
                fields.len()
            )));
        }
        let states = selection
            .iter()
            .map(|_| CellState {
                timestamps: TimestampWriter::new(TimestampStyle::Iso),
                symbols: SymbolTexts::default(),
            })
            .collect();
        Ok(Self { fields: fields.to_vec(), quote_large_numbers, selection, states, any_row: false })
    }

    pub(crate) fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> EngineResult<()> {
        let all = columns_of(&self.fields, batch)?;
        let columns: Vec<Column<'_>> = self.selection.iter().map(|index| all[*index]).collect();
        for (column, state) in columns.iter().zip(&mut self.states) {
            if let Column::Symbol { shared, .. } = column {
                state.symbols.prepare(shared, batch.num_rows(), push_string);
            }
        }
        out.reserve(batch.num_rows() * columns.len() * CELL_BYTES_GUESS);
        let mut growth = Growth::of(out);
        for row in 0..batch.num_rows() {
            out.extend_from_slice(if self.any_row { b",[" } else { b"[" });
            self.any_row = true;
            for (position, column) in columns.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                let state = &mut self.states[position];
                push_cell(out, column, state, row, self.quote_large_numbers);
                growth.check(out)?;
            }
            out.push(b']');
        }
        Ok(())
    }
}

/// Writes `value`, or `null`.
#[inline]
fn or_null<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    match value {
        Some(value) => write(out, value),
        None => out.extend_from_slice(NULL),
    }
}

/// Writes `value` in quotes (its text needs no escaping), or `null`.
#[inline]
fn quoted<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    or_null(out, value, |out, value| {
        out.push(b'"');
        write(out, value);
        out.push(b'"');
    });
}

#[inline]
fn push_cell(
    out: &mut Vec<u8>,
    column: &Column<'_>,
    state: &mut CellState,
    row: usize,
    quote_large_numbers: bool,
) {
    match column {
        Column::Long(values) if quote_large_numbers => {
            quoted(out, values.get(row), push_integer);
        }
        Column::Long(values) => or_null(out, values.get(row), push_integer),
        Column::Int(values) => or_null(out, values.get(row), push_integer),
        Column::Double(values) => or_null(out, values.get(row), push_double),
        Column::Float(values) => or_null(out, values.get(row), push_float),
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
            or_null(out, keys.get(row), |out, key| match state.symbols.get(key as usize) {
                Some(text) => out.extend_from_slice(text),
                None => or_null(out, values.get(key as usize), push_string),
            });
        }
        Column::Text(values) => or_null(out, values.get(row), push_string),
        // These types are never null, but a join may produce a null, which is written as false or
        // 0.
        Column::Boolean(values) => {
            let is_true = values.is_valid(row) && values.value(row);
            out.extend_from_slice(if is_true { b"true" } else { b"false" });
        }
        Column::Byte(values) => push_integer(out, values.get(row).unwrap_or(0)),
        Column::Short(values) => push_integer(out, values.get(row).unwrap_or(0)),
        _ => push_rare_cell(out, column, row),
    }
}

fn push_rare_cell(out: &mut Vec<u8>, column: &Column<'_>, row: usize) {
    match column {
        Column::Char(values) => {
            let mut text = Vec::with_capacity(3);
            if let Some(unit) = values.get(row).filter(|unit| *unit != 0) {
                cells::push_char(&mut text, unit);
            }
            push_string(out, std::str::from_utf8(&text).unwrap_or_default());
        }
        Column::Uuid(values) => {
            quoted(out, values.is_valid(row).then(|| values.value(row)), cells::push_uuid);
        }
        Column::Long256(values) if values.is_null(row) => out.extend_from_slice(b"\"\""),
        Column::Long256(values) => quoted(out, Some(values.value(row)), cells::push_long256),
        Column::Ipv4(values) => quoted(out, values.get(row), cells::push_ipv4),
        Column::Geohash { bits, array } => {
            quoted(out, geohash_bits(*array, row), |out, value| {
                cells::push_geohash(out, *bits, value);
            });
        }
        Column::Decimal(values) => {
            quoted(out, values.text(row), |out, text| out.extend_from_slice(text.as_bytes()));
        }
        Column::Doubles(arrays) => or_null(out, arrays.get(row), |out, array| {
            array.write_text(out, &JSON_ARRAY, push_double);
        }),
        Column::Period(values) => quoted(out, values.get(row), cells::push_period),
        Column::Interval { nulls, lo, hi } => {
            let valid = nulls.is_none_or(|nulls| nulls.is_valid(row)).then_some(());
            quoted(out, valid, |out, ()| cells::push_interval(out, [*lo, *hi], row));
        }
        Column::Binary(_) => out.extend_from_slice(b"[]"),
        _ => out.extend_from_slice(NULL),
    }
}

/// Bytes that must be escaped in a JSON string.
const MUST_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// Writes a JSON string. Everything above 0x1f except `"` and `\` is written raw, as UTF-8.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (index, byte) in bytes.iter().enumerate() {
        if !MUST_ESCAPE[usize::from(*byte)] {
            continue;
        }
        out.extend_from_slice(&bytes[copied..index]);
        copied = index + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}
