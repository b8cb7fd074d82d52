//! Strings as 16-byte views.
//!
//! The lowest four bytes contain the length. A string of up to 12 bytes follows inline. For a
//! longer string, its first four bytes, the buffer index and the offset follow.

/// Maximum length of an inline string in bytes.
const INLINE: usize = 12;
const HIGH_BITS: u128 = 0x8080_8080_8080_8080_8080_8080_0000_0000;
/// Mask for a view's length.
const LENGTH: u128 = u32::MAX as u128;

/// Returns the length in bytes of a view's string.
#[inline]
#[must_use]
pub fn view_len(view: u128) -> usize {
    view as u32 as usize
}

/// Whether a view refers to a buffer because its string is not inline.
#[inline]
#[must_use]
pub fn is_long_view(view: u128) -> bool {
    view_len(view) > INLINE
}

/// Returns the view of a string that begins at `offset` in a buffer.
#[inline]
#[must_use]
pub fn view_of(text: &[u8], buffer: u32, offset: u32) -> u128 {
    if text.len() <= INLINE {
        return text.len() as u128 | first_bytes(text, text.len()) << 32;
    }
    let prefix = first_bytes(text, 4) << 32;
    text.len() as u128 | prefix | u128::from(buffer) << 64 | u128::from(offset) << 96
}

/// Returns up to 12 bytes as a number, with the first byte lowest.
#[inline]
fn first_bytes(text: &[u8], len: usize) -> u128 {
    if let Some(bytes) = text.first_chunk::<16>() {
        return u128::from_le_bytes(*bytes) & low_bytes(len);
    }
    let mut bytes = [0; 16];
    bytes[..len].copy_from_slice(&text[..len]);
    u128::from_le_bytes(bytes)
}

/// Returns a mask of the lowest `len` bytes, where `len` is below 16.
#[inline]
fn low_bytes(len: usize) -> u128 {
    (1 << (8 * len)) - 1
}

/// Target case of a case conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Lower case.
    Lower,
    /// Upper case.
    Upper,
}

/// Converts the view of an ASCII string to another case. The view of a long string then refers to
/// buffer 0, with `moved` added to its offset.
#[inline]
#[must_use]
pub fn recase_view(view: u128, case: Case, moved: u32) -> u128 {
    if !is_long_view(view) {
        return recase_bytes(view & !LENGTH, case) | (view & LENGTH);
    }
    let prefix = recase_bytes(view & u128::from(u64::MAX) & !LENGTH, case);
    let offset = ((view >> 96) as u32).wrapping_add(moved);
    (view & LENGTH) | prefix | u128::from(offset) << 96
}

/// Converts twelve ASCII bytes, which are above four zero bytes, in one step.
#[inline]
fn recase_bytes(bytes: u128, case: Case) -> u128 {
    // Sets the highest bit of each byte that is at least `letter`; no carry reaches the next byte.
    let at_least = |letter: u8| bytes + (HIGH_BITS - HIGH_BITS / 0x80 * u128::from(letter));
    let between = |first: u8, last: u8| at_least(first) & !at_least(last + 1) & HIGH_BITS;
    match case {
        Case::Lower => bytes | between(b'A', b'Z') >> 2,
        Case::Upper => bytes & !(between(b'a', b'z') >> 2),
    }
}

/// Returns the view of `len` bytes of a string, starting at byte `from`. These bytes must lie
/// within the string. `body` is the buffer of a long string; a long result refers to the same
/// buffer.
#[inline]
#[must_use]
pub fn subview(view: u128, body: &[u8], from: usize, len: usize) -> u128 {
    if from + len <= if is_long_view(view) { 4 } else { INLINE } {
        let bytes = (view >> 32) >> (8 * from) & low_bytes(len);
        return len as u128 | bytes << 32;
    }
    let offset = (view >> 96) as usize + from;
    let rest = body.get(offset..).unwrap_or_default();
    if len <= INLINE {
        return len as u128 | first_bytes(rest, len.min(rest.len())) << 32;
    }
    let buffer = view & u128::from(u32::MAX) << 64;
    len as u128 | first_bytes(rest, 4) << 32 | buffer | (offset as u128) << 96
}

/// Appends a string to each of the inline strings in `texts` and returns the greatest new length.
/// If this length exceeds 12 bytes, the views are invalid.
#[inline]
pub fn append_views(texts: &mut [u128], more: impl Fn(usize) -> u128) -> u32 {
    let mut max = 0;
    for (row, text) in texts.iter_mut().enumerate() {
        let more = more(row);
        let len = (*text as u32).saturating_add(more as u32);
        max = max.max(len);
        let bytes = (more & !LENGTH).wrapping_shl((*text as u32).wrapping_mul(8));
        *text = (*text & !LENGTH) | bytes | u128::from(len);
    }
    max
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;
    use crate::tests::random;

    fn text_of(view: u128, buffers: &[Vec<u8>]) -> Vec<u8> {
        if !is_long_view(view) {
            let bytes = view.to_le_bytes();
            assert!(bytes[4 + view_len(view)..].iter().all(|&byte| byte == 0));
            return bytes[4..4 + view_len(view)].to_vec();
        }
        let at = (view >> 96) as usize;
        let text = &buffers[(view >> 64) as u32 as usize][at..at + view_len(view)];
        assert_eq!((view >> 32) as u32, u32::from_le_bytes(*text.first_chunk().unwrap()));
        text.to_vec()
    }

    #[test]
    fn string_views_match_their_strings() {
        let mut rng = random();
        for _ in 0..20_000 {
            let len = rng.random_range(0..40);
            let text: Vec<u8> = (0..len).map(|_| rng.random_range(0..0x80)).collect();
            let before = rng.random_range(0..5);
            let body = [vec![b'.'; before], text.clone()].concat();
            let view = view_of(&text, 0, before as u32);
            let buffers = [body.clone()];
            assert_eq!(text_of(view, &buffers), text);

            let from = rng.random_range(0..=len);
            let length = rng.random_range(0..=len - from);
            let found = subview(view, &body, from, length);
            assert_eq!(text_of(found, &buffers), text[from..from + length]);

            let other = [vec![0; before + 7], text.to_ascii_lowercase()].concat();
            let found = recase_view(view, Case::Lower, 7);
            assert_eq!(text_of(found, &[other]), text.to_ascii_lowercase());
            let other = text.to_ascii_uppercase();
            let found = recase_view(view, Case::Upper, 0_u32.wrapping_sub(before as u32));
            assert_eq!(text_of(found, &[other]), text.to_ascii_uppercase());
        }
    }

    #[test]
    fn short_strings_are_concatenated_in_their_views() {
        let mut rng = random();
        for _ in 0..2_000 {
            let rows = rng.random_range(0..20);
            let mut some = || -> Vec<Vec<u8>> {
                let mut text = |_| {
                    let len = rng.random_range(0..8);
                    (0..len).map(|_| rng.random()).collect()
                };
                (0..rows).map(&mut text).collect()
            };
            let (first, second, third) = (some(), some(), some());
            let mut views: Vec<u128> = vec![0; rows];
            let mut max = 0;
            for chunk in [&first, &second, &third] {
                max = max.max(append_views(&mut views, |row| view_of(&chunk[row], 0, 0)));
            }
            let texts: Vec<Vec<u8>> =
                (0..rows).map(|row| [&*first[row], &second[row], &third[row]].concat()).collect();
            assert_eq!(max as usize, texts.iter().map(Vec::len).max().unwrap_or(0));
            for (text, &view) in texts.iter().zip(&views).filter(|(text, _)| text.len() <= 12) {
                assert_eq!(text_of(view, &[]), *text);
            }
            let mut long = [5];
            assert_eq!(append_views(&mut long, |_| u128::from(u32::MAX)), u32::MAX);
        }
    }
}
