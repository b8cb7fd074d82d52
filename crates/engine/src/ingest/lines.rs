//! Bytes of the line protocol on their way into tables: one thread parses what a queue brings it,
//! and holds the rows of the message until they are committed together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidemark_border::{AppendProgress, LinesRead, LinesSpec, RowsReply};
use tidemark_ingest::{LineFailure, LineOptions, LineReader, Refusal, TableRows};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::database::{Database, given};
use crate::ingest::planned_rows::{NewTables, PlannedRows, SnapshotTargets};
use crate::runtime::guard;

/// Bytes that may wait for the parser.
const QUEUE_BYTES: usize = 2 * 1024 * 1024;

/// Takes bytes of lines and writes rows of the tables that they name.
pub(crate) struct LineAppender {
    database: Arc<Database>,
    new_tables: NewTables,
    counts: Arc<Counts>,
    room: Arc<Semaphore>,
    stage: Mutex<Stage>,
}

#[derive(Default)]
struct Counts {
    bytes: AtomicU64,
    rows: AtomicU64,
    /// Whether the parser takes no more.
    ended: AtomicBool,
}

/// How far the message is.
enum Stage {
    Receiving(Pipeline),
    Planned(PlannedRows, LinesRead),
    Ended,
}

struct Pipeline {
    chunks: mpsc::UnboundedSender<Message>,
    parser: JoinHandle<EngineResult<Parsed>>,
}

enum Message {
    Bytes(Vec<u8>),
    /// Everything came. A queue that closes without it is an abort.
    End,
}

enum Parsed {
    Rows(Vec<TableRows>, LinesRead),
    Refused(Refusal),
    Aborted,
}

impl LineAppender {
    /// `spec` is the JSON of a [`LinesSpec`].
    pub(crate) fn open(database: &Arc<Database>, spec: &[u8]) -> EngineResult<Self> {
        let spec: LinesSpec = given(spec, "appender")?;
        let new_tables = NewTables::new(&spec.partition_by)?;
        let counts = Arc::<Counts>::default();
        let room = Arc::new(Semaphore::new(QUEUE_BYTES));
        let pipeline = start(database, options(database, &spec), &counts, &room)?;
        Ok(Self {
            database: Arc::clone(database),
            new_tables,
            counts,
            room,
            stage: Mutex::new(Stage::Receiving(pipeline)),
        })
    }

    /// Queues bytes; resolves when there was room for them. Those after a wrong line are forgotten.
    pub(crate) async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        self.database.check_open()?;
        let length = chunk.len();
        let wanted = u32::try_from(length.min(QUEUE_BYTES)).unwrap_or(u32::MAX);
        if let Ok(permit) = self.room.acquire_many(wanted).await {
            permit.forget(); // the parser gives the room back
            match &*self.stage.lock() {
                // A queue that is closed has a parser that ended: its result is the answer.
                Stage::Receiving(pipeline) => drop(pipeline.chunks.send(Message::Bytes(chunk))),
                Stage::Planned(..) | Stage::Ended => return Err(over()),
            }
        }
        self.database.metrics.bytes_imported.add(length as u64);
        let bytes = self.counts.bytes.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
        let rows = self.counts.rows.load(Ordering::Relaxed);
        let ended = self.counts.ended.load(Ordering::Relaxed).then_some(true);
        Ok(AppendProgress { bytes, rows, ended })
    }

    /// The first time, tells what the rows would change; then commits them, or tells it anew.
    pub(crate) async fn finish(&self) -> EngineResult<RowsReply> {
        let stage = std::mem::replace(&mut *self.stage.lock(), Stage::Ended);
        let (planned, read) = match stage {
            Stage::Ended => return Err(over()),
            Stage::Planned(mut planned, read) => {
                let commit = move || {
                    failpoint::hit("engine.commit")?;
                    let reply = planned.commit()?;
                    Ok((planned, reply))
                };
                let (planned, reply) = guard::run_blocking("commit", commit).await?;
                if matches!(reply, RowsReply::Planned { .. }) {
                    *self.stage.lock() = Stage::Planned(planned, read);
                }
                return Ok(with_lines(reply, read));
            }
            Stage::Receiving(Pipeline { chunks, parser }) => {
                let _ = chunks.send(Message::End);
                match joined(parser).await? {
                    Parsed::Refused(refusal) => return Ok(refused(refusal)),
                    Parsed::Aborted => return Err(over()),
                    Parsed::Rows(rows, read) => {
                        (PlannedRows::new(&self.database, self.new_tables, rows)?, read)
                    }
                }
            }
        };
        let report = planned.report();
        *self.stage.lock() = Stage::Planned(planned, read);
        Ok(with_lines(report, read))
    }

    /// Forgets everything that came.
    pub(crate) async fn abort(&self) -> EngineResult<()> {
        let stage = std::mem::replace(&mut *self.stage.lock(), Stage::Ended);
        match stage {
            Stage::Receiving(Pipeline { chunks, parser }) => {
                drop(chunks);
                joined(parser).await.map(drop)
            }
            Stage::Planned(..) | Stage::Ended => Ok(()),
        }
    }
}

async fn joined(parser: JoinHandle<EngineResult<Parsed>>) -> EngineResult<Parsed> {
    parser.await.map_err(|error| EngineError::internal(error.to_string()))?
}

fn options(database: &Database, spec: &LinesSpec) -> LineOptions {
    LineOptions {
        precision: spec.precision,
        create_tables: spec.create_tables,
        create_columns: spec.create_columns,
        most_columns: database.storage.options().max_columns,
        most_line_bytes: spec.most_line_bytes,
        most_held_bytes: spec.most_held_bytes,
        goes_on: spec.goes_on,
    }
}

fn start(
    database: &Arc<Database>,
    options: LineOptions,
    counts: &Arc<Counts>,
    room: &Arc<Semaphore>,
) -> EngineResult<Pipeline> {
    let (chunks, incoming) = mpsc::unbounded_channel(); // bounded in bytes by `room`
    let (counts, room) = (Arc::clone(counts), Arc::clone(room));
    let mut targets = SnapshotTargets::new(database.snapshot()?);
    let parser = database.handle().spawn_blocking(move || {
        let result = guard::catch("parser", || {
            parse(LineReader::new(options), incoming, &mut targets, (&counts, &room))
        });
        counts.ended.store(true, Ordering::Relaxed);
        room.close(); // wakes a writer that waits for room that is given back no more
        result
    });
    Ok(Pipeline { chunks, parser })
}

fn parse(
    mut reader: LineReader,
    mut incoming: mpsc::UnboundedReceiver<Message>,
    targets: &mut SnapshotTargets,
    (counts, room): (&Counts, &Semaphore),
) -> EngineResult<Parsed> {
    loop {
        let read = match incoming.blocking_recv() {
            None => return Ok(Parsed::Aborted),
            Some(Message::Bytes(bytes)) => {
                failpoint::hit("engine.parser")?;
                let read = reader.feed(&bytes, targets);
                room.add_permits(bytes.len().min(QUEUE_BYTES));
                counts.rows.store(reader.rows(), Ordering::Relaxed);
                read
            }
            Some(Message::End) => match reader.finish(targets) {
                Ok(()) => {
                    let (lines, bytes) = reader.ended();
                    let rows = reader.into_tables()?;
                    return Ok(Parsed::Rows(rows, LinesRead { bytes, lines }));
                }
                Err(failure) => Err(failure),
            },
        };
        match read {
            Ok(()) => {}
            Err(LineFailure::Refused(refusal)) => return Ok(Parsed::Refused(refusal)),
            Err(LineFailure::Failed(error)) => return Err(error),
        }
    }
}

/// A plan says what of the lines it has.
fn with_lines(mut reply: RowsReply, lines: LinesRead) -> RowsReply {
    if let RowsReply::Planned { read, .. } = &mut reply {
        *read = Some(lines);
    }
    reply
}

fn refused(Refusal { line, at, reason, is_too_large, target }: Refusal) -> RowsReply {
    let exists = target.as_ref().is_some_and(|target| target.exists);
    let table = target.map(|target| target.table);
    RowsReply::Refused { line, at, reason, is_too_large, table, exists, status: None }
}

fn over() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "the appender has ended")
}
