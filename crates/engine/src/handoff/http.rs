//! HTTP handoffs: requests that differ only in their SQL text.

use std::time::{Instant, SystemTime};

use tidemark_border::{ExecuteOptions, HttpHandoff, Summary};
use tidemark_types::ErrorCode;
use tidemark_wire::{HttpMessage, http_date, next_request};

use super::serve::{End, Served, Step};
use super::terms::HttpTerms;
use crate::execution::cursor::Chunk;

/// Words that indicate a password or token. SQL text that contains such a word must not be shown to
/// other users.
const SECRETS: [&str; 3] = ["password", "token", "tdm_"];

impl Served<'_> {
    /// Reads and answers one request.
    pub(super) async fn http_step(&mut self, terms: &HttpTerms) -> Step {
        let (text, len) = match next_request(&self.input[self.read..], &terms.pattern) {
            HttpMessage::Query { text, len } => (text, len),
            HttpMessage::Incomplete => return Step::Incomplete,
            HttpMessage::Other => return Step::End(End::Returned),
        };
        let found = if may_contain_secret(&text) { None } else { terms.shapes.find(&text) };
        let Some((query, parameters)) = found else { return Step::End(End::Returned) };
        let HttpHandoff { rows, skip, take, count_all, .. } = &terms.handoff;
        let options = ExecuteOptions {
            text: (!parameters.is_empty()).then(|| text.clone()),
            skip: *skip,
            take: *take,
            count_all: *count_all,
            ..self.options(rows.clone())
        };
        let started = Instant::now();
        let reply = match self.execute(query, parameters, options).await {
            Ok(reply) => reply,
            // The connection's owner answers this request and counts it.
            Err(error) if error.code == ErrorCode::Replan => return Step::End(End::Returned),
            Err(error) => {
                self.executed(started);
                return Step::End(End::Failed(error));
            }
        };
        let Some(summary) = &reply.summary else { return Step::End(End::Returned) };
        let answer = Answer { terms, query, text: &text };
        if !answer.write(reply.chunk.as_ref(), summary, &mut self.output) {
            return Step::End(End::Returned);
        }
        self.executed(started);
        self.read += len;
        Step::Done
    }
}

/// A response to write.
struct Answer<'a> {
    terms: &'a HttpTerms,
    query: usize,
    text: &'a str,
}

impl Answer<'_> {
    /// Writes the response; returns false if it is too large.
    fn write(&self, chunk: Option<&Chunk>, summary: &Summary, out: &mut Vec<u8>) -> bool {
        let HttpTerms { handoff, shapes, .. } = self.terms;
        let mut begin = Vec::new();
        if handoff.names_query {
            begin.extend_from_slice(b"{\"query\":");
            // Writing a string to memory cannot fail.
            let _ = serde_json::to_writer(&mut begin, self.text);
        }
        begin.extend_from_slice(shapes.columns(self.query).as_bytes());
        let rows = chunk.map_or(&[][..], |chunk| chunk.bytes.as_slice());
        let count = match (handoff.count_all, summary.rows_returned) {
            (true, _) => summary.rows_total,
            (false, 0) => 0,
            (false, rows) => handoff.skip + rows,
        };
        let end = format!("],\"count\":{count}{}", handoff.end);
        let length = begin.len() + rows.len() + end.len();
        if length > handoff.max_body_bytes {
            return false;
        }
        let [to_length, to_date, behind] = &handoff.head;
        out.extend_from_slice(to_length.as_bytes());
        out.extend_from_slice(length.to_string().as_bytes());
        out.extend_from_slice(to_date.as_bytes());
        http_date(SystemTime::now(), out);
        for section in [behind.as_bytes(), &begin, rows, end.as_bytes()] {
            out.extend_from_slice(section);
        }
        true
    }
}

fn may_contain_secret(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    SECRETS.iter().any(|word| lower.contains(word))
}
