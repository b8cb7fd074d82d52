//! Connections that the engine answers by itself.
//!
//! A client that does nothing but execute prepared queries with other values, or that sends one
//! request with other queries of a shape, is handed off: the engine reads its socket, runs the
//! query, writes the rows, and gives the connection back with the bytes of whatever else it sends.
//! A handoff ends after a second in any case, so that its owner goes on to count, to limit and to
//! end connections; it can be revoked at any moment.
//!
//! `serve` is the life of one handoff, `pg` and `http` are what is said in it, `terms` are what a
//! client may send, `shape` finds the query of a text, `sockets` are the threads that serve;
//! `runtime/handoffs` ends handoffs.

mod connection;
mod http;
mod pg;
mod serve;
mod shape;
mod sockets;
mod terms;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

pub use connection::{Handoff, HandoffResult};

impl Handoff {
    /// Answers the client until the handoff ends.
    pub async fn run(self) -> EngineResult<HandoffResult> {
        let closed = || EngineError::new(ErrorCode::Closed, "the database is closed");
        sockets::spawn(self)?.await.map_err(|_| closed())?
    }
}
