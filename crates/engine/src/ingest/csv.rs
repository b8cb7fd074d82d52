//! CSV import into a table. Several inputs may be sent one after another. Each input is parsed with
//! its own options, and all of them are committed together.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use tidemark_border::{
    AppendProgress, AppendReport, AppenderSpec, CsvColumnSpec, CsvTextSpec, TextReport,
    WidenedColumn,
};
use tidemark_catalog::{IncrementalView, TableBuilder};
use tidemark_ingest::{CsvColumn, CsvReader, CsvReport, CsvSpec, Widened};
use tidemark_planner::{Defaults, Planner};
use tidemark_storage::{BulkTarget, TableDefaults, TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, PartitionBy, identifier};

use super::feed::{Feed, Reader, ended};
use super::sink::{RowSink, Target};
use crate::database::{Database, describe_table, given};
use crate::files::csv_text::{delimiter, parse_type};
use crate::ingest::writer::Writer;

/// Maximum number of bytes queued for the parser.
const QUEUE_BYTES: usize = 8 * 1024 * 1024;

fn text_report(report: CsvReport) -> TextReport {
    TextReport {
        rows_imported: report.rows_imported,
        rows_rejected: report.rows_rejected,
        bad_lines: report.bad_lines.iter().map(ToString::to_string).collect(),
        widened: report.widened.into_iter().map(|one| one.map(widened_column)).collect(),
        column_errors: report.column_errors,
    }
}

fn widened_column(widened: Widened) -> WidenedColumn {
    let Widened { sql_type, line, text } = widened;
    WidenedColumn { type_name: sql_type.name(), line, text }
}

/// Receives CSV bytes and writes the rows into one table.
pub(crate) struct CsvAppender {
    database: Arc<Database>,
    schema: TableSchema,
    feed: Feed<CsvRows>,
    sink: Arc<RowSink>,
}

/// Converts CSV inputs into table rows.
struct CsvRows {
    reader: CsvReader,
    defaults: Defaults,
    sink: Arc<RowSink>,
    rows: u64,
    /// Whether all guessed types fit their values.
    fits: bool,
}

impl CsvRows {
    fn new(
        database: &Database,
        csv: &CsvTextSpec,
        (schema, sink): (&TableSchema, &Arc<RowSink>),
    ) -> EngineResult<Self> {
        let csv = csv_spec(csv, schema, database.max_line_bytes)?;
        let given: Vec<usize> = csv.columns.iter().map(|column| column.target).collect();
        let (snapshot, context) = (database.snapshot()?, database.bind_context(""));
        let defaults = Planner::defaults(schema, &given, &snapshot, &context)?;
        let (reader, sink) = (CsvReader::new(csv)?, Arc::clone(sink));
        Ok(Self { reader, defaults, sink, rows: 0, fits: true })
    }

    /// Runs the reader and passes the rows that it returns to the sink.
    fn with(
        &mut self,
        read: impl FnOnce(&mut CsvReader, &mut Rows<'_>) -> EngineResult<()>,
    ) -> EngineResult<()> {
        let Self { reader, defaults, sink, rows, .. } = self;
        read(reader, &mut |batch| {
            *rows += batch.num_rows() as u64;
            sink.push(if defaults.is_empty() { batch } else { defaults.fill(&batch)? })
        })
    }

    fn finish(&mut self) -> EngineResult<CsvReport> {
        self.with(|reader, rows| reader.finish(rows))?;
        let report = self.reader.report().clone();
        self.fits &= !report.widened.iter().any(Option::is_some);
        Ok(report)
    }
}

/// Callback for parsed rows.
type Rows<'a> = dyn FnMut(RecordBatch) -> EngineResult<()> + 'a;

impl Reader for CsvRows {
    type Failure = EngineError;

    fn read(&mut self, bytes: &[u8]) -> EngineResult<()> {
        self.with(|reader, rows| reader.feed(bytes, rows))
    }

    fn rows(&self) -> u64 {
        self.rows
    }
}

impl CsvAppender {
    /// Opens an appender; `spec` is the JSON of an [`AppenderSpec`].
    pub(crate) fn open(database: &Arc<Database>, spec: &[u8]) -> EngineResult<Self> {
        let spec: AppenderSpec = given(spec, "appender")?;
        let csv = &spec.csv;
        let snapshot = database.snapshot()?;
        let existing = snapshot.table(&spec.table);
        let id = existing.as_ref().map(|table| table.schema().id);
        if let Some(form) = id.and_then(|id| IncrementalView::form_of(&snapshot, id)) {
            let message = format!("cannot modify {} [view={}]", form.name(), spec.table);
            return Err(EngineError::new(ErrorCode::NotSupported, message));
        }
        let target = bulk_target(&spec, csv, existing.as_deref(), database.table_defaults)?;
        let mut writer = Writer::new(database);
        let (place, schema) = writer.staged(target)?;
        let sink = RowSink::new(database, Target::Commit(writer, place));
        let rows = CsvRows::new(database, csv, (&schema, &sink))?;
        let feed = Feed::new(database, QUEUE_BYTES, rows);
        Ok(Self { database: Arc::clone(database), schema, feed, sink })
    }

    /// Queues bytes; resolves when the queue has space.
    pub(crate) async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        let progress = self.feed.write(chunk).await?;
        if progress.ended.is_some() {
            let failure = self.feed.abort().await?.unwrap_or_else(ended);
            return self.released(Err(failure)).await;
        }
        Ok(progress)
    }

    /// Ends the current input and begins another in the same commit. `csv` is the JSON of a
    /// [`CsvTextSpec`]. Returns the report on the ended input.
    pub(crate) async fn next_text(&self, csv: &[u8]) -> EngineResult<TextReport> {
        self.database.check_open()?;
        let csv: CsvTextSpec = given(csv, "text")?;
        let next = CsvRows::new(&self.database, &csv, (&self.schema, &self.sink))?;
        let report = self.feed.then(move |reader| {
            let rows = reader.as_mut().ok_or_else(ended)?;
            let report = rows.finish()?;
            *rows = CsvRows { rows: rows.rows, fits: rows.fits, ..next };
            Ok(report)
        });
        self.released(report.await?).await.map(text_report)
    }

    /// Parses the remaining bytes and commits. The rows are then visible and as durable as
    /// configured.
    pub(crate) async fn finish(&self) -> EngineResult<AppendReport> {
        let report = self.feed.then(|reader| {
            let mut rows = reader.take().ok_or_else(ended)?;
            let report = rows.finish()?;
            if !rows.fits {
                return Err(incomplete());
            }
            rows.sink.commit()?;
            Ok(report)
        });
        let report = self.released(report.await?).await?;
        let snapshot = self.database.snapshot()?;
        let name = &self.schema.name;
        let table = snapshot.table(name).ok_or_else(|| {
            let message = format!("table does not exist [table={name}]");
            EngineError::new(ErrorCode::TableNotFound, message)
        })?;
        Ok(AppendReport { text: text_report(report), table: describe_table(&table) })
    }

    /// Discards all rows if the result is an error; then returns the result.
    async fn released<T>(&self, done: EngineResult<T>) -> EngineResult<T> {
        if done.is_err() {
            Arc::clone(&self.sink).given_up().await?;
        }
        done
    }

    /// Discards all received data.
    pub(crate) async fn abort(&self) -> EngineResult<()> {
        let failure = self.feed.abort().await?;
        Arc::clone(&self.sink).given_up().await?;
        match failure {
            Some(error) if error.code == ErrorCode::Internal => Err(error),
            _ => Ok(()),
        }
    }
}

fn bulk_target(
    spec: &AppenderSpec,
    csv: &CsvTextSpec,
    existing: Option<&TableSnapshot>,
    defaults: TableDefaults,
) -> EngineResult<BulkTarget> {
    match existing {
        Some(table) if !spec.overwrite => Ok(BulkTarget::Existing(table.schema().id)),
        Some(table) => Ok(BulkTarget::Replace {
            old: table.schema().id,
            schema: new_schema(spec, csv, defaults)?,
        }),
        None if spec.create => Ok(BulkTarget::Create(new_schema(spec, csv, defaults)?)),
        None => Err(EngineError::new(
            ErrorCode::TableNotFound,
            format!("table does not exist [table={}]", spec.table),
        )),
    }
}

fn new_schema(
    spec: &AppenderSpec,
    csv: &CsvTextSpec,
    defaults: TableDefaults,
) -> EngineResult<TableSchema> {
    let partition_by = match spec.partition_by.as_deref() {
        None => PartitionBy::None,
        Some(name) => PartitionBy::parse(name).ok_or_else(|| {
            EngineError::new(ErrorCode::InvalidValue, "invalid partitionBy".to_owned())
        })?,
    };
    let mut builder = TableBuilder::new(&spec.table).defaults(defaults);
    builder = builder.partition_by(partition_by);
    for column in &csv.columns {
        builder = builder.column(&column.name, parse_type(&column.type_name)?);
    }
    if let Some(timestamp) = &spec.timestamp {
        builder = builder.timestamp(timestamp);
    }
    if let Some(rows) = spec.max_uncommitted_rows {
        builder = builder.max_uncommitted_rows(rows);
    }
    if let Some(micros) = spec.o3_max_lag_micros {
        builder = builder.o3_max_lag_micros(micros);
    }
    let mut schema = builder.build()?;
    // As with CREATE TABLE, a partitioned table uses the WAL.
    schema.wal = schema.partition_by != PartitionBy::None;
    Ok(schema)
}

fn csv_spec(
    csv: &CsvTextSpec,
    schema: &TableSchema,
    most_line_bytes: usize,
) -> EngineResult<CsvSpec> {
    let target: Vec<Field> =
        schema.columns.iter().map(|column| Field::new(&column.name, column.sql_type)).collect();
    let column = |column: &CsvColumnSpec| {
        let found = target.iter().position(|field| identifier::same(&field.name, &column.name));
        let target = found.ok_or_else(|| {
            let message = format!("invalid column [column={}]", column.name);
            EngineError::new(ErrorCode::ColumnNotFound, message)
        })?;
        let (index, pattern) = (column.index, column.pattern.clone());
        let required = schema.columns[target].not_null;
        let guessed = column.guessed.unwrap_or(false);
        let null_texts = column.null_texts.clone().unwrap_or_default();
        Ok(CsvColumn { index, target, pattern, required, guessed, null_texts })
    };
    let columns: Vec<CsvColumn> = csv.columns.iter().map(column).collect::<EngineResult<_>>()?;
    Ok(CsvSpec {
        delimiter: delimiter(csv)?,
        header: csv.header,
        atomicity: csv.atomicity,
        skip_extra_values: csv.skip_extra_values,
        max_line_bytes: most_line_bytes,
        line_fields: columns.iter().map(|column| column.index + 1).max().unwrap_or(0),
        columns,
        timestamp: schema.timestamp,
        target,
    })
}

fn incomplete() -> EngineError {
    EngineError::internal("a text file was not reread with wider types")
}
