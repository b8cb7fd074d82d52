//! Timestamps encoded as differences between consecutive deltas, with a variable number of bits
//! (Gorilla).

use super::bytes::{Bytes, Read};

/// Widths in bits of the numbers after the prefixes 10, 110, 1110 and 1111.
const WIDTHS: [u32; 4] = [7, 9, 12, 32];

/// Reads bits, starting with the least significant bit of each byte.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (self.at % 8) & 1 == 1;
        self.at += 1;
        Some(bit)
    }

    /// Reads a signed number, starting with its least significant bit.
    fn number(&mut self, width: u32) -> Option<i64> {
        let mut value = 0_i64;
        for bit in 0..width {
            value |= i64::from(self.bit()?) << bit;
        }
        let unused = i64::BITS - width;
        Some(value << unused >> unused)
    }

    fn difference(&mut self) -> Option<i64> {
        if !self.bit()? {
            return Some(0);
        }
        let mut bucket = 0;
        while bucket < WIDTHS.len() - 1 && self.bit()? {
            bucket += 1;
        }
        self.number(WIDTHS[bucket])
    }
}

/// Decodes `count` values. Their memory must have been reserved.
pub(super) fn decode(bytes: &mut Bytes<'_>, count: usize) -> Read<Vec<i64>> {
    let plain = |bytes: &mut Bytes<'_>| bytes.array("instant").map(i64::from_le_bytes);
    if count == 0 {
        return Ok(Vec::new());
    }
    let first = plain(bytes)?;
    if count == 1 {
        return Ok(vec![first]);
    }
    let second = plain(bytes)?;
    // Each remaining value takes at least one bit.
    if (count - 2).div_ceil(8) > bytes.left() {
        return Err(
            bytes.malformed(format!("{count} timestamps do not fit in {} bytes", bytes.left()))
        );
    }
    let mut values = Vec::with_capacity(count);
    values.extend([first, second]);
    let mut bits = Bits { bytes: bytes.remaining(), at: 0 };
    let (mut before, mut last) = (first, second);
    for _ in 2..count {
        let next = bits.difference().and_then(|difference| {
            last.checked_sub(before)?.checked_add(difference)?.checked_add(last)
        });
        let Some(next) = next else {
            return Err(bytes.malformed("timestamps are truncated, or exceed 64 bits"));
        };
        (before, last) = (last, next);
        values.push(next);
    }
    let used = bits.at.div_ceil(8);
    bytes.take(used, "instants")?;
    Ok(values)
}
