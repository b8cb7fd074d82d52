//! The engine's public interface: opens a database, prepares and executes statements, appends rows,
//! closes the database.
//!
//! This is the only entry point to the Rust code. The crate `native` converts between this
//! interface and JavaScript and contains no other logic. Every function that can fail returns an
//! [`EngineError`](tidemark_types::EngineError); all panics are converted to one.
//!
//! Futures may be polled on any runtime, because plans and workers run on the database's own
//! runtime.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod apply;
mod changes;
mod database;
mod execution;
mod external;
mod files;
mod handoff;
mod ingest;
mod jobs;
mod open;
mod query;
mod runtime;
mod statement;
mod views;

pub use apply::maintenance::check_root;
pub use database::{CLOSE_TIME, Database, given};
pub use execution::cursor::Chunk;
pub use execution::stream::ResultStream;
pub use handoff::{Handoff, HandoffResult};
pub use ingest::transaction::Transaction;
pub use ingest::writer::{TableIndex, Writer};
pub use ingest::{Appender, CopyTarget, Messages};
pub use open::handles::Handle;
pub use runtime::cancel::CancelToken;
pub use runtime::registry::Registration;
pub use runtime::{guard, log};
pub use statement::{ExecuteReply, Statement};
pub use tidemark_ast::LiftedQuery;
pub use tidemark_border::{ExecuteOptions, OpenOptions};
pub use tidemark_storage::FORMAT_VERSION;
pub use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
pub use tidemark_vfs::{CountingAllocator, retain_main_heap};
pub use tidemark_wire::WebSocketReader;
