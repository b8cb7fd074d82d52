//! Batch operations on the strings of a column: locating their bytes, checking for ASCII, and
//! assembling columns from such strings without reading them one by one.

use arrow_array::StringViewArray;
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::ArrowError;

/// Number of strings processed together. Their views fit into the first-level cache.
pub const STRINGS_PER_CHUNK: usize = 1024;
/// Maximum length of a string stored in its view.
pub const INLINE_BYTES: u32 = 12;
/// High bit of each byte, which no ASCII character has.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// Maximum gap in bytes between two strings that are read together.
const GAP_BYTES: usize = 4 << 10;
/// Maximum size in bytes of strings processed together.
const MAX_BYTES: usize = 4 << 20;

/// Byte range of some strings, except strings stored in their views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange<'a> {
    /// Start of `bytes` in their buffer.
    pub start: u32,
    /// Bytes of all strings, with small gaps; empty if all strings are in their views.
    pub bytes: &'a [u8],
}

/// Result of one pass over views.
struct Found {
    /// Bitwise OR of all prefixes and of all strings stored in views.
    bits: u64,
    /// Lowest and highest buffer index; first and last byte of long strings.
    buffers: (u32, u32),
    start: u32,
    end: u64,
    /// Total size of long strings, in bytes.
    long: u64,
}

fn scan_views(views: &[u128]) -> Found {
    let mut found = Found { bits: 0, buffers: (u32::MAX, 0), start: u32::MAX, end: 0, long: 0 };
    if let Some(bits) = inline_bits(views) {
        return Found { bits, ..found };
    }
    for &view in views {
        let (low, high) = (view as u64, (view >> 64) as u64);
        let len = low as u32;
        let is_long = len > INLINE_BYTES;
        let (buffer, offset) = (high as u32, (high >> 32) as u32);
        found.bits |= (low >> 32) | if is_long { 0 } else { high };
        found.buffers.0 = found.buffers.0.min(if is_long { buffer } else { u32::MAX });
        found.buffers.1 = found.buffers.1.max(if is_long { buffer } else { 0 });
        found.start = found.start.min(if is_long { offset } else { u32::MAX });
        let end = u64::from(offset) + u64::from(len);
        found.end = found.end.max(if is_long { end } else { 0 });
        found.long += u64::from(if is_long { len } else { 0 });
    }
    found
}

/// Returns the bitwise OR of the strings, if all are stored in their views.
fn inline_bits(views: &[u128]) -> Option<u64> {
    let (mut all, mut lens) = (0, 0);
    for &view in views {
        all |= view;
        // Adding 3 to a length up to 12 sets no bit above the fourth.
        let len = view as u32;
        lens |= len | len.wrapping_add(3);
    }
    (lens < 16).then_some((all >> 32) as u64 | (all >> 64) as u64)
}

/// Returns the single byte range of all long strings, if they are close together.
fn contiguous_range<'a>(found: &Found, buffers: &'a [Buffer]) -> Option<ByteRange<'a>> {
    if found.long == 0 {
        return Some(ByteRange { start: 0, bytes: &[] });
    }
    if found.buffers.0 != found.buffers.1 || found.long > MAX_BYTES as u64 {
        return None;
    }
    let buffer = buffers.get(found.buffers.0 as usize)?;
    let bytes = buffer.get(found.start as usize..usize::try_from(found.end).ok()?)?;
    let is_close = bytes.len() <= 2 * found.long as usize + GAP_BYTES;
    is_close.then_some(ByteRange { start: found.start, bytes })
}

/// Returns the byte range of these strings, if they are close together.
#[must_use]
pub fn byte_range<'a>(views: &[u128], buffers: &'a [Buffer]) -> Option<ByteRange<'a>> {
    contiguous_range(&scan_views(views), buffers)
}

/// Like [`byte_range`], but only for ASCII strings.
#[must_use]
pub fn ascii_byte_range<'a>(views: &[u128], buffers: &'a [Buffer]) -> Option<ByteRange<'a>> {
    let found = scan_views(views);
    if found.bits & HIGH_BITS != 0 {
        return None;
    }
    contiguous_range(&found, buffers).filter(|range| range.bytes.is_ascii())
}

/// Whether all strings are ASCII. They may be anywhere in the buffers. `false` does not prove that
/// a long string is not ASCII.
#[must_use]
pub fn are_ascii(views: &[u128], buffers: &[Buffer]) -> bool {
    views.chunks(STRINGS_PER_CHUNK).all(|chunk| {
        let found = scan_views(chunk);
        if found.bits & HIGH_BITS != 0 || found.long > MAX_BYTES as u64 {
            return false;
        }
        match contiguous_range(&found, buffers) {
            Some(range) => range.bytes.is_ascii(),
            None => chunk.iter().all(|&view| {
                let end = |start: usize| start + view as u32 as usize;
                let text = |buffer: &Buffer| {
                    let start = (view >> 96) as usize;
                    buffer.get(start..end(start)).is_some_and(<[u8]>::is_ascii)
                };
                view as u32 <= INLINE_BYTES
                    || buffers.get((view >> 64) as u32 as usize).is_some_and(text)
            }),
        }
    })
}

/// Builds a column from these views. If all strings are ASCII, one pass over their bytes verifies
/// them; other strings are checked one by one.
pub fn column(
    views: Vec<u128>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
) -> Result<StringViewArray, ArrowError> {
    let fits = nulls.as_ref().is_none_or(|nulls| nulls.len() == views.len());
    if fits && are_ascii(&views, &buffers) {
        debug_assert!(
            StringViewArray::try_new(views.clone().into(), buffers.clone(), nulls.clone()).is_ok()
        );
        // SAFETY: `are_ascii` verified that each long string is within its buffer and that all
        // bytes are ASCII, which is valid UTF-8; the numbers of views and nulls were compared.
        return Ok(unsafe { StringViewArray::new_unchecked(views.into(), buffers, nulls) });
    }
    StringViewArray::try_new(views.into(), buffers, nulls)
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    fn long(buffer: u32, offset: u32, text: &[u8]) -> u128 {
        let prefix = u32::from_le_bytes(*text.first_chunk().unwrap());
        let high = u128::from(offset) << 96 | u128::from(buffer) << 64;
        high | u128::from(prefix) << 32 | text.len() as u128
    }

    #[test]
    fn string_columns_are_validated() {
        let text = b"0123456789abcdef";
        let buffers = || vec![Buffer::from(text.to_vec())];
        let sound = vec![0, long(0, 0, text), long(0, 2, &text[2..])];
        assert!(are_ascii(&sound, &buffers()));
        assert_eq!(byte_range(&sound, &buffers()).unwrap().bytes, text);
        let array = column(sound.clone(), buffers(), None).unwrap();
        assert_eq!(array.value(2), "23456789abcdef");
        // Tests views beyond the buffer and in a nonexistent buffer, then a column with too few
        // nulls.
        for view in [long(0, 1, text), long(1, 0, text), long(0, u32::MAX, text)] {
            assert!(!are_ascii(&[view], &buffers()));
            assert_eq!(byte_range(&[view], &buffers()), None);
            assert!(column(vec![view], buffers(), None).is_err());
        }
        assert!(column(sound, buffers(), Some(NullBuffer::new_valid(1))).is_err());
    }

    #[test]
    fn non_ascii_utf8_is_accepted_and_invalid_utf8_is_refused() {
        for (text, is_text) in [("élan et élans à part".as_bytes(), true), (&[0x80; 20], false)]
        {
            let buffers = vec![Buffer::from(text.to_vec())];
            let views = vec![long(0, 0, text)];
            assert!(!are_ascii(&views, &buffers));
            assert_eq!(ascii_byte_range(&views, &buffers), None);
            assert_eq!(column(views, buffers, None).is_ok(), is_text);
        }
        for len in [13, 16, u32::MAX - 2, u32::MAX - 1, u32::MAX] {
            assert!(!are_ascii(&[0, u128::from(len), 0], &[]));
        }
        let last = u128::from(0x80_u8) << 120 | 0xc;
        assert!(!are_ascii(&[0, last], &[]));
        let short = u128::from(0x80_u8) << 32 | 1;
        assert!(!are_ascii(&[short], &[]));
        assert!(column(vec![short], vec![], None).is_err());
        assert_eq!(column(vec![], vec![], None).unwrap().len(), 0);
    }

    #[test]
    fn distant_strings_have_no_common_byte_range() {
        let body = vec![b'x'; 100_000];
        let views = vec![long(0, 0, &body[..20]), long(0, 90_000, &body[..20])];
        let buffers = vec![Buffer::from(body.clone()), Buffer::from(body)];
        assert_eq!(byte_range(&views, &buffers), None);
        assert!(are_ascii(&views, &buffers));
        let views = vec![views[0], long(1, 0, &buffers[1][..20])];
        assert_eq!(byte_range(&views, &buffers), None);
        assert!(are_ascii(&views, &buffers));
    }
}
