//! Line protocol. A message's rows remain in memory until they are committed together.

use std::sync::Arc;

use parking_lot::Mutex;
use tidemark_border::{AppendProgress, LinesRead, LinesSpec, RowsReply};
use tidemark_ingest::{LineFailure, LineOptions, LineReader, Refusal};
use tidemark_types::EngineResult;

use super::feed::{Feed, Reader, ended};
use crate::database::{Database, given};
use crate::ingest::planned_rows::{NewTables, PlannedRows, SnapshotTargets};

/// Maximum number of bytes queued for the parser.
const QUEUE_BYTES: usize = 2 * 1024 * 1024;

/// Receives line protocol bytes and writes the rows into the tables that the lines name.
pub(crate) struct LineAppender {
    database: Arc<Database>,
    new_tables: NewTables,
    feed: Feed<LineRows>,
    stage: Mutex<Stage>,
}

/// Progress of one message.
enum Stage {
    Receiving,
    Planned(PlannedRows, LinesRead),
    Ended,
}

struct LineRows {
    reader: LineReader,
    targets: SnapshotTargets,
}

impl Reader for LineRows {
    type Failure = LineFailure;

    fn read(&mut self, bytes: &[u8]) -> Result<(), LineFailure> {
        self.reader.feed(bytes, &mut self.targets)
    }

    fn rows(&self) -> u64 {
        self.reader.rows()
    }
}

impl LineAppender {
    /// Opens an appender; `spec` is the JSON of a [`LinesSpec`].
    pub(crate) fn open(database: &Arc<Database>, spec: &[u8]) -> EngineResult<Self> {
        let spec: LinesSpec = given(spec, "appender")?;
        let new_tables = NewTables::new(&spec.partition_by)?;
        let reader = LineReader::new(options(database, &spec));
        let targets = SnapshotTargets::new(database.snapshot()?);
        let feed = Feed::new(database, QUEUE_BYTES, LineRows { reader, targets });
        let (database, stage) = (Arc::clone(database), Mutex::new(Stage::Receiving));
        Ok(Self { database, new_tables, feed, stage })
    }

    /// Queues bytes; resolves when the queue has space. Discards bytes that follow a malformed
    /// line.
    pub(crate) async fn write(&self, chunk: Vec<u8>) -> EngineResult<AppendProgress> {
        if !matches!(&*self.stage.lock(), Stage::Receiving) {
            return Err(ended());
        }
        self.feed.write(chunk).await
    }

    /// The first call reports the changes that the rows would cause. The next call commits the
    /// rows. If tables have changed in the meantime, that call instead reports the new changes.
    pub(crate) async fn finish(&self) -> EngineResult<RowsReply> {
        let stage = std::mem::replace(&mut *self.stage.lock(), Stage::Ended);
        let (planned, reply, read) = match stage {
            Stage::Ended => return Err(ended()),
            Stage::Planned(planned, read) => {
                let (planned, reply) = planned.committed().await?;
                (planned, reply, read)
            }
            Stage::Receiving => {
                let parsed = self.feed.then(|place| {
                    let LineRows { mut reader, mut targets } = place.take().ok_or_else(ended)?;
                    reader.finish(&mut targets)?;
                    let (lines, bytes) = reader.ended();
                    Ok((reader.into_tables()?, LinesRead { bytes, lines }))
                });
                let (rows, read) = match parsed.await? {
                    Ok(parsed) => parsed,
                    Err(LineFailure::Refused(refusal)) => return Ok(refused(refusal)),
                    Err(LineFailure::Failed(error)) => return Err(error),
                };
                let planned = PlannedRows::new(&self.database, self.new_tables, rows)?;
                let reply = planned.report();
                (planned, reply, read)
            }
        };
        if matches!(reply, RowsReply::Planned { .. }) {
            *self.stage.lock() = Stage::Planned(planned, read);
        }
        Ok(with_lines(reply, read))
    }

    /// Discards all received data.
    pub(crate) async fn abort(&self) -> EngineResult<()> {
        *self.stage.lock() = Stage::Ended;
        match self.feed.abort().await? {
            Some(LineFailure::Failed(error)) => Err(error),
            Some(LineFailure::Refused(_)) | None => Ok(()),
        }
    }
}

fn options(database: &Database, spec: &LinesSpec) -> LineOptions {
    LineOptions {
        precision: spec.precision,
        create_tables: spec.create_tables,
        create_columns: spec.create_columns,
        max_columns: database.storage.options().max_columns,
        max_line_bytes: spec.max_line_bytes,
        max_pending_bytes: spec.max_pending_bytes,
        is_continued: spec.is_continued,
    }
}

/// Adds the number of lines and bytes read to a planned reply.
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
