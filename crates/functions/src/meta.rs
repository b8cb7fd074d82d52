//! Functions that return fixed results about the server and the session.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use datafusion_expr::{Expr, Volatility};
use tidemark_types::SqlType;
use tidemark_types::SqlType::{Boolean, String as Str};

use crate::column::{Call, build, build_flags, build_text};
use crate::native::{Kernel, Native, call};
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::Param::Text;
use crate::signature::{Body, Function, Overload, ResultType, direct, mismatch, pure, special};

fn word(call: &Call<'_>, text: &str) -> datafusion::common::Result<ArrayRef> {
    build_text(call.rows, |_, out| {
        out.push_str(text);
        true
    })
}

macro_rules! constant {
    ($name:literal, $text:expr, $summary:literal) => {
        pure($name, &[direct(&[], Str, |call| word(call, $text))], $summary)
    };
}

/// Resolves a function that the binder handles itself. Only calls with unsupported arguments reach
/// this function, which rejects them.
fn bound_elsewhere(name: &str, arguments: &[Argument]) -> Result<ResolvedScalar, ResolveError> {
    Err(mismatch(name, std::iter::once(1), arguments))
}

/// Returns the batch size in bytes for the first row in the batch, and 0 for all other rows.
pub fn row_bytes(columns: Vec<Expr>) -> Expr {
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let mut bytes = 0;
        for index in 0..call.arguments.len() {
            bytes += read_bytes(&call.array(index)?.0);
        }
        let row = |row| Some(if row == 0 { i64::try_from(bytes).unwrap_or(i64::MAX) } else { 0 });
        Ok(build::<Int64Type>(call.rows, row))
    });
    let types = (Vec::new(), SqlType::Long);
    let udf = Native::udf("row_bytes", String::new(), types, Volatility::Volatile, kernel);
    call(&udf, columns)
}

/// Returns the total size in bytes of the buffer ranges that an array references.
fn read_bytes(array: &ArrayRef) -> usize {
    match array.as_string_view_opt() {
        Some(texts) => texts.iter().flatten().map(str::len).sum::<usize>() + 16 * texts.len(),
        None => array.to_data().get_slice_memory_size().unwrap_or(0),
    }
}

/// Returns a string's position in `names`, counted from `first`; null if `names` does not contain
/// it.
pub fn number_of(text: Expr, names: &[String], first: i32) -> Expr {
    let identity = format!("{first} {}", names.len());
    let numbers: HashMap<String, i32> = names.iter().cloned().zip(first..).collect();
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let texts = call.texts(0)?;
        Ok(build::<Int32Type>(call.rows, |row| numbers.get(texts.get(row)?).copied()))
    });
    let types = (vec![SqlType::Varchar], SqlType::Int);
    let udf = Native::udf("number_of", identity, types, Volatility::Immutable, kernel);
    call(&udf, vec![text])
}

/// Returns the output of the `touch` function for this number of bytes.
pub fn pages_text(bytes: Expr) -> Expr {
    const PAGE_BYTES: i64 = 4096;
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let bytes = call.primitive::<Int64Type>(0)?;
        build_text(call.rows, |row, out| {
            let bytes = bytes.get(row).unwrap_or(0);
            let pages = bytes / PAGE_BYTES + i64::from(bytes % PAGE_BYTES > 0);
            let _ = write!(
                out,
                "{{\"data_pages\": {pages}, \"index_key_pages\":0, \"index_values_pages\": 0}}"
            );
            true
        })
    });
    let types = (vec![SqlType::Long], SqlType::String);
    let udf = Native::udf("pages_text", String::new(), types, Volatility::Immutable, kernel);
    call(&udf, vec![bytes])
}

/// The result of `version()`, which `PostgreSQL` clients parse. Its number matches
/// `server_version`.
pub(crate) const VERSION: &str =
    concat!("PostgreSQL 14.0, compiled by Tidemark ", env!("CARGO_PKG_VERSION"));

pub(crate) const FUNCTIONS: &[Function] = &[
    special(
        "cancel_query",
        bound_elsewhere,
        "cancels a running query; false if there is no such query",
    ),
    special("pause_job", bound_elsewhere, "pauses a background job; see jobs()"),
    special("resume_job", bound_elsewhere, "resumes a background job; see jobs()"),
    special("touch", bound_elsewhere, "reads all data of a query and returns the number of pages"),
    constant!("version", VERSION, "version string, in PostgreSQL's format"),
    constant!(
        "build",
        concat!("Build Information: Tidemark ", env!("CARGO_PKG_VERSION")),
        "server version"
    ),
    constant!("current_database", "qdb", "name of the database"),
    constant!("current_schema", "public", "name of the schema"),
    constant!("current_user", "admin", "login name of the session"),
    constant!("session_user", "admin", "login name of the session"),
    pure(
        "flush_query_cache",
        &[direct(&[], Boolean, |call| Ok(build_flags(call.rows, |_| true)))],
        "true; has no effect, because cached plans are always up to date",
    ),
    pure(
        "wait_wal_table",
        &[direct(&[Text], Boolean, |call| Ok(build_flags(call.rows, |_| true)))],
        "true; has no effect, because committed rows are visible immediately",
    ),
    pure(
        "hydrate_table_metadata",
        &[Overload {
            parameters: &[Text],
            variadic: true,
            result: ResultType::Is(Boolean),
            body: Body::Direct(|call| Ok(build_flags(call.rows, |_| true))),
        }],
        "true; has no effect, because table metadata is always up to date",
    ),
    pure(
        "reload_config",
        &[direct(&[], Boolean, |call| Ok(build_flags(call.rows, |_| false)))],
        "reloads server.conf; runs once, in a SELECT without FROM",
    ),
];
