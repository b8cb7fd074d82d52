//! Names, magic numbers and fixed offsets in the on-disk format. `docs/format.md` explains them.

use std::fmt::Display;

use tidemark_types::{EngineError, ErrorCode};

use crate::table::schema::TableId;

pub(crate) const LOCK: &str = "lock";
pub(crate) const DB: &str = "db";
pub(crate) const FORMAT: &str = "db/FORMAT";
pub(crate) const FORMAT_TMP: &str = "db/FORMAT.tmp";
pub(crate) const CURRENT: &str = "db/CURRENT";
pub(crate) const CURRENT_TMP: &str = "db/CURRENT.tmp";
pub(crate) const LOG: &str = "db/log";
pub(crate) const TABLES: &str = "db/t";
pub(crate) const STAGE: &str = "db/stage";
pub(crate) const TRASH: &str = "db/trash";
/// File that reserves disk space for the last checkpoint on a full disk.
pub(crate) const RESERVE: &str = "db/reserve";
/// Directories for a copy of the database and for an incomplete copy.
pub(crate) const BACKUP: &str = ".checkpoint";
pub(crate) const BACKUP_NEW: &str = ".checkpoint.new";
/// The file that requests a restore from the copy, and the database that the restore replaced.
pub(crate) const RESTORE: &str = "_restore";
pub(crate) const REPLACED: &str = "db.replaced";

/// Roots with a different major version are rejected; older minor versions can be opened.
pub const FORMAT_VERSION: (u32, u32) = (1, 5);

/// Name suffix of a segment that is a Parquet file.
pub(crate) const PARQUET_SUFFIX: &str = ".parquet";

/// Alignment of sections in a segment, and therefore of columns in memory.
pub(crate) const SECTION_ALIGN: u64 = 64;
/// Alignment of log groups. It ensures that no acknowledged byte shares a block with a later write.
pub(crate) const LOG_BLOCK: u64 = 4_096;

pub(crate) const LOG_MAGIC: [u8; 8] = *b"TDMLOG01";
pub(crate) const GROUP_MAGIC: [u8; 4] = *b"TDMH";
/// Magic number of format 1.0 groups, where a length and checksum precede each record and there is
/// no directory.
pub(crate) const GROUP_MAGIC_1_0: [u8; 4] = *b"TDMG";
pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"TDMSEG01";
pub(crate) const SYMBOLS_MAGIC: [u8; 8] = *b"TDMSYM01";
pub(crate) const MANIFEST_MAGIC: [u8; 8] = *b"TDMMAN01";

/// Number of log file header bytes covered by the checksum that follows them.
pub(crate) const LOG_HEADER_BYTES: usize = 32;
/// Size in bytes of a group header.
pub(crate) const GROUP_HEADER_BYTES: usize = 64;
/// Size in bytes of the length and checksum that precede each record in a format 1.0 group.
pub(crate) const RECORD_HEADER_BYTES: usize = 8;
/// Size in bytes of a segment header. Only the magic number is used.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 64;
/// Size in bytes of a segment trailer: footer offset, length, checksum, magic number.
pub(crate) const SEGMENT_TRAILER_BYTES: u64 = 24;

const _: () = assert!(SEGMENT_HEADER_BYTES.is_multiple_of(SECTION_ALIGN));
const _: () = assert!(GROUP_HEADER_BYTES as u64 <= LOG_BLOCK);

pub(crate) fn log_file(number: u64) -> String {
    format!("{LOG}/{number:012}.log")
}

pub(crate) fn log_number(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

pub(crate) fn manifest(number: u64) -> String {
    format!("{DB}/manifest.{number}")
}

pub(crate) fn manifest_number(name: &str) -> Option<u64> {
    name.strip_prefix("manifest.")?.parse().ok()
}

pub(crate) fn table_dir(table: TableId) -> String {
    format!("{TABLES}/{table}")
}

/// The partition name is for human readers; the number alone identifies the file.
pub(crate) fn segment_name(partition: &str, number: u64) -> String {
    format!("{partition}.{number}.seg")
}

/// Like [`segment_name`], for a segment that is a Parquet file.
pub(crate) fn parquet_name(partition: &str, number: u64) -> String {
    format!("{partition}.{number}{PARQUET_SUFFIX}")
}

pub(crate) fn symbols_name(column: u32, number: u64) -> String {
    format!("sym.{column}.{number}")
}

/// Returns the number in a segment or symbol file's name.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let name = name.strip_suffix(".seg").or(name.strip_suffix(PARQUET_SUFFIX)).unwrap_or(name);
    name.rsplit_once('.')?.1.parse().ok()
}

/// Error for a file whose content differs from what was written.
pub(crate) fn damaged(path: &str, what: impl Display) -> EngineError {
    EngineError::new(ErrorCode::Damaged, format!("{path} is damaged: {what}"))
}
