//! Splits one CSV record into fields and finds its end.
//!
//! A field that begins with `"` is quoted. Delimiters and line ends inside it belong to the field,
//! and `""` stands for one quote. The field is taken literally if its closing quote is followed by
//! anything but a delimiter or a line end. A quote that is not at the start of a field is also
//! taken literally.

use memchr::{memchr, memchr3};

/// Range of a field in its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the field contains doubled quotes.
    pub(crate) doubled_quotes: bool,
}

impl FieldRange {
    /// Returns the field's content. Each doubled quote becomes one quote in `scratch`.
    #[inline]
    pub(crate) fn text<'a>(&self, record: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let text = &record[self.start..self.end];
        if !self.doubled_quotes {
            return text;
        }
        scratch.clear();
        let mut rest = text;
        while let Some(quote) = memchr(b'"', rest) {
            scratch.extend_from_slice(&rest[..=quote]);
            rest = rest.get(quote + 2..).unwrap_or_default();
        }
        scratch.extend_from_slice(rest);
        scratch
    }
}

/// Splits the record at the start of `bytes` into `fields`. Returns the record's length, including
/// the line end. Returns `None` if more bytes are needed. This cannot happen if the input is
/// `complete`, meaning that no more bytes follow.
///
/// CR LF counts as a CR followed by a blank record. The caller skips blank records.
pub(crate) fn split_record(
    bytes: &[u8],
    delimiter: u8,
    complete: bool,
    fields: &mut Vec<FieldRange>,
) -> Option<usize> {
    fields.clear();
    let mut at = 0;
    loop {
        let (field, end) = if bytes.get(at) == Some(&b'"') {
            quoted_field(bytes, at, delimiter, complete)?
        } else {
            let end = plain_end(bytes, at, delimiter, complete)?;
            (FieldRange { start: at, end, doubled_quotes: false }, end)
        };
        fields.push(field);
        match bytes.get(end) {
            Some(byte) if *byte == delimiter => at = end + 1,
            Some(_) => return Some(end + 1),
            None => return Some(end),
        }
    }
}

/// Returns the end of the unquoted field that starts at `at`.
#[inline]
fn plain_end(bytes: &[u8], at: usize, delimiter: u8, complete: bool) -> Option<usize> {
    match memchr3(delimiter, b'\n', b'\r', &bytes[at..]) {
        Some(offset) => Some(at + offset),
        None => complete.then_some(bytes.len()),
    }
}

/// Returns the quoted field whose opening quote is at `open`, and the position of its delimiter or
/// line end.
fn quoted_field(
    bytes: &[u8],
    open: usize,
    delimiter: u8,
    complete: bool,
) -> Option<(FieldRange, usize)> {
    let mut doubled_quotes = false;
    let mut at = open + 1;
    loop {
        let Some(offset) = memchr(b'"', &bytes[at..]) else {
            // The quote is never closed, so the field extends to the end of the input.
            let field = FieldRange { start: open + 1, end: bytes.len(), doubled_quotes };
            return complete.then_some((field, bytes.len()));
        };
        let close = at + offset;
        match bytes.get(close + 1) {
            Some(b'"') => {
                doubled_quotes = true;
                at = close + 2;
            }
            Some(byte) if *byte == delimiter || matches!(byte, b'\n' | b'\r') => {
                let field = FieldRange { start: open + 1, end: close, doubled_quotes };
                return Some((field, close + 1));
            }
            Some(_) => {
                let end = plain_end(bytes, close + 1, delimiter, complete)?;
                return Some((FieldRange { start: open, end, doubled_quotes: false }, end));
            }
            None => {
                let field = FieldRange { start: open + 1, end: close, doubled_quotes };
                return complete.then_some((field, close + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, complete: bool) -> Option<(usize, Vec<String>)> {
        let mut fields = Vec::new();
        let length = split_record(text.as_bytes(), b',', complete, &mut fields)?;
        let mut scratch = Vec::new();
        let texts = fields
            .iter()
            .map(|field| {
                String::from_utf8(field.text(text.as_bytes(), &mut scratch).to_vec()).unwrap()
            })
            .collect();
        Some((length, texts))
    }

    #[test]
    fn plain_and_quoted_fields_are_split() {
        let cases: [(&str, &[&str]); 8] = [
            ("a,b\n", &["a", "b"]),
            (",,\n", &["", "", ""]),
            ("\"a,b\",c\r", &["a,b", "c"]),
            ("\"a\nb\",\"\"\n", &["a\nb", ""]),
            ("\"say \"\"hi\"\"\",x\n", &["say \"hi\"", "x"]),
            ("\"\"\"\"\n", &["\""]),
            ("\"ab\"c,d\n", &["\"ab\"c", "d"]),
            ("a\"b,c\n", &["a\"b", "c"]),
        ];
        for (text, expected) in cases {
            assert_eq!(split(text, false), Some((text.len(), owned(expected))), "{text:?}");
        }
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_incomplete_record_needs_more_bytes() {
        for text in ["a,b", "\"a", "\"a\"", "a,", "\"a\"\"", "\"a\nb"] {
            assert_eq!(split(text, false), None, "{text:?}");
            assert_eq!(split(text, true).unwrap().0, text.len(), "{text:?}");
        }
        assert_eq!(split("a,", true).unwrap().1, owned(&["a", ""]));
        assert_eq!(split("\"a\nb", true).unwrap().1, owned(&["a\nb"]));
    }
}
