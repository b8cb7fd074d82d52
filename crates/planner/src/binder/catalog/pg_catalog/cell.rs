//! Values and columns of catalog tables.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, StringViewArray, TimestampMicrosecondArray,
};
use tidemark_types::double_array::DoubleArrayBuilder;
use tidemark_types::{EngineResult, SqlType};

/// A value in a catalog table.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Null,
    Boolean(bool),
    Number(i64),
    Text(Cow<'static, str>),
    Numbers(Vec<i32>),
}

impl From<Vec<i32>> for Cell {
    fn from(value: Vec<i32>) -> Self {
        Self::Numbers(value)
    }
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

/// A row as pairs of column name and value. Columns that are not listed are null.
pub(crate) type Row = Vec<(&'static str, Cell)>;

/// Builds a column from cells. `of` is the name of a type used in `layout.rs`.
pub(crate) fn column_of<'a>(
    of: &str,
    cells: impl Iterator<Item = &'a Cell>,
) -> EngineResult<(SqlType, ArrayRef)> {
    let number = |cell: &Cell| match cell {
        Cell::Number(number) => Some(*number),
        _ => None,
    };
    let text = |cell: &'a Cell| match cell {
        Cell::Text(text) => Some(text.as_ref()),
        _ => None,
    };
    Ok(match of {
        "oid" | "xid" | "int4" => {
            let values = cells.map(|cell| number(cell).map(|number| number as i32));
            (SqlType::Int, Arc::new(values.collect::<Int32Array>()))
        }
        "int2" => {
            let values = cells.map(|cell| Some(number(cell).unwrap_or(0) as i16));
            (SqlType::Short, Arc::new(values.collect::<Int16Array>()))
        }
        "int8" => (SqlType::Long, Arc::new(cells.map(number).collect::<Int64Array>())),
        "float4" => {
            let values = cells.map(|cell| number(cell).map(|number| number as f32));
            (SqlType::Float, Arc::new(values.collect::<Float32Array>()))
        }
        "float8" | "numeric" => {
            let values = cells.map(|cell| number(cell).map(|number| number as f64));
            (SqlType::Double, Arc::new(values.collect::<Float64Array>()))
        }
        "bool" => {
            let values = cells.map(|cell| Some(matches!(cell, Cell::Boolean(true))));
            (SqlType::Boolean, Arc::new(values.collect::<BooleanArray>()))
        }
        "timestamp" => {
            let values = cells.map(number).collect::<TimestampMicrosecondArray>();
            (SqlType::Timestamp, Arc::new(values))
        }
        "int2vector" | "oidvector" | "_int2" | "_oid" | "_float4" | "_float8" => {
            (SqlType::DoubleArray(1), lists(cells)?)
        }
        // A function name, which clients may also compare with 0.
        "regproc" => {
            (SqlType::Symbol, Arc::new(cells.map(text).collect::<DictionaryArray<Int32Type>>()))
        }
        _ => (SqlType::String, Arc::new(cells.map(text).collect::<StringViewArray>())),
    })
}

fn lists<'a>(cells: impl Iterator<Item = &'a Cell>) -> EngineResult<ArrayRef> {
    let mut lists = DoubleArrayBuilder::new(1);
    for cell in cells {
        match cell {
            Cell::Numbers(numbers) => {
                lists.push(&[numbers.len() as i32], numbers.iter().map(|&number| number.into()))?;
            }
            _ => lists.push_null(),
        }
    }
    lists.finish()
}
