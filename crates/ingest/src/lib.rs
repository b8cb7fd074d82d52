//! Bytes of CSV to typed record batches.
//!
//! The reader is told everything about the text (delimiter, header, columns, types): detection is
//! TypeScript's (`ts/ingest`). It knows no table: batches go to a sink, in the column order of the
//! target.

#![forbid(unsafe_code)]

mod csv_reader;
mod csv_spec;

pub use csv_reader::CsvReader;
pub use csv_spec::{Atomicity, CsvColumn, CsvReport, CsvSpec};
