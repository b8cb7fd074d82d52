//! Vectorised string functions for ASCII-only columns. Characters are bytes, lengths come from the
//! views, and substrings are views of the same bytes. For any other column, each function returns
//! `None`, and the column is processed string by string.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder, StringViewArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::common::Result;
use memchr::memmem::Finder;
use tidemark_kernels::{Case, is_long_view, recase_view, subview, view_len};
use tidemark_types::account;
use tidemark_vfs::{STRINGS_PER_CHUNK, are_ascii, ascii_byte_range, byte_range, text_column};

use crate::column::{Texts, stopped};

/// Maximum size in bytes of a buffer, and of the data built in one step. Offsets into a buffer must
/// fit in a view.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// Calls `visit` with each chunk of views and the row of the chunk's first view. Checks the query's
/// deadline and cancellation before each chunk.
pub(crate) fn for_each_chunk(
    texts: &StringViewArray,
    mut visit: impl FnMut(usize, &[u128]) -> Result<bool>,
) -> Result<bool> {
    for (chunk, views) in texts.views().chunks(STRINGS_PER_CHUNK).enumerate() {
        account::check().map_err(stopped)?;
        if !visit(chunk * STRINGS_PER_CHUNK, views)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the length of each string. `count` measures non-ASCII strings. The lengths of nulls are
/// unspecified.
pub(crate) fn lengths(texts: &Texts, count: fn(&str) -> usize) -> Result<Option<Vec<i32>>> {
    if texts.scalar {
        return Ok(None);
    }
    let mut lengths = Vec::with_capacity(texts.array.len());
    for_each_chunk(&texts.array, |first, views| {
        if are_ascii(views, texts.array.data_buffers()) {
            lengths.extend(views.iter().map(|&view| view_len(view) as i32));
        } else {
            let length = |row| texts.get(row).map_or(0, count) as i32;
            lengths.extend((first..first + views.len()).map(length));
        }
        Ok(true)
    })?;
    Ok(Some(lengths))
}

/// Converts the case of the strings.
pub(crate) fn recased(texts: &Texts, case: Case) -> Result<Option<ArrayRef>> {
    if texts.scalar {
        return Ok(None);
    }
    let mut output_views = Vec::with_capacity(texts.array.len());
    let mut bytes: Vec<u8> = vec![];
    let are_ascii = for_each_chunk(&texts.array, |_, views| {
        let Some(range) = ascii_byte_range(views, texts.array.data_buffers()) else {
            return Ok(false);
        };
        let start = bytes.len();
        if start + range.bytes.len() > MAX_BYTES {
            return Ok(false);
        }
        reserve(&mut bytes, range.bytes.len())?;
        bytes.extend_from_slice(range.bytes);
        match case {
            Case::Lower => bytes[start..].make_ascii_lowercase(),
            Case::Upper => bytes[start..].make_ascii_uppercase(),
        }
        let moved = (start as u32).wrapping_sub(range.start);
        output_views.extend(views.iter().map(|&view| recase_view(view, case, moved)));
        Ok(true)
    })?;
    if !are_ascii {
        return Ok(None);
    }
    let nulls = texts.array.nulls().cloned();
    Ok(Some(Arc::new(text_column(output_views, buffers_of(bytes), nulls)?)))
}

/// Reserves capacity for more bytes within the query's memory limit.
pub(crate) fn reserve(bytes: &mut Vec<u8>, more: usize) -> Result<()> {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let required = needed.max(2 * bytes.capacity());
        account::check_allocation(required).map_err(stopped)?;
        bytes.reserve_exact(required - bytes.len());
    }
    Ok(())
}

/// Wraps the bytes as a column's buffers.
pub(crate) fn buffers_of(bytes: Vec<u8>) -> Vec<Buffer> {
    if bytes.is_empty() { vec![] } else { vec![bytes.into()] }
}

/// Returns a substring of each string. `chunk` maps a string's length to the substring's offset and
/// length in bytes.
pub(crate) fn substrings(
    texts: &Texts,
    chunk: impl Fn(usize) -> (usize, usize),
) -> Result<Option<ArrayRef>> {
    if texts.scalar {
        return Ok(None);
    }
    let buffers = texts.array.data_buffers();
    let mut output_views = Vec::with_capacity(texts.array.len());
    // Total size in bytes of the strings in buffers, and of the substrings that still need a
    // buffer.
    let (mut all, mut used) = (0, 0);
    let are_ascii = for_each_chunk(&texts.array, |_, views| {
        if !are_ascii(views, buffers) {
            return Ok(false);
        }
        output_views.extend(views.iter().map(|&view| {
            let (from, len) = chunk(view_len(view));
            let body: &[u8] =
                if is_long_view(view) { &buffers[(view >> 64) as u32 as usize] } else { &[] };
            let chunk = subview(view, body, from, len);
            all += body.len().min(view_len(view));
            used += if is_long_view(chunk) { len } else { 0 };
            chunk
        }));
        Ok(true)
    })?;
    if !are_ascii {
        return Ok(None);
    }
    let buffers = if used > 0 { buffers.to_vec() } else { vec![] };
    let substrings_column = text_column(output_views, buffers, texts.array.nulls().cloned())?;
    if used == 0 || used >= all / 2 {
        return Ok(Some(Arc::new(substrings_column)));
    }
    // A substring of a few bytes must not keep a large buffer alive.
    account::check_allocation(used).map_err(stopped)?;
    Ok(Some(Arc::new(substrings_column.gc())))
}

/// Returns whether each string contains a substring; false for nulls. Contiguous strings are
/// searched as a single range, whether or not they are ASCII.
pub(crate) fn containing(texts: &Texts, needle: &Finder<'_>) -> Result<Option<BooleanBuffer>> {
    let len = needle.needle().len();
    if texts.scalar || len == 0 {
        return Ok(None);
    }
    let mut found = BooleanBufferBuilder::new(texts.array.len());
    let mut flags = [false; STRINGS_PER_CHUNK];
    for_each_chunk(&texts.array, |first, views| {
        let flags = &mut flags[..views.len()];
        match byte_range(views, texts.array.data_buffers()) {
            Some(range) => search(views, range.start as usize, range.bytes, needle, flags),
            None => {
                for (row, flag) in (first..).zip(&mut *flags) {
                    *flag =
                        texts.get(row).is_some_and(|text| needle.find(text.as_bytes()).is_some());
                }
            }
        }
        found.append_slice(flags);
        Ok(true)
    })?;
    let found = found.finish();
    Ok(Some(match texts.array.nulls() {
        Some(nulls) => &found & nulls.inner(),
        None => found,
    }))
}

/// Stores in `flags` whether each string contains the needle. `bytes` contains the strings that are
/// not inline, and starts at offset `start` of their buffer.
fn search(views: &[u128], start: usize, bytes: &[u8], needle: &Finder<'_>, flags: &mut [bool]) {
    let find = |from: usize| needle.find(&bytes[from..]).map_or(usize::MAX, |at| from + at);
    // In strings that begin at or after `from`, the substring does not occur before the offset
    // `next`.
    let (mut from, mut next) = (0, if bytes.is_empty() { usize::MAX } else { find(0) });
    for (&view, flag) in views.iter().zip(flags) {
        let len = view_len(view);
        if !is_long_view(view) {
            *flag = needle.find(&view.to_le_bytes()[4..4 + len]).is_some();
            continue;
        }
        let at = (view >> 96) as usize - start;
        if at < from {
            // Strings that are not in row order are searched individually because the shared range
            // is scanned only once.
            *flag = needle.find(&bytes[at..at + len]).is_some();
            continue;
        }
        if next < at {
            next = find(at);
        }
        from = at;
        *flag = next.saturating_add(needle.needle().len()) <= at + len;
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::compute::{concat, filter};
    use rand::Rng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::tests::random;

    /// Generates realistic columns with slices, filtered rows, several buffers, nulls and non-ASCII
    /// letters.
    fn some_texts(rng: &mut ChaCha8Rng) -> StringViewArray {
        let rows = [0, 1, 7, 900, 1_024, 3_000][rng.random_range(0..6)];
        let (nulls, other) = (rng.random_bool(0.5), rng.random_bool(0.3));
        let max = [3, 12, 30][rng.random_range(0..3)];
        let mut column = |rows: usize| -> StringViewArray {
            let text = |_| {
                if nulls && rng.random_bool(0.2) {
                    return None;
                }
                let letter = |rng: &mut ChaCha8Rng| {
                    if other && rng.random_bool(0.01) { 'É' } else { rng.random_range('@'..='c') }
                };
                Some((0..rng.random_range(0..=max)).map(|_| letter(rng)).collect::<String>())
            };
            (0..rows).map(text).collect()
        };
        let texts = column(rows);
        let texts = match rows % 3 {
            0 => texts,
            _ => concat(&[&texts, &column(200)]).unwrap().as_string_view().clone(),
        };
        let texts = match rng.random_range(0..3) {
            0 => texts,
            1 => {
                let retained = (0..texts.len()).map(|_| Some(rng.random_bool(0.1)));
                filter(&texts, &retained.collect()).unwrap().as_string_view().clone()
            }
            _ => texts.slice(texts.len() / 5, texts.len() / 2),
        };
        if texts.len() > 20 { texts.slice(5, texts.len() - 7) } else { texts }
    }

    fn plain<T>(texts: &StringViewArray, of: impl Fn(&str) -> T) -> Vec<Option<T>> {
        texts.iter().map(|text| text.map(&of)).collect()
    }

    #[test]
    fn vectorised_functions_match_string_by_string_evaluation() {
        let mut rng = random();
        let mut together = 0;
        for _ in 0..400 {
            let array = some_texts(&mut rng);
            let texts = Texts::new(array.clone(), false);
            let count = |text: &str| text.chars().count();
            let found = lengths(&texts, count).unwrap().unwrap();
            for (found, expected) in found.iter().zip(plain(&array, count)) {
                assert!(expected.is_none_or(|expected| *found as usize == expected));
            }
            for case in [Case::Lower, Case::Upper] {
                let expected = plain(&array, |text| match case {
                    Case::Lower => text.to_lowercase(),
                    Case::Upper => text.to_uppercase(),
                });
                let Some(found) = recased(&texts, case).unwrap() else { continue };
                found.to_data().validate_full().unwrap();
                assert_eq!(plain(found.as_string_view(), str::to_owned), expected);
                together += 1;
            }
            let (first, max) = (rng.random_range(0..20), rng.random_range(0..20));
            let chunk = |len: usize| (first.min(len), max.min(len - first.min(len)));
            if let Some(found) = substrings(&texts, chunk).unwrap() {
                found.to_data().validate_full().unwrap();
                let expected = |text: &str| text.chars().skip(first).take(max).collect::<String>();
                assert_eq!(plain(found.as_string_view(), str::to_owned), plain(&array, expected));
            }
            let needle: String = (0..rng.random_range(1..3)).map(|_| 'A').collect();
            let found = containing(&texts, &Finder::new(&needle)).unwrap().unwrap();
            let expected = plain(&array, |text| text.contains(&needle));
            assert!(expected.iter().map(|flag| *flag == Some(true)).eq(found.iter()));
        }
        assert!(together > 100);
    }

    #[test]
    fn short_substrings_do_not_keep_large_buffers_alive() {
        let large = "0123456789abcdef".repeat(1_000);
        let texts = Texts::new(StringViewArray::from_iter_values(vec![&large; 50]), false);
        for (len, retained) in [(5, 0), (20, 50 * 20), (9_000, 50 * 16_000)] {
            let found = substrings(&texts, |_| (3, len)).unwrap().unwrap();
            let found = found.as_string_view();
            assert!(found.iter().all(|text| text == Some(&large[3..3 + len])));
            assert_eq!(found.data_buffers().iter().map(Buffer::len).sum::<usize>(), retained);
        }
    }

    #[test]
    fn a_match_cannot_span_two_strings() {
        let texts = ["0123456789abcA", "Bcdefghijklmno", "xxxxxxxxxxxABx", "AB", "B0123456789abcA"];
        let texts = Texts::new(StringViewArray::from_iter_values(texts), false);
        let found = containing(&texts, &Finder::new("AB")).unwrap().unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [false, false, true, true, false]);
        // The strings in reverse order, with a duplicate.
        let rows = arrow::array::UInt32Array::from(vec![4, 3, 2, 2, 1, 0, 2]);
        let array = arrow::compute::take(&texts.array, &rows, None).unwrap();
        let texts = Texts::new(array.as_string_view().clone(), false);
        let found = containing(&texts, &Finder::new("AB")).unwrap().unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [false, true, true, true, false, false, true]);
    }
}
