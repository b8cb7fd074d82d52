//! Bytes of CSV and of the line protocol to typed columns, and bytes of bound parameters to typed
//! values.
//!
//! The reader of CSV receives everything about the text (delimiter, header, columns, types):
//! detection is TypeScript's (`ts/ingest`). It knows no table: batches go to a sink, in the column
//! order of the target.
//!
//! `csv_reader` cuts chunks into records and decides about rows, `input` is a column of the file
//! and the type it needs, `record` splits a record into fields, `column` collects the values of one
//! column, `value_text` and `instant` read single values, `number_text` undresses numbers, `symbol`
//! interns texts. `parameters` reads the values of Bind messages, `copy` the data of COPY. `rows`
//! is what protocols bring that write several tables in one message, `line` reads the line protocol
//! into it and `qwp` the columnar one; `cast` puts their values into columns of other types.

#![forbid(unsafe_code)]

mod cast;
mod column;
mod copy;
mod csv_reader;
mod csv_spec;
mod input;
mod instant;
mod line;
mod number_text;
mod parameters;
mod qwp;
mod record;
mod rows;
#[cfg(test)]
mod shown_rows;
mod symbol;
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
