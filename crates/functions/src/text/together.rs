//! Vectorised string functions for ASCII-only columns: characters are bytes, lengths are those of
//! the views, and substrings are views of the same bytes. For any other column, each function
//! returns `None`, and the column is processed string by string.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder, StringViewArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::common::Result;
use memchr::memmem::Finder;
use tidemark_kernels::{Case, is_long_view, recase_view, view_len, view_piece};
use tidemark_types::account;
use tidemark_vfs::{PIECE_TEXTS, are_ascii, ascii_stretch, stretch, text_column};

use crate::column::{Texts, stopped};

/// Maximum size of a buffer whose offsets fit in a view, and of what is built in one step.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// Visits the views in chunks, each with the row of its first view. Before each chunk, checks the
/// query's deadline and cancellation.
pub(crate) fn each_piece(
    texts: &StringViewArray,
    mut visit: impl FnMut(usize, &[u128]) -> Result<bool>,
) -> Result<bool> {
    for (piece, views) in texts.views().chunks(PIECE_TEXTS).enumerate() {
        account::check().map_err(stopped)?;
        if !visit(piece * PIECE_TEXTS, views)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the length of each string; `count` measures strings that are not ASCII. Lengths of nulls
/// are unspecified.
pub(crate) fn lengths(texts: &Texts, count: fn(&str) -> usize) -> Result<Option<Vec<i32>>> {
    if texts.scalar {
        return Ok(None);
    }
    let mut lengths = Vec::with_capacity(texts.array.len());
    each_piece(&texts.array, |first, views| {
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
    let mut made = Vec::with_capacity(texts.array.len());
    let mut bytes: Vec<u8> = vec![];
    let are_ascii = each_piece(&texts.array, |_, views| {
        let Some(stretch) = ascii_stretch(views, texts.array.data_buffers()) else {
            return Ok(false);
        };
        let start = bytes.len();
        if start + stretch.bytes.len() > MAX_BYTES {
            return Ok(false);
        }
        reserve(&mut bytes, stretch.bytes.len())?;
        bytes.extend_from_slice(stretch.bytes);
        match case {
            Case::Lower => bytes[start..].make_ascii_lowercase(),
            Case::Upper => bytes[start..].make_ascii_uppercase(),
        }
        let moved = (start as u32).wrapping_sub(stretch.start);
        made.extend(views.iter().map(|&view| recase_view(view, case, moved)));
        Ok(true)
    })?;
    if !are_ascii {
        return Ok(None);
    }
    let nulls = texts.array.nulls().cloned();
    Ok(Some(Arc::new(text_column(made, buffers_of(bytes), nulls)?)))
}

/// Reserves capacity for more bytes within the query's memory limit.
pub(crate) fn reserve(bytes: &mut Vec<u8>, more: usize) -> Result<()> {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let wanted = needed.max(2 * bytes.capacity());
        account::room(wanted).map_err(stopped)?;
        bytes.reserve_exact(wanted - bytes.len());
    }
    Ok(())
}

/// Wraps the bytes as the buffers of a column.
pub(crate) fn buffers_of(bytes: Vec<u8>) -> Vec<Buffer> {
    if bytes.is_empty() { vec![] } else { vec![bytes.into()] }
}

/// Returns a substring of each string; `piece` maps the string's length to the substring's first
/// byte and length in bytes.
pub(crate) fn pieces(
    texts: &Texts,
    piece: impl Fn(usize) -> (usize, usize),
) -> Result<Option<ArrayRef>> {
    if texts.scalar {
        return Ok(None);
    }
    let buffers = texts.array.data_buffers();
    let mut made = Vec::with_capacity(texts.array.len());
    // Total bytes of the strings stored in buffers, and of the substrings that still need a buffer.
    let (mut all, mut taken) = (0, 0);
    let are_ascii = each_piece(&texts.array, |_, views| {
        if !are_ascii(views, buffers) {
            return Ok(false);
        }
        made.extend(views.iter().map(|&view| {
            let (from, len) = piece(view_len(view));
            let body: &[u8] =
                if is_long_view(view) { &buffers[(view >> 64) as u32 as usize] } else { &[] };
            let piece = view_piece(view, body, from, len);
            all += body.len().min(view_len(view));
            taken += if is_long_view(piece) { len } else { 0 };
            piece
        }));
        Ok(true)
    })?;
    if !are_ascii {
        return Ok(None);
    }
    let buffers = if taken > 0 { buffers.to_vec() } else { vec![] };
    let pieces = text_column(made, buffers, texts.array.nulls().cloned())?;
    if taken == 0 || taken >= all / 2 {
        return Ok(Some(Arc::new(pieces)));
    }
    // A few bytes must not keep a large buffer alive.
    account::room(taken).map_err(stopped)?;
    Ok(Some(Arc::new(pieces.gc())))
}

/// Whether each string contains a substring; false for nulls. Contiguously stored strings are
/// searched as one range, whether or not they are ASCII.
pub(crate) fn containing(texts: &Texts, part: &Finder<'_>) -> Result<Option<BooleanBuffer>> {
    let len = part.needle().len();
    if texts.scalar || len == 0 {
        return Ok(None);
    }
    let mut found = BooleanBufferBuilder::new(texts.array.len());
    let mut flags = [false; PIECE_TEXTS];
    each_piece(&texts.array, |first, views| {
        let flags = &mut flags[..views.len()];
        match stretch(views, texts.array.data_buffers()) {
            Some(stretch) => search(views, stretch.start as usize, stretch.bytes, part, flags),
            None => {
                for (row, flag) in (first..).zip(&mut *flags) {
                    *flag = texts.get(row).is_some_and(|text| part.find(text.as_bytes()).is_some());
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

/// Whether each string contains `part`. Strings that are not inline lie in `bytes`, whose first
/// byte has the offset `start`.
fn search(views: &[u128], start: usize, bytes: &[u8], part: &Finder<'_>, flags: &mut [bool]) {
    let find = |from: usize| part.find(&bytes[from..]).map_or(usize::MAX, |at| from + at);
    // No string that begins at `from` or later contains the substring at an offset before `next`.
    let (mut from, mut next) = (0, if bytes.is_empty() { usize::MAX } else { find(0) });
    for (&view, flag) in views.iter().zip(flags) {
        let len = view_len(view);
        if !is_long_view(view) {
            *flag = part.find(&view.to_le_bytes()[4..4 + len]).is_some();
            continue;
        }
        let at = (view >> 96) as usize - start;
        if at < from {
            // Strings that are out of row order are searched one by one, because the shared range
            // is scanned only once.
            *flag = part.find(&bytes[at..at + len]).is_some();
            continue;
        }
        if next < at {
            next = find(at);
        }
        from = at;
        *flag = next.saturating_add(part.needle().len()) <= at + len;
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

    /// Realistic columns: slices, filtered rows, several buffers, nulls, non-ASCII letters.
    fn some_texts(rng: &mut ChaCha8Rng) -> StringViewArray {
        let rows = [0, 1, 7, 900, 1_024, 3_000][rng.random_range(0..6)];
        let (nulls, other) = (rng.random_bool(0.5), rng.random_bool(0.3));
        let longest = [3, 12, 30][rng.random_range(0..3)];
        let mut column = |rows: usize| -> StringViewArray {
            let text = |_| {
                if nulls && rng.random_bool(0.2) {
                    return None;
                }
                let letter = |rng: &mut ChaCha8Rng| {
                    if other && rng.random_bool(0.01) { 'É' } else { rng.random_range('@'..='c') }
                };
                Some((0..rng.random_range(0..=longest)).map(|_| letter(rng)).collect::<String>())
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
                let kept = (0..texts.len()).map(|_| Some(rng.random_bool(0.1)));
                filter(&texts, &kept.collect()).unwrap().as_string_view().clone()
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
            let (first, most) = (rng.random_range(0..20), rng.random_range(0..20));
            let piece = |len: usize| (first.min(len), most.min(len - first.min(len)));
            if let Some(found) = pieces(&texts, piece).unwrap() {
                found.to_data().validate_full().unwrap();
                let expected = |text: &str| text.chars().skip(first).take(most).collect::<String>();
                assert_eq!(plain(found.as_string_view(), str::to_owned), plain(&array, expected));
            }
            let part: String = (0..rng.random_range(1..3)).map(|_| 'A').collect();
            let found = containing(&texts, &Finder::new(&part)).unwrap().unwrap();
            let expected = plain(&array, |text| text.contains(&part));
            assert!(expected.iter().map(|flag| *flag == Some(true)).eq(found.iter()));
        }
        assert!(together > 100);
    }

    #[test]
    fn short_substrings_do_not_keep_large_buffers() {
        let large = "0123456789abcdef".repeat(1_000);
        let texts = Texts::new(StringViewArray::from_iter_values(vec![&large; 50]), false);
        for (len, kept) in [(5, 0), (20, 50 * 20), (9_000, 50 * 16_000)] {
            let found = pieces(&texts, |_| (3, len)).unwrap().unwrap();
            let found = found.as_string_view();
            assert!(found.iter().all(|text| text == Some(&large[3..3 + len])));
            assert_eq!(found.data_buffers().iter().map(Buffer::len).sum::<usize>(), kept);
        }
    }

    #[test]
    fn a_match_cannot_span_two_strings() {
        let texts = ["0123456789abcA", "Bcdefghijklmno", "xxxxxxxxxxxABx", "AB", "B0123456789abcA"];
        let texts = Texts::new(StringViewArray::from_iter_values(texts), false);
        let found = containing(&texts, &Finder::new("AB")).unwrap().unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [false, false, true, true, false]);
        // In reverse order, with a duplicate string.
        let rows = arrow::array::UInt32Array::from(vec![4, 3, 2, 2, 1, 0, 2]);
        let array = arrow::compute::take(&texts.array, &rows, None).unwrap();
        let texts = Texts::new(array.as_string_view().clone(), false);
        let found = containing(&texts, &Finder::new("AB")).unwrap().unwrap();
        assert_eq!(found.iter().collect::<Vec<_>>(), [false, true, true, true, false, false, true]);
    }
}
