//! Converts CSV, the line protocol and the columnar protocol to typed columns, and bound parameters
//! to typed values.
//!
//! The CSV reader is configured with the full format (delimiter, header, columns, types), which
//! `ts/ingest` detects. The reader does not access tables. It passes batches to a sink, with the
//! columns in the target's order.
//!
//! - `csv_reader` splits chunks into records and decides which rows to import.
//! - `input` represents a column of the file and the type it needs.
//! - `record` splits a record into fields.
//! - `column` collects one column's values.
//! - `value_text` and `timestamps` parse single values.
//! - `number_text` normalises localised numbers.
//! - `symbol` interns strings.
//! - `parameters` decodes Bind message values, and `copy` decodes COPY data.
//! - `rows` collects rows for protocols in which a message writes to several tables.
//! - `line` parses the line protocol, and `qwp` the columnar protocol.
//! - `cast` assigns values from these two protocols to columns of other types.

#![forbid(unsafe_code)]

mod cast;
mod column;
mod copy;
mod csv_reader;
mod csv_spec;
mod input;
mod line;
mod number_text;
mod parameters;
mod qwp;
mod record;
mod rows;
#[cfg(test)]
mod shown_rows;
mod symbol;
mod timestamps;
mod value_text;

pub use column::absent_column;
pub use copy::{
    CopyBatch, CopyColumn, CopyFailure, CopyFormat, CopyReader, CopyResult, CopySpec, LineMarks,
};
pub use csv_reader::CsvReader;
pub use csv_spec::{
    BadLine, CsvColumn, CsvReport, CsvSpec, MAX_BAD_LINES, MAX_LINE_BYTES, Widened,
};
pub use line::{LineFailure, LineOptions, LineReader, Refusal};
pub use parameters::{ParameterRows, are_texts};
pub use qwp::{QwpFailure, QwpOptions, QwpReader, QwpRefusal, QwpStatus};
pub use rows::{Cells, Chunk, RefusedTarget, TableRows, TargetColumn, TargetTable, Targets};
