//! Parses CSV records.

use memchr::{memchr_iter, memchr2, memchr3};

use super::position::{Kind, Marked, ValuePosition};

/// Parses the record at `at` into `positions`. Values that are not contiguous in the data are
/// assembled in `texts`. Returns `None` if the record is incomplete, and `Err` if a quote is never
/// closed.
pub(super) fn record(
    bytes: &[u8],
    at: usize,
    is_last: bool,
    (delimiter, quote, escape): (u8, u8, u8),
    positions: &mut Vec<ValuePosition>,
    texts: &mut Vec<u8>,
) -> Result<Option<Marked>, Unterminated> {
    positions.clear();
    texts.clear();
    let mut lines = 1;
    let mut start = at;
    let mut index = at;
    loop {
        let Some(found) = memchr3(delimiter, b'\n', quote, &bytes[index..]) else {
            if !is_last {
                return Ok(None);
            }
            let end = without_return(bytes, start, bytes.len());
            positions.push(ValuePosition { start, end, kind: Kind::Plain });
            return Ok(Some(Marked { next: bytes.len(), lines }));
        };
        index += found;
        let byte = bytes[index];
        if byte == quote {
            let mut quoted = QuotedValue { bytes, at: index, from: start, lines: &mut lines };
            let ended = quoted.quoted(is_last, (delimiter, quote, escape), texts)?;
            let Some((position, end)) = ended else { return Ok(None) };
            positions.push(position);
            match bytes.get(end) {
                None => return Ok(Some(Marked { next: end, lines })),
                Some(b'\n') => return Ok(Some(Marked { next: end + 1, lines })),
                Some(_) => (start, index) = (end + 1, end + 1),
            }
            continue;
        }
        if byte == b'\n' {
            let end = without_return(bytes, start, index);
            positions.push(ValuePosition { start, end, kind: Kind::Plain });
            return Ok(Some(Marked { next: index + 1, lines }));
        }
        positions.push(ValuePosition { start, end: index, kind: Kind::Plain });
        index += 1;
        start = index;
    }
}

/// A quote that is never closed.
#[derive(Debug)]
pub(super) struct Unterminated;

/// A line may end in CR LF instead of LF.
fn without_return(bytes: &[u8], start: usize, end: usize) -> usize {
    end - usize::from(end > start && bytes[end - 1] == b'\r')
}

/// A value that contains quotes.
struct QuotedValue<'a> {
    bytes: &'a [u8],
    /// Position of the value's opening quote.
    at: usize,
    /// Start of the value.
    from: usize,
    lines: &'a mut u64,
}

impl QuotedValue<'_> {
    /// Reads to the end of the value. Returns the range of its content, and the position of the
    /// delimiter or line end after it.
    fn quoted(
        &mut self,
        is_last: bool,
        (delimiter, quote, escape): (u8, u8, u8),
        texts: &mut Vec<u8>,
    ) -> Result<Option<(ValuePosition, usize)>, Unterminated> {
        let bytes = self.bytes;
        let begin = texts.len();
        texts.extend_from_slice(&bytes[self.from..self.at]);
        let mut index = self.at;
        loop {
            // Continues after an opening quote.
            index += 1;
            loop {
                let Some(found) = memchr2(quote, escape, &bytes[index.min(bytes.len())..]) else {
                    return if is_last { Err(Unterminated) } else { Ok(None) };
                };
                let part = &bytes[index..index + found];
                *self.lines += memchr_iter(b'\n', part).count() as u64;
                texts.extend_from_slice(part);
                index += found;
                let following = bytes.get(index + 1);
                if following.is_none() && !is_last {
                    return Ok(None);
                }
                let is_pair = following.is_some_and(|next| *next == quote || *next == escape);
                if bytes[index] == escape && is_pair {
                    texts.extend(following);
                    index += 2;
                } else if bytes[index] == quote {
                    index += 1;
                    break;
                } else {
                    texts.push(bytes[index]);
                    index += 1;
                }
            }
            // Continues after a closing quote.
            let rest = &bytes[index..];
            let found = memchr3(delimiter, b'\n', quote, rest);
            let end = index + found.unwrap_or(rest.len());
            if found.is_none() && !is_last {
                return Ok(None);
            }
            let is_end = bytes.get(end).is_none_or(|byte| *byte == b'\n');
            let kept = if is_end { without_return(bytes, index, end) } else { end };
            texts.extend_from_slice(&bytes[index..kept]);
            if bytes.get(end) == Some(&quote) {
                index = end;
                continue;
            }
            let position = ValuePosition { start: begin, end: texts.len(), kind: Kind::Quoted };
            return Ok(Some((position, end)));
        }
    }
}
