//! Reads the log: files, groups, records, and the tables that damaged records change.

use std::ops::Range;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult};
use tidemark_vfs::{OpenMode, Vfs, VfsFile};

use crate::disk::layout::{
    GROUP_HEADER_BYTES, GROUP_MAGIC, GROUP_MAGIC_1_0, LOG_BLOCK, RECORD_HEADER_BYTES, log_file,
};
use crate::log::FileHeader;
use crate::log::codec::Decoder;
use crate::options::PlantedFault;
use crate::table::schema::TableId;

/// Content of a group header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupHeader {
    salt: u64,
    pub(crate) first_lsn: u64,
    /// Last transaction known to be durable when the group was written.
    synced_lsn: u64,
    pub(crate) count: u32,
    /// Total size of the records, in bytes.
    payload: usize,
    directory: usize,
    /// Checksum of the directory, or in format 1.0, of the records' lengths and checksums.
    directory_crc: u32,
    has_directory: bool,
}

impl GroupHeader {
    fn decode(bytes: &[u8], ignore_crc: bool) -> Option<Self> {
        let has_directory = bytes.starts_with(&GROUP_MAGIC);
        let covered = if has_directory { 44 } else { 40 };
        if !has_directory && !bytes.starts_with(&GROUP_MAGIC_1_0) {
            return None;
        }
        let mut input = Decoder::new(bytes.get(GROUP_MAGIC.len()..)?);
        let crc = input.u32().ok()?;
        let fields = bytes.get(8..8 + covered)?;
        if crc32c::crc32c(fields) != crc && !ignore_crc {
            return None;
        }
        Some(Self {
            salt: input.u64().ok()?,
            first_lsn: input.u64().ok()?,
            payload: usize::try_from(input.u64().ok()?).ok()?,
            synced_lsn: input.u64().ok()?,
            count: input.u32().ok()?,
            directory: if has_directory { input.u32().ok()? as usize } else { 0 },
            directory_crc: input.u32().ok()?,
            has_directory,
        })
    }

    fn frame_bytes(&self) -> Option<usize> {
        GROUP_HEADER_BYTES.checked_add(self.payload)?.checked_add(self.directory)
    }

    /// Number of the first transaction after the group.
    pub(crate) fn end_lsn(&self) -> u64 {
        self.first_lsn + u64::from(self.count)
    }
}

/// A transaction found in a group.
#[derive(Debug, Default)]
pub(crate) struct FoundRecord {
    /// Byte range in the frame; `None` if the record is damaged.
    pub(crate) bytes: Option<Range<usize>>,
    /// Tables that the record changes; empty if unknown.
    pub(crate) tables: Vec<TableId>,
}

/// A group found in a file. Its header is valid, but its records are not checked yet.
#[derive(Debug)]
pub(crate) struct FoundGroup {
    pub(crate) header: GroupHeader,
    /// Whether unreadable bytes lie between this group and the previous one.
    pub(crate) after_hole: bool,
    offset: u64,
}

/// A log file with its groups in order.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) number: u64,
    pub(crate) first_lsn: u64,
    pub(crate) groups: Vec<FoundGroup>,
    file: Arc<dyn VfsFile>,
    planted: Option<PlantedFault>,
}

impl LogFile {
    /// Finds all groups by their headers. Returns `None` if the file has neither a header nor a
    /// group after transaction `after_lsn`, and thus contains nothing to replay.
    pub(crate) fn scan(
        vfs: &dyn Vfs,
        number: u64,
        after_lsn: u64,
        planted: Option<PlantedFault>,
    ) -> EngineResult<Option<Self>> {
        let path = log_file(number);
        let failed = |error: std::io::Error| EngineError::io(&path, &error);
        let file = vfs.open(&path, OpenMode::Read).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        let mut block = vec![0; LOG_BLOCK as usize];
        let count = file.read_at(&mut block, 0).map_err(failed)?;
        let header = FileHeader::decode(&block[..count]).filter(|head| head.number == number);
        // The first sync of a file covers its header and its first group. A file without a header
        // is therefore either irrelevant or damaged. If it is damaged, its groups provide the salt.
        // The old groups in a reused file precede everything that replay needs.
        let mut salt = header.map(|header| header.salt);
        let ignore_crc = planted == Some(PlantedFault::IgnoreLogChecksum);
        let ignore_salt = planted == Some(PlantedFault::IgnoreLogSequence);
        let mut groups = Vec::new();
        let (mut offset, mut expected) = (LOG_BLOCK, LOG_BLOCK);
        let mut head = [0; GROUP_HEADER_BYTES];
        while offset < len {
            let count = file.read_at(&mut head, offset).map_err(failed)?;
            let group = GroupHeader::decode(&head[..count], ignore_crc);
            let group = group.filter(|g| salt.is_some() || g.first_lsn > after_lsn);
            let group = group.filter(|g| ignore_salt || *salt.get_or_insert(g.salt) == g.salt);
            let end = group.and_then(|g| offset.checked_add(g.frame_bytes()? as u64));
            match (group, end.filter(|end| *end <= len)) {
                (Some(header), Some(end)) => {
                    let after_hole = expected != offset;
                    groups.push(FoundGroup { header, after_hole, offset });
                    offset = end.next_multiple_of(LOG_BLOCK);
                    expected = offset;
                }
                _ => offset += LOG_BLOCK,
            }
        }
        let first = header.map(|header| header.first_lsn);
        let first = first.or_else(|| groups.first().map(|group| group.header.first_lsn));
        Ok(first.map(|first_lsn| Self { number, first_lsn, groups, file, planted }))
    }

    /// Last transaction that any group reports as durable.
    pub(crate) fn claimed_lsn(&self) -> u64 {
        self.groups.iter().map(|group| group.header.synced_lsn).max().unwrap_or(0)
    }

    /// Returns a group's bytes and its records; no records if their offsets are unknown.
    pub(crate) fn read(&self, group: &FoundGroup) -> EngineResult<(Vec<u8>, Vec<FoundRecord>)> {
        let path = log_file(self.number);
        let mut frame = vec![0; group.header.frame_bytes().unwrap_or(0)];
        let read = self.file.read_at(&mut frame, group.offset);
        let count = read.map_err(|error| EngineError::io(&path, &error))?;
        frame.truncate(count);
        let ignore_crc = self.planted == Some(PlantedFault::IgnoreLogChecksum);
        let ignore_binding = ignore_crc || self.planted == Some(PlantedFault::IgnoreGroupBinding);
        let records = if group.header.has_directory {
            by_directory(&frame, &group.header, ignore_crc, ignore_binding)
        } else {
            by_walking(&frame, &group.header, ignore_crc)
        };
        Ok((frame, records.unwrap_or_default()))
    }
}

/// An empty record would match a zero checksum, and a header may survive without its records.
fn checksum_matches(record: &[u8], crc: u32, ignore_crc: bool) -> bool {
    ignore_crc || (!record.is_empty() && crc32c::crc32c(record) == crc)
}

fn by_directory(
    frame: &[u8],
    header: &GroupHeader,
    ignore_crc: bool,
    ignore_binding: bool,
) -> Option<Vec<FoundRecord>> {
    let records_end = GROUP_HEADER_BYTES + header.payload;
    let directory = frame.get(records_end..records_end + header.directory)?;
    if crc32c::crc32c(directory) != header.directory_crc && !ignore_binding {
        return None;
    }
    let mut input = Decoder::new(directory);
    let mut position = GROUP_HEADER_BYTES;
    let mut records = Vec::new();
    for _ in 0..header.count {
        let (len, crc, tables) = (input.u32().ok()? as usize, input.u32().ok()?, input.u32().ok()?);
        let tables = (0..tables).map(|_| input.u64().ok()).collect::<Option<_>>()?;
        let end = position.checked_add(len).filter(|end| *end <= records_end)?;
        let sound = checksum_matches(&frame[position..end], crc, ignore_crc);
        records.push(FoundRecord { bytes: sound.then_some(position..end), tables });
        position = end;
    }
    Some(records)
}

/// Format 1.0: after a damaged record, the other records of its group cannot be located.
fn by_walking(frame: &[u8], header: &GroupHeader, ignore_crc: bool) -> Option<Vec<FoundRecord>> {
    let mut position = GROUP_HEADER_BYTES;
    let mut records = Vec::new();
    let mut found_crc = 0;
    for _ in 0..header.count {
        let head = frame.get(position..position + RECORD_HEADER_BYTES)?;
        found_crc = crc32c::crc32c_append(found_crc, head);
        let mut head = Decoder::new(head);
        let (len, crc) = (head.u32().ok()? as usize, head.u32().ok()?);
        position += RECORD_HEADER_BYTES;
        let end = position.checked_add(len)?;
        if !checksum_matches(frame.get(position..end)?, crc, ignore_crc) {
            return None;
        }
        records.push(FoundRecord { bytes: Some(position..end), tables: Vec::new() });
        position = end;
    }
    (position == frame.len() && found_crc == header.directory_crc || ignore_crc).then_some(records)
}
