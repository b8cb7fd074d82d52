//! What tools of `PostgreSQL` ask of its catalog. One schema holds everything, everybody sees it,
//! and there are neither comments, indexes of their own, constraints nor triggers; the binder
//! answers the calls whose answer depends on the tables there are.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use datafusion::common::Result;
use tidemark_types::SqlType::{Boolean, Int, Long, String};

use crate::column::{Call, build, build_flags, build_text};
use crate::registry::Param::{Any, Is, Text};
use crate::registry::{Function, direct, pure};

/// Settings of `PostgreSQL` that clients ask for, and what holds here. By the version drivers
/// choose their catalog queries.
pub const SETTINGS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO,YMD"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("extra_float_digits", "3"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("jit", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", "14.0"),
    ("server_version_num", "140000"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "off"),
];

/// The encoding of every text.
const UTF8: i32 = 6;

fn pretty_size(call: &Call<'_>) -> Result<ArrayRef> {
    let sizes = call.primitive::<Int64Type>(0)?;
    Ok(build_text(call.rows, |row, out| match sizes.get(row) {
        Some(bytes) => {
            out.push_str(&crate::size_text(bytes as f64));
            true
        }
        None => false,
    }))
}

fn yes(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build_flags(call.rows, |_| true))
}

fn no(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build_flags(call.rows, |_| false))
}

fn no_text(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build_text(call.rows, |_, _| false))
}

fn no_number(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build::<Int32Type>(call.rows, |_| None))
}

fn no_bytes(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build::<Int64Type>(call.rows, |_| None))
}

fn word(call: &Call<'_>, text: &str) -> Result<ArrayRef> {
    Ok(build_text(call.rows, |_, out| {
        out.push_str(text);
        true
    }))
}

/// One of the arguments, as it is.
fn argument(call: &Call<'_>, index: usize) -> Result<ArrayRef> {
    let values = call.texts(index)?;
    Ok(build_text(call.rows, |row, out| {
        let value = values.get(row);
        out.push_str(value.unwrap_or_default());
        value.is_some()
    }))
}

/// `{pg_catalog,public}`, or what of it is not implied.
fn schemas(call: &Call<'_>) -> Result<ArrayRef> {
    let implied = call.array(0)?.0;
    let implied = implied.as_boolean_opt().is_some_and(|flags| !flags.is_empty() && flags.value(0));
    word(call, if implied { "{pg_catalog,public}" } else { "{public}" })
}

/// The place of a text in `{a,b}` or `a b`, from 1.
fn position(call: &Call<'_>) -> Result<ArrayRef> {
    let (arrays, wanted) = (call.texts(0)?, call.texts(1)?);
    Ok(build::<Int32Type>(call.rows, |row| {
        let (array, wanted) = (arrays.get(row)?, wanted.get(row)?);
        let items = array.trim_start_matches('{').trim_end_matches('}').split([',', ' ']);
        let place = items.map(|item| item.trim_matches('"')).position(|item| item == wanted)?;
        i32::try_from(place + 1).ok()
    }))
}

/// A function that answers the same whatever it is asked about.
macro_rules! always {
    ($name:literal, $gives:expr, $body:expr, $summary:expr) => {
        pure(
            $name,
            &[
                direct(&[Any], $gives, $body),
                direct(&[Any, Any], $gives, $body),
                direct(&[Any, Any, Any], $gives, $body),
            ],
            $summary,
        )
    };
}

/// One with nothing to say: there are no such objects.
macro_rules! nothing {
    ($name:literal, $what:literal) => {
        always!($name, String, no_text, concat!($what, "; there is none"))
    };
}

pub(crate) const FUNCTIONS: &[Function] = &[
    always!("current_setting", String, |call| word(call, ""), "a setting of PostgreSQL"),
    pure(
        "set_config",
        &[direct(&[Text, Text, Is(Boolean)], String, |call| argument(call, 1))],
        "the value; settings of PostgreSQL are fixed",
    ),
    pure(
        "array_to_string",
        &[direct(&[Text, Text], String, |call| argument(call, 0))],
        "an array of the catalog, which is text already",
    ),
    pure(
        "pg_encoding_to_char",
        &[direct(&[Is(Int)], String, |call| word(call, "UTF8"))],
        "name of an encoding",
    ),
    pure(
        "pg_get_userbyid",
        &[direct(&[Is(Int)], String, |call| word(call, "admin"))],
        "name of a user",
    ),
    pure(
        "pg_array_position",
        &[direct(&[Text, Text], Int, position)],
        "place of a value in an array of the catalog, from 1; null when it is not there",
    ),
    pure(
        "array_remove",
        &[direct(&[Text, Text], String, |call| argument(call, 0))],
        "an array of the catalog as it is: none holds nulls or doubles",
    ),
    pure("current_schemas", &[direct(&[Is(Boolean)], String, schemas)], "names of the schemas"),
    pure(
        "getdatabaseencoding",
        &[direct(&[], String, |call| word(call, "UTF8"))],
        "encoding of the database",
    ),
    pure(
        "pg_char_to_encoding",
        &[direct(&[Text], Int, |call| Ok(build::<Int32Type>(call.rows, |_| Some(UTF8))))],
        "number of an encoding",
    ),
    pure(
        "pg_size_pretty",
        &[direct(&[Is(Long)], String, pretty_size)],
        "a number of bytes in a larger unit",
    ),
    always!("pg_database_size", Long, no_bytes, "bytes of a database on disk"),
    always!("pg_conversion_is_visible", Boolean, yes, "whether it is on the search path"),
    always!("pg_collation_is_visible", Boolean, yes, "whether it is on the search path"),
    always!("pg_ts_config_is_visible", Boolean, yes, "whether it is on the search path"),
    nothing!("pg_tablespace_location", "directory of a tablespace"),
    always!("format_type", String, no_text, "name of a type of PostgreSQL by its number"),
    always!("to_regclass", Int, no_number, "number of a table by its name"),
    always!("to_regtype", Int, no_number, "number of a type of PostgreSQL by its name"),
    always!("pg_get_viewdef", String, no_text, "query of a view by its number"),
    always!("pg_table_size", Long, no_bytes, "bytes of a table on disk"),
    always!("pg_relation_size", Long, no_bytes, "bytes of a table on disk"),
    always!("pg_total_relation_size", Long, no_bytes, "bytes of a table on disk"),
    always!(
        "pg_get_expr",
        String,
        |call| argument(call, 0),
        "text of an expression, which is text already"
    ),
    nothing!("obj_description", "comment on an object"),
    nothing!("col_description", "comment on a column"),
    nothing!("shobj_description", "comment on a shared object"),
    nothing!("pg_get_indexdef", "definition of an index"),
    nothing!("pg_get_constraintdef", "definition of a constraint"),
    nothing!("pg_get_triggerdef", "definition of a trigger"),
    nothing!("pg_get_ruledef", "definition of a rule"),
    nothing!("pg_get_partkeydef", "partition key of PostgreSQL"),
    nothing!("pg_get_serial_sequence", "sequence of a column"),
    nothing!("pg_get_function_result", "declared type of a function's answer"),
    nothing!("pg_get_function_arguments", "declared arguments of a function"),
    nothing!("pg_get_function_identity_arguments", "declared arguments of a function"),
    nothing!("pg_get_statisticsobjdef_columns", "columns of extended statistics"),
    always!("pg_table_is_visible", Boolean, yes, "whether a table is on the search path"),
    always!("pg_type_is_visible", Boolean, yes, "whether a type is on the search path"),
    always!("pg_function_is_visible", Boolean, yes, "whether a function is on the search path"),
    always!("pg_relation_is_publishable", Boolean, yes, "whether a table could be published"),
    always!("pg_is_other_temp_schema", Boolean, no, "whether a schema is another session's"),
    always!("has_schema_privilege", Boolean, yes, "whether a schema may be used"),
    always!("has_table_privilege", Boolean, yes, "whether a table may be used"),
    always!("has_column_privilege", Boolean, yes, "whether a column may be used"),
    always!("has_any_column_privilege", Boolean, yes, "whether some column may be used"),
    always!("has_database_privilege", Boolean, yes, "whether the database may be used"),
    always!("has_function_privilege", Boolean, yes, "whether a function may be used"),
];
