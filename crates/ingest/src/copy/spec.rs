//! COPY reader options.

use tidemark_border::CopyHeader;
use tidemark_types::SqlType;

/// The format and columns of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySpec {
    /// Data format.
    pub format: CopyFormat,
    /// How the first line is handled.
    pub header: CopyHeader,
    /// Columns, in the same order as the values.
    pub columns: Vec<CopyColumn>,
}

/// A COPY format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyFormat {
    /// Lines with backslash escapes.
    Text(LineMarks),
    /// Lines with quoted values.
    Csv {
        /// Delimiter and null string.
        marks: LineMarks,
        /// Quote character around values.
        quote: u8,
        /// Character that escapes a quote inside a value.
        escape: u8,
    },
    /// Binary values.
    Binary,
}

/// Delimiter and null string of a line format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMarks {
    /// The byte between values.
    pub delimiter: u8,
    /// The string that represents null.
    pub null: Vec<u8>,
}

/// A target column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyColumn {
    /// Column name.
    pub name: String,
    /// Column type.
    pub sql_type: SqlType,
    /// Type of the binary values, as a `PostgreSQL` OID.
    pub oid: u32,
    /// CSV: whether to treat unquoted values as non-null, even if they equal the null string.
    pub force_not_null: bool,
    /// CSV: whether to treat quoted values as null if they equal the null string.
    pub force_null: bool,
}
