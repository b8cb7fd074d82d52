//! Segments: immutable files that contain all columns for some rows in one partition.

pub(crate) mod block;
pub(crate) mod cell_layout;
pub(crate) mod column;
pub(crate) mod dead_rows;
pub(crate) mod gather;
pub(crate) mod key_rows;
pub(crate) mod meta;
pub(crate) mod parquet_file;
pub(crate) mod patch;
pub(crate) mod symbol_file;
pub(crate) mod writer;
pub(crate) mod zone;

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_buffer::{Buffer, MutableBuffer};
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::{OpenMode, is_faulted, read_ahead};

use crate::disk::Disk;
use crate::disk::file::StoredFile;
use crate::disk::layout::{
    SECTION_ALIGN, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC, SEGMENT_TRAILER_BYTES, damaged,
};
use crate::disk::suspicion::suspect;
use crate::options::Verify;

use crate::log::codec::Decoder;
use crate::segment::column::ColumnData;
use crate::segment::dead_rows::DeadRows;
use crate::segment::meta::{ColumnEntry, decode_footer};
use crate::segment::parquet_file::{MappedFile, ParquetColumns};
use crate::segment::patch::Patch;
use crate::segment::zone::{Zone, Zones};
use crate::table::schema::ColumnSchema;
use crate::table::upsert::UpsertKeys;

/// Whether the file is shorter than its mapping. If a file is truncated within a page, the rest of
/// that page reads as zeros without a fault. Later pages fault, and read as zeros from then on.
fn is_cut(map: &Buffer) -> bool {
    !map.ends_with(&SEGMENT_MAGIC)
}

/// Number of bytes read ahead at each end of a file: the header, and the footer in most cases.
const EDGE_BYTES: usize = 16 << 10;

/// A column of an opened segment; read and verified on first access.
#[derive(Debug)]
struct OpenColumn {
    entry: ColumnEntry,
    cells: OnceLock<EngineResult<ColumnData>>,
    zones: Zones,
}

#[derive(Debug)]
struct Opened {
    map: Buffer,
    columns: HashMap<u32, OpenColumn>,
}

/// A segment, whose file is mapped on first access.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) meta: SegmentMeta,
    pub(crate) file: Arc<StoredFile>,
    /// Keys by which the segment's rows replace rows of earlier runs and segments. A checkpoint
    /// removes the replaced rows, so no manifest contains such keys.
    pub(crate) upsert: Option<Arc<UpsertKeys>>,
    opened: Arc<OnceLock<EngineResult<Opened>>>,
    /// Damage that was found without reading the segment, if any.
    condemned: Arc<OnceLock<EngineError>>,
    /// New cells that replace cells in the file, by column identifier.
    patches: HashMap<u32, Arc<Patch>>,
    /// Deleted rows in the file, if any.
    dead: Option<Arc<DeadRows>>,
    /// Reader of the columns if the segment is a Parquet file.
    parquet: Option<Arc<ParquetColumns>>,
}

pub(crate) use crate::segment::meta::SegmentMeta;

impl MappedFile for Segment {
    fn path(&self) -> &str {
        self.file.path()
    }

    fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    fn map(&self) -> EngineResult<Buffer> {
        Self::map(self)
    }
}

impl Segment {
    pub(crate) fn new(vfs: &Arc<Disk>, directory: &str, meta: SegmentMeta) -> Arc<Self> {
        Self::upserting(vfs, directory, meta, None)
    }

    pub(crate) fn upserting(
        vfs: &Arc<Disk>,
        directory: &str,
        meta: SegmentMeta,
        upsert: Option<Arc<UpsertKeys>>,
    ) -> Arc<Self> {
        let path = format!("{directory}/{}", meta.name);
        let file = StoredFile::new(Arc::clone(vfs), path);
        let (opened, condemned, patches) = (Arc::default(), Arc::default(), HashMap::new());
        let parquet = ParquetColumns::of(&meta);
        Arc::new(Self { meta, file, upsert, opened, condemned, patches, dead: None, parquet })
    }

    /// Number of rows in the file, including deleted rows.
    pub(crate) fn rows(&self) -> usize {
        self.meta.rows as usize
    }

    /// Number of rows in the file, excluding deleted rows.
    pub(crate) fn living_rows(&self) -> usize {
        self.rows() - self.dead.as_ref().map_or(0, |dead| dead.count())
    }

    /// First and last timestamp of the rows, excluding deleted rows.
    pub(crate) fn bounds(&self) -> (i64, i64) {
        self.dead.as_ref().map_or(self.meta.bounds, |dead| dead.bounds())
    }

    /// Deleted rows, if any.
    pub(crate) fn dead(&self) -> Option<&Arc<DeadRows>> {
        self.dead.as_ref()
    }

    /// Returns the same file with these rows deleted.
    pub(crate) fn with_dead(&self, dead: DeadRows) -> Self {
        Self { dead: Some(Arc::new(dead)), upsert: self.upsert.clone(), ..self.settled() }
    }

    /// Returns the same file with additional new cells.
    pub(crate) fn with_patches(&self, newer: Vec<(u32, Patch)>) -> EngineResult<Self> {
        let mut patches = self.patches.clone();
        for (id, patch) in newer {
            let patch = match patches.get(&id) {
                Some(older) => older.under(&patch)?,
                None => patch,
            };
            patches.insert(id, Arc::new(patch));
        }
        Ok(Self { patches, upsert: self.upsert.clone(), ..self.settled() })
    }

    /// Returns the segment as stored in its file, without new cells and including deleted rows.
    pub(crate) fn as_stored(&self) -> Arc<Self> {
        Arc::new(Self { patches: HashMap::new(), dead: None, ..self.settled() })
    }

    /// Returns the same rows without the keys by which they replace other rows.
    pub(crate) fn settled(&self) -> Self {
        Self {
            meta: self.meta.clone(),
            file: Arc::clone(&self.file),
            upsert: None,
            opened: Arc::clone(&self.opened),
            condemned: Arc::clone(&self.condemned),
            patches: self.patches.clone(),
            dead: self.dead.clone(),
            parquet: self.parquet.clone(),
        }
    }

    /// Whether the segment is a Parquet file.
    pub(crate) fn is_parquet(&self) -> bool {
        self.parquet.is_some()
    }

    /// Whether visible cells differ from the file.
    pub(crate) fn is_patched(&self) -> bool {
        !self.patches.is_empty()
    }

    /// Whether the visible content differs from the file, or a failed sync may have lost the file's
    /// content. A manifest can record deleted rows, so `lean` leaves them in the file to save disk
    /// space.
    pub(crate) fn must_be_written(&self, lean: bool) -> bool {
        self.is_patched() || self.file.is_distrusted() || (self.dead.is_some() && !lean)
    }

    /// Returns the same rows from an in-memory copy of the file, verified against its checksums.
    /// Data written from the copy equals the data first written, even if the file changes.
    pub(crate) fn in_memory(&self) -> EngineResult<Self> {
        if self.is_parquet() {
            return Ok(Self { upsert: self.upsert.clone(), ..self.settled() }); // Always synced.
        }
        let path = self.file.path();
        let failed = |error: io::Error| EngineError::io(path, &error);
        let file = self.file.vfs().open(path, OpenMode::Read).map_err(failed)?;
        let mut bytes = MutableBuffer::from_len_zeroed(self.meta.file_len as usize);
        let count = file.read_at(&mut bytes, 0).map_err(failed)?;
        bytes.truncate(count);
        let copy = self.settled();
        let opened = OnceLock::from(Ok(self.open(bytes.into())?));
        let copy = Self { upsert: self.upsert.clone(), opened: Arc::new(opened), ..copy };
        copy.verify()?;
        Ok(copy)
    }

    /// Returns the whole column; null if the segment is older than the column.
    pub(crate) fn column(&self, target: &ColumnSchema) -> EngineResult<ColumnData> {
        match self.patches.get(&target.id) {
            Some(patch) => patch.column(self.rows(), || self.stored_column(target)),
            None => self.stored_column(target),
        }
    }

    /// Returns the column as stored in the file, without copying it.
    fn stored_column(&self, target: &ColumnSchema) -> EngineResult<ColumnData> {
        if let Some(parquet) = &self.parquet {
            return parquet.column(self, target).inspect_err(|error| {
                if error.code == ErrorCode::Damaged {
                    self.mark_damaged(error.clone());
                }
            });
        }
        let opened = self.opened()?;
        if is_faulted(&opened.map) || is_cut(&opened.map) {
            return Err(self.unreadable());
        }
        let Some(column) = opened.columns.get(&target.id) else {
            return ColumnData::nulls(target.sql_type, self.rows());
        };
        if self.file.is_distrusted() {
            return self.read(&opened.map, &column.entry, true);
        }
        let compare = self.file.vfs().verify != Verify::Off;
        column.cells.get_or_init(|| self.read(&opened.map, &column.entry, compare)).clone()
    }

    /// Returns the zones of these rows, block by block. `None` if the cells are not numbers, or are
    /// neither in a mapped file nor in a cached decoded column.
    pub(crate) fn zones(
        &self,
        target: &ColumnSchema,
        rows: Range<usize>,
    ) -> Option<Vec<(Range<usize>, Option<Zone>)>> {
        if self.patches.contains_key(&target.id) || self.file.is_distrusted() {
            return None;
        }
        if let Some(parquet) = &self.parquet {
            let (cells, zones) = parquet.zones(target)?;
            let ColumnData::Plain(cells) = cells else { return None };
            return Some(zones.of(cells.as_ref(), rows));
        }
        let ColumnData::Plain(cells) = self.stored_column(target).ok()? else { return None };
        let column = self.opened().ok()?.columns.get(&target.id)?;
        Some(column.zones.of(cells.as_ref(), rows))
    }

    /// Identifiers of the columns in the file; empty for a Parquet file.
    pub(crate) fn column_ids(&self) -> EngineResult<Vec<u32>> {
        if self.is_parquet() {
            return Ok(Vec::new());
        }
        Ok(self.opened()?.columns.keys().copied().collect())
    }

    /// Returns the number of bytes in the file that belong to columns other than `columns`. Does
    /// not keep the file open.
    pub(crate) fn bytes_beside(&self, columns: &[ColumnSchema]) -> EngineResult<u64> {
        let is_known = |id: u32| columns.iter().any(|column| column.id == id);
        if let Some(error) = self.condemned.get() {
            return Err(error.clone());
        }
        if self.is_parquet() {
            return parquet_file::bytes_beside(self, is_known);
        }
        let opened = self.map_file()?;
        let beside = opened.columns.values().filter(|column| !is_known(column.entry.id));
        Ok(beside.flat_map(|column| &column.entry.sections).map(|section| section.len).sum())
    }

    /// Marks the segment as damaged from now on.
    pub(crate) fn mark_damaged(&self, error: EngineError) {
        suspect();
        let _ = self.condemned.set(error);
    }

    /// Damage found so far, if any.
    pub(crate) fn known_damage(&self) -> Option<EngineError> {
        if let Some(error) = self.condemned.get() {
            return Some(error.clone());
        }
        match self.opened.get()? {
            Err(error) => Some(error.clone()),
            Ok(opened) if is_faulted(&opened.map) || is_cut(&opened.map) => Some(self.unreadable()),
            Ok(opened) => opened.columns.values().find_map(|column| {
                column.cells.get().and_then(|cells| cells.as_ref().err()).cloned()
            }),
        }
    }

    /// Reads everything and verifies every checksum.
    pub(crate) fn verify(&self) -> EngineResult<()> {
        if let Some(parquet) = &self.parquet {
            return parquet.verify(self);
        }
        let opened = self.opened()?;
        for column in opened.columns.values() {
            let read = self.read(&opened.map, &column.entry, true);
            let outcome = read.as_ref().map(drop).map_err(Clone::clone);
            let _ = column.cells.set(read);
            outcome?;
        }
        Ok(())
    }

    fn unreadable(&self) -> EngineError {
        damaged(self.file.path(), "part of the file can no longer be read")
    }

    fn opened(&self) -> EngineResult<&Opened> {
        if let Some(error) = self.condemned.get() {
            return Err(error.clone());
        }
        if self.opened.get().is_none() {
            match self.map_file() {
                // An error such as too many open files or too little memory is not cached, because
                // the next reader may succeed.
                Err(error) if error.code != ErrorCode::Damaged => return Err(error),
                outcome => drop(self.opened.set(outcome)),
            }
        }
        self.opened.get_or_init(|| self.map_file()).as_ref().map_err(Clone::clone)
    }

    fn damage(&self, what: impl std::fmt::Display) -> EngineError {
        suspect();
        damaged(self.file.path(), what)
    }

    fn map_file(&self) -> EngineResult<Opened> {
        self.open(self.map()?)
    }

    /// Maps the file. A missing or truncated file counts as damaged. Other errors, such as too
    /// little memory or too many open files, are not cached, so the next reader may succeed.
    pub(crate) fn map(&self) -> EngineResult<Buffer> {
        let map = self.file.vfs().map(self.file.path(), self.meta.file_len);
        map.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::NotFound => self.damage(error),
            _ => EngineError::io(self.file.path(), &error),
        })
    }

    fn open(&self, map: Buffer) -> EngineResult<Opened> {
        read_ahead(&map[..map.len().min(EDGE_BYTES)]);
        read_ahead(&map[map.len().saturating_sub(EDGE_BYTES)..]);
        let framed = map.starts_with(&SEGMENT_MAGIC) && map.ends_with(&SEGMENT_MAGIC);
        if map.len() as u64 != self.meta.file_len || !framed {
            return Err(self.damage("wrong file length or segment signature"));
        }
        let footer = self.footer(&map)?;
        let (rows, columns) = decode_footer(footer).map_err(|error| self.damage(error))?;
        if rows != self.meta.rows {
            return Err(self.damage(format!("found {rows} rows, expected {}", self.meta.rows)));
        }
        let columns = columns
            .into_iter()
            .map(|entry| {
                let (cells, zones) = (OnceLock::new(), Zones::default());
                (entry.id, OpenColumn { entry, cells, zones })
            })
            .collect();
        Ok(Opened { map, columns })
    }

    fn footer<'a>(&self, map: &'a Buffer) -> EngineResult<&'a [u8]> {
        let body = (map.len() as u64).checked_sub(SEGMENT_TRAILER_BYTES);
        let body = body.ok_or_else(|| self.damage("the file is too short"))?;
        let mut trailer = Decoder::new(&map[body as usize..]);
        let (offset, len, crc) = (trailer.u64()?, trailer.u32()?, trailer.u32()?);
        let end = offset.checked_add(u64::from(len)).filter(|&end| end <= body);
        let end = end.ok_or_else(|| self.damage("the footer is out of bounds"))?;
        let footer = &map[offset as usize..end as usize];
        if crc != self.meta.footer_crc || crc32c::crc32c(footer) != crc {
            return Err(self.damage("checksum mismatch in the footer"));
        }
        Ok(footer)
    }

    /// Reads a column of the file; `compare` requests verification of its checksums.
    fn read(&self, map: &Buffer, column: &ColumnEntry, compare: bool) -> EngineResult<ColumnData> {
        let mut sections = Vec::with_capacity(column.sections.len());
        for section in &column.sections {
            let end = section.offset.checked_add(section.len);
            let fits = end.is_some_and(|end| end <= map.len() as u64)
                && section.offset >= SEGMENT_HEADER_BYTES
                && section.offset % SECTION_ALIGN == 0;
            if !fits {
                return Err(self.damage("a section is out of bounds"));
            }
            let bytes = map.slice_with_length(section.offset as usize, section.len as usize);
            if compare {
                read_ahead(&bytes);
                if crc32c::crc32c(&bytes) != section.crc {
                    let what = format!("checksum mismatch in column {}", column.id);
                    return Err(self.damage(what));
                }
            }
            sections.push(bytes);
        }
        let validity = (column.has_validity && !sections.is_empty()).then(|| sections.remove(0));
        block::assemble(column.sql_type, self.rows(), validity, sections)
            .map_err(|error| self.damage(error))
    }
}
