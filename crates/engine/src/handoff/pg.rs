//! Wire protocol handoffs: Bind, Execute and Sync.

use std::time::Instant;

use tidemark_border::{ExecuteOptions, RowFormat};
use tidemark_types::ErrorCode;
use tidemark_wire::{BIND_COMPLETE, PgMessage, READY_FOR_QUERY, command_complete, next_message};

use super::serve::{End, Served, Step};
use super::terms::PgTerms;

impl Served<'_> {
    /// Reads and answers one message.
    pub(super) async fn pg_step(&mut self, terms: &PgTerms) -> Step {
        match next_message(&self.input[self.read..], &terms.patterns) {
            PgMessage::Run { pattern, values, is_described, len } => {
                let statement = &terms.handoff.statements[pattern];
                // A query without parameters needs no parameter row.
                let parameters = match values.len() {
                    ..=2 => Vec::new(),
                    _ => [statement.header.as_slice(), values].concat(),
                };
                let answered = self.output.len();
                self.output.extend_from_slice(BIND_COMPLETE);
                if is_described {
                    self.output.extend_from_slice(&statement.row_description);
                }
                let rows = RowFormat::Pg {
                    format_codes: statement.format_codes.clone(),
                    nanoseconds: terms.handoff.nanoseconds,
                };
                let options = self.options(rows);
                self.pg_run(Run { pattern, len, answered }, parameters, options).await
            }
            PgMessage::Sync { len } => {
                self.read += len;
                self.output.extend_from_slice(READY_FOR_QUERY);
                self.last = None;
                Step::Done
            }
            PgMessage::Incomplete => Step::Incomplete,
            PgMessage::Other => Step::End(End::Returned),
        }
    }

    async fn pg_run(&mut self, run: Run, parameters: Vec<u8>, options: ExecuteOptions) -> Step {
        let started = Instant::now();
        let result = self.execute(run.pattern, parameters, options).await;
        if let Err(error) = &result
            && error.code == ErrorCode::Replan
        {
            // The query was not executed. The connection's owner binds the statement again and runs
            // it.
            self.output.truncate(run.answered);
            return Step::End(End::Returned);
        }
        self.executed(started);
        self.read += run.len;
        self.last = Some(run.pattern);
        match result {
            Err(error) => Step::End(End::Failed(error)),
            Ok(reply) if reply.stream.is_some() => Step::End(End::More(reply)),
            Ok(reply) => {
                let rows = reply.chunk.as_ref().map_or(0, |chunk| chunk.rows);
                if let Some(chunk) = &reply.chunk {
                    self.output.extend_from_slice(&chunk.bytes);
                }
                command_complete(rows, &mut self.output);
                Step::Done
            }
        }
    }
}

/// One execution: its statement pattern, the length of its message, and the length of the output
/// before it.
struct Run {
    pattern: usize,
    len: usize,
    answered: usize,
}
