//! The one door: a format chosen once, then batches in and bytes out.

use arrow_array::RecordBatch;
use tidemark_types::{EngineResult, Field, PartitionBy};

use crate::arena;
use crate::csv::CsvRows;
use crate::json::JsonRows;
use crate::parquet_archive::ParquetArchive;
use crate::parquet_file::{ParquetFile, ParquetOptions};
use crate::pg::PgRows;
use crate::qwp::{QwpMessages, QwpOptions};

/// How rows are encoded.
#[derive(Debug, Clone)]
pub enum RowFormat {
    /// `[1,"a"],[2,"b"]`: no outer brackets, commas between all rows of one stream.
    Json {
        /// LONG values as JSON strings.
        quote_large_numbers: bool,
        /// Columns to write, in this order; `None` writes all.
        columns: Option<Vec<usize>>,
    },
    /// RFC 4180 rows with CRLF line ends.
    Csv {
        /// The byte between fields.
        delimiter: u8,
        /// Whether the line of names comes first.
        header: bool,
    },
    /// pgwire `DataRow` messages.
    Pg {
        /// 0 text, 1 binary: none = all text, one = for all columns, else one per column.
        format_codes: Vec<i16>,
        /// Nine digits of a second in texts of `TIMESTAMP_NS`, not six.
        nanoseconds: bool,
    },
    /// `RESULT_BATCH` messages of QWP without their heads, each a chunk of its own.
    Qwp(QwpOptions),
    /// One Parquet file, streamed; in partitions, a ZIP archive of files.
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
    Arrow(Vec<Field>),
}

impl RowEncoder {
    /// An encoder for rows of these columns. `timestamp` is the designated timestamp's index;
    /// only Parquet notes it.
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
            RowFormat::Arrow => Encoder::Arrow(fields.to_vec()),
        };
        Ok(Self { encoder })
    }

    /// Appends the rows of `batch` to `out`. Parquet appends what is ready: nothing for most
    /// batches, a whole row group now and then.
    pub fn encode(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> EngineResult<()> {
        match &mut self.encoder {
            Encoder::Json(rows) => rows.encode(batch, out),
            Encoder::Csv(rows) => rows.encode(batch, out),
            Encoder::Pg(rows) => rows.encode(batch, out),
            Encoder::Qwp(messages) => messages.encode(batch),
            Encoder::Parquet(file) => file.encode(batch, out),
            Encoder::ParquetArchive(archive) => archive.encode(batch, out),
            Encoder::Arrow(fields) => arena::append_arena(fields, batch, out),
        }
    }

    /// How many rows the open chunk takes; 0 when it has to be closed. The others take any.
    #[must_use]
    pub fn room(&self) -> usize {
        match &self.encoder {
            Encoder::Qwp(messages) => messages.room(),
            _ => usize::MAX,
        }
    }

    /// Appends what was held back until the chunk's rows are known.
    pub fn close_chunk(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        match &mut self.encoder {
            Encoder::Qwp(messages) => messages.close(out),
            _ => Ok(()),
        }
    }

    /// Appends what belongs after the last row: the CSV header of an empty result, the last row
    /// group and the footer of a Parquet file.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        match &mut self.encoder {
            Encoder::Json(_) | Encoder::Pg(_) | Encoder::Arrow(_) => Ok(()),
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
