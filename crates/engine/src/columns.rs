//! Messages of the columnar protocol on their way into tables: an appender that lives as long as
//! its connection, with the dictionary of that, and commits as often as it is asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidemark_border::{AppendProgress, ColumnsSpec, RowsReply};
use tidemark_ingest::{QwpFailure, QwpOptions, QwpReader, QwpRefusal};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::database::{Database, given};
use crate::guard;
use crate::rows::{NewTables, PlannedRows, SnapshotTargets};

/// Bytes of a message up to which it is read at once: handing it to another thread takes longer.
const SMALL_BYTES: usize = 4 * 1024;

/// Takes messages, and writes the rows of as many as are to be one commit.
pub(crate) struct ColumnAppender {
    database: Arc<Database>,
    new_tables: NewTables,
    most_waiting_rows: u64,
    most_held_bytes: usize,
    most_open_bytes: u64,
    share: Share,
    bytes: AtomicU64,
    stage: Mutex<Stage>,
}

/// How far the next commit is.
enum Stage {
    Reading(Box<QwpReader>),
    Planned(Box<QwpReader>, PlannedRows),
    /// A message was wrong: nothing after it is applied.
    Refused(QwpRefusal),
    Ended,
}

impl ColumnAppender {
    /// `spec` is the JSON of a [`ColumnsSpec`].
    pub(crate) fn open(database: &Arc<Database>, spec: &[u8]) -> EngineResult<Self> {
        let spec: ColumnsSpec = given(spec, "appender")?;
        let options = QwpOptions {
            create_tables: spec.create_tables,
            create_columns: spec.create_columns,
            most_columns: database.storage.options().max_columns,
            most_rows: spec.most_rows,
            most_tables: spec.most_tables,
            most_dictionary_bytes: spec.most_dictionary_bytes,
            most_held_bytes: spec.most_held_bytes,
        };
        Ok(Self {
            database: Arc::clone(database),
            new_tables: NewTables::new(&spec.partition_by)?,
            most_waiting_rows: spec.most_waiting_rows,
            most_held_bytes: spec.most_held_bytes,
            most_open_bytes: spec.most_open_bytes,
            share: Share { total: Arc::clone(&database.columns_held), own: AtomicU64::new(0) },
            bytes: AtomicU64::new(0),
            stage: Mutex::new(Stage::Reading(Box::new(QwpReader::new(options)))),
        })
    }

    /// Reads one message; what is wrong with it, [`Self::finish`] answers.
    pub(crate) async fn write(&self, message: Vec<u8>) -> EngineResult<AppendProgress> {
        self.database.check_open()?;
        let length = message.len() as u64;
        let Stage::Reading(mut reader) = self.take() else { return Err(over()) };
        let mut targets = SnapshotTargets::new(self.database.snapshot()?);
        let is_small = message.len() <= SMALL_BYTES;
        let read = move || {
            failpoint::hit("engine.parser")?;
            let outcome = reader.read(&message, &mut targets);
            Ok((reader, outcome))
        };
        let (reader, outcome) = if is_small {
            guard::catch("columns", read)?
        } else {
            guard::run_blocking("columns", read).await?
        };
        self.database.metrics.bytes_imported.add(length);
        let bytes = self.bytes.fetch_add(length, Ordering::Relaxed) + length;
        let rows = reader.rows();
        let (before, total) = self.share.set(held_bytes(&reader));
        let is_crowded = total > self.most_open_bytes;
        if is_crowded && rows == 0 && held_bytes(&reader) > before {
            return Err(self.crowded());
        }
        let is_full = is_crowded
            || rows >= self.most_waiting_rows
            || reader.held_bytes() >= self.most_held_bytes / 2;
        match outcome {
            Ok(()) => {
                *self.stage.lock() = Stage::Reading(reader);
                Ok(AppendProgress { bytes, rows, ended: None, full: is_full.then_some(true) })
            }
            Err(QwpFailure::Refused(refusal)) => {
                *self.stage.lock() = Stage::Refused(refusal);
                Ok(AppendProgress { bytes, rows, ended: Some(true), full: None })
            }
            Err(QwpFailure::Failed(error)) => Err(error),
        }
    }

    /// The first time, tells what the rows that wait would change; then commits them, or tells it
    /// anew. After the commit messages are taken again.
    pub(crate) async fn finish(&self) -> EngineResult<RowsReply> {
        match self.take() {
            Stage::Reading(reader) if reader.rows() == 0 => {
                *self.stage.lock() = Stage::Reading(reader);
                Ok(RowsReply::Committed { rows: 0, transaction: None })
            }
            Stage::Reading(mut reader) => {
                let rows = reader.take_tables();
                let planned = PlannedRows::new(&self.database, self.new_tables, rows)?;
                let report = planned.report();
                *self.stage.lock() = Stage::Planned(reader, planned);
                Ok(report)
            }
            Stage::Planned(reader, mut planned) => {
                let commit = move || {
                    failpoint::hit("engine.commit")?;
                    let reply = planned.commit()?;
                    Ok((planned, reply))
                };
                let (planned, reply) = guard::run_blocking("commit", commit).await?;
                self.share.set(held_bytes(&reader));
                *self.stage.lock() = match reply {
                    RowsReply::Planned { .. } => Stage::Planned(reader, planned),
                    _ => Stage::Reading(reader),
                };
                Ok(reply)
            }
            Stage::Refused(refusal) => Ok(refused(refusal)),
            Stage::Ended => Err(over()),
        }
    }

    /// Forgets what waits.
    pub(crate) fn abort(&self) {
        drop(self.take());
        self.share.set(0);
    }

    fn crowded(&self) -> EngineError {
        let message = format!(
            "the connections of the columnar protocol hold more than {} bytes \
             (qwp.max.open.size): send it again later",
            self.most_open_bytes
        );
        EngineError::new(ErrorCode::Busy, message)
    }

    /// What follows puts it back; what fails does not.
    fn take(&self) -> Stage {
        std::mem::replace(&mut *self.stage.lock(), Stage::Ended)
    }
}

/// What a connection takes of the bytes of all of them.
struct Share {
    total: Arc<AtomicU64>,
    own: AtomicU64,
}

impl Share {
    /// What it had, and what all have now.
    fn set(&self, bytes: u64) -> (u64, u64) {
        let before = self.own.swap(bytes, Ordering::AcqRel);
        let total = if bytes >= before {
            self.total.fetch_add(bytes - before, Ordering::AcqRel) + (bytes - before)
        } else {
            self.total.fetch_sub(before - bytes, Ordering::AcqRel) - (before - bytes)
        };
        (before, total)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

fn held_bytes(reader: &QwpReader) -> u64 {
    (reader.held_bytes() + reader.dictionary_bytes()) as u64
}

fn refused(QwpRefusal { status, reason, target }: QwpRefusal) -> RowsReply {
    let exists = target.as_ref().is_some_and(|target| target.exists);
    let table = target.map(|target| target.table);
    let status = Some(status as u8);
    RowsReply::Refused { line: 0, at: 0, reason, is_too_large: false, table, exists, status }
}

fn over() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "the appender has ended")
}
