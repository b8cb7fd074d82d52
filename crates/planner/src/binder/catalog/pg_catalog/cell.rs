//! Values of catalog tables, and the columns they make.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int16Array, Int32Array, Int64Array,
    StringViewArray, TimestampMicrosecondArray, new_null_array,
};
use tidemark_types::SqlType;

/// A value in a catalog table.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Null,
    Boolean(bool),
    Number(i64),
    Text(Cow<'static, str>),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Self {
        Self::Number(value.into())
    }
}

impl From<i16> for Cell {
    fn from(value: i16) -> Self {
        Self::Number(value.into())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value as i64)
    }
}

impl From<&'static str> for Cell {
    fn from(value: &'static str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

/// A row by the names of its columns; those not named are null.
pub(crate) type Row = Vec<(&'static str, Cell)>;

/// The column of a letter of `layout.rs`.
pub(crate) fn column_of<'a>(
    letter: &str,
    cells: impl Iterator<Item = &'a Cell>,
) -> (SqlType, ArrayRef) {
    let number = |cell: &Cell| match cell {
        Cell::Number(number) => Some(*number),
        _ => None,
    };
    match letter {
        "o" | "i" => {
            let values = cells.map(|cell| number(cell).map(|number| number as i32));
            (SqlType::Int, Arc::new(values.collect::<Int32Array>()))
        }
        "s" => {
            let values = cells.map(|cell| Some(number(cell).unwrap_or(0) as i16));
            (SqlType::Short, Arc::new(values.collect::<Int16Array>()))
        }
        "l" => (SqlType::Long, Arc::new(cells.map(number).collect::<Int64Array>())),
        "f" => {
            let values = cells.map(|cell| number(cell).map(|number| number as f32));
            (SqlType::Float, Arc::new(values.collect::<Float32Array>()))
        }
        "b" => {
            let values = cells.map(|cell| Some(matches!(cell, Cell::Boolean(true))));
            (SqlType::Boolean, Arc::new(values.collect::<BooleanArray>()))
        }
        "p" => {
            let values = cells.map(number).collect::<TimestampMicrosecondArray>();
            (SqlType::Timestamp, Arc::new(values))
        }
        "v" => {
            let sql_type = SqlType::DoubleArray(1);
            (sql_type, new_null_array(&sql_type.arrow_type(), cells.count()))
        }
        "r" => {
            let names = cells.map(|cell| match cell {
                Cell::Text(text) => Some(text.as_ref()),
                _ => None,
            });
            (SqlType::Symbol, Arc::new(names.collect::<DictionaryArray<Int32Type>>()))
        }
        _ => {
            let text = |cell: &'a Cell| match cell {
                Cell::Text(text) => Some(text.as_ref()),
                _ => None,
            };
            (SqlType::String, Arc::new(cells.map(text).collect::<StringViewArray>()))
        }
    }
}
