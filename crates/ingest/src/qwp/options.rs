//! What a connection may send.

/// How messages are read, and what they may make.
#[derive(Debug, Clone, Copy)]
pub struct QwpOptions {
    /// Whether tables are made.
    pub create_tables: bool,
    /// Whether tables that are there get columns.
    pub create_columns: bool,
    /// Columns of a table, at most.
    pub most_columns: usize,
    /// Rows of a block, at most.
    pub most_rows: usize,
    /// Tables that a connection names, at most.
    pub most_tables: usize,
    /// Bytes of the texts in the dictionary, at most.
    pub most_dictionary_bytes: usize,
    /// Bytes that rows which wait for their commit take in memory, at most.
    pub most_held_bytes: usize,
}
