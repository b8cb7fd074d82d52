//! Bytes of CSV on their way into a table.
//!
//! Two threads work behind a bounded queue: one parses bytes into typed batches, one writes the
//! batches into staged segments. Nothing is visible before `finish`, nothing stays after `abort`,
//! an error or a dropped appender. Several texts may follow each other into the same table: they
//! are read each in its own way, and committed together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use tidemark_border::{
    AppendProgress, AppendReport, AppenderSpec, CsvColumnSpec, CsvTextSpec, TextReport,
    WidenedColumn,
};
use tidemark_catalog::{IncrementalView, TableBuilder};
use tidemark_ingest::{CsvColumn, CsvReader, CsvReport, CsvSpec, Widened};
use tidemark_planner::{Defaults, Planner};
use tidemark_storage::{BulkTarget, TableDefaults, TableSchema, TableSnapshot};
use tidemark_types::{
    EngineError, EngineResult, ErrorCode, Field, PartitionBy, failpoint, identifier,
};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::database::{Database, describe_table, given};
use crate::files::csv_text::{delimiter, parse_type};
use crate::ingest::writer::{Place, Writer};
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;

/// Bytes that may wait for the parser.
const QUEUE_BYTES: usize = 8 * 1024 * 1024;
/// Batches that may wait for the writer.
const BATCHES_AHEAD: usize = 4;

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

/// Takes bytes of CSV and writes rows of one table.
pub(crate) struct CsvAppender {
    database: Arc<Database>,
    schema: TableSchema,
    room: Arc<Semaphore>,
    bytes: AtomicU64,
    rows: Arc<AtomicU64>,
    pipeline: Mutex<Option<Pipeline>>,
}

struct Pipeline {
    chunks: mpsc::UnboundedSender<Message>,
    parser: JoinHandle<EngineResult<CsvReport>>,
    writer: JoinHandle<EngineResult<()>>,
}

enum Message {
    Bytes(Vec<u8>),
    /// The text has ended: tell what was read of it, and read on in another way.
    Text(Box<Text>, oneshot::Sender<CsvReport>),
    /// Everything came: commit. A queue that closes without it is an abort.
    End,
}

/// How the bytes of one text become rows of the table.
struct Text {
    reader: CsvReader,
    defaults: Defaults,
}

impl Text {
    fn new(database: &Database, csv: &CsvTextSpec, schema: &TableSchema) -> EngineResult<Self> {
        let csv = csv_spec(csv, schema, database.most_line_bytes)?;
        let given: Vec<usize> = csv.columns.iter().map(|column| column.target).collect();
        let (snapshot, context) = (database.snapshot()?, database.bind_context(""));
        let defaults = Planner::defaults(schema, &given, &snapshot, &context)?;
        Ok(Self { reader: CsvReader::new(csv)?, defaults })
    }

    fn feed(&mut self, bytes: &[u8], send: &mut RowSink<'_>) -> EngineResult<()> {
        let defaults = &self.defaults;
        self.reader.feed(bytes, &mut |batch| send(filled(defaults, batch)?))
    }

    fn finish(&mut self, send: &mut RowSink<'_>) -> EngineResult<CsvReport> {
        let defaults = &self.defaults;
        self.reader.finish(&mut |batch| send(filled(defaults, batch)?))?;
        Ok(self.reader.report().clone())
    }
}

/// Takes rows on their way to the writer.
type RowSink<'a> = dyn FnMut(RecordBatch) -> EngineResult<()> + 'a;

fn filled(defaults: &Defaults, batch: RecordBatch) -> EngineResult<RecordBatch> {
    if defaults.is_empty() { Ok(batch) } else { defaults.fill(&batch) }
}

enum Rows {
    Batch(RecordBatch),
    End,
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
        let text = Text::new(database, csv, &schema)?;
        let rows = Arc::new(AtomicU64::new(0));
        let room = Arc::new(Semaphore::new(QUEUE_BYTES));
        let pipeline = Pipeline::start(database, text, (writer, place), &rows, &room);
        Ok(Self {
            database: Arc::clone(database),
            schema,
            room,
            bytes: AtomicU64::new(0),
            rows,
            pipeline: Mutex::new(Some(pipeline)),
        })
    }

    /// Queues bytes; resolves when there was room for them.
    pub(crate) async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        self.database.check_open()?;
        let length = chunk.len();
        // A chunk larger than the queue takes the whole queue.
        let wanted = u32::try_from(length.min(QUEUE_BYTES)).unwrap_or(u32::MAX);
        match self.room.acquire_many(wanted).await {
            Ok(permit) => permit.forget(), // the parser gives the room back
            Err(_) => return Err(self.failure().await),
        }
        if !self.send(Message::Bytes(chunk))? {
            return Err(self.failure().await);
        }
        self.database.metrics.bytes_imported.add(length as u64);
        let bytes = self.bytes.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
        let rows = self.rows.load(Ordering::Relaxed);
        Ok(AppendProgress { bytes, rows, ended: None })
    }

    /// Ends the text that came so far and begins another one, which goes into the same commit;
    /// `csv` is the JSON of a [`CsvTextSpec`]. Tells what was read of the one that ended.
    pub(crate) async fn next_text(&self, csv: &[u8]) -> EngineResult<TextReport> {
        self.database.check_open()?;
        let csv: CsvTextSpec = given(csv, "text")?;
        let text = Text::new(&self.database, &csv, &self.schema)?;
        let (teller, report) = oneshot::channel();
        let sent = self.send(Message::Text(Box::new(text), teller))?;
        match report.await {
            Ok(report) if sent => Ok(text_report(report)),
            _ => Err(self.failure().await),
        }
    }

    /// Whether the parser still receives messages.
    fn send(&self, message: Message) -> EngineResult<bool> {
        match self.pipeline.lock().as_ref() {
            Some(pipeline) => Ok(pipeline.chunks.send(message).is_ok()),
            None => Err(ended()),
        }
    }

    /// Parses the rest and commits; the rows are then durable as configured, and visible.
    pub(crate) async fn finish(&self) -> EngineResult<AppendReport> {
        let pipeline = self.pipeline.lock().take().ok_or_else(ended)?;
        // A closed queue means that the parser failed; its error is the answer.
        let _ = pipeline.chunks.send(Message::End);
        let report = pipeline.join().await?;
        let snapshot = self.database.snapshot()?;
        let name = &self.schema.name;
        let table = snapshot.table(name).ok_or_else(|| {
            let message = format!("table does not exist [table={name}]");
            EngineError::new(ErrorCode::TableNotFound, message)
        })?;
        Ok(AppendReport { text: text_report(report), table: describe_table(&table) })
    }

    /// Forgets everything that came.
    pub(crate) async fn abort(&self) -> EngineResult<()> {
        let Some(pipeline) = self.pipeline.lock().take() else { return Ok(()) };
        match pipeline.join().await {
            Err(error) if error.code == ErrorCode::Internal => Err(error),
            _ => Ok(()),
        }
    }

    /// Why the pipeline stopped.
    async fn failure(&self) -> EngineError {
        let pipeline = self.pipeline.lock().take();
        match pipeline {
            Some(pipeline) => pipeline.join().await.err().unwrap_or_else(ended),
            None => ended(),
        }
    }
}

impl Pipeline {
    fn start(
        database: &Arc<Database>,
        text: Text,
        writer: (Writer, Place),
        rows: &Arc<AtomicU64>,
        room: &Arc<Semaphore>,
    ) -> Self {
        let (chunks, incoming) = mpsc::unbounded_channel(); // bounded in bytes by `room`
        let (batches, outgoing) = mpsc::channel(BATCHES_AHEAD);
        let (rows, room) = (Arc::clone(rows), Arc::clone(room));
        let parser = database.handle().spawn_blocking(move || {
            let result = guard::catch("parser", || {
                let mut send = |batch: RecordBatch| {
                    rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                    batches.blocking_send(Rows::Batch(batch)).map_err(|_| aborted())
                };
                let report = parse(text, incoming, &mut send, &room)?;
                batches.blocking_send(Rows::End).map_err(|_| aborted())?;
                Ok(report)
            });
            room.close(); // wakes a writer that waits for room that no parser gives back any more
            result
        });
        let writer = database
            .handle()
            .spawn_blocking(move || guard::catch("writer", || write(writer, outgoing)));
        Self { chunks, parser, writer }
    }

    /// Closes the queue and waits for both threads. A writer's error explains why the parser's
    /// channel was closed, so it comes first.
    async fn join(self) -> EngineResult<CsvReport> {
        drop(self.chunks);
        let internal = |error: tokio::task::JoinError| EngineError::internal(error.to_string());
        let parsed = self.parser.await.map_err(internal)?;
        let written = self.writer.await.map_err(internal)?;
        match (parsed, written) {
            (Err(parse), Err(write)) if write.code == ErrorCode::Cancelled => Err(parse),
            (_, Err(write)) => Err(write),
            (parsed, Ok(())) => parsed,
        }
    }
}

fn parse(
    mut text: Text,
    mut incoming: mpsc::UnboundedReceiver<Message>,
    send: &mut RowSink<'_>,
    room: &Semaphore,
) -> EngineResult<CsvReport> {
    let mut is_whole = true;
    loop {
        match incoming.blocking_recv() {
            None => return Err(aborted()),
            Some(Message::Bytes(bytes)) => {
                failpoint::hit("engine.parser")?;
                text.feed(&bytes, send)?;
                room.add_permits(bytes.len().min(QUEUE_BYTES));
            }
            Some(Message::Text(next, teller)) => {
                let report = text.finish(send)?;
                is_whole &= !report.widened.iter().any(Option::is_some);
                // A receiver that is gone has given up the import.
                let _ = teller.send(report);
                text = *next;
            }
            Some(Message::End) => {
                let report = text.finish(send)?;
                is_whole &= !report.widened.iter().any(Option::is_some);
                return if is_whole { Ok(report) } else { Err(incomplete()) };
            }
        }
    }
}

fn write(
    (mut writer, place): (Writer, Place),
    mut incoming: mpsc::Receiver<Rows>,
) -> EngineResult<()> {
    while let Some(rows) = incoming.blocking_recv() {
        failpoint::hit("engine.writer")?;
        match rows {
            Rows::Batch(batch) => writer.push(place, batch)?,
            Rows::End => return writer.commit(&CancelToken::default()).map(drop),
        }
    }
    Err(aborted())
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
    // As with CREATE TABLE: what is partitioned is a WAL table.
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
        most_line_bytes,
        line_fields: columns.iter().map(|column| column.index + 1).max().unwrap_or(0),
        columns,
        timestamp: schema.timestamp,
        target,
    })
}

fn aborted() -> EngineError {
    EngineError::new(ErrorCode::Cancelled, "the import was given up")
}

fn incomplete() -> EngineError {
    EngineError::internal("a text whose types were guessed too narrow is not read again")
}

fn ended() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "the appender has ended")
}
