//! The column store: log, segments, manifest, snapshot, commit, checkpoint, recovery.
//!
//! A commit is one record in the log, written and (in `sync` mode) synced before it is visible.
//! Small commits are kept in memory as sorted runs until a checkpoint turns them into immutable
//! segments. Bulk writes go straight to segments and log one record that adopts them. Readers hold
//! a [`Snapshot`], an immutable value that shares all unchanged data with other snapshots. Readers
//! never block writers and are never blocked by them. `docs/format.md` describes every byte on
//! disk.
//!
//! Modules: `disk` (files, names, free space), `log` (transaction encoding, group commit),
//! `segment` (columns on disk), `table` (one table within a snapshot), `mutation` (the changes in a
//! transaction, and their preparation), `compaction` (checkpoints and other work in parallel with
//! transactions), `recovery` (opening, replay, damage, check, backup). `state` applies a
//! transaction to a `snapshot`; `manifest` records a state on disk; `storage` connects all of
//! these.
//!
//! This crate does not depend on SQL, `DataFusion`, an async runtime or the network. All file
//! access goes through [`tidemark_vfs::Vfs`], so the crash tests run exactly this code.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod compaction;
mod disk;
mod limits;
mod log;
mod manifest;
mod memory;
mod mutation;
mod options;
mod recovery;
mod segment;
mod snapshot;
mod state;
mod storage;
mod table;

pub use compaction::report::WorkReport;
pub use disk::layout::FORMAT_VERSION;
pub use memory::Pressure;
pub use mutation::bulk::BulkWriter;
pub use mutation::bulk_update::{BulkUpdate, WrittenUpdate};
pub use mutation::change::{BulkTarget, Change, CommitReceipt};
pub use mutation::convert::PartitionFormat;
pub use mutation::delete::Delete;
pub use mutation::retire::PartitionAction;
pub use mutation::update::Update;
pub use options::{CommitMode, PlantedFault, StorageOptions, Verify};
pub use recovery::backup::{BACKUP_FOLDER, restore_if_requested};
pub use recovery::check::check_root;
pub use recovery::skip::LostData;

pub use segment::key_rows::LastRow;
pub use segment::zone::{Bounds, Zone};
pub use snapshot::Snapshot;
pub use snapshot::{PinnedSnapshot, RecordsVersion};
pub use state::touched::{Touched, TouchedRange};
pub use storage::Storage;
pub use storage::changes::{AddedRows, NextChange};
pub use storage::write_lock::WriteLock;
pub use table::damage::Damage;
pub use table::pending::PendingRows;
pub use table::schema::{
    ColumnDefault, ColumnSchema, Constraint, ConstraintKind, Reference, StoragePolicy,
    TableDefaults, TableId, TableSchema,
};
pub use table::symbols::SymbolDictionary;
pub use table::time_range::TimeRange;
pub use table::{PartitionInfo, Slice, TableSnapshot, TransactionInfo};
