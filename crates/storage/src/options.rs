//! How a storage behaves.

use tidemark_types::double_array::MAX_ARRAY_ELEMENTS;

/// What an acknowledged commit survives. The order of writes is kept in every mode: a mode can
/// lose the latest commits to a power loss, never break a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitMode {
    /// Power loss: the log is synced before the commit is seen or acknowledged.
    Sync,
    /// Death of the process at once, power loss after [`StorageOptions::async_flush_ms`].
    Async,
    /// Death of the process at once, power loss after the next checkpoint or whenever the kernel
    /// writes back.
    NoSync,
}

/// How far the content of segments is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// Everything is read at start and compared with its checksums.
    Open,
    /// A column of a segment is compared when it is first read.
    #[default]
    First,
    /// Footers and the log are compared, columns are not: bit rot shows as wrong answers.
    Off,
}

/// Faults that the crash tests plant into the protocol, to prove that they would be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum PlantedFault {
    /// Replay accepts groups whose checksum is wrong.
    IgnoreLogChecksum,
    /// Replay accepts groups of other files and of gaps in the numbering.
    IgnoreLogSequence,
    /// Recovery does not sync the log it replayed.
    NoResyncAfterReplay,
    /// Files of dropped tables and folded segments are unlinked at once.
    EarlyUnlink,
    /// A commit is acknowledged and seen before the log is synced.
    AcknowledgeBeforeSync,
    /// The log is recycled before the manifest that makes it obsolete is current.
    EarlyLogRecycle,
    /// Unsynced bulk segments are trusted at recovery without reading them.
    TrustAdoptedSegments,
    /// Symbols are not written with the record that needs them first.
    ForgetSymbols,
    /// The checkpoint does not sync segments that a `nosync` bulk write left unsynced.
    SkipAdoptedSync,
    /// A failed sync of the log counts as a success.
    TrustFailedSync,
    /// After a failed write or sync the log goes on in the same file, and syncs it again.
    ReuseFailedLog,
    /// A bulk segment whose sync failed is synced again, and not written to another file.
    ResyncSegment,
    /// Replay does not let a newer file void the end of an older one.
    IgnoreVoid,
    /// A log file that is full is not synced with the flush that follows.
    ForgetRotatedFile,
    /// Replay accepts a header with the records of another group.
    IgnoreGroupBinding,
    /// The record of a bulk write is logged before its segments are where it says.
    AdoptBeforeMove,
    /// Recovery removes files that only the manifest names.
    RemoveManifestFiles,
    /// Files below the manifest's first log file are replayed, too.
    ReplayAllLogs,
    /// The names in a copy of the database are not synced before it counts as complete.
    ForgetBackupNames,
    /// The files of a copy are removed before its directory's other name is durable.
    RemoveBackupInPlace,
    /// Recovery goes on writing in the numbers that the manifest gave out last.
    ForgetFileNumbers,
}

/// Options of [`Storage::open`](crate::Storage::open).
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// What an acknowledged commit survives.
    pub commit_mode: CommitMode,
    /// Size of a log file, bytes.
    pub log_file_bytes: u64,
    /// In `sync` mode the log is filled with zeros this far ahead, bytes: syncing a written block
    /// again costs one disk write, growing a file costs a journal commit on top.
    pub log_prewrite_bytes: u64,
    /// A checkpoint starts after this much log, bytes.
    pub checkpoint_log_bytes: u64,
    /// A checkpoint starts after this time if anything was committed, milliseconds.
    pub checkpoint_interval_ms: u64,
    /// Longest time an `async` commit stays unsynced, milliseconds.
    pub async_flush_ms: u64,
    /// Whether the clock bounds a time to live: rows of the future do not end what is younger than
    /// the clock says. Otherwise the newest row alone counts.
    pub ttl_by_clock: bool,
    /// Manifests that are kept: with 2, a damaged one is made good from the one before and its
    /// log, which stay on disk until the next checkpoint; with 1, they do not.
    pub keep_generations: u32,
    /// How far the content of segments is trusted.
    pub verify: Verify,
    /// Free bytes on the disk below which nothing more is written; 5 % of the disk or 1 GiB,
    /// whichever is less, when absent. Writes go on above 1.4 times as much.
    pub disk_watermark_bytes: Option<u64>,
    /// Room kept so that a checkpoint can finish on a full disk, bytes; 2 % of the disk at most.
    pub disk_reserve_bytes: u64,
    /// Rows of a memory run above which it is not merged with the next one.
    pub run_rows: usize,
    /// Greatest number of rows of a segment.
    pub segment_rows: usize,
    /// Memory a bulk write may hold before it writes segments, bytes.
    pub bulk_memory_bytes: usize,
    /// The most tables.
    pub max_tables: usize,
    /// The most partitions of a table.
    pub max_partitions: usize,
    /// The most columns of a table.
    pub max_columns: usize,
    /// The most bytes of a text or BINARY cell.
    pub max_cell_bytes: usize,
    /// The most elements of an array in a column; arrays of more than
    /// [`tidemark_types::double_array::MAX_ARRAY_ELEMENTS`] are made nowhere.
    pub max_array_elements: usize,
    /// Rows that only memory and the log hold, bytes: above half of it writes are slowed, above
    /// all of it refused, until a checkpoint has written them.
    pub unwritten_limit_bytes: u64,
    /// Rows of the latest commits to followed tables that are kept in memory, bytes: so far back
    /// their changes are reported commit by commit.
    pub recent_changes_bytes: usize,
    /// Whether a thread of the storage's own flushes and checkpoints. The crash tests do both
    /// themselves, to stay repeatable.
    pub background: bool,
    /// A fault for the crash tests.
    #[doc(hidden)]
    pub planted: Option<PlantedFault>,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            commit_mode: CommitMode::Sync,
            log_file_bytes: 64 << 20,
            log_prewrite_bytes: 4 << 20,
            checkpoint_log_bytes: 256 << 20,
            checkpoint_interval_ms: 300_000,
            async_flush_ms: 200,
            ttl_by_clock: true,
            keep_generations: 2,
            verify: Verify::First,
            disk_watermark_bytes: None,
            disk_reserve_bytes: 64 << 20,
            run_rows: 256 << 10,
            segment_rows: 4 << 20,
            bulk_memory_bytes: 96 << 20,
            max_tables: 50_000,
            max_partitions: 100_000,
            max_columns: 4_096,
            max_cell_bytes: 64 << 20,
            max_array_elements: MAX_ARRAY_ELEMENTS,
            unwritten_limit_bytes: 2 << 30,
            recent_changes_bytes: 64 << 20,
            background: true,
            planted: None,
        }
    }
}
