//! Rows as `RESULT_BATCH` messages of QWP, the columnar protocol: packed values of each column, in
//! one table block per message, directly from the arrays.
//!
//! A message is written without its head, which contains the query's ID. It consists of the header
//! flags (8 bits), then all data after that ID, starting with the sequence number. Equal results
//! therefore produce identical bytes for every client. Symbol IDs start at 0 for each query.

mod column;
mod dictionary;
mod gorilla;
mod varint;

use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, account};
use zstd::bulk::Compressor;

use self::column::ColumnBuffer;
use self::dictionary::Dictionary;
use self::varint::{push_text, push_varint};
use crate::columns::columns_of;

/// A byte before timestamps and dates specifies their encoding.
const FLAG_GORILLA: u8 = 0x04;
/// New symbols precede the table block.
const FLAG_DELTA_DICTIONARY: u8 = 0x08;
/// All data after the sequence is compressed.
const FLAG_ZSTD: u8 = 0x10;
/// The protocol's message size limit; all messages written here are smaller.
const MESSAGE_BYTES: usize = 16 << 20;
/// Maximum row size in bytes, chosen so that a row fits in a message with other rows.
const ROW_BYTES: usize = 15 << 20;
/// Bytes assumed for a column's flag, prefix and name in the initial estimate.
const COLUMN_BYTES_GUESS: usize = 16;

/// Message size limits and compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QwpOptions {
    /// Maximum number of rows per message; at least 1.
    pub max_rows: usize,
    /// Size in bytes at which a message is closed. A single row may exceed this limit.
    pub max_bytes: usize,
    /// Zstd level; `None` disables compression.
    pub zstd_level: Option<i32>,
}

/// Messages of one result.
pub(crate) struct QwpMessages {
    fields: Vec<Field>,
    options: QwpOptions,
    columns: Vec<ColumnBuffer>,
    dictionary: Dictionary,
    /// Number of rows in the open message.
    rows: usize,
    /// Minimum size of a row in bytes.
    row_bytes: usize,
    sequence: u64,
    is_ended: bool,
    compressor: Option<Compressor<'static>>,
    /// The body before compression.
    body: Vec<u8>,
}

impl std::fmt::Debug for QwpMessages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "QwpMessages({} columns, {:?})", self.columns.len(), self.options)
    }
}

impl QwpMessages {
    pub(crate) fn new(fields: &[Field], options: QwpOptions) -> EngineResult<Self> {
        let columns: Vec<_> =
            fields.iter().map(|field| ColumnBuffer::new(field.sql_type)).collect();
        let failed = |error| EngineError::internal(format!("zstd: {error}"));
        Ok(Self {
            fields: fields.to_vec(),
            options,
            row_bytes: columns.iter().map(ColumnBuffer::width).sum(),
            columns,
            dictionary: Dictionary::default(),
            rows: 0,
            sequence: 0,
            is_ended: false,
            compressor: options.zstd_level.map(Compressor::new).transpose().map_err(failed)?,
            body: Vec::new(),
        })
    }

    /// Returns the number of rows that still fit in the open message, computed from the minimum row
    /// size; 0 if the message is full.
    pub(crate) fn free_rows(&self) -> usize {
        let rows = self.options.max_rows.saturating_sub(self.rows);
        let bytes = self.options.max_bytes.saturating_sub(self.message_bytes());
        match bytes {
            0 if self.rows > 0 => 0,
            _ => rows.min((bytes / self.row_bytes.max(1)).max(1)),
        }
    }

    /// Returns the size of the open message in bytes.
    fn message_bytes(&self) -> usize {
        self.columns.iter().map(ColumnBuffer::memory_bytes).sum::<usize>()
            + self.dictionary.new_bytes()
    }

    /// Adds rows to the open message.
    pub(crate) fn encode(&mut self, batch: &RecordBatch) -> EngineResult<()> {
        let before = self.message_bytes();
        for (buffer, column) in self.columns.iter_mut().zip(columns_of(&self.fields, batch)?) {
            buffer.push(&column, batch.num_rows(), &mut self.dictionary)?;
        }
        self.rows += batch.num_rows();
        let added = self.message_bytes() - before;
        if added > ROW_BYTES {
            let message = format!(
                "the row is {added} bytes long: a QWP message can hold at most {ROW_BYTES}"
            );
            return Err(EngineError::new(ErrorCode::ResourceLimit, message));
        }
        Ok(())
    }

    /// Records that no more rows follow. Even a result without rows then gets a message.
    pub(crate) fn finish(&mut self) {
        self.is_ended = true;
    }

    /// Appends the open message, if it is not empty.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        let is_first = self.sequence == 0;
        if self.rows == 0 && !(is_first && self.is_ended) {
            return Ok(());
        }
        let start = out.len();
        out.push(FLAG_GORILLA | FLAG_DELTA_DICTIONARY);
        push_varint(out, self.sequence);
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        let used = self.message_bytes() + self.columns.len() * COLUMN_BYTES_GUESS;
        account::check_allocation(2 * used)?;
        if self.compressor.is_some() {
            body.reserve(used);
            self.write_body(&mut body, is_first)?;
            if self.compress(&body, out)? {
                out[start] |= FLAG_ZSTD;
            } else {
                out.extend_from_slice(&body);
            }
        } else {
            out.reserve(used);
            self.write_body(out, is_first)?;
        }
        self.body = body;
        self.sequence += 1;
        self.rows = 0;
        if out.len() - start > MESSAGE_BYTES {
            let message = format!(
                "the message is {} bytes long: QWP allows at most {MESSAGE_BYTES}",
                out.len()
            );
            return Err(EngineError::new(ErrorCode::ResourceLimit, message));
        }
        Ok(())
    }

    /// Writes the new symbols and the table block.
    fn write_body(&mut self, out: &mut Vec<u8>, is_first: bool) -> EngineResult<()> {
        self.dictionary.write_new(out);
        push_text(out, b"");
        push_varint(out, self.rows as u64);
        if is_first {
            push_varint(out, self.fields.len() as u64);
            for (field, column) in self.fields.iter().zip(&self.columns) {
                push_text(out, field.name.as_bytes());
                out.push(column.code());
            }
        }
        for column in &mut self.columns {
            column.write(out)?;
        }
        Ok(())
    }

    /// Appends the compressed body; returns `false` if it is not smaller.
    fn compress(&mut self, body: &[u8], out: &mut Vec<u8>) -> EngineResult<bool> {
        let Some(compressor) = &mut self.compressor else { return Ok(false) };
        let start = out.len();
        // The buffer is one byte smaller than the body. If the output does not fit, compression has
        // not reduced the size.
        out.resize(start + body.len().saturating_sub(1), 0);
        let written = compressor.compress_to_buffer(body, &mut out[start..]).ok();
        out.truncate(start + written.unwrap_or(0));
        Ok(written.is_some())
    }
}

#[cfg(test)]
mod tests;
