//! The façade of the engine: open a database, prepare and execute statements, append, close.
//!
//! This is the one door of the Rust side; `native` converts between it and JavaScript and does
//! nothing else. Everything that can fail answers an
//! [`EngineError`](tidemark_types::EngineError); a panic anywhere below becomes one.
//!
//! Futures may be polled on any runtime: plans and workers run on the database's own.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod actions;
mod admission;
mod append;
mod appender;
mod cancel;
mod changes;
mod columns;
mod copy;
mod csv_text;
mod database;
mod execution;
mod explain;
mod external;
mod followers;
pub mod guard;
mod jobs;
mod lanes;
mod lines;
mod loans;
pub mod log;
mod maintenance;
mod metrics;
mod open;
mod options;
mod parquet_table;
mod physical;
mod pool;
mod query;
mod registry;
mod resident;
mod restore;
mod rewrite;
mod rows;
mod server_tables;
mod spill;
mod statement;
mod text_table;
mod transaction;
mod views;
mod work;
mod write;
mod writer;

pub use appender::Appender;
pub use cancel::CancelToken;
pub use columns::Messages;
pub use database::{CLOSE_TIME, Database, given};
pub use execution::cursor::Chunk;
pub use execution::stream::ResultStream;
pub use loans::{HandBack, Loan};
pub use maintenance::check_root;
pub use registry::Registration;
pub use statement::{ExecuteReply, Statement};
pub use tidemark_ast::LiftedQuery;
pub use tidemark_border::{ExecuteOptions, OpenOptions};
pub use tidemark_storage::FORMAT_VERSION;
pub use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
pub use tidemark_vfs::CountingAllocator;
pub use tidemark_wire::WebSocketReader;
pub use transaction::Transaction;
pub use writer::{Place, Writer};
