//! Columnar protocol. An appender lives as long as its connection, which owns a dictionary. The
//! appender commits whenever the client requests a commit, and continues to read messages during
//! the commit.

mod commit_requests;
mod messages;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidemark_border::{ColumnsSpec, MessagesProgress, RequestedCommit, RowsReply};
use tidemark_ingest::{QwpFailure, QwpOptions, QwpReader, QwpRefusal};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use super::feed::ended;
use crate::database::{Database, given};
use crate::ingest::planned_rows::{NewTables, PlannedRows, SnapshotTargets};
use crate::runtime::guard;
use commit_requests::{CommitRequest, Group};
pub use messages::Messages;

/// Messages of up to this many bytes in total are read on the calling thread, because handing them
/// to another thread would take longer.
const SMALL_BYTES: usize = 4 * 1024;
/// Number of message bytes to read before the socket is polled again.
const READ_BYTES: usize = 4 * 1024 * 1024;

/// Reads messages and writes their rows. A commit may contain several messages.
pub(crate) struct ColumnAppender(Arc<Connection>);

struct Connection {
    database: Arc<Database>,
    new_tables: NewTables,
    max_pending_rows: u64,
    max_pending_bytes: usize,
    max_total_bytes: u64,
    usage: ConnectionBytes,
    state: Mutex<State>,
}

/// State shared by the reader and the commits. At most one commit runs at a time.
struct State {
    reading: Reading,
    /// Number of messages read, and their total size in bytes.
    messages: u64,
    bytes: u64,
    /// Rows for which no commit has been requested yet.
    open: Open,
    /// Requested commits.
    waiting: VecDeque<CommitRequest>,
    commit: Commit,
    /// Number of messages whose rows have been committed.
    answered: u64,
    /// Number of upcoming commits that must run one by one.
    single: usize,
    /// Memory used by the running commit's rows.
    committing_bytes: usize,
}

/// Rows for which no commit has been requested yet.
#[derive(Default)]
struct Open {
    messages: u64,
    /// Memory used by these rows.
    bytes: usize,
    dictionary_bytes: usize,
}

enum Reading {
    Idle(Box<QwpReader>),
    Busy,
    /// Reading has stopped. Commits that were already requested still run.
    Over(Why),
    /// Both reading and committing have stopped.
    Ended,
}

/// The reason why reading stopped.
enum Why {
    Refused(QwpRefusal),
    Failed(EngineError),
}

enum Commit {
    Idle,
    Planned(Group, PlannedRows),
    Busy,
}

impl State {
    fn pending_bytes(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(|request| request.bytes).sum();
        self.open.bytes + waiting + self.committing_bytes
    }

    /// Records that a group was written; returns its commits.
    fn done(&mut self, group: &Group) -> Vec<RequestedCommit> {
        self.answered += group.messages();
        self.single = self.single.saturating_sub(group.len());
        self.committing_bytes = 0;
        group.commits()
    }

    /// Splits a group so that its commits run separately.
    fn split(&mut self, group: Group) {
        self.single = group.len();
        self.committing_bytes = 0;
        group.requeue(&mut self.waiting);
    }

    /// Called when all commits are done. Reports the error that stopped reading, if any.
    fn nothing_left(&mut self) -> RowsReply {
        match std::mem::replace(&mut self.reading, Reading::Ended) {
            Reading::Over(Why::Refused(refusal)) => refused(self.messages, refusal),
            Reading::Over(Why::Failed(error)) => failed(self.messages, error),
            Reading::Ended => failed(self.messages, ended()),
            reading @ (Reading::Idle(_) | Reading::Busy) => {
                self.reading = reading;
                committed(self, 0, None, Vec::new())
            }
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.reading, Reading::Ended)
    }

    fn end(&mut self) {
        self.reading = Reading::Ended;
        self.open = Open::default();
        self.waiting.clear();
        self.committing_bytes = 0;
    }
}

impl ColumnAppender {
    /// Opens an appender; `spec` is the JSON of a [`ColumnsSpec`].
    pub(crate) fn open(database: &Arc<Database>, spec: &[u8]) -> EngineResult<Self> {
        let spec: ColumnsSpec = given(spec, "appender")?;
        let options = QwpOptions {
            create_tables: spec.create_tables,
            create_columns: spec.create_columns,
            max_columns: database.storage.options().max_columns,
            max_rows: spec.max_rows,
            max_tables: spec.max_tables,
            max_dictionary_bytes: spec.max_dictionary_bytes,
            max_pending_bytes: spec.max_pending_bytes,
        };
        let state = State {
            reading: Reading::Idle(Box::new(QwpReader::new(options))),
            messages: 0,
            bytes: 0,
            open: Open::default(),
            waiting: VecDeque::new(),
            commit: Commit::Idle,
            answered: 0,
            single: 0,
            committing_bytes: 0,
        };
        Ok(Self(Arc::new(Connection {
            database: Arc::clone(database),
            new_tables: NewTables::new(&spec.partition_by)?,
            max_pending_rows: spec.max_pending_rows,
            max_pending_bytes: spec.max_pending_bytes,
            max_total_bytes: spec.max_total_bytes,
            usage: ConnectionBytes {
                total: Arc::clone(&database.columnar_bytes),
                own: AtomicU64::new(0),
            },
            state: Mutex::new(state),
        })))
    }

    /// Reads pending messages. If a message contains an error, [`Self::finish`] reports it after
    /// all earlier messages have been committed.
    pub(crate) async fn read(&self, messages: Arc<Messages>) -> EngineResult<MessagesProgress> {
        let connection = &self.0;
        connection.database.check_open()?;
        let reading = {
            let mut state = connection.state.lock();
            match std::mem::replace(&mut state.reading, Reading::Busy) {
                Reading::Idle(reader) => Some(reader),
                Reading::Busy => return Err(ended()),
                ended @ (Reading::Over(_) | Reading::Ended) => {
                    state.reading = ended;
                    None
                }
            }
        };
        if let Some(reader) = reading {
            let is_small = messages.left().1 <= SMALL_BYTES;
            let (there, queue) = (Arc::clone(connection), Arc::clone(&messages));
            let read = move || there.read(reader, &queue, is_small);
            let read = if is_small {
                guard::catch("columns", read)
            } else {
                guard::run_blocking("columns", read).await
            };
            let mut state = connection.state.lock();
            if !state.has_ended() {
                state.reading = read.unwrap_or_else(|error| Reading::Over(Why::Failed(error)));
            }
        }
        Ok(connection.progress(&messages))
    }

    /// The first call plans the requested commits and reports the changes they would make. The next
    /// call commits them. If tables have changed in the meantime, that call instead plans again and
    /// reports the new changes. With `split`, only the first of the reported commits is planned.
    pub(crate) async fn finish(&self, split: bool) -> EngineResult<RowsReply> {
        let connection = &self.0;
        let commit = {
            let mut state = connection.state.lock();
            match std::mem::replace(&mut state.commit, Commit::Busy) {
                Commit::Planned(group, _) if split && group.len() > 1 => {
                    state.split(group);
                    None
                }
                Commit::Planned(group, planned) => Some((group, planned)),
                Commit::Idle => None,
                Commit::Busy => return Err(ended()),
            }
        };
        match commit {
            None => Ok(connection.plan()),
            Some((group, planned)) => Ok(connection.commit(group, planned).await),
        }
    }

    /// Discards all pending rows.
    pub(crate) fn abort(&self) {
        let mut state = self.0.state.lock();
        state.end();
        state.commit = Commit::Idle;
        self.0.usage.set(0);
    }
}

impl Connection {
    /// Reads messages until a message requires pending commits to run first.
    fn read(
        &self,
        mut reader: Box<QwpReader>,
        messages: &Messages,
        is_small: bool,
    ) -> EngineResult<Reading> {
        let mut left = if is_small { SMALL_BYTES } else { READ_BYTES };
        while let Some(message) = messages.next() {
            {
                let mut state = self.state.lock();
                state.messages += 1;
                state.bytes += message.len() as u64;
            }
            failpoint::hit("engine.parser")?;
            self.database.metrics.bytes_imported.add(message.len() as u64);
            let mut targets = SnapshotTargets::new(self.database.snapshot()?);
            let defers = match reader.read(&message, &mut targets) {
                Ok(defers) => defers,
                Err(QwpFailure::Refused(refusal)) => {
                    return Ok(Reading::Over(Why::Refused(refusal)));
                }
                Err(QwpFailure::Failed(error)) => return Err(error),
            };
            left = left.saturating_sub(message.len());
            if !self.take(&mut reader, defers)? || left == 0 {
                break;
            }
        }
        Ok(Reading::Idle(reader))
    }

    /// Takes a message's rows; returns false if commits must run before the next message is read.
    fn take(&self, reader: &mut QwpReader, defers: bool) -> EngineResult<bool> {
        let mut state = self.state.lock();
        if state.has_ended() {
            return Err(ended());
        }
        let rows = reader.rows();
        let dictionary_bytes = reader.dictionary_bytes();
        let has_grown = dictionary_bytes > state.open.dictionary_bytes;
        let messages = state.open.messages + 1;
        state.open = Open { messages, bytes: reader.pending_bytes(), dictionary_bytes };
        let is_crowded = self.account(&state) > self.max_total_bytes;
        if is_crowded && rows == 0 && has_grown {
            return Err(self.crowded());
        }
        let is_full = |rows: u64, bytes: usize| {
            is_crowded || rows >= self.max_pending_rows || bytes >= self.max_pending_bytes / 2
        };
        let forced = defers && rows > 0 && is_full(rows, state.open.bytes);
        if !defers || forced || rows == 0 {
            let (tables, bytes) = (reader.take_tables(), state.open.bytes);
            state.open = Open { messages: 0, bytes: 0, dictionary_bytes };
            state.waiting.push_back(CommitRequest { tables, messages, rows, bytes, forced });
        }
        // A commit that creates tables or columns may change how later names resolve.
        let defines = state.waiting.back().is_some_and(CommitRequest::defines);
        let waiting: u64 = state.waiting.iter().map(|request| request.rows).sum();
        Ok(!defines && !is_full(reader.rows() + waiting, state.pending_bytes()))
    }

    fn progress(&self, messages: &Messages) -> MessagesProgress {
        let state = self.state.lock();
        let (left, left_bytes) = messages.left();
        let waiting: u64 = state.waiting.iter().map(|request| request.rows).sum();
        let is_held = self.usage.total() > self.max_total_bytes
            || waiting >= self.max_pending_rows
            || state.pending_bytes() >= self.max_pending_bytes / 2;
        MessagesProgress {
            messages: state.messages,
            bytes: state.bytes,
            left: left as u64,
            left_bytes: left_bytes as u64,
            commit_pending: !state.waiting.is_empty(),
            full: is_held || state.waiting.back().is_some_and(CommitRequest::defines),
            ended: !matches!(state.reading, Reading::Idle(_)),
        }
    }

    fn plan(&self) -> RowsReply {
        let (group, rows) = {
            let mut state = self.state.lock();
            state.commit = Commit::Idle;
            let is_alone = state.single > 0;
            let Some((group, rows)) = Group::take(&mut state.waiting, is_alone) else {
                return state.nothing_left();
            };
            if rows.is_empty() {
                let commits = state.done(&group);
                return committed(&state, 0, None, commits);
            }
            state.commit = Commit::Busy;
            state.committing_bytes = group.bytes();
            (group, rows)
        };
        let planned =
            guard::catch("columns", || PlannedRows::new(&self.database, self.new_tables, rows));
        match planned {
            Ok(planned) => {
                let report = with_commits(planned.report(), &group);
                self.state.lock().commit = Commit::Planned(group, planned);
                report
            }
            Err(error) => self.fail(group, error),
        }
    }

    async fn commit(&self, group: Group, planned: PlannedRows) -> RowsReply {
        let (planned, reply) = match planned.committed().await {
            Ok(done) => done,
            Err(error) => return self.fail(group, error),
        };
        let mut state = self.state.lock();
        let RowsReply::Committed { rows, transaction, .. } = reply else {
            let report = with_commits(reply, &group);
            state.commit = Commit::Planned(group, planned);
            return report;
        };
        state.commit = Commit::Idle;
        state.done(&group);
        if !state.has_ended() {
            self.account(&state);
        }
        committed(&state, rows, transaction, Vec::new())
    }

    /// Handles a group that could not be written. If the group has several commits, only one of
    /// them may be at fault, so all are retried one by one. If a commit then fails individually, no
    /// further commits run.
    fn fail(&self, group: Group, error: EngineError) -> RowsReply {
        {
            let mut state = self.state.lock();
            state.commit = Commit::Idle;
            state.committing_bytes = 0;
            if state.has_ended() || group.len() < 2 || is_our_fault(error.code) {
                state.end();
                return failed(state.answered + group.first_messages(), error);
            }
            state.split(group);
        }
        self.plan()
    }

    /// Updates this connection's byte count and returns the total over all connections.
    fn account(&self, state: &State) -> u64 {
        self.usage.set((state.pending_bytes() + state.open.dictionary_bytes) as u64)
    }

    fn crowded(&self) -> EngineError {
        let message = format!(
            "open QWP connections use more than {} bytes of memory \
             (qwp.max.open.size): send the message again later",
            self.max_total_bytes
        );
        EngineError::new(ErrorCode::Busy, message)
    }
}

/// The amount of memory that one connection adds to the total for all connections.
struct ConnectionBytes {
    total: Arc<AtomicU64>,
    own: AtomicU64,
}

impl ConnectionBytes {
    /// Sets the connection's byte count and returns the total.
    fn set(&self, bytes: u64) -> u64 {
        let before = self.own.swap(bytes, Ordering::AcqRel);
        if bytes >= before {
            self.total.fetch_add(bytes - before, Ordering::AcqRel) + (bytes - before)
        } else {
            self.total.fetch_sub(before - bytes, Ordering::AcqRel) - (before - bytes)
        }
    }

    fn total(&self) -> u64 {
        self.total.load(Ordering::Acquire)
    }
}

impl Drop for ConnectionBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// True if the error is not known to be caused by these rows. Either any other rows would have
/// failed as well, or it is unknown whether the rows were written.
fn is_our_fault(code: ErrorCode) -> bool {
    use ErrorCode::{Closed, Damaged, DiskFull, Internal, Io, ReadOnly, RootLocked};
    matches!(code, Closed | Damaged | DiskFull | Internal | Io | ReadOnly | RootLocked)
}

fn with_commits(mut reply: RowsReply, group: &Group) -> RowsReply {
    if let RowsReply::Planned { commits, .. } = &mut reply {
        *commits = group.commits();
    }
    reply
}

fn committed(
    state: &State,
    rows: u64,
    transaction: Option<u64>,
    commits: Vec<RequestedCommit>,
) -> RowsReply {
    let more = !state.waiting.is_empty() || matches!(state.reading, Reading::Over(_));
    RowsReply::Committed { rows, transaction, commits, more }
}

fn failed(line: u64, error: EngineError) -> RowsReply {
    let EngineError { code, message: reason, .. } = guard::outward(error);
    RowsReply::Failed { line, code: format!("{code:?}"), reason }
}

fn refused(line: u64, QwpRefusal { status, reason, target }: QwpRefusal) -> RowsReply {
    let exists = target.as_ref().is_some_and(|target| target.exists);
    let table = target.map(|target| target.table);
    let status = Some(status as u8);
    RowsReply::Refused { line, at: 0, reason, is_too_large: false, table, exists, status }
}
