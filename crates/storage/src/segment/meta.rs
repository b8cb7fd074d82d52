//! A segment's metadata, and the footer of its file.

use tidemark_types::{EngineResult, SqlType};

use crate::log::codec::{Decoder, Encoder};

/// A segment's metadata in the manifest and the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    /// File name within the table's directory.
    pub(crate) name: String,
    pub(crate) file_len: u64,
    /// Checksum of the footer, which contains the checksums of all sections.
    pub(crate) footer_crc: u32,
    pub(crate) rows: u64,
    pub(crate) bounds: (i64, i64),
    /// Latest transaction with rows in the segment; defines the arrival order.
    pub(crate) lsn: u64,
}

impl SegmentMeta {
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.text(&self.name);
        out.u64(self.file_len);
        out.u32(self.footer_crc);
        out.u64(self.rows);
        out.i64(self.bounds.0);
        out.i64(self.bounds.1);
        out.u64(self.lsn);
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> EngineResult<Self> {
        Ok(Self {
            name: input.text()?.to_owned(),
            file_len: input.u64()?,
            footer_crc: input.u32()?,
            rows: input.u64()?,
            bounds: (input.i64()?, input.i64()?),
            lsn: input.u64()?,
        })
    }
}

/// A byte range in a segment, with its checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) crc: u32,
}

/// A column's position in a segment.
#[derive(Debug)]
pub(crate) struct ColumnEntry {
    pub(crate) id: u32,
    pub(crate) sql_type: SqlType,
    /// Whether the first section is a validity bitmap.
    pub(crate) has_validity: bool,
    pub(crate) sections: Vec<Section>,
}

/// Encodes a segment's footer, which locates all columns.
pub(crate) fn encode_footer(rows: u64, columns: &[ColumnEntry]) -> EngineResult<Encoder> {
    let mut out = Encoder::default();
    out.u64(rows);
    out.u32(columns.len() as u32);
    for column in columns {
        out.u32(column.id);
        out.json(&column.sql_type)?;
        out.u8(u8::from(column.has_validity));
        out.u32(column.sections.len() as u32);
        for section in &column.sections {
            out.u64(section.offset);
            out.u64(section.len);
            out.u32(section.crc);
        }
    }
    Ok(out)
}

/// Decodes a segment's footer.
pub(crate) fn decode_footer(bytes: &[u8]) -> EngineResult<(u64, Vec<ColumnEntry>)> {
    let mut input = Decoder::new(bytes);
    let rows = input.u64()?;
    let mut columns = Vec::new();
    for _ in 0..input.u32()? {
        let (id, sql_type) = (input.u32()?, input.json()?);
        let has_validity = input.u8()? != 0;
        let mut sections = Vec::new();
        for _ in 0..input.u32()? {
            sections.push(Section { offset: input.u64()?, len: input.u64()?, crc: input.u32()? });
        }
        columns.push(ColumnEntry { id, sql_type, has_validity, sections });
    }
    Ok((rows, columns))
}
