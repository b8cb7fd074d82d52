//! Validity bitmaps, in which a set bit means the row has a value.

use std::ops::Range;

/// A borrowed bitmap, least significant bit first, starting `offset` bits into `bytes`.
#[derive(Debug, Clone, Copy)]
pub struct Validity<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Validity<'a> {
    /// Creates a bitmap over `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }

    /// Whether the row has a value.
    #[inline]
    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        let bit = self.offset + row;
        self.bytes[bit / 8] & (1 << (bit % 8)) != 0
    }

    /// Returns 64 bits starting at `row`; bits past the bitmap's end are zero.
    #[inline]
    pub(crate) fn word(&self, row: usize) -> u64 {
        let bit = self.offset + row;
        let shift = bit % 8;
        let tail = self.bytes.get(bit / 8..).unwrap_or_default();
        let low = match tail.first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        let high = tail.get(8).map_or(0, |&byte| u64::from(byte));
        if shift == 0 { low } else { low >> shift | high << (64 - shift) }
    }

    /// Calls `visit` with each maximal run of valid rows within a 64-row block, in order.
    #[inline]
    pub fn for_each_run(&self, rows: Range<usize>, mut visit: impl FnMut(Range<usize>)) {
        let mut start = rows.start;
        while start < rows.end {
            let length = (rows.end - start).min(64);
            let mut bits = self.word(start);
            if length < 64 {
                bits &= (1 << length) - 1;
            }
            if bits == u64::MAX {
                visit(start..start + 64);
            } else {
                visit_bits(bits, start, &mut visit);
            }
            start += length;
        }
    }
}

#[inline]
fn visit_bits(mut bits: u64, start: usize, visit: &mut impl FnMut(Range<usize>)) {
    while bits != 0 {
        let first = bits.trailing_zeros() as usize;
        let length = (bits >> first).trailing_ones() as usize;
        visit(start + first..start + first + length);
        // `first + length` is below 64 unless the run reaches the block's end.
        bits = bits.checked_shr((first + length) as u32).map_or(0, |rest| rest << (first + length));
    }
}
