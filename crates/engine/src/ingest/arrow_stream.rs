//! Arrow IPC streams as the data of a COPY.

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use tidemark_ingest::{CopyBatch, CopyResult};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::files::parquet_table::columns::{convert, sql_type_of};

/// Key of the field metadata that names the SQL type; results in the Arrow format contain it.
const TYPE_KEY: &str = "tidemark.type";
/// Maximum number of rows passed to the sink at once.
const BATCH_ROWS: usize = 65_536;

/// Reads Arrow IPC streams. Each chunk of the data contains one complete stream. Fields are matched
/// to columns by name, in any order; a column without a field is null.
pub(super) struct ArrowStreams {
    columns: Vec<String>,
    rows: u64,
}

impl ArrowStreams {
    /// Creates a reader for these columns.
    pub(super) fn new(columns: Vec<String>) -> Self {
        Self { columns, rows: 0 }
    }

    /// Number of rows read so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Decodes a stream and passes its rows to `sink`.
    pub(super) fn feed(
        &mut self,
        bytes: Vec<u8>,
        sink: &mut dyn FnMut(CopyBatch) -> CopyResult,
    ) -> CopyResult {
        let mut decoder = StreamDecoder::new();
        let mut bytes = Buffer::from(bytes);
        while let Some(batch) = decoder.decode(&mut bytes).map_err(|error| malformed(&error))? {
            let sources = self.sources(&batch.schema())?;
            for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
                let rows = BATCH_ROWS.min(batch.num_rows() - start);
                sink(self.converted(&batch.slice(start, rows), &sources)?)?;
            }
        }
        Ok(decoder.finish().map_err(|error| malformed(&error))?)
    }

    /// Returns, for each column, the position and SQL type of its field.
    fn sources(&self, schema: &Schema) -> EngineResult<Vec<Option<(usize, SqlType)>>> {
        let mut sources = vec![None; self.columns.len()];
        for (index, field) in schema.fields().iter().enumerate() {
            let name = field.name();
            let column = self.columns.iter().position(|column| identifier::same(column, name));
            let source = column.and_then(|column| sources.get_mut(column)).ok_or_else(|| {
                let message = format!("the Arrow data has a column that is not written: {name}");
                EngineError::new(ErrorCode::ColumnNotFound, message)
            })?;
            let recorded = field.metadata().get(TYPE_KEY).map(String::as_str);
            if source.replace((index, sql_type_of(field.data_type(), recorded))).is_some() {
                let message = format!("duplicate column in the Arrow data: {name}");
                return Err(EngineError::new(ErrorCode::DuplicateColumn, message));
            }
        }
        Ok(sources)
    }

    fn converted(
        &mut self,
        batch: &RecordBatch,
        sources: &[Option<(usize, SqlType)>],
    ) -> EngineResult<CopyBatch> {
        let rows = batch.num_rows();
        let column = |(name, source): (&String, &Option<(usize, SqlType)>)| {
            let Some((index, sql_type)) = source else {
                let nulls: ArrayRef = new_null_array(&DataType::Utf8View, rows);
                return Ok((SqlType::Varchar, nulls));
            };
            let converted = convert(batch.column(*index), *sql_type);
            converted.map(|cells| (*sql_type, cells)).map_err(|error| {
                let message = format!("column \"{name}\": {}", error.message);
                EngineError { message, ..error }
            })
        };
        let columns = self.columns.iter().zip(sources).map(column).collect::<EngineResult<_>>()?;
        let first = self.rows + 1;
        self.rows += rows as u64;
        Ok(CopyBatch { lines: (first..=self.rows).collect(), columns })
    }
}

fn malformed(error: &ArrowError) -> EngineError {
    EngineError::new(ErrorCode::InvalidCopyData, format!("malformed Arrow stream: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int32Array;
    use arrow::datatypes::Field;
    use arrow::ipc::writer::StreamWriter;

    use super::*;

    fn stream(names: &[&str], rows: usize) -> Vec<u8> {
        let fields = names.iter().map(|name| Field::new(*name, DataType::Int32, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let cells: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows as i32));
        let columns = vec![cells; names.len()];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<CopyBatch>, EngineError> {
        let mut streams = ArrowStreams::new(vec!["a".to_owned(), "b".to_owned()]);
        let mut batches = Vec::new();
        let read = streams.feed(bytes.to_vec(), &mut |batch| {
            batches.push(batch);
            Ok(())
        });
        read.map(|()| batches).map_err(|failure| *failure.error)
    }

    #[test]
    fn fields_match_columns_by_name_and_absent_columns_are_null() {
        let batches = read(&stream(&["B"], BATCH_ROWS + 1)).unwrap();
        let rows: Vec<usize> = batches.iter().map(|batch| batch.lines.len()).collect();
        assert_eq!(rows, [BATCH_ROWS, 1]);
        assert_eq!(batches[1].lines, [BATCH_ROWS as u64 + 1]);
        let [(absent, nulls), (given, cells)] = batches[1].columns.as_slice() else { panic!() };
        assert_eq!((*absent, nulls.null_count()), (SqlType::Varchar, 1));
        assert_eq!((*given, cells.null_count()), (SqlType::Int, 0));
    }

    #[test]
    fn unknown_and_duplicate_fields_are_rejected() {
        assert_eq!(read(&stream(&["c"], 1)).unwrap_err().code, ErrorCode::ColumnNotFound);
        assert_eq!(read(&stream(&["a", "A"], 1)).unwrap_err().code, ErrorCode::DuplicateColumn);
    }

    #[test]
    fn a_truncated_stream_returns_an_error_or_only_complete_batches() {
        let bytes = stream(&["a", "b"], 100);
        for length in 0..bytes.len() {
            match read(&bytes[..length]) {
                Ok(batches) => assert!(batches.iter().all(|batch| batch.lines.len() == 100)),
                Err(error) => assert_eq!(error.code, ErrorCode::InvalidCopyData, "{length}"),
            }
        }
        assert_eq!(read(b"not an Arrow stream").unwrap_err().code, ErrorCode::InvalidCopyData);
    }
}
