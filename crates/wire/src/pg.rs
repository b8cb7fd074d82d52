//! Rows as pgwire `DataRow` messages, each column in text or binary format.

use arrow_array::{Array, RecordBatch};
use tidemark_types::double_array::{DoubleArray, PG_ARRAY};
use tidemark_types::period::Period;
use tidemark_types::text_array::text_array;
use tidemark_types::{CatalogType, EngineError, EngineResult, Field, SqlType};

use crate::cells;
use crate::columns::{Column, columns_of, geohash_bits};
use crate::digits::{TimestampStyle, TimestampWriter, push_double, push_float, push_integer};
use crate::growth::Growth;

/// Microseconds from 1970 to 2000, where Postgres's binary timestamps start.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// Length value that represents null.
const NULL_LENGTH: i32 = -1;
/// Type OID of float8, the element type of all arrays outside the catalog.
const FLOAT8_OID: i32 = 701;
/// Bytes assumed per cell in the initial estimate of a batch's size.
const CELL_BYTES_GUESS: usize = 16;

/// Encodes the rows of one result.
#[derive(Debug)]
pub(crate) struct PgRows {
    fields: Vec<Field>,
    binary: Vec<bool>,
    timestamps: Vec<TimestampWriter>,
}

impl PgRows {
    pub(crate) fn new(
        fields: &[Field],
        format_codes: &[i16],
        nanoseconds: bool,
    ) -> EngineResult<Self> {
        let codes = match format_codes {
            [] => vec![0; fields.len()],
            [all] => vec![*all; fields.len()],
            each if each.len() == fields.len() => each.to_vec(),
            each => {
                return Err(EngineError::new(
                    tidemark_types::ErrorCode::InvalidValue,
                    format!(
                        "bind message has {} result formats but query has {} columns",
                        each.len(),
                        fields.len()
                    ),
                ));
            }
        };
        if let Some(code) = codes.iter().find(|code| !matches!(code, 0 | 1)) {
            return Err(EngineError::new(
                tidemark_types::ErrorCode::InvalidValue,
                format!("invalid format code {code}: expected 0 or 1"),
            ));
        }
        // BINARY has no text form, so its RowDescription reports binary for every requested format.
        let binary = fields
            .iter()
            .zip(&codes)
            .map(|(field, code)| *code == 1 || field.sql_type == SqlType::Binary)
            .collect();
        let style =
            if nanoseconds { TimestampStyle::PostgresNanos } else { TimestampStyle::Postgres };
        let timestamps = vec![TimestampWriter::new(style); fields.len()];
        Ok(Self { fields: fields.to_vec(), binary, timestamps })
    }

    pub(crate) fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> EngineResult<()> {
        let columns = columns_of(&self.fields, batch)?;
        let count = u16::try_from(columns.len()).map_err(|_| {
            EngineError::new(
                tidemark_types::ErrorCode::NotSupported,
                format!(
                    "the row has {} columns: a DataRow message can hold at most 65,535",
                    columns.len()
                ),
            )
        })?;
        out.reserve(batch.num_rows() * columns.len() * CELL_BYTES_GUESS);
        let mut growth = Growth::of(out);
        for row in 0..batch.num_rows() {
            out.push(b'D');
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&count.to_be_bytes());
            for (position, column) in columns.iter().enumerate() {
                let field = &self.fields[position];
                let is_own = self.binary[position] && field.catalog_type.is_none();
                if is_own && push_sized(out, column, row) {
                    growth.check(out)?;
                    continue;
                }
                let at = out.len();
                out.extend_from_slice(&NULL_LENGTH.to_be_bytes());
                let written = if let Some(of) = field.catalog_type
                    && let Some(written) = push_catalog(out, column, row, of, self.binary[position])
                {
                    written
                } else if self.binary[position] {
                    push_binary(out, column, row)
                } else {
                    push_text(out, column, &mut self.timestamps[position], row)
                };
                if written {
                    put_length(out, at, 4)?;
                }
                growth.check(out)?;
            }
            put_length(out, start, 0)?;
        }
        Ok(())
    }
}

/// Writes the number of bytes after `at`, minus `header`, at offset `at`.
fn put_length(out: &mut [u8], at: usize, header: usize) -> EngineResult<()> {
    let length = i32::try_from(out.len() - at - header).map_err(|_| {
        EngineError::new(
            tidemark_types::ErrorCode::ResourceLimit,
            "the row is larger than 2 GiB and does not fit in a DataRow message",
        )
    })?;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends a cell's length and binary value if its type is among the most common. For other types,
/// appends nothing and returns `false`.
#[inline]
fn push_sized(out: &mut Vec<u8>, column: &Column<'_>, row: usize) -> bool {
    match column {
        Column::Double(values) => push_word(out, values.get(row).map(f64::to_be_bytes)),
        Column::Long(values) => push_word(out, values.get(row).map(i64::to_be_bytes)),
        Column::Micros(values) => push_word(out, values.get(row).map(since_2000)),
        Column::Symbol { keys, values, .. } => {
            push_sized_text(out, keys.get(row).and_then(|key| values.get(key as usize)));
        }
        Column::Text(values) => push_sized_text(out, values.get(row)),
        _ => return false,
    }
    true
}

#[inline]
fn push_word(out: &mut Vec<u8>, value: Option<[u8; 8]>) {
    let Some(value) = value else { return out.extend_from_slice(&NULL_LENGTH.to_be_bytes()) };
    let mut cell = [0; 12];
    cell[3] = value.len() as u8;
    cell[4..].copy_from_slice(&value);
    out.extend_from_slice(&cell);
}

/// Appends a string's length and bytes. Strings longer than 2 GiB need no check here, because rows
/// that contain them exceed the row size limit and are refused.
#[inline]
fn push_sized_text(out: &mut Vec<u8>, text: Option<&str>) {
    let length = text.map_or(NULL_LENGTH, |text| text.len() as i32);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// Returns a timestamp relative to Postgres's epoch.
fn since_2000(micros: i64) -> [u8; 8] {
    micros.wrapping_sub(POSTGRES_EPOCH_MICROS).to_be_bytes()
}

#[inline]
fn put<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) -> bool {
    match value {
        Some(value) => {
            write(out, value);
            true
        }
        None => false,
    }
}

/// Appends a cell's text; returns `false` if the cell is null.
fn push_text(
    out: &mut Vec<u8>,
    column: &Column<'_>,
    timestamps: &mut TimestampWriter,
    row: usize,
) -> bool {
    match column {
        Column::Boolean(values) => {
            out.push(if values.is_valid(row) && values.value(row) { b't' } else { b'f' });
            true
        }
        Column::Byte(values) => put(out, Some(values.get(row).unwrap_or(0)), push_integer),
        Column::Short(values) => put(out, Some(values.get(row).unwrap_or(0)), push_integer),
        Column::Int(values) => put(out, values.get(row), push_integer),
        Column::Long(values) => put(out, values.get(row), push_integer),
        Column::Float(values) => put(out, values.get(row), push_float),
        Column::Double(values) => put(out, values.get(row), push_double),
        Column::Millis(values) => {
            put(out, values.get(row), |out, ts| timestamps.push_millis(out, ts))
        }
        Column::Micros(values) => {
            put(out, values.get(row), |out, ts| timestamps.push_micros(out, ts))
        }
        Column::Nanos(values) => {
            put(out, values.get(row), |out, ts| timestamps.push_nanos(out, ts))
        }
        Column::Decimal(values) => {
            put(out, values.text(row), |out, text| out.extend_from_slice(text.as_bytes()))
        }
        Column::Doubles(arrays) => put(out, arrays.get(row), |out, array| {
            // In Postgres, every empty array is the same value, without dimensions.
            let shape = if array.values.is_empty() { &[0] } else { array.shape };
            DoubleArray { shape, ..array }.write_text(out, &PG_ARRAY, push_double);
        }),
        Column::Uuid(values) => {
            put(out, values.is_valid(row).then(|| values.value(row)), cells::push_uuid)
        }
        _ => push_text_only(out, column, row),
    }
}

/// Appends a cell whose binary form is its text, or a BINARY cell, which is raw in both forms.
fn push_text_only(out: &mut Vec<u8>, column: &Column<'_>, row: usize) -> bool {
    let raw = |out: &mut Vec<u8>, text: &str| out.extend_from_slice(text.as_bytes());
    match column {
        Column::Text(values) => put(out, values.get(row), raw),
        Column::Symbol { keys, values, .. } => {
            put(out, keys.get(row).and_then(|key| values.get(key as usize)), raw)
        }
        Column::Char(values) => {
            put(out, values.get(row).filter(|unit| *unit != 0), cells::push_char)
        }
        Column::Long256(values) => {
            put(out, values.is_valid(row).then(|| values.value(row)), cells::push_long256)
        }
        Column::Ipv4(values) => put(out, values.get(row), cells::push_ipv4),
        Column::Geohash { bits, array } => put(out, geohash_bits(*array, row), |out, value| {
            cells::push_geohash(out, *bits, value);
        }),
        Column::Period(values) => put(out, values.get(row), cells::push_period),
        Column::Interval { nulls, lo, hi } => {
            let valid = nulls.is_none_or(|nulls| nulls.is_valid(row));
            put(out, valid.then_some(()), |out, ()| cells::push_interval(out, [*lo, *hi], row))
        }
        Column::Binary(values) => put(out, values.get(row), Vec::extend_from_slice),
        _ => false,
    }
}

/// Appends a cell's binary form; returns `false` if the cell is null.
fn push_binary(out: &mut Vec<u8>, column: &Column<'_>, row: usize) -> bool {
    let since_2000 = |out: &mut Vec<u8>, micros: i64| out.extend_from_slice(&since_2000(micros));
    match column {
        Column::Boolean(values) => {
            out.push(u8::from(values.is_valid(row) && values.value(row)));
            true
        }
        Column::Byte(values) => {
            let value = i16::from(values.get(row).unwrap_or(0));
            put(out, Some(value.to_be_bytes()), |out, bytes| out.extend_from_slice(&bytes))
        }
        Column::Short(values) => {
            let value = values.get(row).unwrap_or(0);
            put(out, Some(value.to_be_bytes()), |out, bytes| out.extend_from_slice(&bytes))
        }
        Column::Int(values) => {
            put(out, values.get(row), |out, value| out.extend_from_slice(&value.to_be_bytes()))
        }
        Column::Long(values) => {
            put(out, values.get(row), |out, value| out.extend_from_slice(&value.to_be_bytes()))
        }
        Column::Float(values) => {
            put(out, values.get(row), |out, value| out.extend_from_slice(&value.to_be_bytes()))
        }
        Column::Double(values) => {
            put(out, values.get(row), |out, value| out.extend_from_slice(&value.to_be_bytes()))
        }
        Column::Millis(values) => {
            put(out, values.get(row).map(|millis| millis.saturating_mul(1_000)), since_2000)
        }
        Column::Micros(values) => put(out, values.get(row), since_2000),
        Column::Nanos(values) => {
            put(out, values.get(row).map(|nanos| nanos.div_euclid(1_000)), since_2000)
        }
        Column::Uuid(values) => {
            put(out, values.is_valid(row).then(|| values.value(row)), Vec::extend_from_slice)
        }
        Column::Period(values) => put(out, values.get(row).map(Period::from), |out, period| {
            out.extend_from_slice(&period.micros.to_be_bytes());
            out.extend_from_slice(&period.days.to_be_bytes());
            out.extend_from_slice(&period.months.to_be_bytes());
        }),
        Column::Decimal(values) => put(out, values.text(row), |out, text| {
            push_numeric(out, &text);
        }),
        Column::Doubles(arrays) => put(out, arrays.get(row), push_array),
        _ => push_text_only(out, column, row),
    }
}

/// Writes Postgres's numeric: groups of four decimal digits around the decimal point.
fn push_numeric(out: &mut Vec<u8>, text: &str) {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (integer, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let integer = integer.trim_start_matches('0');
    let mut padded = "0".repeat((4 - integer.len() % 4) % 4);
    padded.push_str(integer);
    let whole_groups = padded.len() / 4;
    padded.push_str(fraction);
    padded.push_str(&"0".repeat((4 - fraction.len() % 4) % 4));
    let groups: Vec<i16> = padded
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0')))
        .collect();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    let trailing = groups[leading..].iter().rev().take_while(|group| **group == 0).count();
    let significant = &groups[leading..groups.len() - trailing];
    let weight = if significant.is_empty() { 0 } else { whole_groups as i16 - 1 - leading as i16 };
    out.extend_from_slice(&(significant.len() as i16).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    let sign: u16 = if negative && !significant.is_empty() { 0x4000 } else { 0 };
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&(fraction.len() as i16).to_be_bytes());
    for group in significant {
        out.extend_from_slice(&group.to_be_bytes());
    }
}

/// Appends an array of a catalog column. Returns `None` if the column is not an array, or its text
/// is already in array form.
fn push_catalog(
    out: &mut Vec<u8>,
    column: &Column<'_>,
    row: usize,
    of: CatalogType,
    binary: bool,
) -> Option<bool> {
    let element = of.element()?;
    match column {
        Column::Doubles(lists) => Some(put(out, lists.get(row), |out, list| {
            let number = |number: &f64| Some(format!("{number:.0}"));
            let items: Vec<Option<String>> = list.values.iter().map(number).collect();
            if binary {
                push_items(out, &items, of, element);
                return;
            }
            let items: Vec<String> = items.into_iter().flatten().collect();
            let (ends, between) = if of.is_vector() { (["", ""], " ") } else { (["{", "}"], ",") };
            out.extend_from_slice(ends[0].as_bytes());
            out.extend_from_slice(items.join(between).as_bytes());
            out.extend_from_slice(ends[1].as_bytes());
        })),
        Column::Text(values) if binary => Some(put(out, values.get(row), |out, text| {
            let items: Vec<Option<String>> = text_array(text).collect();
            push_items(out, &items, of, element);
        })),
        _ => None,
    }
}

/// Writes Postgres's array layout, with the lower bound of a catalog type.
fn push_items(out: &mut Vec<u8>, items: &[Option<String>], of: CatalogType, element: i32) {
    let is_vector = of.is_vector();
    let has_null = items.contains(&None);
    let dimensions = i32::from(is_vector || !items.is_empty());
    let header =
        [dimensions, i32::from(has_null), element, items.len() as i32, i32::from(!is_vector)];
    let used = if dimensions == 0 { 3 } else { header.len() };
    header[..used].iter().for_each(|value| out.extend_from_slice(&value.to_be_bytes()));
    for item in items {
        let Some(item) = item else {
            out.extend_from_slice(&NULL_LENGTH.to_be_bytes());
            continue;
        };
        let number = item.parse::<i64>().unwrap_or_default().to_be_bytes();
        let bytes: &[u8] = match element {
            16 => &[u8::from(matches!(item.as_str(), "t" | "true"))],
            20 => &number,
            21 => &number[6..],
            23 | 26 => &number[4..],
            _ => item.as_bytes(),
        };
        out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        out.extend_from_slice(bytes);
    }
}

/// Writes Postgres's array layout; an empty array has no dimensions.
fn push_array(out: &mut Vec<u8>, array: DoubleArray<'_>) {
    let shape = if array.values.is_empty() { &[] } else { array.shape };
    let has_null = array.values.iter().any(|value| value.is_nan());
    out.extend_from_slice(&(shape.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&FLOAT8_OID.to_be_bytes());
    for length in shape {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&1_i32.to_be_bytes());
    }
    for value in array.values {
        if value.is_nan() {
            out.extend_from_slice(&NULL_LENGTH.to_be_bytes());
        } else {
            out.extend_from_slice(&8_i32.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}
