//! Entry point for all encoders: choose a format once, then pass batches and get bytes.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use tidemark_types::{EngineResult, Field, PartitionBy};

use crate::arena;
use crate::csv::CsvRows;
use crate::json::JsonRows;
use crate::parquet_archive::ParquetArchive;
use crate::parquet_file::{ParquetFile, ParquetOptions};
use crate::pg::PgRows;
use crate::qwp::{QwpMessages, QwpOptions};

/// Row format.
#[derive(Debug, Clone)]
pub enum RowFormat {
    /// `[1,"a"],[2,"b"]`: no outer brackets, and commas between all rows of one stream.
    Json {
        /// Whether LONG values are JSON strings.
        quote_large_numbers: bool,
        /// Columns to write, in this order; `None` writes all.
        columns: Option<Vec<usize>>,
    },
    /// RFC 4180 rows with CRLF line ends.
    Csv {
        /// The byte between fields.
        delimiter: u8,
        /// Whether a header line with the column names precedes the rows.
        header: bool,
    },
    /// pgwire `DataRow` messages.
    Pg {
        /// Format codes: 0 is text, 1 is binary. An empty list selects text for all columns. A
        /// single code applies to all columns. Otherwise, the list contains one code per column.
        format_codes: Vec<i16>,
        /// Whether `TIMESTAMP_NS` text has nine fractional digits instead of six.
        nanoseconds: bool,
    },
    /// QWP `RESULT_BATCH` messages without their heads, each a separate chunk.
    Qwp(QwpOptions),
    /// One streamed Parquet file or, with partitions, a ZIP archive of files.
    Parquet(ParquetOptions),
    /// One Arrow arena per batch, see [`crate::write_arena`].
    Arrow,
}

/// Encodes the batches of one result.
#[derive(Debug)]
pub struct RowEncoder {
    encoder: Encoder,
}

#[derive(Debug)]
enum Encoder {
    Json(JsonRows),
    Csv(CsvRows),
    Pg(PgRows),
    Qwp(Box<QwpMessages>),
    Parquet(Box<ParquetFile>),
    ParquetArchive(Box<ParquetArchive>),
    Arrow { fields: Vec<Field>, is_empty: bool },
}

impl RowEncoder {
    /// Creates an encoder for rows of these columns. `timestamp` is the position of the designated
    /// timestamp; only Parquet records it.
    pub fn new(
        fields: &[Field],
        timestamp: Option<usize>,
        format: RowFormat,
    ) -> EngineResult<Self> {
        let encoder = match format {
            RowFormat::Json { quote_large_numbers, columns } => {
                Encoder::Json(JsonRows::new(fields, quote_large_numbers, columns)?)
            }
            RowFormat::Csv { delimiter, header } => {
                Encoder::Csv(CsvRows::new(fields, delimiter, header))
            }
            RowFormat::Pg { format_codes, nanoseconds } => {
                Encoder::Pg(PgRows::new(fields, &format_codes, nanoseconds)?)
            }
            RowFormat::Qwp(options) => Encoder::Qwp(Box::new(QwpMessages::new(fields, options)?)),
            RowFormat::Parquet(options) if options.partition_by != PartitionBy::None => {
                Encoder::ParquetArchive(Box::new(ParquetArchive::new(fields, timestamp, options)?))
            }
            RowFormat::Parquet(options) => {
                Encoder::Parquet(Box::new(ParquetFile::new(fields, timestamp, &options)?))
            }
            RowFormat::Arrow => Encoder::Arrow { fields: fields.to_vec(), is_empty: true },
        };
        Ok(Self { encoder })
    }

    /// Appends the rows of `batch` to `out`. Parquet appends only completed data: nothing for most
    /// batches, sometimes a whole row group.
    pub fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> EngineResult<()> {
        match &mut self.encoder {
            Encoder::Json(rows) => rows.encode(batch, out),
            Encoder::Csv(rows) => rows.encode(batch, out),
            Encoder::Pg(rows) => rows.encode(batch, out),
            Encoder::Qwp(messages) => messages.encode(batch),
            Encoder::Parquet(file) => file.encode(batch, out),
            Encoder::ParquetArchive(archive) => archive.encode(batch, out),
            Encoder::Arrow { fields, is_empty } => {
                *is_empty = false;
                arena::append_arena(fields, batch, out)
            }
        }
    }

    /// Returns the number of rows that fit in the open chunk; 0 if the chunk must be closed. Only
    /// QWP has a limit.
    #[must_use]
    pub fn free_rows(&self) -> usize {
        match &self.encoder {
            Encoder::Qwp(messages) => messages.free_rows(),
            _ => usize::MAX,
        }
    }

    /// Appends data that was held back until all rows of the chunk are known.
    pub fn close_chunk(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        match &mut self.encoder {
            Encoder::Qwp(messages) => messages.close(out),
            _ => Ok(()),
        }
    }

    /// Appends the end of the result. For an empty CSV or Arrow result, this is the header or the
    /// columns; for a Parquet file, the last row group and the footer.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        match &mut self.encoder {
            Encoder::Json(_) | Encoder::Pg(_) => Ok(()),
            Encoder::Arrow { fields, is_empty } => {
                if std::mem::take(is_empty) {
                    arena::append_arena(fields, &no_rows(fields), out)?;
                }
                Ok(())
            }
            Encoder::Csv(rows) => {
                rows.finish(out);
                Ok(())
            }
            Encoder::Qwp(messages) => {
                messages.finish();
                Ok(())
            }
            Encoder::Parquet(file) => file.finish(out),
            Encoder::ParquetArchive(archive) => archive.finish(out),
        }
    }
}

/// Returns a batch of these columns without rows.
fn no_rows(fields: &[Field]) -> RecordBatch {
    let fields = fields.iter().map(|field| {
        arrow_schema::Field::new(
            &field.name,
            field.sql_type.arrow_type(),
            field.sql_type.is_nullable(),
        )
    });
    RecordBatch::new_empty(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}
