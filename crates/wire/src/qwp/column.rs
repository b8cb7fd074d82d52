//! Packed values of one column in the open message. Nulls appear only in the bitmap.

use arrow_array::Array;
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, NullBuffer, ToByteSlice};
use tidemark_types::double_array::DoubleArray;
use tidemark_types::{EngineError, EngineResult, SqlType};

use super::dictionary::{Dictionary, KeyNumbers};
use super::gorilla;
use super::varint::push_varint;
use crate::cells;
use crate::columns::{Column, Decimals, Fixed, Text, geohash_bits};

/// Layout of a column's values in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One bit per value.
    Bits,
    /// This many bytes per value.
    Fixed(usize),
    /// 64 bits per value, or encoded differences.
    Timestamps,
    /// Dictionary IDs.
    Symbols,
    /// Offsets, then the bytes.
    Bytes,
    /// This many bits per value, rounded up to whole bytes.
    Geohash(u8),
    /// One scale for all values, then this many bytes per value.
    Decimals { scale: u8, width: usize },
    /// Dimensions, lengths and elements per value.
    Arrays,
}

const BYTE: u8 = 0x02;
const SHORT: u8 = 0x03;
const CHAR: u8 = 0x16;

/// Returns a type's code and layout. Types that the protocol lacks are encoded as strings.
fn described(sql_type: SqlType) -> (u8, Layout) {
    match sql_type {
        SqlType::Boolean => (0x01, Layout::Bits),
        SqlType::Byte => (BYTE, Layout::Fixed(1)),
        SqlType::Short => (SHORT, Layout::Fixed(2)),
        SqlType::Int => (0x04, Layout::Fixed(4)),
        SqlType::Long => (0x05, Layout::Fixed(8)),
        SqlType::Float => (0x06, Layout::Fixed(4)),
        SqlType::Double => (0x07, Layout::Fixed(8)),
        SqlType::Symbol => (0x09, Layout::Symbols),
        SqlType::Timestamp => (0x0a, Layout::Timestamps),
        SqlType::Date => (0x0b, Layout::Timestamps),
        SqlType::Uuid => (0x0c, Layout::Fixed(16)),
        SqlType::Long256 => (0x0d, Layout::Fixed(32)),
        SqlType::Geohash(bits) => (0x0e, Layout::Geohash(bits)),
        SqlType::TimestampNs => (0x10, Layout::Timestamps),
        SqlType::DoubleArray(_) => (0x11, Layout::Arrays),
        SqlType::Decimal(0..=18, scale) => (0x13, Layout::Decimals { scale, width: 8 }),
        SqlType::Decimal(19..=38, scale) => (0x14, Layout::Decimals { scale, width: 16 }),
        SqlType::Decimal(_, scale) => (0x15, Layout::Decimals { scale, width: 32 }),
        SqlType::Char => (CHAR, Layout::Fixed(2)),
        SqlType::Binary => (0x17, Layout::Bytes),
        SqlType::Ipv4 => (0x18, Layout::Fixed(4)),
        SqlType::String
        | SqlType::Varchar
        | SqlType::Null
        | SqlType::Interval
        | SqlType::Period => (0x0f, Layout::Bytes),
    }
}

/// One column in the open message.
pub(super) struct ColumnBuffer {
    code: u8,
    layout: Layout,
    rows: usize,
    /// One bit per row, set for values; `None` while every row has a value.
    validity: Option<BooleanBufferBuilder>,
    values: Vec<u8>,
    /// Values of [`Layout::Bits`].
    bits: BooleanBufferBuilder,
    /// End of each value of [`Layout::Bytes`].
    ends: Vec<u32>,
    keys: KeyNumbers,
}

impl ColumnBuffer {
    pub(super) fn new(sql_type: SqlType) -> Self {
        let (code, layout) = described(sql_type);
        Self {
            code,
            layout,
            rows: 0,
            validity: None,
            values: Vec::new(),
            bits: BooleanBufferBuilder::new(0),
            ends: Vec::new(),
            keys: KeyNumbers::default(),
        }
    }

    /// Returns the column's type code.
    pub(super) fn code(&self) -> u8 {
        self.code
    }

    /// Returns the minimum size of a value in bytes.
    pub(super) fn width(&self) -> usize {
        match self.layout {
            Layout::Bits | Layout::Symbols => 1,
            Layout::Fixed(width) | Layout::Decimals { width, .. } => width,
            Layout::Timestamps | Layout::Arrays => 8,
            Layout::Bytes => 4,
            Layout::Geohash(bits) => usize::from(bits.div_ceil(8)),
        }
    }

    /// Returns the number of bytes in memory so far.
    pub(super) fn memory_bytes(&self) -> usize {
        let bitmap = if self.validity.is_some() { self.rows / 8 } else { 0 };
        self.values.len() + size_of::<u32>() * self.ends.len() + self.bits.len() / 8 + bitmap
    }

    /// Adds an array's rows.
    pub(super) fn push(
        &mut self,
        column: &Column<'_>,
        rows: usize,
        dictionary: &mut Dictionary,
    ) -> EngineResult<()> {
        match column {
            // These types are never null, but a join may produce a null, which is written as false
            // or 0.
            Column::Boolean(array) => {
                let truths = match array.nulls() {
                    Some(nulls) => array.values() & nulls.inner(),
                    None => array.values().clone(),
                };
                self.bits.append_buffer(&truths);
                self.rows += rows;
            }
            Column::Byte(values) => self.push_or_zero(values),
            Column::Short(values) => self.push_or_zero(values),
            Column::Char(values) => self.push_or_zero(values),
            Column::Int(values) => self.push_fixed(values),
            Column::Long(values) | Column::Millis(values) => self.push_fixed(values),
            Column::Micros(values) | Column::Nanos(values) => self.push_fixed(values),
            Column::Float(values) => self.push_fixed(values),
            Column::Double(values) => self.push_fixed(values),
            Column::Ipv4(values) => self.push_fixed(values),
            Column::Symbol { keys, values, shared } if self.layout == Layout::Symbols => {
                self.keys.prepare(shared)?;
                self.push_symbols(keys, values, shared.null_count() > 0, dictionary)?;
            }
            Column::Text(texts) if self.layout == Layout::Symbols => {
                self.push_interned(texts, rows, dictionary)?;
            }
            Column::Doubles(arrays) => self.push_cells(rows, |out, row| {
                arrays.get(row).map(|array| push_array(out, array)).is_some()
            })?,
            Column::Decimal(values) => self.push_decimals(values, rows)?,
            Column::Null => self.push_nothing(rows),
            _ => self.push_cells(rows, |out, row| push_cell(out, column, row))?,
        }
        Ok(())
    }

    /// Appends values that already have the message's layout.
    fn push_fixed<T: ArrowNativeType>(&mut self, column: &Fixed<'_, T>) {
        match column.nulls.filter(|nulls| nulls.null_count() > 0) {
            None => self.values.extend_from_slice(column.values.to_byte_slice()),
            Some(nulls) => {
                for (start, end) in nulls.valid_slices() {
                    self.values.extend_from_slice(column.values[start..end].to_byte_slice());
                }
            }
        }
        self.note(column.nulls, column.values.len());
    }

    /// Appends values of a type without null, with nulls as zeros.
    fn push_or_zero<T: ArrowNativeType>(&mut self, column: &Fixed<'_, T>) {
        let start = self.values.len();
        self.values.extend_from_slice(column.values.to_byte_slice());
        if let Some(nulls) = column.nulls {
            let added = self.values[start..].chunks_exact_mut(size_of::<T>());
            for (value, _) in added.zip(nulls).filter(|(_, is_valid)| !is_valid) {
                value.fill(0);
            }
        }
        self.rows += column.values.len();
    }

    /// Appends untyped NULLs to a column of any type.
    fn push_nothing(&mut self, rows: usize) {
        match self.layout {
            Layout::Bits => self.bits.append_n(rows, false),
            Layout::Fixed(width) if matches!(self.code, BYTE | SHORT | CHAR) => {
                self.values.resize(self.values.len() + width * rows, 0);
            }
            _ => {
                self.bitmap();
                if let Some(validity) = &mut self.validity {
                    validity.append_n(rows, false);
                }
            }
        }
        self.rows += rows;
    }

    fn push_symbols(
        &mut self,
        keys: &Fixed<'_, i32>,
        texts: &Text<'_>,
        has_null: bool,
        dictionary: &mut Dictionary,
    ) -> EngineResult<()> {
        if has_null {
            for row in 0..keys.values.len() {
                let key = keys.get(row);
                let number = key.map(|key| self.keys.get(key, texts, dictionary)).transpose()?;
                self.push_number(number.flatten());
            }
            return Ok(());
        }
        let mut push = |keys: &[i32]| {
            for key in keys {
                if let Some(number) = self.keys.get(*key, texts, dictionary)? {
                    push_varint(&mut self.values, u64::from(number));
                }
            }
            EngineResult::Ok(())
        };
        match keys.nulls.filter(|nulls| nulls.null_count() > 0) {
            None => push(keys.values)?,
            Some(nulls) => {
                nulls.valid_slices().try_for_each(|(start, end)| push(&keys.values[start..end]))?;
            }
        }
        self.note(keys.nulls, keys.values.len());
        Ok(())
    }

    /// Appends computed symbols, which have no dictionary.
    fn push_interned(
        &mut self,
        texts: &Text<'_>,
        rows: usize,
        dictionary: &mut Dictionary,
    ) -> EngineResult<()> {
        for row in 0..rows {
            let number = texts.get(row).map(|text| dictionary.intern(text)).transpose()?;
            self.push_number(number);
        }
        Ok(())
    }

    fn push_number(&mut self, number: Option<u32>) {
        if let Some(number) = number {
            push_varint(&mut self.values, u64::from(number));
        }
        self.note_one(number.is_some());
    }

    fn push_decimals(&mut self, values: &Decimals<'_>, rows: usize) -> EngineResult<()> {
        match values {
            Decimals::D32(array) => self.push_cells(rows, |out, row| {
                put(out, array.is_valid(row).then(|| i64::from(array.value(row)).to_le_bytes()))
            }),
            Decimals::D64(array) => self.push_cells(rows, |out, row| {
                put(out, array.is_valid(row).then(|| array.value(row).to_le_bytes()))
            }),
            Decimals::D128(array) => self.push_cells(rows, |out, row| {
                put(out, array.is_valid(row).then(|| array.value(row).to_le_bytes()))
            }),
            Decimals::D256(array) => self.push_cells(rows, |out, row| {
                put(out, array.is_valid(row).then(|| array.value(row).to_le_bytes()))
            }),
        }
    }

    /// `cell` appends the value of a row, and returns whether the row has a value.
    fn push_cells(
        &mut self,
        rows: usize,
        mut cell: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> EngineResult<()> {
        for row in 0..rows {
            let is_valid = cell(&mut self.values, row);
            if is_valid && self.layout == Layout::Bytes {
                let end = u32::try_from(self.values.len()).map_err(|_| {
                    EngineError::internal("a message contains more than 4 GiB of strings")
                })?;
                self.ends.push(end);
            }
            self.note_one(is_valid);
        }
        Ok(())
    }

    /// Records which of these rows have a value.
    fn note(&mut self, nulls: Option<&NullBuffer>, rows: usize) {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        if nulls.is_some() {
            self.bitmap();
        }
        match (&mut self.validity, nulls) {
            (Some(validity), Some(nulls)) => validity.append_buffer(nulls.inner()),
            (Some(validity), None) => validity.append_n(rows, true),
            (None, _) => {}
        }
        self.rows += rows;
    }

    fn note_one(&mut self, is_valid: bool) {
        if !is_valid {
            self.bitmap();
        }
        if let Some(validity) = &mut self.validity {
            validity.append(is_valid);
        }
        self.rows += 1;
    }

    /// Creates the bitmap at the first null.
    fn bitmap(&mut self) {
        if self.validity.is_none() {
            let mut validity = BooleanBufferBuilder::new(self.rows);
            validity.append_n(self.rows, true);
            self.validity = Some(validity);
        }
    }

    /// Appends the column to `out` and empties it.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> EngineResult<()> {
        match self.validity.take() {
            None => out.push(0),
            Some(mut validity) => {
                out.push(1);
                let bits = validity.finish();
                let start = out.len();
                out.extend(bits.values()[..self.rows.div_ceil(8)].iter().map(|byte| !byte));
                if let Some(last) = out[start..].last_mut()
                    && !self.rows.is_multiple_of(8)
                {
                    *last &= (1 << (self.rows % 8)) - 1;
                }
            }
        }
        match self.layout {
            Layout::Bits => {
                let bits = self.bits.finish();
                out.extend_from_slice(&bits.values()[..self.rows.div_ceil(8)]);
            }
            Layout::Timestamps => {
                let at = out.len();
                out.push(1);
                if !gorilla::encode(&self.values, out) {
                    out[at] = 0;
                    out.extend_from_slice(&self.values);
                }
            }
            Layout::Bytes => {
                out.extend_from_slice(&0_u32.to_le_bytes());
                out.extend_from_slice(self.ends.to_byte_slice());
                out.extend_from_slice(&self.values);
            }
            Layout::Geohash(bits) => {
                push_varint(out, u64::from(bits));
                out.extend_from_slice(&self.values);
            }
            Layout::Decimals { scale, .. } => {
                out.push(scale);
                out.extend_from_slice(&self.values);
            }
            Layout::Fixed(_) | Layout::Symbols | Layout::Arrays => {
                out.extend_from_slice(&self.values);
            }
        }
        self.values.clear();
        self.ends.clear();
        self.rows = 0;
        Ok(())
    }
}

/// Appends bytes, if any; returns whether there were any.
fn put<const N: usize>(out: &mut Vec<u8>, bytes: Option<[u8; N]>) -> bool {
    out.extend_from_slice(bytes.as_ref().map_or(&[], |bytes| &bytes[..]));
    bytes.is_some()
}

/// Appends big-endian bytes in reversed order, if any; returns whether there were any.
fn put_turned(out: &mut Vec<u8>, bytes: Option<&[u8]>) -> bool {
    out.extend(bytes.unwrap_or_default().iter().rev());
    bytes.is_some()
}

/// Appends a value that must be converted to the message's layout.
fn push_cell(out: &mut Vec<u8>, column: &Column<'_>, row: usize) -> bool {
    let text = |out: &mut Vec<u8>, text: Option<&str>| {
        out.extend_from_slice(text.unwrap_or_default().as_bytes());
        text.is_some()
    };
    match column {
        Column::Text(texts) => text(out, texts.get(row)),
        Column::Symbol { keys, values, .. } => {
            text(out, keys.get(row).and_then(|key| values.get(key as usize)))
        }
        Column::Uuid(values) | Column::Long256(values) => {
            put_turned(out, values.is_valid(row).then(|| values.value(row)))
        }
        Column::Geohash { bits, array } => {
            let value = geohash_bits(*array, row);
            let bytes = value.unwrap_or_default().to_le_bytes();
            let width = value.map_or(0, |_| usize::from(bits.div_ceil(8)));
            out.extend_from_slice(&bytes[..width]);
            value.is_some()
        }
        Column::Binary(values) => {
            let value = values.get(row);
            out.extend_from_slice(value.unwrap_or_default());
            value.is_some()
        }
        Column::Period(values) => {
            values.get(row).map(|period| cells::push_period(out, period)).is_some()
        }
        Column::Interval { nulls, lo, hi } => {
            let is_valid = nulls.is_none_or(|nulls| nulls.is_valid(row));
            if is_valid {
                cells::push_interval(out, [*lo, *hi], row);
            }
            is_valid
        }
        _ => false,
    }
}

fn push_array(out: &mut Vec<u8>, array: DoubleArray<'_>) {
    out.push(array.shape.len() as u8);
    out.extend_from_slice(array.shape.to_byte_slice());
    out.extend_from_slice(array.values.to_byte_slice());
}
