//! Taking arrays and JSON documents apart.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, StringViewBuilder};
use arrow_array::cast::AsArray;
use datafusion::common::{Result, internal_err};
use serde_json::Value;
use tidemark_types::double_array::{DoubleArrayBuilder, DoubleArrays};
use tidemark_types::timestamp::{TimestampUnit, write_iso};

use super::node::{JsonField, JsonKind, UnnestItem};
use crate::error::engine_error;

/// One argument's elements for the rows of a batch.
pub(crate) enum Elements {
    Arrays { array: ArrayRef, dimensions: u8 },
    Documents { rows: Vec<Vec<Value>>, fields: Vec<JsonField> },
}

impl Elements {
    pub(crate) fn new(array: ArrayRef, item: &UnnestItem) -> Result<Self> {
        Ok(match item {
            UnnestItem::Array(dimensions) => Self::Arrays { array, dimensions: *dimensions },
            UnnestItem::Json(fields) => {
                let Some(texts) = array.as_string_view_opt() else {
                    return internal_err!("JSON is read from VARCHAR");
                };
                let rows = texts.iter().map(|text| text.map(elements_of).unwrap_or_default());
                Self::Documents { rows: rows.collect(), fields: fields.clone() }
            }
        })
    }

    /// How many elements each row has.
    pub(crate) fn lengths(&self) -> Result<Vec<usize>> {
        match self {
            Self::Documents { rows, .. } => Ok(rows.iter().map(Vec::len).collect()),
            Self::Arrays { array, .. } => {
                let Some(arrays) = DoubleArrays::new(array) else {
                    return internal_err!("UNNEST of something else than DOUBLE[]");
                };
                let length = |row| {
                    let first = arrays.get(row).and_then(|array| array.shape.first().copied());
                    first.map_or(0, |length| length.max(0) as usize)
                };
                Ok((0..arrays.len()).map(length).collect())
            }
        }
    }

    /// The columns of the elements of these rows; row `r` takes `counts[r]` places.
    pub(crate) fn columns(&self, rows: Range<usize>, counts: &[usize]) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Documents { rows: documents, fields } => Ok(fields
                .iter()
                .map(|field| texts(documents, field, rows.clone(), counts))
                .collect()),
            Self::Arrays { array, dimensions: 1 } => numbers(array, rows, counts),
            Self::Arrays { array, dimensions } => parts(array, *dimensions, rows, counts),
        }
    }
}

/// The elements of a JSON array; nothing for any other text.
fn elements_of(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(Value::Array(elements)) => elements,
        _ => Vec::new(),
    }
}

fn texts(
    documents: &[Vec<Value>],
    field: &JsonField,
    rows: Range<usize>,
    counts: &[usize],
) -> ArrayRef {
    let mut texts = StringViewBuilder::new();
    for row in rows {
        for index in 0..counts[row] {
            let value = documents[row].get(index).map(|element| match element {
                Value::Object(object) => object.get(&field.name).unwrap_or(&Value::Null),
                other => other,
            });
            texts.append_option(value.and_then(|value| shown(value, field.kind)));
        }
    }
    Arc::new(texts.finish())
}

/// A value as text, if it is of the kind wanted.
fn shown(value: &Value, kind: JsonKind) -> Option<String> {
    match (kind, value) {
        (_, Value::Null) => None,
        (JsonKind::Boolean, Value::Bool(_)) | (JsonKind::Number, Value::Number(_)) => {
            Some(value.to_string())
        }
        (JsonKind::Time | JsonKind::Text, Value::String(text)) => Some(text.clone()),
        (JsonKind::Time, Value::Number(number)) => {
            let mut out = Vec::new();
            write_iso(&mut out, number.as_i64()?, TimestampUnit::Micros);
            String::from_utf8(out).ok()
        }
        (JsonKind::Text, _) => Some(value.to_string()),
        _ => None,
    }
}

fn numbers(array: &ArrayRef, rows: Range<usize>, counts: &[usize]) -> Result<Vec<ArrayRef>> {
    let Some(arrays) = DoubleArrays::new(array) else {
        return internal_err!("UNNEST of something else than DOUBLE[]");
    };
    let mut numbers = Float64Builder::new();
    for row in rows {
        let values = arrays.get(row).map_or(&[][..], |array| array.values);
        for index in 0..counts[row] {
            numbers.append_option(values.get(index).copied().filter(|value| !value.is_nan()));
        }
    }
    Ok(vec![Arc::new(numbers.finish())])
}

/// The arrays that an array of more dimensions consists of.
fn parts(
    array: &ArrayRef,
    dimensions: u8,
    rows: Range<usize>,
    counts: &[usize],
) -> Result<Vec<ArrayRef>> {
    let Some(arrays) = DoubleArrays::new(array) else {
        return internal_err!("UNNEST of something else than DOUBLE[]");
    };
    let mut parts = DoubleArrayBuilder::new(dimensions - 1);
    for row in rows {
        let whole = arrays.get(row);
        for index in 0..counts[row] {
            let part = whole.as_ref().and_then(|array| {
                let (first, shape) = array.shape.split_first()?;
                let length: usize = shape.iter().map(|&length| length.max(0) as usize).product();
                let inside = index < (*first).max(0) as usize;
                let values = array.values.get(index * length..(index + 1) * length)?;
                inside.then_some((shape, values))
            });
            match part {
                Some((shape, values)) => {
                    parts.push(shape, values.iter().copied()).map_err(engine_error)?;
                }
                None => parts.push_null(),
            }
        }
    }
    Ok(vec![parts.finish().map_err(engine_error)?])
}
