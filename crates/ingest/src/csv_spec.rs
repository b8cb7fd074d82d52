//! The options of the reader, and its report.

use std::fmt;

use tidemark_border::CsvAtomicity;
use tidemark_types::{Field, SqlType};

/// A field of each line on its way into a column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvColumn {
    /// Index of the field in each line.
    pub index: usize,
    /// Index of the column in [`CsvSpec::target`].
    pub target: usize,
    /// Of DATE, TIMESTAMP and `TIMESTAMP_NS` how they are written (`None`: ISO forms; `epoch_s`,
    /// `epoch_ms`, `epoch_us`, `epoch_ns`: a number since 1970); of numbers their decimal mark.
    pub pattern: Option<String>,
    /// Whether the column is NOT NULL: a row without a value of it is dropped, or ends an import
    /// that bad values end.
    pub required: bool,
    /// Whether the type is a guess from the beginning of the text: a value that does not fit is not
    /// bad, but asks for a wider type, and the word `null` is null.
    pub guessed: bool,
    /// Texts that are null where they are no value of the type: `n/a` in a column of numbers.
    pub null_texts: Vec<String>,
}

/// The most bytes of a line, by default.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Everything the reader must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvSpec {
    /// The byte between fields.
    pub delimiter: u8,
    /// Whether the first line is a header: not data.
    pub header: bool,
    /// The fields that are read, in the order their errors are reported.
    pub columns: Vec<CsvColumn>,
    /// What happens to bad values.
    pub atomicity: CsvAtomicity,
    /// Fields beyond [`CsvSpec::line_fields`] are ignored instead of their whole line.
    pub skip_extra_values: bool,
    /// Fields of a line; a line with more is too long.
    pub line_fields: usize,
    /// The most bytes of a line, quotes and line ends inside included.
    pub most_line_bytes: usize,
    /// Columns of the batches that come out; those no field feeds are null.
    pub target: Vec<Field>,
    /// The designated timestamp in `target`: a row without it is rejected.
    pub timestamp: Option<usize>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvReport {
    /// Rows that went to the sink.
    pub rows_imported: u64,
    /// Rows that were dropped.
    pub rows_rejected: u64,
    /// Values that did not convert, or were missing where one is required, per entry of
    /// [`CsvSpec::columns`].
    pub column_errors: Vec<u64>,
    /// The first lines that are bad, at most [`MAX_BAD_LINES`].
    pub bad_lines: Vec<BadLine>,
    /// Guesses that turned out to be too narrow, per entry of [`CsvSpec::columns`]. Where there is
    /// one, the rows are incomplete: the text is to be read again, with these types.
    pub widened: Vec<Option<Widened>>,
}

/// A type that holds what a guessed one did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// The type that all values of the column fit.
    pub sql_type: SqlType,
    /// Where the first value begins that fits no narrower one, from 1.
    pub line: u64,
    /// The value, cut to a length that a message can take.
    pub text: String,
}

/// Bad lines that are reported one by one.
pub const MAX_BAD_LINES: usize = 10;

/// A line with something wrong in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Where it begins in the text, from 1, header and blank lines counted.
    pub line: u64,
    /// Its field, from 1; `None` for the line as a whole.
    pub field: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        self.field.map_or(Ok(()), |field| write!(f, ", field {field}"))?;
        write!(f, ": {}", self.problem)
    }
}
