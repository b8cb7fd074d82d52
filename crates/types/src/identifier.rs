//! Rules for table and column names.

/// Maximum length of a table or column name in UTF-8 bytes (`cairo.max.file.name.length`).
pub const MAX_NAME_BYTES: usize = 127;

/// Whether a table may have this name.
#[must_use]
pub fn is_valid_table_name(name: &str) -> bool {
    let dots_fine = !name.starts_with('.') && !name.ends_with('.') && !name.contains("..");
    let spaces_fine = !name.starts_with(' ') && !name.ends_with(' ');
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && dots_fine
        && spaces_fine
        && !is_reserved_table_name(name)
        && !name.chars().any(is_illegal_in_table_name)
}

/// Prefixes of catalog names, and of tables qualified with their schema.
const SCHEMAS: &[&str] = &["pg_catalog.", "information_schema.", "public.", "qdb."];

/// Catalog tables that are used without a schema and whose names do not start with `pg_`.
const CATALOG_TABLES: &[&str] =
    &["tables", "query_activity", "memory_metrics", "writer_pool", "checkpoint_status"];

/// Whether the name is reserved for the catalog. No user table or view may have such a name.
#[must_use]
pub fn is_reserved_table_name(name: &str) -> bool {
    let folded = fold(name);
    folded.starts_with("pg_")
        || SCHEMAS.iter().any(|schema| folded.starts_with(schema))
        || CATALOG_TABLES.contains(&folded.as_str())
}

/// Whether a column may have this name.
#[must_use]
pub fn is_valid_column_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.chars().any(|c| is_illegal_in_table_name(c) || c == '.' || c == '-')
}

/// Whether the character is illegal in a table name.
#[must_use]
pub fn is_illegal_in_table_name(c: char) -> bool {
    matches!(
        c,
        '?' | ',' | '\'' | '"' | '\\' | '/' | ':' | ')' | '(' | '+' | '*' | '%' | '~' | '\0'
            ..='\u{f}' | '\u{7f}' | '\u{feff}'
    )
}

/// Returns the case-insensitive key of a name.
#[must_use]
pub fn fold(name: &str) -> String {
    name.to_lowercase()
}

/// Whether two names are equal, ignoring case.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && fold(a) == fold(b))
}
