//! `json_build_object`: a JSON object out of names and values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::{ErrorCode, SqlType};

use crate::column::{Call, failure, internal, try_build_text};
use crate::native::Kernel;
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::{Function, resolved, special};
use crate::text::bounded_text::BoundedText;

/// What a value is read as: numbers and truth stay what they are, all else is text.
fn read_as(sql_type: SqlType) -> SqlType {
    match sql_type {
        SqlType::Boolean => SqlType::Boolean,
        number if number.is_integer() => SqlType::Long,
        number if number.is_floating() => SqlType::Double,
        _ => SqlType::String,
    }
}

fn resolve(
    name: &str,
    arguments: &[Argument],
) -> std::result::Result<ResolvedScalar, ResolveError> {
    if !arguments.len().is_multiple_of(2) {
        let message = "a value is missing: names and values go in pairs".to_owned();
        return Err(ResolveError::InvalidArgument { index: arguments.len() - 1, message });
    }
    if arguments.is_empty() {
        return Err(ResolveError::NoArguments { name: name.into() });
    }
    let own = |(index, argument): (usize, &Argument)| match index % 2 {
        0 => SqlType::String,
        _ => read_as(argument.sql_type),
    };
    let types = arguments.iter().enumerate().map(own).collect();
    let kernel: Kernel = Arc::new(objects);
    let (volatility, gives) = (Volatility::Immutable, SqlType::String);
    Ok(resolved("json_build_object", volatility, types, gives, arguments, kernel))
}

fn objects(call: &Call<'_>) -> Result<ArrayRef> {
    let columns = (0..call.arguments.len()).map(|index| call.array(index));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    try_build_text(call.rows, |row, text| {
        text.push('{');
        for (index, (column, is_scalar)) in columns.iter().enumerate() {
            let row = if *is_scalar { 0 } else { row };
            if index % 2 == 0 && column.is_null(row) {
                let message = "json_build_object: a name must not be null";
                return Err(failure(ErrorCode::InvalidValue, message));
            }
            text.push_str(match index {
                0 => "",
                _ if index % 2 == 0 => ", ",
                _ => " : ",
            });
            push_value(text, column, row)?;
        }
        text.push('}');
        Ok(true)
    })
}

fn push_value(out: &mut BoundedText, column: &ArrayRef, row: usize) -> Result<()> {
    if column.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match column.data_type() {
        DataType::Boolean => out.push_str(&column.as_boolean().value(row).to_string()),
        DataType::Int64 => out.push_str(&column.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::Float64 => {
            let value = column.as_primitive::<Float64Type>().value(row);
            out.push_str(&if value.is_finite() { value.to_string() } else { "null".into() });
        }
        DataType::Utf8View => push_quoted(out, column.as_string_view().value(row)),
        other => return Err(internal(format!("no JSON of {other}"))),
    }
    Ok(())
}

/// A text as JSON writes it.
pub(crate) fn push_quoted(out: &mut BoundedText, text: &str) {
    // Each byte may become an escape of six.
    if out.refuses(6 * text.len()) {
        return;
    }
    out.push_str(&serde_json::Value::from(text).to_string());
}

pub(crate) const FUNCTIONS: &[Function] =
    &[special("json_build_object", resolve, "JSON object of names and their values, in pairs")];
