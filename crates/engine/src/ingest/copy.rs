//! The data of COPY … FROM STDIN on their way into the table of a prepared INSERT, which decides
//! what its values become, whose block they belong to and what else its rows get.
//!
//! Two steps follow each other behind queues: one reads bytes into rows, one writes these. Each has
//! a thread only while there is something to do, so that clients which send nothing hold none.
//! Alone, a COPY is staged as an import is, and one commit; in a block its rows wait there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use tidemark_border::{AppendProgress, CopyFormat as Format, CopyMistake, CopyReply, CopySpec};
use tidemark_ingest as ingest;
use tidemark_ingest::{CopyBatch, CopyColumn, CopyFailure, CopyReader, CopyResult, LineMarks};
use tidemark_planner::{BoundInsert, InsertSource, InsertTemplate};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
use tokio::sync::Semaphore;

use crate::database::{Database, given};
use crate::ingest::transaction::Transaction;
use crate::ingest::writer::{Place, Writer};
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;

/// Bytes that may wait to be read.
const QUEUE_BYTES: usize = 4 << 20;
/// Batches that may wait to be written.
const BATCHES_AHEAD: usize = 4;

/// Where the rows of a COPY go.
pub struct CopyTarget {
    /// An INSERT of parameters alone.
    pub(crate) insert: BoundInsert,
    /// The block that it belongs to.
    pub(crate) block: Option<Arc<Transaction>>,
}

/// Takes the data of one COPY.
pub(crate) struct CopyAppender {
    work: Arc<Work>,
}

struct Work {
    database: Arc<Database>,
    insert: BoundInsert,
    room: Semaphore,
    bytes: AtomicU64,
    rows: AtomicU64,
    /// Whether there is a failure, or an end.
    is_over: AtomicBool,
    failure: Mutex<Option<CopyFailure>>,
    /// What waits to be read.
    chunks: Mutex<Queue<Vec<u8>>>,
    reader: Mutex<CopyReader>,
    /// What waits to be written.
    batches: Mutex<Queue<RecordBatch>>,
    target: Mutex<Option<Target>>,
}

/// What waits for a step, and whether that is being done.
struct Queue<T> {
    waiting: VecDeque<T>,
    is_worked_on: bool,
}

impl<T> Queue<T> {
    fn new() -> Mutex<Self> {
        Mutex::new(Self { waiting: VecDeque::new(), is_worked_on: false })
    }

    /// Adds to it; whether a step has to begin.
    fn add(&mut self, one: T) -> bool {
        self.waiting.push_back(one);
        !std::mem::replace(&mut self.is_worked_on, true)
    }

    /// The next; where there is none, the step has ended.
    fn next(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        self.is_worked_on = next.is_some();
        next
    }
}

/// Where rows go.
enum Target {
    Alone(Writer, Place),
    Block(Arc<Transaction>),
}

impl CopyAppender {
    /// `spec` is the JSON of a [`CopySpec`].
    pub(crate) fn open(
        database: &Arc<Database>,
        CopyTarget { insert, block }: CopyTarget,
        spec: &[u8],
    ) -> EngineResult<Self> {
        let spec: CopySpec = given(spec, "appender")?;
        let reader = CopyReader::new(reader_spec(&spec, template(&insert)?)?);
        let target = if let Some(block) = block {
            Target::Block(block)
        } else {
            let mut writer = Writer::new(database);
            let place = writer.table(insert.table.schema());
            Target::Alone(writer, place)
        };
        let work = Work {
            database: Arc::clone(database),
            insert,
            room: Semaphore::new(QUEUE_BYTES),
            bytes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
            chunks: Queue::new(),
            reader: Mutex::new(reader),
            batches: Queue::new(),
            target: Mutex::new(Some(target)),
        };
        Ok(Self { work: Arc::new(work) })
    }

    /// Queues bytes; resolves when there was room for them. Those behind a mistake are forgotten.
    pub(crate) async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        let work = &self.work;
        work.database.check_open()?;
        let length = chunk.len();
        let wanted = u32::try_from(length.min(QUEUE_BYTES)).unwrap_or(u32::MAX);
        if let Ok(permit) = work.room.acquire_many(wanted).await {
            permit.forget(); // the reader gives the room back
            if work.chunks.lock().add(chunk) {
                let work = Arc::clone(work);
                self.work.database.handle().spawn_blocking(move || work.read_waiting());
            }
        }
        work.database.metrics.bytes_imported.add(length as u64);
        let bytes = work.bytes.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
        let rows = work.rows.load(Ordering::Relaxed);
        let ended = work.is_over.load(Ordering::Acquire).then_some(true);
        Ok(AppendProgress { bytes, rows, ended })
    }

    /// Reads the rest and commits, or tells what is wrong with the data.
    pub(crate) async fn finish(&self) -> EngineResult<CopyReply> {
        let work = Arc::clone(&self.work);
        guard::run_blocking("copy", move || {
            let outcome = match work.finish() {
                Ok(rows) => return Ok(CopyReply { rows, failure: None }),
                Err(failure) => failure,
            };
            work.give_up();
            let CopyFailure { line: Some(line), error } = outcome else {
                return Err(*outcome.error);
            };
            let EngineError { code, message, detail, hint, .. } = guard::outward(*error);
            let code = format!("{code:?}");
            let failure = Some(CopyMistake { line, code, message, detail, hint });
            Ok(CopyReply { rows: 0, failure })
        })
        .await
    }

    /// Forgets everything that came: no row of it goes anywhere after this has resolved.
    pub(crate) async fn abort(&self) -> EngineResult<()> {
        let work = Arc::clone(&self.work);
        work.fail(ended().into());
        guard::run_blocking("copy", move || {
            work.give_up();
            Ok(())
        })
        .await
    }
}

impl Work {
    /// Reads what waits, as long as there is something.
    fn read_waiting(self: &Arc<Self>) {
        let outcome = guard::catch("parser", || {
            let mut reader = self.reader.lock();
            loop {
                let chunk = self.chunks.lock().next();
                let Some(chunk) = chunk else { return Ok(()) };
                self.read(&mut reader, &chunk);
            }
        });
        if let Err(panicked) = outcome {
            self.fail(panicked.into());
        }
    }

    fn read(self: &Arc<Self>, reader: &mut CopyReader, chunk: &[u8]) {
        if !self.is_over.load(Ordering::Acquire) {
            let read = failpoint::hit("engine.parser").map_err(CopyFailure::from);
            let read = read.and_then(|()| reader.feed(chunk, &mut |batch| self.take(&batch)));
            self.rows.store(reader.rows(), Ordering::Relaxed);
            if let Err(failure) = read {
                self.fail(failure);
            }
        }
        self.room.add_permits(chunk.len().min(QUEUE_BYTES));
    }

    /// Rows that were read, in the table's columns, wait to be written.
    fn take(self: &Arc<Self>, batch: &CopyBatch) -> CopyResult {
        let template = template(&self.insert)?;
        let rows =
            template.columns(&batch.columns).map_err(|error| located(template, batch, error))?;
        let (begins, waiting) = {
            let mut batches = self.batches.lock();
            (batches.add(rows), batches.waiting.len())
        };
        if begins {
            let work = Arc::clone(self);
            self.database.handle().spawn_blocking(move || work.write_waiting());
        }
        if waiting >= BATCHES_AHEAD {
            // A reader without room writes itself: it waits for no thread that may not come.
            self.write_waiting();
        }
        Ok(())
    }

    /// Writes what waits, in its order, as long as there is something.
    fn write_waiting(&self) {
        let outcome = guard::catch("writer", || {
            let mut target = self.target.lock();
            loop {
                let batch = self.batches.lock().next();
                let Some(batch) = batch else { return Ok(()) };
                if self.is_over.load(Ordering::Acquire) {
                    continue;
                }
                failpoint::hit("engine.writer")?;
                match target.as_mut() {
                    Some(Target::Alone(writer, place)) => writer.push(*place, batch)?,
                    Some(Target::Block(block)) => self.pend(block, batch)?,
                    None => return Err(ended()),
                }
            }
        });
        if let Err(error) = outcome {
            self.fail(error.into());
        }
    }

    /// Rows for the block, all of them with the others of it.
    fn pend(&self, block: &Transaction, batch: RecordBatch) -> EngineResult<()> {
        let mut writer = Writer::new(&self.database);
        let place = writer.table(self.insert.table.schema());
        writer.hold(place, batch)?;
        writer.pend(block).map(drop)
    }

    fn finish(self: &Arc<Self>) -> Result<u64, CopyFailure> {
        let rows = {
            // Held by the reader, as long as something waits.
            let mut reader = self.reader.lock();
            while let Some(chunk) = self.next_chunk() {
                self.read(&mut reader, &chunk);
            }
            self.check()?;
            reader.finish(&mut |batch| self.take(&batch))?;
            reader.rows()
        };
        self.write_waiting();
        self.check()?;
        let target = self.target.lock().take();
        self.is_over.store(true, Ordering::Release);
        match target {
            Some(Target::Alone(writer, _)) if rows > 0 => {
                failpoint::hit("engine.commit")?;
                writer.commit(&CancelToken::default())?;
            }
            Some(_) => {}
            None => return Err(ended().into()),
        }
        Ok(rows)
    }

    fn next_chunk(&self) -> Option<Vec<u8>> {
        self.chunks.lock().waiting.pop_front()
    }

    /// The first failure ends the COPY.
    fn fail(&self, failure: CopyFailure) {
        self.failure.lock().get_or_insert(failure);
        self.is_over.store(true, Ordering::Release);
        self.room.add_permits(QUEUE_BYTES); // nothing more is read
    }

    fn check(&self) -> CopyResult {
        self.failure.lock().take().map_or(Ok(()), Err)
    }

    /// Waits until nothing is done any more, and forgets what there is.
    fn give_up(&self) {
        self.is_over.store(true, Ordering::Release);
        drop(self.reader.lock());
        self.chunks.lock().waiting.clear();
        let target = self.target.lock().take();
        self.batches.lock().waiting.clear();
        drop(target);
    }
}

fn template(insert: &BoundInsert) -> EngineResult<&InsertTemplate> {
    match &insert.source {
        InsertSource::Template(template) => Ok(template),
        _ => Err(EngineError::internal("a COPY without the parameters of its INSERT")),
    }
}

/// Errors of single rows: the row that is wrong can be found.
fn is_of_a_row(code: ErrorCode) -> bool {
    use ErrorCode::{InvalidBinary, InvalidEncoding, InvalidValue, ResourceLimit, TypeMismatch};
    matches!(code, InvalidBinary | InvalidEncoding | InvalidValue | ResourceLimit | TypeMismatch)
}

/// The failure of the first row that does not become one of the table.
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

fn reader_spec(spec: &CopySpec, template: &InsertTemplate) -> EngineResult<ingest::CopySpec> {
    let targets = template.targets();
    if targets.len() != spec.columns.len() {
        return Err(EngineError::internal("a COPY of other columns than its INSERT has"));
    }
    let column = |((name, sql_type), how): ((String, _), &tidemark_border::CopyColumnSpec)| {
        let (oid, force_not_null, force_null) = (how.oid, how.force_not_null, how.force_null);
        CopyColumn { name, sql_type, oid, force_not_null, force_null }
    };
    let marks = || -> EngineResult<LineMarks> {
        let null = spec.null_text.as_bytes().to_vec();
        Ok(LineMarks { delimiter: mark(spec.delimiter)?, null })
    };
    Ok(ingest::CopySpec {
        format: match spec.format {
            Format::Text => ingest::CopyFormat::Text(marks()?),
            Format::Csv => {
                let (quote, escape) = (mark(spec.quote)?, mark(spec.escape)?);
                ingest::CopyFormat::Csv { marks: marks()?, quote, escape }
            }
            Format::Binary => ingest::CopyFormat::Binary,
        },
        header: spec.header,
        columns: targets.into_iter().zip(&spec.columns).map(column).collect(),
    })
}

fn mark(character: char) -> EngineResult<u8> {
    u8::try_from(character).ok().filter(u8::is_ascii).ok_or_else(|| {
        let message = format!("'{character}' of COPY is not an ASCII character");
        EngineError::new(ErrorCode::InvalidValue, message)
    })
}

fn ended() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "the appender has ended")
}
