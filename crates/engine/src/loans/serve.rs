//! The life of a loan: read messages, run queries, write rows, until it ends.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tidemark_border::{ExecuteOptions, RowFormat};
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_wire::{BIND_COMPLETE, PgMessage, READY_FOR_QUERY, command_complete, next_message};

use super::loan::{HandBack, Loan};
use crate::statement::ExecuteReply;

/// A loan ends where it has lasted so long, where its client sends nothing for so long, or takes
/// nothing.
const LOAN_TIME: Duration = Duration::from_secs(1);
/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;
/// Bytes of answers from which they are written before the next execution.
const MOST_OUTPUT: usize = 64 * 1024;
/// Executions of one loan, at most: the time that each took is kept until it ends.
const MOST_EXECUTIONS: usize = 64 * 1024;
/// Executions after which other clients have their turn, and microseconds that they take.
const TURN: usize = 32;
const TURN_MICROS: u64 = 5_000;

/// Why a loan ends.
enum End {
    /// Something else came, or nothing, or it was recalled.
    Back,
    Failed(EngineError),
    More(ExecuteReply),
}

/// Answers the client of a loan until it ends.
pub(super) async fn serve(loan: &Loan) -> HandBack {
    let mut served = Served {
        loan,
        stream: &loan.stream,
        began: Instant::now(),
        input: Vec::new(),
        read: 0,
        output: Vec::new(),
        last: None,
        micros: Vec::new(),
    };
    let end = served.answer().await;
    // What cannot be written in time is written by the lender.
    let _ = served.flush().await;
    let Served { mut input, read, output, last, micros, .. } = served;
    input.drain(..read);
    let (failure, reply) = match end {
        End::Back => (None, None),
        End::Failed(error) => (Some(error), None),
        End::More(reply) => (None, Some(reply)),
    };
    HandBack { bytes: input, unsent: output, last, failure, reply, micros }
}

struct Served<'l> {
    loan: &'l Loan,
    stream: &'l TcpStream,
    began: Instant,
    input: Vec<u8>,
    /// Bytes of the input that were answered.
    read: usize,
    output: Vec<u8>,
    /// The statement that was executed last; none after a Sync.
    last: Option<usize>,
    micros: Vec<u32>,
}

impl Served<'_> {
    async fn answer(&mut self) -> End {
        let mut turn = 0;
        loop {
            if self.is_over() {
                return End::Back;
            }
            match next_message(&self.input[self.read..], &self.loan.terms.patterns) {
                PgMessage::Run { pattern, values, is_described, len } => {
                    let terms = &self.loan.terms;
                    // No value, no row.
                    let values = if values.len() > 2 { values } else { &[] };
                    let header = match values {
                        [] => &[],
                        _ => terms.spec.statements[pattern].header.as_slice(),
                    };
                    let parameters = [header, values].concat();
                    if let Some(end) = self.run(pattern, parameters, is_described, len).await {
                        return end;
                    }
                    let of_turn = &self.micros[turn..];
                    let micros: u64 = of_turn.iter().map(|one| u64::from(*one)).sum();
                    if of_turn.len() >= TURN || micros >= TURN_MICROS {
                        turn = self.micros.len();
                        self.let_others().await;
                    }
                }
                PgMessage::Sync { len } => {
                    self.read += len;
                    self.output.extend_from_slice(READY_FOR_QUERY);
                    self.last = None;
                }
                PgMessage::Incomplete => {
                    if !self.flush().await || !self.receive().await {
                        return End::Back;
                    }
                }
                PgMessage::Other => return End::Back,
            }
            if self.output.len() > MOST_OUTPUT && !self.flush().await {
                return End::Back;
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_late = self.last.is_none() && self.began.elapsed() >= LOAN_TIME;
        let is_full = self.micros.len() >= MOST_EXECUTIONS;
        is_late || is_full || self.loan.control.is_recalled()
    }

    /// Runs a statement; how the loan ends with it, where it does.
    async fn run(
        &mut self,
        pattern: usize,
        parameters: Vec<u8>,
        is_described: bool,
        len: usize,
    ) -> Option<End> {
        let started = Instant::now();
        let answered = self.output.len();
        self.output.extend_from_slice(BIND_COMPLETE);
        if is_described {
            let spec = &self.loan.terms.spec.statements[pattern];
            self.output.extend_from_slice(&spec.row_description);
        }
        let result = self.execute(pattern, parameters).await;
        if let Err(error) = &result
            && error.code == ErrorCode::Replan
        {
            // Nothing was done: it is bound anew, and runs, where it was prepared.
            self.output.truncate(answered);
            return Some(End::Back);
        }
        self.loan.database.metrics.lent_statements.add(1);
        let micros = started.elapsed().as_micros();
        self.micros.push(u32::try_from(micros).unwrap_or(u32::MAX));
        self.read += len;
        self.last = Some(pattern);
        match result {
            Err(error) => Some(End::Failed(error)),
            Ok(reply) if reply.stream.is_some() => Some(End::More(reply)),
            Ok(reply) => {
                let rows = reply.chunk.as_ref().map_or(0, |chunk| chunk.rows);
                if let Some(chunk) = &reply.chunk {
                    self.output.extend_from_slice(&chunk.bytes);
                }
                command_complete(rows, &mut self.output);
                None
            }
        }
    }

    async fn execute(&self, pattern: usize, parameters: Vec<u8>) -> EngineResult<ExecuteReply> {
        let Loan { database, control, terms, .. } = self.loan;
        let spec = &terms.spec;
        let rows = RowFormat::Pg {
            format_codes: spec.statements[pattern].format_codes.clone(),
            nanoseconds: spec.nanoseconds,
        };
        let options = ExecuteOptions {
            rows,
            query_id: Some(database.loans.next_execution()),
            text: None,
            skip: 0,
            take: None,
            count_all: false,
            last: None,
            timeout_ms: Some(spec.timeout_ms),
            elapsed_ms: 0,
            first_chunk_rows: None,
            changes: None,
        };
        let statement = Arc::clone(&terms.statements[pattern]);
        let registration = statement.register(&options)?;
        if !control.begins(&registration.token) {
            control.ended();
            // The lender decides whether it may run at all.
            return Err(EngineError::new(ErrorCode::Replan, "the loan was recalled"));
        }
        let handle = database.handle();
        let here = statement.is_immediate();
        let work = async move { statement.execute(registration, &parameters, options).await };
        let mut work: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(work);
        if here {
            let _runtime = handle.enter();
            // A task of the runtime is woken, not this one.
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
            // Who has only said all that he will is answered what comes soon.
            if polled.is_pending() && started.elapsed() >= LOAN_TIME {
                control.stop_if_left();
            }
            polled
        })
        .await;
        control.ended();
        result.map_err(|error| EngineError::internal(error.to_string()))?
    }

    /// Reads more; false where the loan ends.
    async fn receive(&mut self) -> bool {
        self.input.drain(..self.read);
        self.read = 0;
        let since = Instant::now();
        let (stream, control) = (self.stream, &self.loan.control);
        let start = self.input.len();
        self.input.resize(start + READ_BYTES, 0);
        let space = &mut self.input[start..];
        let count = poll_fn(|cx| {
            control.wait(cx.waker());
            match uninterrupted(|| (&*stream).read(space)) {
                Ok(count) => Poll::Ready(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let is_over = control.is_recalled() || since.elapsed() >= LOAN_TIME;
                    if is_over { Poll::Ready(0) } else { Poll::Pending }
                }
                Err(_) => Poll::Ready(0),
            }
        })
        .await;
        self.input.truncate(start + count);
        count > 0
    }

    /// Writes what was answered; false where that is not possible in time.
    async fn flush(&mut self) -> bool {
        let since = Instant::now();
        let (stream, control) = (self.stream, &self.loan.control);
        let output = &mut self.output;
        let mut written = 0;
        let is_done = poll_fn(|cx| {
            control.wait(cx.waker());
            while written < output.len() {
                match uninterrupted(|| (&*stream).write(&output[written..])) {
                    Ok(count) => written += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        let is_over = control.is_recalled() || since.elapsed() >= LOAN_TIME;
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

    async fn let_others(&self) {
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
