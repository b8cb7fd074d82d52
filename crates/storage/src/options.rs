//! Storage options.

use tidemark_types::double_array::MAX_ARRAY_ELEMENTS;

/// Durability of an acknowledged commit. Every mode preserves the write order, so a power loss can
/// lose the latest commits but never corrupts a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitMode {
    /// Survives power loss: the log is synced before the commit is visible or acknowledged.
    Sync,
    /// Survives a process crash immediately, and power loss after
    /// [`StorageOptions::async_flush_ms`].
    Async,
    /// Survives a process crash immediately, and power loss after the next checkpoint or the
    /// kernel's writeback.
    NoSync,
}

/// When segment contents are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// All segments are read at startup and verified against their checksums.
    Open,
    /// A column of a segment is verified when it is first read.
    #[default]
    First,
    /// Only footers and the log are verified, so bit rot in columns leads to wrong answers.
    Off,
}

/// Faults that the crash tests inject to prove that they would be detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum PlantedFault {
    /// Replay accepts groups whose checksum is wrong.
    IgnoreLogChecksum,
    /// Replay accepts groups from other files, and gaps in the transaction numbers.
    IgnoreLogSequence,
    /// Recovery does not sync the log it replayed.
    NoResyncAfterReplay,
    /// Files of dropped tables and folded segments are unlinked immediately.
    EarlyUnlink,
    /// A commit is acknowledged and visible before the log is synced.
    AcknowledgeBeforeSync,
    /// The log is recycled before the manifest that makes it obsolete becomes current.
    EarlyLogRecycle,
    /// Recovery trusts unsynced bulk segments without reading them.
    TrustAdoptedSegments,
    /// Symbols are not written with the record that first needs them.
    ForgetSymbols,
    /// The checkpoint does not sync segments that a `nosync` bulk write left unsynced.
    SkipAdoptedSync,
    /// A failed sync of the log counts as a success.
    TrustFailedSync,
    /// After a failed write or sync, the log continues in the same file and syncs it again.
    ReuseFailedLog,
    /// A bulk segment whose sync failed is synced again instead of being written to another file.
    ResyncSegment,
    /// Replay ignores that a newer file voids the tail of an older file.
    IgnoreVoid,
    /// The next flush does not sync a log file that is full.
    ForgetRotatedFile,
    /// Replay accepts a header together with the records of another group.
    IgnoreGroupBinding,
    /// A bulk write's record is logged before its segments are moved to the named paths.
    AdoptBeforeMove,
    /// Recovery removes files that only the manifest names.
    RemoveManifestFiles,
    /// Replay also reads files below the manifest's first log file.
    ReplayAllLogs,
    /// The file names in a database copy are not synced before the copy counts as complete.
    ForgetBackupNames,
    /// A copy's files are removed before the rename of its directory is durable.
    RemoveBackupInPlace,
    /// Recovery reuses file numbers that were assigned since the last manifest.
    ForgetFileNumbers,
}

/// Options for [`Storage::open`](crate::Storage::open).
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// Durability of an acknowledged commit.
    pub commit_mode: CommitMode,
    /// Size of a log file in bytes.
    pub log_file_bytes: u64,
    /// Bytes of zeros written ahead of the log in `sync` mode. Syncing an already written block
    /// costs one disk write; growing a file also costs a journal commit.
    pub log_prewrite_bytes: u64,
    /// Number of log bytes after which a checkpoint starts.
    pub checkpoint_log_bytes: u64,
    /// Milliseconds after which a checkpoint starts if anything was committed.
    pub checkpoint_interval_ms: u64,
    /// Maximum time that an `async` commit remains unsynced, in milliseconds.
    pub async_flush_ms: u64,
    /// Whether the wall clock also limits expiry by time to live. If so, rows with future
    /// timestamps do not expire data that is still recent according to the clock. Otherwise, only
    /// the newest row determines expiry.
    pub ttl_by_clock: bool,
    /// Number of manifest generations to keep. With 2, a damaged manifest is recovered from the
    /// previous manifest and its log, which remain on disk until the next checkpoint. With 1, the
    /// previous manifest and its log are not retained.
    pub keep_generations: u32,
    /// When segment contents are verified.
    pub verify: Verify,
    /// Free bytes on the disk below which nothing is written; `None` selects 5 % of the disk or 1
    /// GiB, whichever is less. Writes resume above 1.4 times this value.
    pub disk_watermark_bytes: Option<u64>,
    /// Bytes reserved so that a checkpoint can finish on a full disk; at most 1/32 of the disk.
    pub disk_reserve_bytes: u64,
    /// Number of rows above which an in-memory run is not merged with the next run.
    pub run_rows: usize,
    /// Maximum number of rows per segment.
    pub segment_rows: usize,
    /// Maximum memory that a bulk write uses before it writes segments, in bytes.
    pub bulk_memory_bytes: usize,
    /// Maximum number of tables.
    pub max_tables: usize,
    /// Maximum number of partitions per table.
    pub max_partitions: usize,
    /// Maximum number of columns per table.
    pub max_columns: usize,
    /// Maximum size of a string or BINARY value, in bytes.
    pub max_cell_bytes: usize,
    /// Maximum number of elements in an array cell. No statement creates arrays with more than
    /// [`tidemark_types::double_array::MAX_ARRAY_ELEMENTS`] elements.
    pub max_array_elements: usize,
    /// Maximum size in bytes of rows that are only in memory and in the log. Above half this limit,
    /// writes are slowed. Above the limit, they are refused until a checkpoint has written the
    /// rows.
    pub unwritten_limit_bytes: u64,
    /// Maximum size in bytes of the rows kept in memory from the latest commits to followed tables.
    /// Changes from these commits are reported one commit at a time.
    pub recent_changes_bytes: usize,
    /// Whether a background thread flushes and checkpoints. The crash tests do both themselves, so
    /// that they are reproducible.
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
