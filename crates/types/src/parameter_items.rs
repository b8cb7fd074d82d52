//! Items of an array sent in binary. Operators that can read items use them; all others use the
//! text form.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use chrono::DateTime;

use crate::SqlType;

/// Items of one type, as the client sent them.
#[derive(Debug, Clone)]
pub struct ParameterItems {
    values: ArrayRef,
    sql_type: SqlType,
}

impl PartialEq for ParameterItems {
    fn eq(&self, other: &Self) -> bool {
        self.values.as_ref() == other.values.as_ref()
    }
}

impl ParameterItems {
    /// Creates items from a column; `None` when its type cannot be an array item.
    #[must_use]
    pub fn new(values: ArrayRef) -> Option<Self> {
        let sql_type = match values.data_type() {
            DataType::Boolean => SqlType::Boolean,
            DataType::Int16 => SqlType::Short,
            DataType::Int32 => SqlType::Int,
            DataType::Int64 => SqlType::Long,
            DataType::Float32 => SqlType::Float,
            DataType::Float64 => SqlType::Double,
            DataType::Timestamp(TimeUnit::Microsecond, None) => SqlType::Timestamp,
            DataType::Utf8View => SqlType::Varchar,
            _ => return None,
        };
        Some(Self { values, sql_type })
    }

    /// Returns the items.
    #[must_use]
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Returns the items' type.
    #[must_use]
    pub fn sql_type(&self) -> SqlType {
        self.sql_type
    }

    /// Returns the text form, such as `{1.0,NULL}`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from("{");
        for row in 0..self.values.len() {
            if row > 0 {
                text.push(',');
            }
            if self.values.is_null(row) {
                text.push_str("NULL");
            } else {
                self.push(&mut text, row);
            }
        }
        text.push('}');
        text
    }

    fn push(&self, text: &mut String, row: usize) {
        let values = self.values.as_ref();
        let _ = match self.sql_type {
            SqlType::Boolean => write!(text, "{}", values.as_boolean().value(row)),
            SqlType::Short => write!(text, "{}", values.as_primitive::<Int16Type>().value(row)),
            SqlType::Int => write!(text, "{}", values.as_primitive::<Int32Type>().value(row)),
            SqlType::Long => write!(text, "{}", values.as_primitive::<Int64Type>().value(row)),
            SqlType::Float => write!(text, "{:?}", values.as_primitive::<Float32Type>().value(row)),
            SqlType::Double => {
                write!(text, "{:?}", values.as_primitive::<Float64Type>().value(row))
            }
            SqlType::Timestamp => {
                push_item(
                    text,
                    &shown(values.as_primitive::<TimestampMicrosecondType>().value(row)),
                );
                Ok(())
            }
            _ => {
                push_item(text, values.as_string_view().value(row));
                Ok(())
            }
        };
    }
}

fn shown(micros: i64) -> String {
    let time = DateTime::from_timestamp_micros(micros);
    time.map_or_else(String::new, |time| time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

/// Appends a non-null item, quoted if needed.
pub fn push_item(text: &mut String, item: &str) {
    let is_plain = !item.is_empty()
        && !item.eq_ignore_ascii_case("null")
        && !item.contains(|c: char| c.is_whitespace() || "{}\",\\".contains(c));
    if is_plain {
        text.push_str(item);
        return;
    }
    text.push('"');
    for c in item.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}
