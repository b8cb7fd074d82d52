//! Catalog functions for `PostgreSQL` tools.
//!
//! There is one schema, which every user sees. Comments, separate indexes, constraints and triggers
//! do not exist. The binder resolves calls whose result depends on the existing tables.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use datafusion::common::Result;
use tidemark_types::ErrorCode;
use tidemark_types::SqlType::{Boolean, Int, Long, String};
use tidemark_types::text_array::text_array;

use crate::array::arrays::Arrays;
use crate::column::{Call, build, build_flags, build_text, failure};
use crate::json::json_build::push_quoted;
use crate::signature::Param::{Any, Is, Text};
use crate::signature::{Function, Overload, Param, direct, pure};

/// `PostgreSQL` settings that clients query, with their values in this database. Drivers choose
/// their catalog queries based on `server_version`.
pub const SETTINGS: &[(&str, &str)] = &[
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
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

/// Computes `array_to_string(array, separator [, null])`.
fn array_to_string(call: &Call<'_>) -> Result<ArrayRef> {
    let (arrays, between) = (call.texts(0)?, call.texts(1)?);
    let nulls = if call.arguments.len() > 2 { Some(call.texts(2)?) } else { None };
    build_text(call.rows, |row, out| {
        let (Some(array), Some(between)) = (arrays.get(row), between.get(row)) else {
            return false;
        };
        let null = nulls.as_ref().and_then(|nulls| nulls.get(row));
        let mut is_first = true;
        for item in text_array(array) {
            let Some(item) = item.as_deref().or(null) else { continue };
            if out.refuses(0) {
                break;
            }
            if !is_first {
                out.push_str(between);
            }
            is_first = false;
            out.push_str(item);
        }
        true
    })
}

/// Encoding id of UTF-8, the encoding of all strings.
const UTF8: i32 = 6;

fn pretty_size(call: &Call<'_>) -> Result<ArrayRef> {
    let sizes = call.primitive::<Int64Type>(0)?;
    build_text(call.rows, |row, out| match sizes.get(row) {
        Some(bytes) => {
            out.push_str(&crate::size_text(bytes as f64));
            true
        }
        None => false,
    })
}

fn yes(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build_flags(call.rows, |_| true))
}

fn no(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build_flags(call.rows, |_| false))
}

fn no_text(call: &Call<'_>) -> Result<ArrayRef> {
    build_text(call.rows, |_, _| false)
}

fn no_number(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build::<Int32Type>(call.rows, |_| None))
}

fn no_bytes(call: &Call<'_>) -> Result<ArrayRef> {
    Ok(build::<Int64Type>(call.rows, |_| None))
}

fn word(call: &Call<'_>, text: &str) -> Result<ArrayRef> {
    build_text(call.rows, |_, out| {
        out.push_str(text);
        true
    })
}

/// Returns the second argument unchanged.
fn second_number(call: &Call<'_>) -> Result<ArrayRef> {
    let numbers = call.primitive::<Int64Type>(1)?;
    Ok(build::<Int64Type>(call.rows, |row| numbers.get(row)))
}

/// Fails, because the session has not obtained a value from the sequence.
fn undefined(call: &Call<'_>) -> Result<ArrayRef> {
    let names = if call.arguments.is_empty() { None } else { Some(call.texts(0)?) };
    for row in 0..call.rows {
        let what = match &names {
            None => "lastval".to_owned(),
            Some(names) => match names.get(row) {
                Some(name) => format!("currval of sequence \"{name}\""),
                None => continue,
            },
        };
        let message = format!("{what} is not yet defined in this session");
        return Err(failure(ErrorCode::InvalidState, message));
    }
    Ok(build::<Int64Type>(call.rows, |_| None))
}

/// Fails, because the sequence does not exist.
fn no_sequence(call: &Call<'_>) -> Result<ArrayRef> {
    let names = call.texts(0)?;
    if let Some(name) = (0..call.rows).find_map(|row| names.get(row)) {
        let message = format!(
            "sequence \"{name}\" does not exist: SERIAL and IDENTITY columns number rows themselves"
        );
        return Err(failure(ErrorCode::NotSupported, message));
    }
    Ok(build::<Int64Type>(call.rows, |_| None))
}

/// OID of the `btree` access method, and its capabilities.
const BTREE: i32 = 403;
const BTREE_CAN: [&str; 5] =
    ["can_order", "can_unique", "can_multi_col", "can_exclude", "can_include"];

fn access_method_can(call: &Call<'_>) -> Result<ArrayRef> {
    let (methods, properties) = (call.primitive::<Int32Type>(0)?, call.texts(1)?);
    Ok(build_flags(call.rows, |row| {
        let known = |name: &str| BTREE_CAN.iter().any(|can| can.eq_ignore_ascii_case(name));
        methods.get(row) == Some(BTREE) && properties.get(row).is_some_and(known)
    }))
}

/// Returns one of the arguments unchanged.
fn argument(call: &Call<'_>, index: usize) -> Result<ArrayRef> {
    let values = call.texts(index)?;
    build_text(call.rows, |row, out| {
        let value = values.get(row);
        out.push_str(value.unwrap_or_default());
        value.is_some()
    })
}

/// Returns `{pg_catalog,public}`, or `{public}` without the implicit schemas.
fn schemas(call: &Call<'_>) -> Result<ArrayRef> {
    let implied = call.array(0)?.0;
    let implied = implied.as_boolean_opt().is_some_and(|flags| !flags.is_empty() && flags.value(0));
    word(call, if implied { "{pg_catalog,public}" } else { "{public}" })
}

/// Returns type names with their type modifiers.
fn narrowed(call: &Call<'_>) -> Result<ArrayRef> {
    let (names, modifiers) = (call.texts(0)?, call.primitive::<Int64Type>(1)?);
    build_text(call.rows, |row, out| {
        let name = names.get(row).map(|name| narrowed_name(name, modifiers.get(row)));
        out.push_str(name.as_deref().unwrap_or_default());
        name.is_some()
    })
}

/// Formats `numeric(10,2)`, `character varying(8)`, `timestamp(3) without time zone[]`. The
/// modifier's encoding depends on the type; -1 means there is none.
fn narrowed_name(name: &str, modifier: Option<i64>) -> std::string::String {
    let (element, array) = name.strip_suffix("[]").map_or((name, ""), |element| (element, "[]"));
    let narrow = match (element, modifier) {
        // CHARACTER without a length means one character.
        ("character", Some(-1)) => Some("bpchar".to_owned()),
        (_, None | Some(..0)) => None,
        ("numeric", Some(modifier)) => {
            let packed = modifier - 4;
            Some(format!("numeric({},{})", packed >> 16 & 0xffff, packed & 0x7ff))
        }
        ("character" | "character varying", Some(modifier @ 5..)) => {
            Some(format!("{element}({})", modifier - 4))
        }
        ("interval", Some(modifier)) if modifier & 0xffff != 0xffff => {
            Some(format!("interval({})", modifier & 0xffff))
        }
        (_, Some(digits)) => element.split_once(' ').and_then(|(kind, zone)| {
            matches!(kind, "time" | "timestamp").then(|| format!("{kind}({digits}) {zone}"))
        }),
    };
    format!("{}{array}", narrow.as_deref().unwrap_or(element))
}

/// Returns the 1-based position of a string in `{a,b}` or `a b`.
fn position(call: &Call<'_>) -> Result<ArrayRef> {
    let (arrays, required) = (call.texts(0)?, call.texts(1)?);
    Ok(build::<Int32Type>(call.rows, |row| {
        let (array, required) = (arrays.get(row)?, required.get(row)?);
        let index = text_array(array).position(|item| item.as_deref() == Some(required))?;
        i32::try_from(index + 1).ok()
    }))
}

/// Returns the item of `{a,b}` at a 1-based position.
fn item(call: &Call<'_>) -> Result<ArrayRef> {
    let (arrays, positions) = (call.texts(0)?, call.primitive::<Int64Type>(1)?);
    build_text(call.rows, |row, out| {
        let (Some(array), Some(position)) = (arrays.get(row), positions.get(row)) else {
            return false;
        };
        let position = usize::try_from(position).ok().and_then(|position| position.checked_sub(1));
        let item = position.and_then(|position| text_array(array).nth(position).flatten());
        out.push_str(item.as_deref().unwrap_or_default());
        item.is_some()
    })
}

/// Returns the last position of `{a,b}`; null for an empty array.
fn last_position(call: &Call<'_>) -> Result<ArrayRef> {
    let arrays = call.texts(0)?;
    Ok(build::<Int32Type>(call.rows, |row| {
        i32::try_from(text_array(arrays.get(row)?).count()).ok().filter(|count| *count > 0)
    }))
}

/// Returns 1, the first position, for each non-empty array.
fn first_positions(last: &ArrayRef) -> Result<ArrayRef> {
    let last = last.as_primitive::<Int32Type>();
    Ok(build::<Int32Type>(last.len(), |row| last.is_valid(row).then_some(1)))
}

fn lengths(call: &Call<'_>) -> Result<ArrayRef> {
    let (input, required) = (Arrays::of(call, 0)?, call.primitive::<Int32Type>(1)?);
    Ok(build::<Int32Type>(call.rows, |row| {
        let index = usize::try_from(required.get(row)?).ok()?.checked_sub(1)?;
        input.get(row)?.shape.get(index).copied().filter(|length| *length > 0)
    }))
}

fn elements(call: &Call<'_>) -> Result<ArrayRef> {
    let input = Arrays::of(call, 0)?;
    Ok(build::<Int32Type>(call.rows, |row| i32::try_from(input.get(row)?.values.len()).ok()))
}

/// Returns the number of elements in an array in text form.
fn items(call: &Call<'_>) -> Result<ArrayRef> {
    let arrays = call.texts(0)?;
    Ok(build::<Int32Type>(call.rows, |row| {
        i32::try_from(text_array(arrays.get(row)?).count()).ok()
    }))
}

/// Counts a row's null arguments, or its non-null arguments.
fn count(call: &Call<'_>, nulls: bool) -> Result<ArrayRef> {
    let columns = (0..call.arguments.len()).map(|index| call.array(index));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(build::<Int32Type>(call.rows, |row| {
        let is_null = |(column, is_scalar): &&(ArrayRef, bool)| {
            column.is_null(if *is_scalar { 0 } else { row })
        };
        let found = columns.iter().filter(is_null).count();
        i32::try_from(if nulls { found } else { columns.len() - found }).ok()
    }))
}

/// `{a,b}` as `["a","b"]`.
fn json_array(call: &Call<'_>) -> Result<ArrayRef> {
    let arrays = call.texts(0)?;
    build_text(call.rows, |row, out| {
        let Some(array) = arrays.get(row) else { return false };
        out.push('[');
        for (index, item) in text_array(array).enumerate() {
            out.push_str(if index == 0 { "" } else { "," });
            match item {
                Some(item) => push_quoted(out, &item),
                None => out.push_str("null"),
            }
        }
        out.push(']');
        true
    })
}

/// Returns one of the numbers in a row `(x,n)`, as produced by `_pg_expandarray`.
fn row_field(call: &Call<'_>) -> Result<ArrayRef> {
    let (rows, names) = (call.texts(0)?, call.texts(1)?);
    Ok(build::<Int64Type>(call.rows, |row| {
        let fields = rows.get(row)?.strip_prefix('(')?.strip_suffix(')')?;
        let (x, n) = fields.split_once(',')?;
        match names.get(row)? {
            "x" => x.parse().ok(),
            "n" => n.parse().ok(),
            _ => None,
        }
    }))
}

const ADVISORY: &str = "always granted: PostgreSQL advisory locks do not block other sessions";

/// A function that returns the same result for all arguments.
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

/// A function that returns null, because objects of this kind do not exist.
macro_rules! nothing {
    ($name:literal, $what:literal) => {
        always!($name, String, no_text, concat!($what, "; null if there is none"))
    };
}

pub(crate) const FUNCTIONS: &[Function] = &[
    always!("current_setting", String, |call| word(call, ""), "value of a PostgreSQL setting"),
    pure(
        "set_config",
        &[direct(&[Text, Text, Is(Boolean)], String, |call| argument(call, 1))],
        "returns the value, but has no effect: PostgreSQL settings are fixed",
    ),
    pure(
        "array_to_string",
        &[
            direct(&[Text, Text], String, array_to_string),
            direct(&[Text, Text, Text], String, array_to_string),
        ],
        "joins array elements with a separator; nulls are skipped, or shown as the third argument",
    ),
    pure(
        "pg_encoding_to_char",
        &[direct(&[Is(Int)], String, |call| word(call, "UTF8"))],
        "name of the encoding with a given number",
    ),
    pure(
        "pg_get_userbyid",
        &[direct(&[Is(Int)], String, |call| word(call, "admin"))],
        "name of the user with a given OID",
    ),
    pure(
        "pg_array_position",
        &[direct(&[Text, Text], Int, position)],
        "1-based position of a value in a catalog array; null if not found",
    ),
    pure(
        "array_remove",
        &[direct(&[Text, Text], String, |call| argument(call, 0))],
        "returns a catalog array unchanged: it contains no nulls or duplicates",
    ),
    pure(
        "pg_array_item",
        &[direct(&[Text, Is(Long)], String, item)],
        "element of a catalog array at a 1-based position; also written array[position]",
    ),
    pure(
        "array_upper",
        &[
            direct(&[Param::Array, Is(Int)], Int, lengths),
            direct(&[Text, Is(Int)], Int, last_position),
        ],
        "upper bound of an array dimension; null if it does not exist",
    ),
    pure(
        "array_lower",
        &[
            direct(&[Param::Array, Is(Int)], Int, |call| first_positions(&lengths(call)?)),
            direct(&[Text, Is(Int)], Int, |call| first_positions(&last_position(call)?)),
        ],
        "lower bound of an array dimension, which is 1; null if it does not exist",
    ),
    pure(
        "array_length",
        &[
            direct(&[Param::Array, Is(Int)], Int, lengths),
            direct(&[Text, Is(Int)], Int, last_position),
        ],
        "length of dimension n, counting from 1; null if it does not exist",
    ),
    pure(
        "cardinality",
        &[direct(&[Param::Array], Int, elements), direct(&[Text], Int, items)],
        "number of elements of an array",
    ),
    pure(
        "num_nonnulls",
        &[Overload { variadic: true, ..direct(&[Any], Int, |call| count(call, false)) }],
        "number of non-null arguments",
    ),
    pure(
        "num_nulls",
        &[Overload { variadic: true, ..direct(&[Any], Int, |call| count(call, true)) }],
        "number of null arguments",
    ),
    pure(
        "array_to_json",
        &[direct(&[Text], String, json_array)],
        "converts a catalog array to JSON",
    ),
    pure(
        "row_field",
        &[direct(&[Text, Text], Long, row_field)],
        "field of a row of _pg_expandarray: the number n or the value x",
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
        "number of the encoding with a given name",
    ),
    pure(
        "pg_size_pretty",
        &[direct(&[Is(Long)], String, pretty_size)],
        "formats a size in B, KiB, MiB, …",
    ),
    always!("pg_database_size", Long, no_bytes, "on-disk size of the database, in bytes"),
    always!("pg_conversion_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_collation_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_ts_config_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_opclass_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_opfamily_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_operator_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_ts_dict_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_ts_parser_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!("pg_ts_template_is_visible", Boolean, yes, "whether the object is on the search path"),
    always!(
        "pg_statistics_obj_is_visible",
        Boolean,
        yes,
        "whether the object is on the search path"
    ),
    always!("pg_tablespace_size", Long, no_bytes, "on-disk size of a tablespace, in bytes"),
    always!("pg_stat_get_numscans", Long, no_bytes, "number of scans of an index"),
    nothing!("pg_get_function_sqlbody", "SQL body of a function"),
    nothing!("pg_describe_object", "description of a catalog object"),
    pure(
        "setval",
        &[
            direct(&[Text, Is(Long)], Long, second_number),
            direct(&[Text, Is(Long), Is(Boolean)], Long, second_number),
        ],
        "returns the number, but has no effect: generated numbers continue after the column's \
         maximum",
    ),
    pure(
        "lastval",
        &[direct(&[], Long, undefined)],
        "last number that the session generated for a SERIAL or IDENTITY column",
    ),
    pure(
        "currval",
        &[direct(&[Text], Long, undefined)],
        "last number that the session generated for the given SERIAL or IDENTITY column",
    ),
    pure(
        "nextval",
        &[direct(&[Text], Long, no_sequence)],
        "error: sequences are not supported; SERIAL and IDENTITY columns number their rows",
    ),
    always!(
        "pg_index_column_has_property",
        Boolean,
        no,
        "whether an index column has a property of btree indexes"
    ),
    always!(
        "pg_index_has_property",
        Boolean,
        no,
        "whether an index has a property of btree indexes"
    ),
    pure(
        "pg_indexam_has_property",
        &[direct(&[Is(Int), Text], Boolean, access_method_can)],
        "whether an access method has a property; only btree (403) has any",
    ),
    nothing!("pg_tablespace_location", "directory of a tablespace"),
    always!("pg_typeof", String, |call| word(call, ""), "PostgreSQL type name of a value"),
    pure(
        "format_type",
        &[direct(&[Text, Is(Long)], String, narrowed)],
        "name of a PostgreSQL type with a given OID, including its type modifier",
    ),
    always!("to_regclass", Int, no_number, "OID of the table with a given name"),
    always!("to_regtype", Int, no_number, "OID of the PostgreSQL type with a given name"),
    always!("pg_get_viewdef", String, no_text, "query of the view with a given OID"),
    always!("pg_table_size", Long, no_bytes, "on-disk size of a table, in bytes"),
    always!("pg_relation_size", Long, no_bytes, "on-disk size of a table, in bytes"),
    always!("pg_total_relation_size", Long, no_bytes, "on-disk size of a table, in bytes"),
    pure(
        "pg_get_expr",
        &[
            direct(&[Text], String, |call| argument(call, 0)),
            direct(&[Text, Any], String, |call| argument(call, 0)),
            direct(&[Text, Any, Any], String, |call| argument(call, 0)),
        ],
        "returns the expression, which is already a string",
    ),
    nothing!("obj_description", "comment on an object"),
    nothing!("col_description", "comment on a column"),
    nothing!("shobj_description", "comment on a shared object"),
    nothing!("pg_get_indexdef", "definition of an index"),
    nothing!("pg_get_constraintdef", "definition of a constraint"),
    nothing!("pg_get_triggerdef", "definition of a trigger"),
    nothing!("pg_get_ruledef", "definition of a rule"),
    nothing!("pg_get_partkeydef", "PostgreSQL partition key of a table"),
    nothing!("pg_get_serial_sequence", "sequence of a SERIAL or IDENTITY column"),
    nothing!("pg_get_functiondef", "definition of a function"),
    nothing!("pg_get_function_result", "declared result type of a function"),
    nothing!("pg_get_function_arguments", "declared arguments of a function"),
    nothing!("pg_get_function_identity_arguments", "declared arguments of a function"),
    nothing!("pg_get_statisticsobjdef_columns", "columns of extended statistics"),
    always!("pg_table_is_visible", Boolean, yes, "whether a table is on the search path"),
    always!("pg_type_is_visible", Boolean, yes, "whether a type is on the search path"),
    always!("pg_function_is_visible", Boolean, yes, "whether a function is on the search path"),
    always!("pg_relation_is_publishable", Boolean, yes, "whether a table can be published"),
    always!(
        "pg_is_other_temp_schema",
        Boolean,
        no,
        "whether a schema is another session's temporary schema"
    ),
    pure(
        "pg_my_temp_schema",
        &[direct(&[], Int, |call| Ok(build::<Int32Type>(call.rows, |_| Some(0))))],
        "0, because there are no temporary schemas",
    ),
    always!("pg_advisory_lock", String, |call| word(call, ""), ADVISORY),
    always!("pg_advisory_lock_shared", String, |call| word(call, ""), ADVISORY),
    always!("pg_advisory_xact_lock", String, |call| word(call, ""), ADVISORY),
    always!("pg_advisory_xact_lock_shared", String, |call| word(call, ""), ADVISORY),
    always!("pg_try_advisory_lock", Boolean, yes, ADVISORY),
    always!("pg_try_advisory_lock_shared", Boolean, yes, ADVISORY),
    always!("pg_try_advisory_xact_lock", Boolean, yes, ADVISORY),
    always!("pg_try_advisory_xact_lock_shared", Boolean, yes, ADVISORY),
    always!("pg_advisory_unlock", Boolean, yes, ADVISORY),
    always!("pg_advisory_unlock_shared", Boolean, yes, ADVISORY),
    pure("pg_advisory_unlock_all", &[direct(&[], String, |call| word(call, ""))], ADVISORY),
    pure("pg_is_in_recovery", &[direct(&[], Boolean, no)], "whether the server is a standby"),
    pure(
        "txid_current",
        &[direct(&[], Long, |call| Ok(build::<Int64Type>(call.rows, |_| Some(1))))],
        "transaction id; always 1, because transactions have no ids",
    ),
    always!("has_schema_privilege", Boolean, yes, "whether the user may use a schema"),
    always!("has_table_privilege", Boolean, yes, "whether the user may use a table"),
    always!("has_column_privilege", Boolean, yes, "whether the user may use a column"),
    always!("has_any_column_privilege", Boolean, yes, "whether the user may use any column"),
    always!("has_database_privilege", Boolean, yes, "whether the user may use the database"),
    always!("has_function_privilege", Boolean, yes, "whether the user may use a function"),
    always!("has_sequence_privilege", Boolean, yes, "whether the user may use a sequence"),
    always!("has_type_privilege", Boolean, yes, "whether the user may use a type"),
    always!("has_language_privilege", Boolean, yes, "whether the user may use a language"),
    always!("has_tablespace_privilege", Boolean, yes, "whether the user may use a tablespace"),
    always!("has_server_privilege", Boolean, yes, "whether the user may use a foreign server"),
    always!(
        "has_foreign_data_wrapper_privilege",
        Boolean,
        yes,
        "whether the user may use a foreign-data wrapper"
    ),
    always!("has_parameter_privilege", Boolean, yes, "whether the user may set a parameter"),
    pure(
        "pg_blocking_pids",
        &[direct(&[Is(Int)], String, |call| word(call, "{}"))],
        "connections that block a connection; there are none, because no statement holds locks",
    ),
    pure(
        "pg_last_wal_receive_lsn",
        &[direct(&[], String, no_text)],
        "last log position that a standby received; null, because the server is no standby",
    ),
    pure(
        "pg_last_wal_replay_lsn",
        &[direct(&[], String, no_text)],
        "last log position that a standby applied; null, because the server is no standby",
    ),
    pure(
        "pg_last_xact_replay_timestamp",
        &[direct(&[], String, no_text)],
        "time of the last applied transaction; null, because the server is no standby",
    ),
    always!("pg_has_role", Boolean, yes, "whether the user is a member of a role"),
];

#[cfg(test)]
mod tests {
    use super::narrowed_name;

    /// Expected values are `PostgreSQL`'s output.
    #[test]
    fn a_type_modifier_is_added_to_the_type_name() {
        for (name, modifier, shown) in [
            ("numeric", Some((10 << 16 | 2) + 4), "numeric(10,2)"),
            ("numeric", Some(-1), "numeric"),
            ("numeric", None, "numeric"),
            ("numeric[]", Some((38 << 16) + 4), "numeric(38,0)[]"),
            ("character varying", Some(12), "character varying(8)"),
            ("character varying", Some(-1), "character varying"),
            ("character", Some(5), "character(1)"),
            ("character", Some(-1), "bpchar"),
            ("character", None, "character"),
            ("timestamp without time zone", Some(3), "timestamp(3) without time zone"),
            ("timestamp with time zone[]", Some(0), "timestamp(0) with time zone[]"),
            ("timestamp without time zone", Some(-1), "timestamp without time zone"),
            ("time without time zone", Some(6), "time(6) without time zone"),
            ("interval", Some(0x7fff_0003), "interval(3)"),
            ("interval", Some(0x7fff_ffff), "interval"),
            ("double precision", Some(4), "double precision"),
            ("integer", Some(-1), "integer"),
        ] {
            assert_eq!(narrowed_name(name, modifier), shown, "{name} {modifier:?}");
        }
    }
}
