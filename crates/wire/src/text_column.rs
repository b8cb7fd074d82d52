//! Columns as strings, for formats whose types cannot represent a type of the dialect.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, ArrayRef};
use tidemark_types::{EngineError, EngineResult, Field};

use crate::cells;
use crate::columns::{Column, geohash_bits};

/// Converts values that only the dialect can read to strings.
pub(crate) fn text_column(field: &Field, array: &ArrayRef) -> EngineResult<ArrayRef> {
    let column = Column::new(field.sql_type, array.as_ref()).ok_or_else(|| {
        EngineError::internal(format!("column \"{}\" has type {}", field.name, array.data_type()))
    })?;
    let mut texts = StringBuilder::new();
    let mut text = Vec::new();
    for row in 0..array.len() {
        text.clear();
        if push_text(&mut text, &column, row) {
            texts.append_value(String::from_utf8_lossy(&text));
        } else {
            texts.append_null();
        }
    }
    Ok(Arc::new(texts.finish()))
}

/// Appends a cell's text; returns `false` if the cell is null.
fn push_text(out: &mut Vec<u8>, column: &Column<'_>, row: usize) -> bool {
    match column {
        Column::Char(values) => match values.get(row).filter(|unit| *unit != 0) {
            Some(unit) => cells::push_char(out, unit),
            None => return false,
        },
        Column::Ipv4(values) => match values.get(row) {
            Some(address) => cells::push_ipv4(out, address),
            None => return false,
        },
        Column::Period(values) => match values.get(row) {
            Some(period) => cells::push_period(out, period),
            None => return false,
        },
        Column::Geohash { bits, array } => match geohash_bits(*array, row) {
            Some(value) => cells::push_geohash(out, *bits, value),
            None => return false,
        },
        Column::Interval { nulls, lo, hi } if nulls.is_none_or(|nulls| nulls.is_valid(row)) => {
            cells::push_interval(out, [*lo, *hi], row);
        }
        _ => return false,
    }
    true
}
