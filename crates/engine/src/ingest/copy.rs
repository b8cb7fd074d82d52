//! COPY … FROM STDIN. A prepared INSERT determines the value conversions, the transaction block and
//! the defaults of the other columns. Outside a block, a COPY is staged like an import and forms
//! one commit. Inside a block, its rows wait for COMMIT.

use std::sync::Arc;

use tidemark_border::{AppendProgress, CopyFormat, CopyMistake, CopyReply, CopySpec};
use tidemark_ingest as ingest;
use tidemark_ingest::{CopyBatch, CopyColumn, CopyFailure, CopyReader, CopyResult, LineMarks};
use tidemark_planner::{BoundInsert, InsertSource, InsertTemplate};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use super::arrow_stream::ArrowStreams;
use super::feed::{Feed, Reader, ended};
use super::sink::{RowSink, Target};
use crate::database::{Database, given};
use crate::ingest::transaction::Transaction;
use crate::ingest::writer::Writer;
use crate::runtime::guard;

/// Maximum number of bytes queued for the reader.
const QUEUE_BYTES: usize = 4 << 20;

/// Destination of a COPY's rows.
pub struct CopyTarget {
    /// An INSERT in which every value is a parameter.
    pub(crate) insert: BoundInsert,
    /// The transaction block, if any.
    pub(crate) block: Option<Arc<Transaction>>,
}

/// Receives the data of one COPY.
pub(crate) struct CopyAppender {
    feed: Feed<CopyRows>,
    sink: Arc<RowSink>,
}

/// Converts the data into table rows.
struct CopyRows {
    reader: Format,
    insert: BoundInsert,
    sink: Arc<RowSink>,
}

/// Parses the data.
enum Format {
    /// Lines or binary values.
    Values(Box<CopyReader>),
    Arrow(ArrowStreams),
}

impl Format {
    fn rows(&self) -> u64 {
        match self {
            Self::Values(reader) => reader.rows(),
            Self::Arrow(streams) => streams.rows(),
        }
    }
}

impl CopyRows {
    fn take(insert: &BoundInsert, sink: &Arc<RowSink>, batch: &CopyBatch) -> CopyResult {
        let template = template(insert)?;
        let rows =
            template.columns(&batch.columns).map_err(|error| located(template, batch, error))?;
        Ok(sink.push(rows)?)
    }

    fn finish(self) -> Result<u64, CopyFailure> {
        let Self { mut reader, insert, sink } = self;
        match &mut reader {
            Format::Values(reader) => {
                reader.finish(&mut |batch| Self::take(&insert, &sink, &batch))?;
            }
            // Nothing to finish, because each chunk contained a complete stream.
            Format::Arrow(_) => {}
        }
        if reader.rows() > 0 {
            failpoint::hit("engine.commit")?;
        }
        sink.commit()?;
        Ok(reader.rows())
    }
}

impl Reader for CopyRows {
    type Failure = CopyFailure;

    fn read(&mut self, bytes: &[u8]) -> CopyResult {
        let Self { reader, insert, sink } = self;
        let mut take = |batch: CopyBatch| Self::take(insert, sink, &batch);
        match reader {
            Format::Values(reader) => reader.feed(bytes, &mut take),
            Format::Arrow(streams) => streams.feed(bytes.to_vec(), &mut take),
        }
    }

    fn rows(&self) -> u64 {
        self.reader.rows()
    }
}

impl CopyAppender {
    /// Opens an appender; `spec` is the JSON of a [`CopySpec`].
    pub(crate) fn open(
        database: &Arc<Database>,
        CopyTarget { insert, block }: CopyTarget,
        spec: &[u8],
    ) -> EngineResult<Self> {
        let spec: CopySpec = given(spec, "appender")?;
        let reader = reader_of(&spec, template(&insert)?)?;
        let schema = insert.table.schema();
        let target = if let Some(block) = block {
            Target::Block(block, Arc::clone(schema))
        } else {
            let mut writer = Writer::new(database);
            let table = writer.table(schema);
            Target::Commit(writer, table)
        };
        let sink = RowSink::new(database, target);
        let rows = CopyRows { reader, insert, sink: Arc::clone(&sink) };
        Ok(Self { feed: Feed::new(database, QUEUE_BYTES, rows), sink })
    }

    /// Queues bytes; resolves when the queue has space. Discards bytes that follow an error.
    pub(crate) async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        self.feed.write(chunk).await
    }

    /// Reads the remaining data and commits. Returns the error if the data is invalid.
    pub(crate) async fn finish(&self) -> EngineResult<CopyReply> {
        let finished = self.feed.then(|rows| rows.take().ok_or_else(ended)?.finish()).await?;
        let failure = match finished {
            Ok(rows) => return Ok(CopyReply { rows, failure: None }),
            Err(failure) => failure,
        };
        Arc::clone(&self.sink).given_up().await?;
        let CopyFailure { line: Some(line), error } = failure else {
            return Err(*failure.error);
        };
        let EngineError { code, message, detail, hint, .. } = guard::outward(*error);
        let code = format!("{code:?}");
        let failure = Some(CopyMistake { line, code, message, detail, hint });
        Ok(CopyReply { rows: 0, failure })
    }

    /// Discards all data. No row is written after the returned future resolves.
    pub(crate) async fn abort(&self) -> EngineResult<()> {
        self.feed.abort().await?;
        Arc::clone(&self.sink).given_up().await
    }
}

fn template(insert: &BoundInsert) -> EngineResult<&InsertTemplate> {
    match &insert.source {
        InsertSource::Template(template) => Ok(template),
        _ => Err(EngineError::internal("COPY is missing the parameters of its INSERT")),
    }
}

/// Whether a single row caused the error and can therefore be located.
fn is_of_a_row(code: ErrorCode) -> bool {
    use ErrorCode::{
        InvalidBinary, InvalidEncoding, InvalidValue, NullValue, ResourceLimit, TypeMismatch,
    };
    matches!(
        code,
        InvalidBinary | InvalidEncoding | InvalidValue | NullValue | ResourceLimit | TypeMismatch
    )
}

/// Finds the first row that cannot be converted, and returns its error.
fn located(template: &InsertTemplate, batch: &CopyBatch, error: EngineError) -> CopyFailure {
    if !is_of_a_row(error.code) {
        return error.into();
    }
    let failure =
        |start: usize, rows: usize| template.columns(&batch.slice(start, rows).columns).err();
    let (mut good, mut bad) = (0, batch.lines.len());
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if failure(good, middle - good).is_some() {
            bad = middle;
        } else {
            good = middle;
        }
    }
    let error = failure(good, 1).unwrap_or(error);
    CopyFailure { line: batch.lines.get(good).copied(), error: Box::new(error) }
}

fn reader_of(spec: &CopySpec, template: &InsertTemplate) -> EngineResult<Format> {
    let targets = template.targets();
    if targets.len() != spec.columns.len() {
        return Err(EngineError::internal("the columns of COPY do not match its INSERT"));
    }
    let column = |((name, sql_type), how): ((String, _), &tidemark_border::CopyColumnSpec)| {
        let (oid, force_not_null, force_null) = (how.oid, how.force_not_null, how.force_null);
        CopyColumn { name, sql_type, oid, force_not_null, force_null }
    };
    let marks = || -> EngineResult<LineMarks> {
        let null = spec.null_text.as_bytes().to_vec();
        Ok(LineMarks { delimiter: mark(spec.delimiter)?, null })
    };
    let format = match spec.format {
        CopyFormat::Text => ingest::CopyFormat::Text(marks()?),
        CopyFormat::Csv => {
            let (quote, escape) = (mark(spec.quote)?, mark(spec.escape)?);
            ingest::CopyFormat::Csv { marks: marks()?, quote, escape }
        }
        CopyFormat::Binary => ingest::CopyFormat::Binary,
        CopyFormat::Arrow => {
            let names = targets.into_iter().map(|(name, _)| name).collect();
            return Ok(Format::Arrow(ArrowStreams::new(names)));
        }
    };
    let columns = targets.into_iter().zip(&spec.columns).map(column).collect();
    let spec = ingest::CopySpec { format, header: spec.header, columns };
    Ok(Format::Values(Box::new(CopyReader::new(spec))))
}

fn mark(character: char) -> EngineResult<u8> {
    u8::try_from(character).ok().filter(u8::is_ascii).ok_or_else(|| {
        let message = format!("COPY requires an ASCII character, found '{character}'");
        EngineError::new(ErrorCode::InvalidValue, message)
    })
}
