//! What a connection may send.

/// How messages are read, and what they may create.
#[derive(Debug, Clone, Copy)]
pub struct QwpOptions {
    /// Whether missing tables are created.
    pub create_tables: bool,
    /// Whether missing columns are added to existing tables.
    pub create_columns: bool,
    /// Maximum columns of a table.
    pub most_columns: usize,
    /// Maximum rows of a block.
    pub most_rows: usize,
    /// Maximum tables that a connection may name.
    pub most_tables: usize,
    /// Maximum total bytes of the strings in the dictionary.
    pub most_dictionary_bytes: usize,
    /// Maximum memory in bytes of uncommitted rows.
    pub most_held_bytes: usize,
}
