//! Options of the CSV reader, and its report.

use std::fmt;

use tidemark_border::CsvAtomicity;
use tidemark_types::{Field, SqlType};

/// Maps a field of each line to a column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvColumn {
    /// Index of the field in each line.
    pub index: usize,
    /// Index of the column in [`CsvSpec::target`].
    pub target: usize,
    /// For DATE, TIMESTAMP and `TIMESTAMP_NS`, the format (`None`: ISO formats; `epoch_s`,
    /// `epoch_ms`, `epoch_us`, `epoch_ns`: a number since 1970). For numbers, the decimal mark.
    pub pattern: Option<String>,
    /// Whether the column is NOT NULL. A row without a value is then dropped; if bad values end the
    /// import, it ends the import.
    pub required: bool,
    /// Whether the type was guessed from the beginning of the file. If so, a value that does not
    /// fit is not an error but widens the type, and the word `null` is null.
    pub guessed: bool,
    /// Strings that are null unless they are valid values of the type, such as `n/a` in a numeric
    /// column.
    pub null_texts: Vec<String>,
}

/// Default maximum length of a line in bytes.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Configuration of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvSpec {
    /// Delimiter between fields.
    pub delimiter: u8,
    /// Whether the first line is a header and not data.
    pub header: bool,
    /// Fields to read, in the order in which their errors are reported.
    pub columns: Vec<CsvColumn>,
    /// Handling of bad values.
    pub atomicity: CsvAtomicity,
    /// Whether surplus fields beyond [`CsvSpec::line_fields`] are ignored; otherwise their line is
    /// rejected.
    pub skip_extra_values: bool,
    /// Number of fields in a line; a line with more is too long.
    pub line_fields: usize,
    /// Maximum length of a line in bytes, including quotes and embedded line ends.
    pub most_line_bytes: usize,
    /// Columns of the output batches; columns without an input field are null.
    pub target: Vec<Field>,
    /// Index of the designated timestamp in `target`; a row without it is rejected.
    pub timestamp: Option<usize>,
}

/// Import report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvReport {
    /// Rows passed to the sink.
    pub rows_imported: u64,
    /// Rows dropped.
    pub rows_rejected: u64,
    /// Number of values that failed to convert or were missing in a required column, per entry of
    /// [`CsvSpec::columns`].
    pub column_errors: Vec<u64>,
    /// The first bad lines; at most [`MAX_BAD_LINES`] of them.
    pub bad_lines: Vec<BadLine>,
    /// For guessed types that were too narrow, the wider types, per entry of [`CsvSpec::columns`].
    /// If there are any, the rows are incomplete and the file must be read again with these types.
    pub widened: Vec<Option<Widened>>,
}

/// A wider type that replaces a guessed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// A type that holds all values of the column.
    pub sql_type: SqlType,
    /// Line number, from 1, of the first value that does not fit a narrower type.
    pub line: u64,
    /// The value, truncated for use in a message.
    pub text: String,
}

/// Maximum number of bad lines that are reported individually.
pub const MAX_BAD_LINES: usize = 10;

/// A line with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Number of the line's first line in the file, from 1, including the header and blank lines.
    pub line: u64,
    /// Number of the field, from 1; `None` for the line as a whole.
    pub field: Option<usize>,
    /// The error.
    pub problem: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        self.field.map_or(Ok(()), |field| write!(f, ", field {field}"))?;
        write!(f, ": {}", self.problem)
    }
}
