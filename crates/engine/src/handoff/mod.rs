//! Connection handoffs: the engine itself serves a client connection for a limited time.
//!
//! A connection is handed off if its client only executes prepared queries with changing values, or
//! keeps sending the same request with similar queries. The engine reads the socket, runs the
//! queries and writes the rows. When any other request arrives, the engine returns the connection
//! together with the unanswered bytes. A handoff lasts about a second, so that the connection's
//! owner can still count, limit and close connections. It can be revoked at any time.
//!
//! `serve` runs one handoff, `pg` and `http` implement the protocols, and `terms` defines the
//! permitted requests. `shape` maps SQL text to a query, `sockets` owns the threads, and
//! `runtime/open_handoffs` revokes handoffs.

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
    /// Serves the client until the handoff ends.
    pub async fn run(self) -> EngineResult<HandoffResult> {
        let closed = || EngineError::new(ErrorCode::Closed, "the database is closed");
        sockets::spawn(self)?.await.map_err(|_| closed())?
    }
}
