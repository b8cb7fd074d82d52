//! Encodes record batches: JSON rows, CSV, pgwire `DataRow`, QWP, Parquet and the Arrow arena.
//!
//! All encoders convert columns to text or binary data, column by column where that is faster, in a
//! buffer that the caller reuses. They do not depend on tables, plans or sockets. `websocket` reads
//! the frames of clients that send binary messages.

#![forbid(unsafe_code)]

mod arena;
mod cells;
mod columns;
mod csv;
mod digits;
mod growth;
mod http_messages;
mod json;
mod parquet_archive;
mod parquet_file;
mod pg;
mod pg_messages;
mod qwp;
mod row_encoder;
mod row_group;
mod symbols;
mod text_column;
mod websocket;
mod zip;

pub use arena::write_arena;
pub use http_messages::{HttpMessage, RequestPattern, http_date, next_request};
pub use parquet_file::{Codec, ParquetOptions};
pub use pg_messages::{
    BIND_COMPLETE, BindPattern, PgMessage, READY_FOR_QUERY, command_complete, next_message,
};
pub use qwp::QwpOptions;
pub use row_encoder::{RowEncoder, RowFormat};
pub use websocket::{Received, WebSocketReader};
