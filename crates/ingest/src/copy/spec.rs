//! What a reader of COPY has to know.

use tidemark_border::CopyHeader;
use tidemark_types::SqlType;

/// How the data are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySpec {
    /// Their format.
    pub format: CopyFormat,
    /// What the first line is.
    pub header: CopyHeader,
    /// The columns, in the order of the values.
    pub columns: Vec<CopyColumn>,
}

/// A format of COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyFormat {
    /// Lines with backslashes.
    Text(LineMarks),
    /// Lines with quotes.
    Csv {
        /// What parts values, and what is null.
        marks: LineMarks,
        /// Is around values.
        quote: u8,
        /// Precedes a quote that is part of a value.
        escape: u8,
    },
    /// Values in binary.
    Binary,
}

/// What lines of any format have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMarks {
    /// The byte between values.
    pub delimiter: u8,
    /// The text of a null.
    pub null: Vec<u8>,
}

/// A column that values go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// The type that binary values have, as an OID of `PostgreSQL`.
    pub oid: u32,
    /// CSV: a value without quotes is not null, even if it is written as null is.
    pub force_not_null: bool,
    /// CSV: a value in quotes is null if it is written as null is.
    pub force_null: bool,
}
