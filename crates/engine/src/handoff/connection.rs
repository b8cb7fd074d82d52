//! A handoff: the socket, what its client may send, and what comes back.

use std::net::TcpStream;
use std::sync::Arc;

use tidemark_border::HandoffSpec;
use tidemark_types::{EngineError, EngineResult, failpoint};

use super::terms::Terms;
use crate::database::{Database, from_json};
use crate::runtime::open_handoffs::Control;
use crate::statement::{ExecuteReply, Statement};

/// What comes back when a handoff ends.
pub struct HandoffResult {
    /// What the client sent and was not answered.
    pub bytes: Vec<u8>,
    /// What the client is to be sent before anything else.
    pub unsent: Vec<u8>,
    /// The statement that was executed last, where no Sync was answered since.
    pub last: Option<usize>,
    /// Why it failed; its client has not been answered that.
    pub failure: Option<EngineError>,
    /// Its reply, where its rows are more than one chunk; nothing of it was sent.
    pub reply: Option<ExecuteReply>,
    /// Microseconds that each execution took.
    pub micros: Vec<u32>,
}

/// A connection that is handed off, until this is dropped.
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
    /// Takes a socket over. Its owner reads and writes nothing until `run` ends. `spec` is
    /// the JSON of a [`HandoffSpec`], which names the statements in their order.
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
            return Err(EngineError::internal("a handoff of other statements than it names"));
        }
        let duplicated = tidemark_vfs::duplicate_socket(descriptor);
        let stream = duplicated.map_err(|error| EngineError::io("cannot take a socket", &error))?;
        let control = Arc::<Control>::default();
        if !database.handoffs.begin(id, &control) {
            return Err(EngineError::internal(format!("handoff {id} is open already")));
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
