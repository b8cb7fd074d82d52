//! JSON construction: objects, arrays and rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Expr, Volatility};
use tidemark_types::{ErrorCode, SqlType};

use crate::column::{Call, failure, internal, try_build_text};
use crate::native::Kernel;
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::{Function, mismatch, resolved, special};
use crate::text::bounded_text::BoundedText;

/// Returns the type a value is read as. Numbers and booleans keep their type; all other values are
/// read as text.
fn read_as(sql_type: SqlType) -> SqlType {
    match sql_type {
        SqlType::Boolean => SqlType::Boolean,
        number if number.is_integer() => SqlType::Long,
        number if number.is_floating() => SqlType::Double,
        _ => SqlType::String,
    }
}

/// How an object is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `{"a" : 1, "b" : 2}`
    Built,
    /// `{"a":1,"b":2}`
    Row,
    /// `{"a": 1, "b": 2}`, sorted by name length and then by name. If a name is duplicated, the
    /// last value wins.
    Binary,
}

type Resolved = std::result::Result<ResolvedScalar, ResolveError>;

/// Returns the type that each value is read as, and whether the value is JSON.
///
/// The calls are never constant-folded: the string that replaced a call could no longer be
/// recognised as JSON.
fn read(arguments: &[Argument], is_name: fn(usize) -> bool) -> (Vec<SqlType>, Vec<bool>) {
    let own = |(index, argument): (usize, &Argument)| {
        if is_name(index) { SqlType::String } else { read_as(argument.sql_type) }
    };
    let types = arguments.iter().enumerate().map(own).collect();
    (types, arguments.iter().map(|argument| argument.json).collect())
}

fn json_function(
    name: &'static str,
    arguments: &[Argument],
    (types, json): (Vec<SqlType>, Vec<bool>),
    build: impl Fn(&Columns, usize, &mut BoundedText) -> Result<bool> + Send + Sync + 'static,
) -> ResolvedScalar {
    // Equal calls are merged, so the identity includes which arguments are JSON.
    let tag = json.iter().map(|is_json| if *is_json { 'j' } else { 'v' }).collect::<String>();
    let tag = Argument::constant(SqlType::String, ScalarValue::Utf8View(Some(tag)));
    let tagged: Vec<Argument> = arguments.iter().cloned().chain([tag]).collect();
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let cells = (0..call.arguments.len()).map(|index| call.array(index));
        let columns = Columns { cells: cells.collect::<Result<_>>()?, json: json.clone() };
        try_build_text(call.rows, |row, text| build(&columns, row, text))
    });
    resolved(name, Volatility::Stable, types, SqlType::String, &tagged, kernel)
}

/// The arguments of a call.
struct Columns {
    cells: Vec<(ArrayRef, bool)>,
    json: Vec<bool>,
}

impl Columns {
    fn is_null(&self, index: usize, row: usize) -> bool {
        let (column, is_scalar) = &self.cells[index];
        column.is_null(if *is_scalar { 0 } else { row })
    }

    /// Appends a value as JSON.
    fn push(&self, index: usize, row: usize, out: &mut BoundedText) -> Result<()> {
        let (column, is_scalar) = &self.cells[index];
        let row = if *is_scalar { 0 } else { row };
        match column.as_string_view_opt() {
            Some(texts) if self.json[index] && texts.is_valid(row) => {
                out.push_str(texts.value(row));
                Ok(())
            }
            _ => push_value(out, column, row),
        }
    }

    /// Returns an object's names, each with the index of its value, in the order its style
    /// requires.
    fn pairs(&self, row: usize, style: Style) -> Result<Vec<(usize, &str)>> {
        let mut pairs = Vec::with_capacity(self.cells.len() / 2);
        for index in (0..self.cells.len()).step_by(2) {
            let (names, is_scalar) = &self.cells[index];
            let names = names.as_string_view_opt().ok_or_else(|| internal("not a name"))?;
            let at = if *is_scalar { 0 } else { row };
            if names.is_null(at) {
                let message = "json_build_object: a name must not be null";
                return Err(failure(ErrorCode::InvalidValue, message));
            }
            pairs.push((index + 1, names.value(at)));
        }
        if style == Style::Binary {
            let key = |(index, name): &(usize, &str)| (name.len(), name.to_string(), !*index);
            pairs.sort_by_key(key);
            pairs.dedup_by_key(|(_, name)| *name);
        }
        Ok(pairs)
    }
}

fn object(name: &'static str, style: Style, arguments: &[Argument]) -> Resolved {
    if !arguments.len().is_multiple_of(2) {
        let message = "argument list must have an even number of elements".to_owned();
        return Err(ResolveError::InvalidArgument { index: arguments.len() - 1, message });
    }
    if arguments.is_empty() {
        return Err(ResolveError::NoArguments { name: name.into() });
    }
    let (comma, colon) = match style {
        Style::Built => (", ", " : "),
        Style::Row => (",", ":"),
        Style::Binary => (", ", ": "),
    };
    let read = read(arguments, |index| index % 2 == 0);
    Ok(json_function(name, arguments, read, move |columns, row, text| {
        text.push('{');
        for (place, (index, name)) in columns.pairs(row, style)?.into_iter().enumerate() {
            text.push_str(if place == 0 { "" } else { comma });
            push_quoted(text, name);
            text.push_str(colon);
            columns.push(index, row, text)?;
        }
        text.push('}');
        Ok(true)
    }))
}

fn array(name: &'static str, arguments: &[Argument]) -> Resolved {
    if arguments.is_empty() {
        return Err(ResolveError::NoArguments { name: name.into() });
    }
    Ok(json_function(name, arguments, read(arguments, |_| false), |columns, row, text| {
        text.push('[');
        for index in 0..columns.cells.len() {
            text.push_str(if index == 0 { "" } else { ", " });
            columns.push(index, row, text)?;
        }
        text.push(']');
        Ok(true)
    }))
}

/// Resolves a function that converts a single value to JSON. A null becomes SQL null, or the JSON
/// word `null` if `is_item`.
fn value(name: &'static str, is_item: bool, arguments: &[Argument]) -> Resolved {
    if arguments.len() != 1 {
        return Err(mismatch(name, std::iter::once(1), arguments));
    }
    Ok(json_function(name, arguments, read(arguments, |_| false), move |columns, row, text| {
        if columns.is_null(0, row) && !is_item {
            return Ok(false);
        }
        columns.push(0, row, text)?;
        Ok(true)
    }))
}

/// Resolves the function that encloses concatenated items in brackets.
fn list(arguments: &[Argument]) -> Resolved {
    let name = "json_list";
    if arguments.len() != 1 {
        return Err(mismatch(name, std::iter::once(1), arguments));
    }
    let read = (vec![SqlType::String], vec![true]);
    Ok(json_function(name, arguments, read, |columns, row, text| {
        if columns.is_null(0, row) {
            return Ok(false);
        }
        text.push('[');
        columns.push(0, row, text)?;
        text.push(']');
        Ok(true)
    }))
}

/// Whether an expression's string is JSON, because a JSON function produced it.
#[must_use]
pub fn is_json(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => match call.func.name() {
            "coalesce" => call.args.first().is_some_and(is_json),
            "array_to_json" => true,
            name => FUNCTIONS.iter().any(|function| function.name == name),
        },
        Expr::Alias(alias) => is_json(&alias.expr),
        _ => false,
    }
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
        other => return Err(internal(format!("cannot convert {other} to JSON"))),
    }
    Ok(())
}

/// Appends a quoted JSON string.
pub(crate) fn push_quoted(out: &mut BoundedText, text: &str) {
    // Each byte may become a six-byte escape sequence.
    if out.refuses(6 * text.len()) {
        return;
    }
    out.push_str(&serde_json::Value::from(text).to_string());
}

const ITEM: &str = "json_agg element as a string, including for null";

pub(crate) const FUNCTIONS: &[Function] = &[
    special(
        "json_build_object",
        |_, arguments| object("json_build_object", Style::Built, arguments),
        "JSON object from name and value pairs",
    ),
    special(
        "jsonb_build_object",
        |_, arguments| object("jsonb_build_object", Style::Binary, arguments),
        "JSON object from name and value pairs, sorted by name",
    ),
    special(
        "row_to_json",
        |_, arguments| object("row_to_json", Style::Row, arguments),
        "JSON object of a row: row_to_json(t), or from name and value pairs",
    ),
    special(
        "json_build_array",
        |_, arguments| array("json_build_array", arguments),
        "JSON array of the values",
    ),
    special(
        "jsonb_build_array",
        |_, arguments| array("jsonb_build_array", arguments),
        "JSON array of the values",
    ),
    special("to_json", |_, arguments| value("to_json", false, arguments), "a value as JSON"),
    special("to_jsonb", |_, arguments| value("to_jsonb", false, arguments), "a value as JSON"),
    special("json_item", |_, arguments| value("json_item", true, arguments), ITEM),
    special("json_list", |_, arguments| list(arguments), "elements of json_agg as an array"),
];
