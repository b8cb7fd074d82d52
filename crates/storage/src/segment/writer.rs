//! Writes a segment column by column, each directly from its source.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_buffer::Buffer;
use tidemark_types::{EngineError, EngineResult, SqlType};
use tidemark_vfs::{OpenMode, Vfs, VfsFile};

use crate::disk::layout::{SECTION_ALIGN, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC};
use crate::log::codec::Encoder;
use crate::segment::block::{Body, TEXT_BODY_BYTES, bodies_of, is_long, move_view};
use crate::segment::cell_layout::Layout;
use crate::segment::column::ColumnData;
use crate::segment::meta::{ColumnEntry, Section, encode_footer};

/// Size of the write buffer; larger data is written without copying.
const WRITE_BYTES: usize = 128 << 10;

/// The rows of a segment, column by column.
pub(crate) trait Columns {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Whether any row of the column may be null.
    fn has_nulls(&self, column: usize) -> EngineResult<bool>;
    /// Passes the column's cells to `sink`, in any number of portions.
    fn portions(
        &self,
        column: usize,
        sink: &mut dyn FnMut(&ColumnData) -> EngineResult<()>,
    ) -> EngineResult<()>;
}

/// A written segment file, not yet synced.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) file: Arc<dyn VfsFile>,
    pub(crate) len: u64,
    pub(crate) footer_crc: u32,
}

/// Writes consecutive bytes of the file, with a buffer and a running checksum.
struct Cursor<'a> {
    file: &'a dyn VfsFile,
    path: &'a str,
    start: u64,
    written: u64,
    crc: u32,
    pending: Vec<u8>,
}

impl<'a> Cursor<'a> {
    fn new(file: &'a dyn VfsFile, path: &'a str, start: u64) -> Self {
        Self { file, path, start, written: 0, crc: 0, pending: Vec::new() }
    }

    fn len(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    fn push(&mut self, bytes: &[u8]) -> EngineResult<()> {
        if bytes.len() >= WRITE_BYTES {
            self.flush()?;
            return self.write(bytes);
        }
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> EngineResult<()> {
        let mut pending = std::mem::take(&mut self.pending);
        self.write(&pending)?;
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> EngineResult<()> {
        if !bytes.is_empty() {
            self.crc = crc32c::crc32c_append(self.crc, bytes);
            self.file
                .write_at(bytes, self.start + self.written)
                .map_err(|error| EngineError::io(self.path, &error))?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }

    fn finish(mut self) -> EngineResult<Section> {
        self.flush()?;
        Ok(Section { offset: self.start, len: self.written, crc: self.crc })
    }
}

fn align(offset: u64) -> u64 {
    offset.next_multiple_of(SECTION_ALIGN)
}

/// Writes a new segment file; removes it if it cannot be written completely.
pub(crate) fn write_segment(
    vfs: &dyn Vfs,
    path: &str,
    schema: &[(u32, SqlType)],
    rows: &dyn Columns,
) -> EngineResult<Written> {
    let file = vfs.open(path, OpenMode::CreateNew);
    let file = file.map_err(|error| EngineError::io(path, &error))?;
    write_to(file, path, schema, rows).inspect_err(|_| drop(vfs.unlink(path)))
}

fn write_to(
    file: Arc<dyn VfsFile>,
    path: &str,
    schema: &[(u32, SqlType)],
    rows: &dyn Columns,
) -> EngineResult<Written> {
    let failed = |error: std::io::Error| EngineError::io(path, &error);
    let mut header = [0; SEGMENT_HEADER_BYTES as usize];
    header[..SEGMENT_MAGIC.len()].copy_from_slice(&SEGMENT_MAGIC);
    file.write_at(&header, 0).map_err(failed)?;
    let mut end = SEGMENT_HEADER_BYTES;
    let mut entries = Vec::with_capacity(schema.len());
    for (index, &(id, sql_type)) in schema.iter().enumerate() {
        let mut column = ColumnWriter { file: &*file, path, end, rows: rows.rows() };
        let (has_validity, sections) = column.write(sql_type, index, rows)?;
        end = column.end;
        entries.push(ColumnEntry { id, sql_type, has_validity, sections });
    }
    let footer = encode_footer(rows.rows() as u64, &entries)?.bytes;
    let footer_crc = crc32c::crc32c(&footer);
    let mut tail = Encoder { bytes: footer };
    let footer_len = tail.bytes.len() as u32;
    tail.u64(end);
    tail.u32(footer_len);
    tail.u32(footer_crc);
    tail.bytes.extend_from_slice(&SEGMENT_MAGIC);
    file.write_at(&tail.bytes, end).map_err(failed)?;
    let len = end + tail.bytes.len() as u64;
    Ok(Written { file, len, footer_crc })
}

fn other_layout() -> EngineError {
    EngineError::internal("a column has an unexpected layout")
}

struct ColumnWriter<'a> {
    file: &'a dyn VfsFile,
    path: &'a str,
    end: u64,
    rows: usize,
}

impl<'a> ColumnWriter<'a> {
    fn cursor(&self, start: u64) -> Cursor<'a> {
        Cursor::new(self.file, self.path, start)
    }

    fn write(
        &mut self,
        sql_type: SqlType,
        index: usize,
        source: &dyn Columns,
    ) -> EngineResult<(bool, Vec<Section>)> {
        let (mut sections, has_validity) = (Vec::new(), source.has_nulls(index)?);
        let mut validity = BooleanBufferBuilder::new(if has_validity { self.rows } else { 0 });
        let validity_start = self.end;
        if has_validity {
            self.end = align(self.end + self.rows.div_ceil(8) as u64);
        }
        let mut each = |sink: &mut dyn FnMut(Body) -> EngineResult<()>| {
            source.portions(index, &mut |cells| {
                let bodies = bodies_of(sql_type, cells)?;
                match &bodies.validity {
                    _ if !has_validity => {}
                    Some(bits) => validity.append_buffer(bits),
                    None => validity.append_n(cells.len(), true),
                }
                sink(bodies.body)
            })
        };
        match Layout::of(sql_type)? {
            Layout::Bits => self.write_bits(index, source, &mut sections)?,
            Layout::Fixed(width) => {
                let mut cursor = self.cursor(self.end);
                each(&mut |body| match body {
                    Body::Fixed(values) => cursor.push(&values),
                    _ => Err(other_layout()),
                })?;
                debug_assert_eq!(cursor.len(), (self.rows * width) as u64);
                sections.push(cursor.finish()?);
            }
            Layout::Text => {
                let mut writer = TextWriter::new(self);
                each(&mut |body| writer.push(body))?;
                writer.finish(&mut sections)?;
            }
            Layout::Bytes => {
                let mut writer = BytesWriter::new(self, self.end)?;
                each(&mut |body| match body {
                    Body::Bytes { offsets, bytes } => writer.push(offsets, &bytes, 1),
                    _ => Err(other_layout()),
                })?;
                writer.finish(&mut sections)?;
            }
            Layout::Arrays(dimensions) => {
                let mut shapes = self.cursor(self.end);
                let shapes_end = self.end + self.rows as u64 * u64::from(dimensions) * 4;
                let mut writer = BytesWriter::new(self, align(shapes_end))?;
                each(&mut |body| {
                    let Body::Arrays(bodies) = body else { return Err(other_layout()) };
                    shapes.push(&Buffer::from_vec(bodies.shapes))?;
                    writer.push(bodies.offsets, &Buffer::from_vec(bodies.values), 8)
                })?;
                sections.push(shapes.finish()?);
                writer.finish(&mut sections)?;
            }
        }
        if has_validity {
            let mut cursor = self.cursor(validity_start);
            cursor.push(validity.finish().inner())?;
            sections.insert(0, cursor.finish()?);
        }
        let last = sections.iter().map(|section| section.offset + section.len).max();
        self.end = align(last.unwrap_or(self.end));
        Ok((has_validity, sections))
    }

    fn write_bits(
        &self,
        index: usize,
        source: &dyn Columns,
        sections: &mut Vec<Section>,
    ) -> EngineResult<()> {
        let mut bits = BooleanBufferBuilder::new(self.rows);
        source.portions(index, &mut |cells| {
            match bodies_of(SqlType::Boolean, cells)?.body {
                Body::Bits(values) => bits.append_buffer(&values),
                _ => return Err(other_layout()),
            }
            Ok(())
        })?;
        let mut cursor = self.cursor(self.end);
        cursor.push(bits.finish().inner())?;
        sections.push(cursor.finish()?);
        Ok(())
    }
}

/// Writes views first, then their strings in bodies of at most [`TEXT_BODY_BYTES`].
struct TextWriter<'a> {
    views: Cursor<'a>,
    bodies: Vec<Section>,
    body: Cursor<'a>,
}

impl<'a> TextWriter<'a> {
    fn new(column: &ColumnWriter<'a>) -> Self {
        let body = align(column.end + column.rows as u64 * 16);
        Self { views: column.cursor(column.end), bodies: Vec::new(), body: column.cursor(body) }
    }

    fn push(&mut self, body: Body) -> EngineResult<()> {
        let Body::Text { mut views, bytes } = body else {
            return Err(other_layout());
        };
        if self.body.len() + bytes.len() as u64 > TEXT_BODY_BYTES && self.body.len() > 0 {
            let next = align(self.body.start + self.body.len());
            let next = Cursor::new(self.body.file, self.body.path, next);
            self.bodies.push(std::mem::replace(&mut self.body, next).finish()?);
        }
        let (buffer, base) = (self.bodies.len() as u32, self.body.len() as u32);
        for view in views.iter_mut().filter(|view| is_long(**view)) {
            *view = move_view(*view, buffer, base + (*view >> 96) as u32);
        }
        self.views.push(&Buffer::from_vec(views))?;
        self.body.push(&bytes)
    }

    fn finish(mut self, sections: &mut Vec<Section>) -> EngineResult<()> {
        sections.push(self.views.finish()?);
        self.bodies.push(self.body.finish()?);
        sections.append(&mut self.bodies);
        Ok(())
    }
}

/// Writes offsets first, then the data they refer to.
struct BytesWriter<'a> {
    offsets: Cursor<'a>,
    bytes: Cursor<'a>,
}

impl<'a> BytesWriter<'a> {
    fn new(column: &ColumnWriter<'a>, start: u64) -> EngineResult<Self> {
        let mut offsets = column.cursor(start);
        offsets.push(&0_i64.to_le_bytes())?;
        let body = align(start + (column.rows as u64 + 1) * 8);
        Ok(Self { offsets, bytes: column.cursor(body) })
    }

    /// Adds cells. Their offsets start at zero and count units of `width` bytes.
    fn push(&mut self, mut offsets: Vec<i64>, bytes: &[u8], width: u64) -> EngineResult<()> {
        let base = (self.bytes.len() / width) as i64;
        offsets.drain(..offsets.len().min(1));
        for offset in &mut offsets {
            *offset += base;
        }
        self.offsets.push(&Buffer::from_vec(offsets))?;
        self.bytes.push(bytes)
    }

    fn finish(self, sections: &mut Vec<Section>) -> EngineResult<()> {
        sections.push(self.offsets.finish()?);
        sections.push(self.bytes.finish()?);
        Ok(())
    }
}
