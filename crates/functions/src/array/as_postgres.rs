//! `PostgreSQL`'s sort order and array syntax for DOUBLE[].

use std::sync::Arc;

use arrow::array::LargeBinaryBuilder;
use datafusion_expr::{Expr, Volatility};
use tidemark_kernels::double_order;
use tidemark_types::SqlType;
use tidemark_types::account;
use tidemark_types::double_array::{DoubleArray, PG_ARRAY};
use tidemark_types::number_text;

use crate::array::arrays::Arrays;
use crate::column::{Call, invalid, stopped, try_build_text};
use crate::native::{Kernel, Native, call};

/// Markers in a sort key: one before each element, one after the last element.
const ELEMENT: u8 = 1;
const END: u8 = 0;

/// Returns an array's sort key as BINARY. Elements are compared first. Null is the greatest
/// element, and a prefix precedes the longer array. Arrays with equal elements are ordered by the
/// lengths of their dimensions.
#[must_use]
pub fn array_order(array: Expr, dimensions: u8) -> Expr {
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let arrays = Arrays::of(call, 0)?;
        let mut builder = LargeBinaryBuilder::new();
        let mut key = Vec::new();
        for row in 0..call.rows {
            let Some(array) = arrays.get(row) else {
                builder.append_null();
                continue;
            };
            let bytes = (array.values.len() + array.shape.len()) * (size_of::<f64>() + 1);
            account::check_allocation(bytes).map_err(stopped)?;
            key.clear();
            write_key(&array, &mut key);
            builder.append_value(&key);
        }
        Ok(Arc::new(builder.finish()))
    });
    let types = (vec![SqlType::DoubleArray(dimensions)], SqlType::Binary);
    let function = Native::udf("array_order", String::new(), types, Volatility::Immutable, kernel);
    call(&function, vec![array])
}

fn write_key(array: &DoubleArray<'_>, key: &mut Vec<u8>) {
    for &value in array.values {
        key.push(ELEMENT);
        // Positive and negative zero compare equal.
        key.extend_from_slice(&double_order(value + 0.0).to_be_bytes());
    }
    key.push(END);
    array.shape.iter().for_each(|length| key.extend_from_slice(&length.to_be_bytes()));
}

/// Returns the array in `PostgreSQL`'s syntax. With `bounds`, elements are rounded to whole numbers
/// as in `PostgreSQL` and must be within the bounds.
#[must_use]
pub fn array_text(array: Expr, dimensions: u8, bounds: Option<(i64, i64)>) -> Expr {
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let arrays = Arrays::of(call, 0)?;
        let mut text = Vec::new();
        let mut rounded = Vec::new();
        try_build_text(call.rows, |row, out| {
            let Some(array) = arrays.get(row) else { return Ok(false) };
            // Each element needs at least two characters.
            if out.refuses(2 * array.values.len()) {
                return Ok(false);
            }
            rounded.clear();
            rounded.extend_from_slice(array.values);
            if let Some((low, high)) = bounds {
                for value in rounded.iter_mut().filter(|value| !value.is_nan()) {
                    *value = value.round_ties_even();
                    // 2^63 saturates to LONG's maximum, which DOUBLE cannot represent exactly.
                    let integer = *value as i64;
                    if integer as f64 != *value
                        || !(low..=high).contains(&integer)
                        || integer == i64::MAX
                    {
                        let message =
                            format!("array element {value} is outside the range {low} to {high}");
                        return Err(invalid(message));
                    }
                }
            }
            text.clear();
            DoubleArray { values: &rounded, ..array }.write_text(
                &mut text,
                &PG_ARRAY,
                write_number,
            );
            out.push_str(&String::from_utf8_lossy(&text));
            Ok(true)
        })
    });
    let types = (vec![SqlType::DoubleArray(dimensions)], SqlType::String);
    let kind = bounds.map_or_else(String::new, |(low, high)| format!("{low} {high}"));
    let function = Native::udf("array_text", kind, types, Volatility::Immutable, kernel);
    call(&function, vec![array])
}

/// Writes a number, omitting the decimal point if it is whole.
fn write_number(out: &mut Vec<u8>, value: f64) {
    let integer = value as i64;
    if integer as f64 == value && integer.unsigned_abs() < 1 << 53 {
        number_text::write_i64(out, integer);
    } else {
        number_text::write_f64(out, value);
    }
}
