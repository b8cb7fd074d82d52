//! The column store: log, segments, manifest, snapshot, commit, checkpoint, recovery.
//!
//! A commit is one record in the log, written and (in `sync` mode) synced before anybody sees it.
//! Small commits live in memory as sorted runs until a checkpoint turns them into immutable
//! segments; bulk writes go straight to segments and log one record that adopts them. Readers
//! hold a [`Snapshot`]: an immutable value that shares everything unchanged with its neighbours,
//! never blocks and is never blocked. `FORMAT.md` describes every byte on disk.
//!
//! This crate knows no SQL, no `DataFusion`, no async runtime and no network. All file access goes
//! through [`tidemark_vfs::Vfs`], so that the crash tests run this very code.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod background;
mod backup;
mod block;
mod bulk;
mod bulk_update;
mod change;
mod check;
mod checkpoint;
mod codec;
mod column;
mod convert;
mod damage;
mod delete;
mod disk;
mod file;
mod fold;
mod gather;
mod hold;
mod layout;
mod limits;
mod log;
mod log_reader;
mod manifest;
mod memory;
mod merge;
mod options;
mod parquet_segment;
mod partition;
mod patch;
mod pending;
mod piece;
mod pins;
mod prepare;
mod queue;
mod record;
mod recovery;
mod replay;
mod retire;
mod schema;
mod segment;
mod segment_writer;
mod sharded;
mod shrink;
mod skip;
mod snapshot;
mod space;
mod staged;
mod state;
mod storage;
mod symbol_file;
mod symbols;
mod table;
mod update;
mod upsert;

pub use backup::{BACKUP_FOLDER, restore_if_asked};
pub use bulk::BulkWriter;
pub use bulk_update::{BulkUpdate, WrittenUpdate};
pub use change::{BulkTarget, Change, CommitReceipt};
pub use check::check_root;
pub use convert::PartitionFormat;
pub use damage::Damage;
pub use delete::Delete;
pub use hold::WriteHold;
pub use layout::FORMAT_VERSION;
pub use memory::Pressure;
pub use options::{CommitMode, PlantedFault, StorageOptions, Verify};
pub use pending::PendingRows;
pub use pins::PinnedSnapshot;
pub use retire::PartitionAction;
pub use schema::{ColumnDefault, ColumnSchema, TableDefaults, TableId, TableSchema};
pub use skip::LostPart;
pub use snapshot::Snapshot;
pub use storage::Storage;
pub use symbols::SymbolDictionary;
pub use table::{PartitionInfo, Slice, TableSnapshot, TimeRange, TransactionInfo};
pub use update::Update;
