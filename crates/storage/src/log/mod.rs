//! The log: one sequence of transactions for all tables, written in groups.
//!
//! A group is one frame that consists of a header, records, and zeros up to the next block. It
//! starts at a block boundary, so writing it never touches an acknowledged block. The first
//! transaction number of a file voids that number and all later ones in older files. After a failed
//! write or a torn tail, the log continues in a new file, and the rest of the old file is ignored.
//!
//! States of a file: current (appended to) → full or failed (kept until a checkpoint covers it) →
//! spare (renamed to become the next current file; its old groups have an old salt). A power loss
//! may preserve the old groups but lose the new header. A file therefore becomes spare only if the
//! checkpoint contains all its transactions. A file that was found at startup or that failed is
//! removed instead, because it may contain transaction numbers that have since been reassigned.

pub(crate) mod codec;
pub(crate) mod queue;
pub(crate) mod reader;
pub(crate) mod record;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, VfsFile};

use crate::disk::Disk;
use crate::disk::layout::{
    GROUP_HEADER_BYTES, GROUP_MAGIC, LOG, LOG_BLOCK, LOG_HEADER_BYTES, LOG_MAGIC, log_file,
};
use crate::log::codec::{Decoder, Encoder};
use crate::options::{CommitMode, PlantedFault, StorageOptions};
use crate::table::schema::TableId;

/// Maximum number of spare files kept for reuse.
const SPARE_FILES: usize = 2;
/// Number of zero bytes written ahead after a file's first group.
const MIN_AHEAD: u64 = 16 << 10;
/// The zeros ahead of the log, and likewise the spare files, may occupy at most the free space
/// divided by this number.
const SPARE_DIVISOR: u64 = 64;

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// A group that is being assembled.
#[derive(Debug)]
pub(crate) struct Group {
    bytes: Encoder,
    /// Length, checksum and tables of each record, written after the last record. This directory
    /// allows a damaged record to be skipped and attributed to its tables.
    directory: Encoder,
    first_lsn: u64,
    count: u32,
    /// Size in bytes of the header and records; `None` before the first seal.
    sealed: Option<usize>,
}

impl Group {
    pub(crate) fn new(first_lsn: u64) -> Self {
        let bytes = Encoder { bytes: vec![0; GROUP_HEADER_BYTES] };
        Self { bytes, directory: Encoder::default(), first_lsn, count: 0, sealed: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.sealed.unwrap_or(self.bytes.bytes.len()) + self.directory.bytes.len()
    }

    fn padded_len(&self) -> u64 {
        (self.len() as u64).next_multiple_of(LOG_BLOCK)
    }

    /// Adds a transaction. `write` returns the tables that it changes; if it fails, the group is
    /// unchanged.
    pub(crate) fn record(
        &mut self,
        write: impl FnOnce(&mut Encoder) -> EngineResult<BTreeSet<TableId>>,
    ) -> EngineResult<()> {
        let start = self.bytes.bytes.len();
        let tables = match write(&mut self.bytes) {
            Ok(tables) => tables,
            Err(error) => {
                self.bytes.bytes.truncate(start);
                return Err(error);
            }
        };
        let Ok(len) = u32::try_from(self.bytes.bytes.len() - start) else {
            self.bytes.bytes.truncate(start);
            let message = "the transaction is larger than 4 GiB; change fewer rows at a time";
            return Err(EngineError::new(ErrorCode::ResourceLimit, message));
        };
        if len == 0 {
            return Err(EngineError::internal("a transaction without changes has no log record"));
        }
        let record = &self.bytes.bytes[start..];
        self.directory.u32(len);
        self.directory.u32(crc32c::crc32c(record));
        self.directory.u32(tables.len() as u32);
        for table in tables {
            self.directory.u64(table);
        }
        self.count += 1;
        Ok(())
    }

    /// Completes the group for a log file. The group may be completed again for another file.
    fn seal(&mut self, salt: u64, synced_lsn: u64) {
        let end = *self.sealed.get_or_insert(self.bytes.bytes.len());
        self.bytes.bytes.truncate(end);
        let payload = (self.bytes.bytes.len() - GROUP_HEADER_BYTES) as u64;
        let mut header = Encoder::default();
        header.u64(salt);
        header.u64(self.first_lsn);
        header.u64(payload);
        header.u64(synced_lsn);
        header.u32(self.count);
        header.u32(self.directory.bytes.len() as u32);
        // Binds the records to this header in a reused file.
        header.u32(crc32c::crc32c(&self.directory.bytes));
        let crc = crc32c::crc32c(&header.bytes);
        let mut sealed = Vec::with_capacity(GROUP_HEADER_BYTES);
        sealed.extend_from_slice(&GROUP_MAGIC);
        sealed.extend_from_slice(&crc.to_le_bytes());
        sealed.append(&mut header.bytes);
        self.bytes.bytes[..sealed.len()].copy_from_slice(&sealed);
        self.bytes.bytes.extend_from_slice(&self.directory.bytes);
        let padded = self.bytes.bytes.len().next_multiple_of(LOG_BLOCK as usize);
        self.bytes.bytes.resize(padded, 0);
    }
}

/// A log file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) number: u64,
    pub(crate) first_lsn: u64,
    pub(crate) salt: u64,
}

impl FileHeader {
    fn encode(self) -> Vec<u8> {
        let mut out = Encoder { bytes: LOG_MAGIC.to_vec() };
        out.u64(self.number);
        out.u64(self.first_lsn);
        out.u64(self.salt);
        debug_assert_eq!(out.bytes.len(), LOG_HEADER_BYTES);
        out.u32(crc32c::crc32c(&out.bytes));
        out.bytes.resize(LOG_BLOCK as usize, 0);
        out.bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let covered = bytes.get(..LOG_HEADER_BYTES)?;
        let mut input = Decoder::new(covered.strip_prefix(&LOG_MAGIC)?);
        let header = Self {
            number: input.u64().ok()?,
            first_lsn: input.u64().ok()?,
            salt: input.u64().ok()?,
        };
        let crc = Decoder::new(&bytes[LOG_HEADER_BYTES..]).u32().ok()?;
        (crc32c::crc32c(covered) == crc).then_some(header)
    }
}

#[derive(Debug)]
struct Current {
    file: Arc<dyn VfsFile>,
    number: u64,
    first_lsn: u64,
    salt: u64,
    /// Offset of the next group.
    offset: u64,
    /// End offset of the blocks already written in the file.
    written_to: u64,
    capacity: u64,
    /// Whether the directory entry is durable.
    named: bool,
    dirty: bool,
}

/// The log's writing end.
#[derive(Debug)]
pub(crate) struct Log {
    vfs: Arc<Disk>,
    mode: CommitMode,
    file_bytes: u64,
    prewrite_bytes: u64,
    planted: Option<PlantedFault>,
    current: Option<Current>,
    next_number: u64,
    /// Older files with unsynced groups.
    unsynced: Vec<Arc<dyn VfsFile>>,
    spare: Vec<u64>,
    /// Number of the first file that this process created.
    first_own: u64,
    /// Files in which a write failed.
    failed: BTreeSet<u64>,
    /// Last transaction that a failed sync may have lost. Until a checkpoint contains it, nothing
    /// later is durable, because replay ends at the gap.
    hole: Option<u64>,
    /// Last transaction written, and last transaction known to be durable.
    pub(crate) written_lsn: u64,
    pub(crate) synced_lsn: u64,
    /// Bytes written since the last checkpoint began.
    pub(crate) bytes_since_checkpoint: u64,
}

impl Log {
    pub(crate) fn new(
        vfs: Arc<Disk>,
        options: &StorageOptions,
        next_number: u64,
        lsn: u64,
    ) -> Self {
        Self {
            vfs,
            mode: options.commit_mode,
            file_bytes: options.log_file_bytes,
            prewrite_bytes: options.log_prewrite_bytes,
            planted: options.planted,
            current: None,
            next_number,
            unsynced: Vec::new(),
            spare: Vec::new(),
            first_own: next_number,
            failed: BTreeSet::new(),
            hole: None,
            written_lsn: lsn,
            synced_lsn: lsn,
            bytes_since_checkpoint: 0,
        }
    }

    /// Number of the log file for the next transaction.
    pub(crate) fn next_file(&self) -> u64 {
        self.current.as_ref().map_or(self.next_number, |current| current.number)
    }

    /// Writes a group with the durability of the commit mode. After a failure, the file is not
    /// reused, and the first transaction number of the next file voids any data that reached the
    /// disk.
    pub(crate) fn write(&mut self, group: &mut Group) -> EngineResult<()> {
        let written = self.try_write(group);
        if written.is_err() && self.planted == Some(PlantedFault::ReuseFailedLog) {
            self.written_lsn = group.first_lsn - 1;
        } else if written.is_err() {
            self.abandon();
            self.written_lsn = group.first_lsn - 1;
            // The next file's header voids the data that reached the disk. If that fails too, the
            // next write retries.
            let _ = self.rotate(group.first_lsn, 0);
        }
        written
    }

    fn try_write(&mut self, group: &mut Group) -> EngineResult<()> {
        let len = group.padded_len();
        let full = |current: &Current| current.offset + len > current.capacity;
        if self.current.as_ref().is_none_or(full) {
            self.rotate(group.first_lsn, len)?;
        }
        let synced_lsn = self.synced_lsn;
        let prewrite = if self.mode == CommitMode::Sync { self.prewrite_bytes } else { 0 };
        let Some(current) = &mut self.current else {
            return Err(EngineError::internal("the log has no file"));
        };
        group.seal(current.salt, synced_lsn);
        let path = || log_file(current.number);
        let failed = |error: std::io::Error| EngineError::io(path(), &error);
        let end = current.offset + len;
        if prewrite > 0 && end > current.written_to && end < current.capacity {
            let spare = self.vfs.space().map_or(prewrite, |space| space.free / SPARE_DIVISOR);
            // Writes ahead at most as many bytes as the file already contains, so that a
            // short-lived process leaves small files.
            let ahead = prewrite.min(spare).min(end.max(MIN_AHEAD));
            let upto = (end + ahead).min(current.capacity);
            match current.file.write_at(&vec![0; (upto - end) as usize], end) {
                Ok(()) => current.written_to = upto,
                // The error is ignored, because the group itself may still fit.
                Err(error) if is_full(&error) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        current.dirty = true;
        current.file.write_at(&group.bytes.bytes, current.offset).map_err(failed)?;
        current.offset = end;
        current.written_to = current.written_to.max(end);
        self.bytes_since_checkpoint += len;
        self.written_lsn = group.first_lsn + u64::from(group.count) - 1;
        let skip = self.planted == Some(PlantedFault::AcknowledgeBeforeSync);
        if self.mode == CommitMode::Sync && !skip {
            self.sync_files()?;
        }
        Ok(())
    }

    /// Syncs all written groups. After a failure, only a checkpoint makes them durable.
    pub(crate) fn flush(&mut self) -> EngineResult<()> {
        let synced = self.sync_files();
        if synced.is_err() && self.planted != Some(PlantedFault::ReuseFailedLog) {
            self.current = None;
            self.lose(self.written_lsn);
        }
        synced
    }

    /// Records a failed sync: transactions up to `lsn` may be missing on disk. The files are not
    /// synced again, because the kernel marks the lost pages as written.
    pub(crate) fn lose(&mut self, lsn: u64) {
        self.unsynced.clear();
        if lsn > self.synced_lsn {
            self.hole = self.hole.max(Some(lsn));
        }
    }

    /// Whether transactions may be missing on disk, in which case only a checkpoint can make them
    /// durable.
    pub(crate) fn has_hole(&self) -> bool {
        self.hole.is_some()
    }

    /// Records that a durable manifest contains everything up to `lsn`, so `files` do not need to
    /// be synced.
    pub(crate) fn covered(&mut self, lsn: u64, files: &[Arc<dyn VfsFile>]) {
        self.unsynced.retain(|file| !files.iter().any(|other| Arc::ptr_eq(file, other)));
        self.synced_lsn = self.synced_lsn.max(lsn);
        self.hole = self.hole.filter(|hole| *hole > lsn);
    }

    fn sync_files(&mut self) -> EngineResult<()> {
        let failed = |error: std::io::Error| EngineError::io(LOG, &error);
        if let Some(lsn) = self.hole {
            let message = format!("{LOG}: sync failed, transactions up to {lsn} may be lost");
            return Err(EngineError::new(ErrorCode::Io, message));
        }
        for file in std::mem::take(&mut self.unsynced) {
            file.sync().map_err(failed)?;
        }
        if let Some(current) = &mut self.current {
            if current.dirty {
                let synced = current.file.sync();
                if self.planted != Some(PlantedFault::TrustFailedSync) {
                    synced.map_err(failed)?;
                }
                current.dirty = false;
            }
            if !current.named {
                self.vfs.sync_dir(LOG).map_err(failed)?;
                current.named = true;
            }
        }
        self.synced_lsn = self.written_lsn;
        Ok(())
    }

    /// Stops using the current file. Earlier groups in it may still have to be synced.
    fn abandon(&mut self) {
        let Some(current) = self.current.take() else { return };
        self.failed.insert(current.number);
        if self.mode != CommitMode::Sync {
            self.unsynced.push(current.file);
        }
    }

    /// Continues in a new file, but only if the current file already contains a group. Without this
    /// condition, a checkpoint that fails repeatedly on a full disk would leave a file behind each
    /// time.
    pub(crate) fn begin_file(&mut self, first_lsn: u64) -> EngineResult<()> {
        let is_new =
            |current: &Current| current.offset == LOG_BLOCK && current.first_lsn == first_lsn;
        if self.current.as_ref().is_some_and(is_new) {
            return Ok(());
        }
        self.rotate(first_lsn, LOG_BLOCK)
    }

    /// Continues in a new file, whose first transaction is `first_lsn`.
    pub(crate) fn rotate(&mut self, first_lsn: u64, room: u64) -> EngineResult<()> {
        let old = self.current.take().filter(|old| old.dirty || !old.named);
        if self.planted != Some(PlantedFault::ForgetRotatedFile) {
            self.unsynced.extend(old.map(|old| old.file));
        }
        let number = self.next_number;
        self.next_number += 1;
        let path = log_file(number);
        let failed = |error: std::io::Error| EngineError::io(&path, &error);
        let capacity = self.file_bytes.max(room + LOG_BLOCK);
        let file = match self.spare.pop().filter(|_| room + LOG_BLOCK <= self.file_bytes) {
            Some(spare) => {
                self.vfs.rename(&log_file(spare), &path).map_err(failed)?;
                self.vfs.open(&path, OpenMode::Write).map_err(failed)?
            }
            None => self.vfs.open(&path, OpenMode::CreateNew).map_err(failed)?,
        };
        let header = FileHeader { number, first_lsn, salt: self.vfs.entropy() };
        if let Err(error) = file.write_at(&header.encode(), 0) {
            // If the file cannot be removed, recovery ignores it because it has no header.
            let _ = self.vfs.unlink(&path);
            return Err(failed(error));
        }
        let written_to = file.len().map_err(failed)?;
        self.current = Some(Current {
            file,
            number,
            first_lsn,
            salt: header.salt,
            offset: LOG_BLOCK,
            written_to,
            capacity,
            named: false,
            dirty: true,
        });
        Ok(())
    }

    /// Releases files that a durable checkpoint covers; keeps some for reuse if disk space allows.
    pub(crate) fn release(&mut self, obsolete: Vec<u64>) {
        let retained = SPARE_FILES as u64 * self.file_bytes;
        let fits = self.vfs.space().is_ok_and(|space| space.free / SPARE_DIVISOR >= retained);
        let spares = if fits { SPARE_FILES } else { 0 };
        for number in obsolete {
            let is_sound = number >= self.first_own && !self.failed.remove(&number);
            if is_sound && self.spare.len() < spares {
                self.spare.push(number);
            } else {
                // If the file cannot be removed, it is still not read again, because its number is
                // below the manifest's first log file.
                let _ = self.vfs.unlink(&log_file(number));
            }
        }
    }

    /// If nothing has been written since the last checkpoint, removes the spare files and, if the
    /// current file is a reused file, truncates it to its header. `first` is the first file that
    /// startup would read.
    pub(crate) fn release_spares(&mut self, first: u64) {
        if self.bytes_since_checkpoint > 0 {
            return;
        }
        for number in std::mem::take(&mut self.spare) {
            let _ = self.vfs.unlink(&log_file(number));
        }
        let is_long = |current: &Current| {
            // With several files, a later header decides which groups of earlier files are valid.
            let is_only = current.number == first && current.offset == LOG_BLOCK;
            is_only && current.written_to > LOG_BLOCK + self.prewrite_bytes.max(MIN_AHEAD)
        };
        if let Some(current) = self.current.take_if(|current| is_long(current)) {
            // If emptying the file fails, the next group starts a new file.
            self.current = self.emptied(&current).ok();
        }
    }

    /// Returns the same file without the groups from its previous use.
    fn emptied(&self, current: &Current) -> std::io::Result<Current> {
        let &Current { number, first_lsn, offset, capacity, named, .. } = current;
        let file = self.vfs.open(&log_file(number), OpenMode::Replace)?;
        let header = FileHeader { number, first_lsn, salt: self.vfs.entropy() };
        file.write_at(&header.encode(), 0)?;
        let (salt, written_to, dirty) = (header.salt, LOG_BLOCK, true);
        Ok(Current { file, number, first_lsn, salt, offset, written_to, capacity, named, dirty })
    }

    /// The current file's number and the offset of its next group.
    pub(crate) fn position(&self) -> Option<(u64, u64)> {
        self.current.as_ref().map(|current| (current.number, current.offset))
    }

    /// Older files with unsynced groups.
    pub(crate) fn unsynced(&self) -> &[Arc<dyn VfsFile>] {
        &self.unsynced
    }

    pub(crate) fn spare(&self) -> &[u64] {
        &self.spare
    }
}
