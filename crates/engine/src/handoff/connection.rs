//! A connection handoff, with the socket, the permitted requests, and the result.

use std::net::TcpStream;
use std::sync::Arc;

use tidemark_border::HandoffSpec;
use tidemark_types::{EngineError, EngineResult, failpoint};

use super::terms::Terms;
use crate::database::{Database, from_json};
use crate::runtime::open_handoffs::Control;
use crate::statement::{ExecuteReply, Statement};

/// The state that a handoff returns when it ends.
pub struct HandoffResult {
    /// Bytes received from the client but not yet answered.
    pub bytes: Vec<u8>,
    /// Bytes that must be sent to the client before any other bytes.
    pub unsent: Vec<u8>,
    /// Index of the last executed statement; `None` if a Sync followed it.
    pub last: Option<usize>,
    /// Error from the last executed statement, if it failed. The client has not received it yet.
    pub failure: Option<EngineError>,
    /// Reply to the last executed statement, if its rows exceed one chunk. The client has not
    /// received any of it.
    pub reply: Option<ExecuteReply>,
    /// Duration of each execution, in microseconds.
    pub micros: Vec<u32>,
}

/// A handed-off connection. Dropping it ends the handoff.
pub struct Handoff {
    pub(super) database: Arc<Database>,
    id: u64,
    pub(super) control: Arc<Control>,
    pub(super) stream: Arc<TcpStream>,
    pub(super) timeout_ms: u64,
    pub(super) statements: Vec<Arc<Statement>>,
    pub(super) terms: Terms,
}

impl Handoff {
    /// Takes over a socket. The socket's owner must not read or write until `run` ends. `spec` is
    /// the JSON of a [`HandoffSpec`], which lists the statements in order.
    pub fn take(
        database: &Arc<Database>,
        descriptor: i32,
        spec: &[u8],
        statements: Vec<Arc<Statement>>,
    ) -> EngineResult<Self> {
        failpoint::hit("engine.lend")?;
        database.check_open()?;
        let HandoffSpec { id, timeout_ms, conversation } = from_json(spec, "handoff")?;
        let terms = Terms::new(conversation)?;
        if terms.statements() != statements.len() {
            return Err(EngineError::internal(
                "the statements of a handoff do not match its specification",
            ));
        }
        let duplicated = tidemark_vfs::duplicate_socket(descriptor);
        let stream =
            duplicated.map_err(|error| EngineError::io("cannot duplicate a socket", &error))?;
        let control = Arc::<Control>::default();
        if !database.handoffs.begin(id, &control) {
            return Err(EngineError::internal(format!("handoff {id} is already open")));
        }
        let (database, stream) = (Arc::clone(database), Arc::new(stream));
        Ok(Self { database, id, control, stream, timeout_ms, statements, terms })
    }
}

impl Drop for Handoff {
    fn drop(&mut self) {
        self.database.handoffs.end(self.id);
    }
}
