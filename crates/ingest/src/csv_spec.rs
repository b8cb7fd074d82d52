//! CSV reader options and report.

use std::fmt;

use tidemark_border::CsvAtomicity;
use tidemark_types::{Field, SqlType};

/// Maps a field of each line to a target column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvColumn {
    /// Index of the field in each line.
    pub index: usize,
    /// Index of the column in [`CsvSpec::target`].
    pub target: usize,
    /// The format of dates, timestamps or numbers. For DATE, TIMESTAMP and `TIMESTAMP_NS`, `None`
    /// means ISO formats; `epoch_s`, `epoch_ms`, `epoch_us` and `epoch_ns` mean a count of the
    /// named unit since 1970. For numbers, the pattern is the decimal mark.
    pub pattern: Option<String>,
    /// Whether the column is NOT NULL. A row without a value for this column is dropped. If bad
    /// values end the import, the row ends it instead.
    pub required: bool,
    /// Whether the type was guessed from the beginning of the file. If so, a value that does not
    /// fit widens the type instead of causing an error, and the word `null` is read as null.
    pub guessed: bool,
    /// Strings that are read as null unless they are valid values of the type, for example `n/a` in
    /// a numeric column.
    pub null_texts: Vec<String>,
}

/// Default maximum line length in bytes.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Reader configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvSpec {
    /// Delimiter between fields.
    pub delimiter: u8,
    /// Whether the first line is a header rather than data.
    pub header: bool,
    /// Fields to read, in the order in which their errors are reported.
    pub columns: Vec<CsvColumn>,
    /// How bad values are handled.
    pub atomicity: CsvAtomicity,
    /// Whether fields beyond [`CsvSpec::line_fields`] are ignored. Otherwise a line with such
    /// fields is rejected.
    pub skip_extra_values: bool,
    /// Number of fields allowed per line.
    pub line_fields: usize,
    /// Maximum line length in bytes, including quotes and embedded line ends.
    pub max_line_bytes: usize,
    /// Columns of the output batches; columns without an input field are null.
    pub target: Vec<Field>,
    /// Index of the designated timestamp in `target`. A row without a designated timestamp is
    /// rejected.
    pub timestamp: Option<usize>,
}

/// Import report.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvReport {
    /// Number of rows passed to the sink.
    pub rows_imported: u64,
    /// Number of dropped rows.
    pub rows_rejected: u64,
    /// For each entry of [`CsvSpec::columns`], the number of values that failed to convert or were
    /// missing in a required column.
    pub column_errors: Vec<u64>,
    /// The first bad lines, at most [`MAX_BAD_LINES`].
    pub bad_lines: Vec<BadLine>,
    /// For each entry of [`CsvSpec::columns`], the wider type if a guessed type was too narrow. If
    /// any type was too narrow, the rows are incomplete and the file must be read again with the
    /// wider types.
    pub widened: Vec<Option<Widened>>,
}

/// A wider type that replaces a guessed type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widened {
    /// A type that fits all values of the column.
    pub sql_type: SqlType,
    /// Line number, counted from 1, of the first value that does not fit a narrower type.
    pub line: u64,
    /// The value, truncated for use in a message.
    pub text: String,
}

/// Maximum number of bad lines that are reported individually.
pub const MAX_BAD_LINES: usize = 10;

/// A line with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Line number in the file, counted from 1 and including the header and blank lines. If a
    /// record spans several lines, this is the number of the first line.
    pub line: u64,
    /// Field number, counted from 1; `None` if the error concerns the entire line.
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
