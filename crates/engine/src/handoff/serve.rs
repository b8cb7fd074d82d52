//! Runs one handoff: reads requests, executes queries and writes responses until it ends. The
//! modules `pg` and `http` implement the protocols.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tidemark_border::{ExecuteOptions, RowFormat};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use super::connection::{Handoff, HandoffResult};
use super::terms::Terms;
use crate::statement::ExecuteReply;

/// Maximum duration of a handoff. Also the time limit for each wait for a request and for writing a
/// response.
const HANDOFF_TIME: Duration = Duration::from_secs(1);
/// Number of bytes per read.
const READ_BYTES: usize = 16 * 1024;
/// Size in bytes at which pending output is written before the next execution.
const MAX_OUTPUT: usize = 64 * 1024;
/// Maximum number of executions in one handoff. The number is limited because the durations are
/// retained until the handoff ends.
const MAX_EXECUTIONS: usize = 64 * 1024;
/// Number of executions after which the thread serves other clients. The next constant limits the
/// total duration of these executions, in microseconds.
const MAX_EXECUTIONS_BEFORE_YIELD: usize = 32;
const MAX_MICROS_BEFORE_YIELD: u64 = 5_000;

/// The reason a handoff ends.
pub(super) enum End {
    /// The client sent a different request or no request within the time limit, or the handoff was
    /// revoked.
    Returned,
    Failed(EngineError),
    More(ExecuteReply),
}

/// Result of processing one message.
#[expect(clippy::large_enum_variant, reason = "only one exists at a time, and only briefly")]
pub(super) enum Step {
    /// The message was read, and answered if it requires an answer.
    Done,
    /// The next message is incomplete.
    Incomplete,
    End(End),
}

/// Serves a handoff's client until the handoff ends.
pub(super) async fn serve(handoff: &Handoff) -> HandoffResult {
    let mut served = Served {
        handoff,
        stream: &handoff.stream,
        began: Instant::now(),
        input: Vec::new(),
        space: vec![0; READ_BYTES],
        read: 0,
        output: Vec::new(),
        last: None,
        micros: Vec::new(),
    };
    let end = served.answer().await;
    // The connection's owner writes any output that cannot be written within the time limit.
    let _ = served.flush().await;
    let Served { mut input, read, output, last, micros, .. } = served;
    input.drain(..read);
    let (failure, reply) = match end {
        End::Returned => (None, None),
        End::Failed(error) => (Some(error), None),
        End::More(reply) => (None, Some(reply)),
    };
    HandoffResult { bytes: input, unsent: output, last, failure, reply, micros }
}

pub(super) struct Served<'l> {
    pub(super) handoff: &'l Handoff,
    stream: &'l TcpStream,
    began: Instant,
    pub(super) input: Vec<u8>,
    /// The read buffer. It is reused, because zeroing a new buffer takes longer than a read.
    space: Vec<u8>,
    /// Number of input bytes that have been answered.
    pub(super) read: usize,
    pub(super) output: Vec<u8>,
    /// The last executed statement; `None` after a Sync.
    pub(super) last: Option<usize>,
    micros: Vec<u32>,
}

impl Served<'_> {
    async fn answer(&mut self) -> End {
        let mut turn = 0;
        loop {
            if self.is_over() {
                return End::Returned;
            }
            let step = match &self.handoff.terms {
                Terms::Pg(terms) => self.pg_step(terms).await,
                Terms::Http(terms) => self.http_step(terms).await,
            };
            match step {
                Step::Done => {}
                Step::Incomplete => {
                    if !self.flush().await || !self.receive().await {
                        return End::Returned;
                    }
                }
                Step::End(end) => return end,
            }
            let of_turn = &self.micros[turn..];
            let micros: u64 = of_turn.iter().map(|one| u64::from(*one)).sum();
            if of_turn.len() >= MAX_EXECUTIONS_BEFORE_YIELD || micros >= MAX_MICROS_BEFORE_YIELD {
                turn = self.micros.len();
                self.yield_once().await;
            }
            if self.output.len() > MAX_OUTPUT && !self.flush().await {
                return End::Returned;
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_late = self.last.is_none() && self.began.elapsed() >= HANDOFF_TIME;
        let is_full = self.micros.len() >= MAX_EXECUTIONS;
        is_late || is_full || self.handoff.control.is_recalled()
    }

    /// Records an execution and its start time.
    pub(super) fn executed(&mut self, started: Instant) {
        self.handoff.database.metrics.fast_path_statements.add(1);
        let micros = started.elapsed().as_micros();
        self.micros.push(u32::try_from(micros).unwrap_or(u32::MAX));
    }

    /// Executes one of the handoff's statements with one row of parameters.
    pub(super) async fn execute(
        &self,
        statement: usize,
        parameters: Vec<u8>,
        options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        let Handoff { database, control, statements, .. } = self.handoff;
        let statement = Arc::clone(&statements[statement]);
        let registration = statement.register(&options)?;
        if !control.begins(&registration.token) {
            control.ended();
            // The connection's owner decides whether the statement may still run.
            return Err(EngineError::new(ErrorCode::Replan, "the handoff was revoked"));
        }
        let handle = database.handle();
        let here = statement.is_immediate();
        let work = async move { statement.execute(registration, &parameters, options).await };
        let mut work: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(work);
        if here {
            let _runtime = handle.enter();
            // A no-op waker is sufficient here: if the work is pending, a runtime task polls it
            // again.
            let first = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(result) = first {
                control.ended();
                return result;
            }
        }
        let started = Instant::now();
        let mut task = handle.spawn(work);
        let result = poll_fn(|cx| {
            let polled = Pin::new(&mut task).poll(cx);
            // A client that has closed its sending side may still receive results that are ready
            // soon.
            if polled.is_pending() && started.elapsed() >= HANDOFF_TIME {
                control.stop_if_left();
            }
            polled
        })
        .await;
        control.ended();
        result.map_err(|error| EngineError::internal(error.to_string()))?
    }

    /// Returns the options for an execution that returns all rows in one reply.
    pub(super) fn options(&self, rows: RowFormat) -> ExecuteOptions {
        let Handoff { database, timeout_ms, .. } = self.handoff;
        ExecuteOptions {
            rows,
            query_id: Some(database.handoffs.next_execution()),
            text: None,
            skip: 0,
            take: None,
            count_all: false,
            last: None,
            timeout_ms: Some(*timeout_ms),
            elapsed_ms: 0,
            first_chunk_rows: None,
            changes: None,
        }
    }

    /// Reads more input; returns false if the handoff must end.
    async fn receive(&mut self) -> bool {
        self.input.drain(..self.read);
        self.read = 0;
        let since = Instant::now();
        let (stream, control) = (self.stream, &self.handoff.control);
        let space = self.space.as_mut_slice();
        let count = poll_fn(|cx| {
            control.wait(cx.waker());
            match uninterrupted(|| (&*stream).read(&mut *space)) {
                Ok(count) => Poll::Ready(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let is_over = control.is_recalled() || since.elapsed() >= HANDOFF_TIME;
                    if is_over { Poll::Ready(0) } else { Poll::Pending }
                }
                Err(_) => Poll::Ready(0),
            }
        })
        .await;
        self.input.extend_from_slice(&self.space[..count]);
        count > 0
    }

    /// Writes the output; returns false if it cannot be written within the time limit.
    async fn flush(&mut self) -> bool {
        let since = Instant::now();
        let (stream, control) = (self.stream, &self.handoff.control);
        let output = &mut self.output;
        let mut written = 0;
        let is_done = poll_fn(|cx| {
            control.wait(cx.waker());
            while written < output.len() {
                match uninterrupted(|| (&*stream).write(&output[written..])) {
                    Ok(count) => written += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        let is_over = control.is_recalled() || since.elapsed() >= HANDOFF_TIME;
                        return if is_over { Poll::Ready(false) } else { Poll::Pending };
                    }
                    Err(_) => return Poll::Ready(false),
                }
            }
            Poll::Ready(true)
        })
        .await;
        output.drain(..written);
        is_done
    }

    async fn yield_once(&self) {
        let mut is_first = true;
        poll_fn(|cx| {
            if std::mem::take(&mut is_first) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}

fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
