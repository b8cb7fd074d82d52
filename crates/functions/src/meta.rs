//! Functions about the server and the session that need neither.

use tidemark_types::SqlType::{Boolean, String};

use crate::column::{Call, build_flags, build_text};
use crate::registry::Param::Text;
use crate::registry::{Body, Function, Gives, Overload, direct, pure};

fn word(call: &Call<'_>, text: &str) -> datafusion::common::Result<arrow::array::ArrayRef> {
    Ok(build_text(call.rows, |_, out| {
        out.push_str(text);
        true
    }))
}

macro_rules! constant {
    ($name:literal, $text:expr, $summary:literal) => {
        pure($name, &[direct(&[], String, |call| word(call, $text))], $summary)
    };
}

/// What `version()` answers: `PostgreSQL` clients parse it.
pub(crate) const VERSION: &str =
    concat!("PostgreSQL 12.3, compiled by Tidemark ", env!("CARGO_PKG_VERSION"));

pub(crate) const FUNCTIONS: &[Function] = &[
    constant!("version", VERSION, "PostgreSQL version text"),
    constant!(
        "build",
        concat!("Build Information: Tidemark ", env!("CARGO_PKG_VERSION")),
        "version"
    ),
    constant!("current_database", "qdb", "name of the database"),
    constant!("current_schema", "public", "name of the schema"),
    constant!("current_user", "admin", "login name; the session replaces it"),
    constant!("session_user", "admin", "login name; the session replaces it"),
    pure(
        "flush_query_cache",
        &[direct(&[], Boolean, |call| Ok(build_flags(call.rows, |_| true)))],
        "true: plans follow their tables by themselves, so there is nothing to drop",
    ),
    pure(
        "hydrate_table_metadata",
        &[Overload {
            takes: &[Text],
            variadic: true,
            gives: Gives::Is(Boolean),
            body: Body::Direct(|call| Ok(build_flags(call.rows, |_| true))),
        }],
        "true: what is known of tables never differs from the disk",
    ),
    pure(
        "reload_config",
        &[direct(&[], Boolean, |call| Ok(build_flags(call.rows, |_| false)))],
        "false: settings are read at the start alone",
    ),
];
