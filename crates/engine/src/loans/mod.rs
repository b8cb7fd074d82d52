//! Connections that the engine answers by itself.
//!
//! A client that does nothing but execute prepared queries with other values, or that sends one
//! request with other queries of a shape, is lent: the engine reads its socket, runs the query,
//! writes the rows, and gives the connection back with the bytes of whatever else it sends. A loan
//! ends after a second in any case, so that its lender goes on to count, to limit and to end
//! connections; it can be recalled at any moment.
//!
//! `serve` is the life of one loan, `pg` and `http` are what is said in it, `terms` are what a
//! client may send, `shape` finds the query of a text, `sockets` are the threads that serve;
//! `runtime/handoffs` ends loans.

mod http;
mod loan;
mod pg;
mod serve;
mod shape;
mod sockets;
mod terms;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

pub use loan::{HandBack, Loan};

impl Loan {
    /// Answers the client until the loan ends.
    pub async fn run(self) -> EngineResult<HandBack> {
        let closed = || EngineError::new(ErrorCode::Closed, "the database is closed");
        sockets::spawn(self)?.await.map_err(|_| closed())?
    }
}
