//! Limits on a connection's messages, and the objects that they may create.

/// How messages are read, and which objects they may create.
#[derive(Debug, Clone, Copy)]
pub struct QwpOptions {
    /// Whether missing tables are created.
    pub create_tables: bool,
    /// Whether missing columns are added to existing tables.
    pub create_columns: bool,
    /// Maximum number of columns per table.
    pub max_columns: usize,
    /// Maximum number of rows per block.
    pub max_rows: usize,
    /// Maximum number of tables that a connection may name.
    pub max_tables: usize,
    /// Maximum total size in bytes of the dictionary's strings.
    pub max_dictionary_bytes: usize,
    /// Maximum memory in bytes for uncommitted rows.
    pub max_pending_bytes: usize,
}
