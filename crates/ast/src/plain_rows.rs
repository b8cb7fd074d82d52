//! VALUES rows that contain only plain literals, passed to Rust as written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Span;

/// Rows of plain literals as written, from the first parenthesis to the last: `(1, 'a', null), (-2,
/// 'it''s', 1.5)`. The parser has verified that they contain nothing else: no comments, suffixes or
/// expressions. [`PlainRows::parts`] iterates over the cells.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PlainRows {
    /// The rows as written.
    pub text: String,
    /// Number of rows.
    pub rows: u32,
    /// The rows' span in the statement.
    pub span: Span,
}

/// Kinds of literal in [`PlainRows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainKind {
    /// `null`.
    Null,
    /// `true`.
    True,
    /// `false`.
    False,
    /// Digits, optionally with a minus sign.
    Integer,
    /// A number with a fraction or an exponent.
    Floating,
    /// A string without its quotes.
    Text,
}

/// A cell, or the end of a row.
#[derive(Debug, PartialEq, Eq)]
pub enum PlainPart<'t> {
    /// A cell.
    Cell {
        /// Kind of the literal.
        kind: PlainKind,
        /// The literal as written, without a leading plus sign.
        text: Cow<'t, str>,
        /// Statement offset of the cell's first UTF-16 unit.
        start: u32,
    },
    /// The end of a row.
    RowEnd {
        /// Statement offset just past the row's last cell, in UTF-16 units.
        last_end: u32,
    },
}

impl PlainRows {
    /// Iterates over cells and row ends in order.
    #[must_use]
    pub fn parts(&self) -> PlainParts<'_> {
        let start = self.span.start as usize;
        PlainParts { text: &self.text, at: 0, start, narrower: 0, last_end: 0 }
    }
}

/// Iterator over the cells and row ends of [`PlainRows`].
#[derive(Debug)]
pub struct PlainParts<'t> {
    text: &'t str,
    /// Offset of the next byte.
    at: usize,
    /// Offset of the rows in the statement.
    start: usize,
    /// Bytes before `at` minus UTF-16 units before `at`.
    narrower: usize,
    /// Statement offset where the last cell ends.
    last_end: u32,
}

impl<'t> Iterator for PlainParts<'t> {
    type Item = PlainPart<'t>;

    fn next(&mut self) -> Option<PlainPart<'t>> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b')' => {
                    self.at += 1;
                    return Some(PlainPart::RowEnd { last_end: self.last_end });
                }
                b'\'' => return Some(self.string()),
                b'+' | b'-' | b'0'..=b'9' => return Some(self.number()),
                byte if byte.is_ascii_alphabetic() => return Some(self.word()),
                _ => self.at += 1,
            }
        }
    }
}

impl<'t> PlainParts<'t> {
    /// The statement offset of the next cell.
    fn offset(&self) -> u32 {
        (self.start + self.at - self.narrower) as u32
    }

    fn cell(&mut self, kind: PlainKind, text: Cow<'t, str>, end: usize) -> PlainPart<'t> {
        let start = self.offset();
        self.at = end;
        if kind == PlainKind::Text && !text.is_ascii() {
            self.narrower += text.len() - text.encode_utf16().count();
        }
        self.last_end = self.offset();
        PlainPart::Cell { kind, text, start }
    }

    fn string(&mut self) -> PlainPart<'t> {
        let bytes = self.text.as_bytes();
        let first = self.at + 1;
        let (mut close, mut doubled) = (first, false);
        loop {
            match (bytes.get(close), bytes.get(close + 1)) {
                (Some(b'\''), Some(b'\'')) => {
                    doubled = true;
                    close += 2;
                }
                (Some(b'\'') | None, _) => break,
                _ => close += 1,
            }
        }
        let inside = self.text.get(first..close).unwrap_or_default();
        let text =
            if doubled { Cow::Owned(inside.replace("''", "'")) } else { Cow::Borrowed(inside) };
        self.cell(PlainKind::Text, text, close + 1)
    }

    fn number(&mut self) -> PlainPart<'t> {
        let bytes = self.text.as_bytes();
        let first = self.at + usize::from(bytes[self.at] == b'+');
        let (mut end, mut kind) = (first, PlainKind::Integer);
        while let Some(byte) = bytes.get(end) {
            match byte {
                b'0'..=b'9' | b'-' | b'+' => {}
                b'.' | b'e' | b'E' => kind = PlainKind::Floating,
                _ => break,
            }
            end += 1;
        }
        self.cell(kind, Cow::Borrowed(self.text.get(first..end).unwrap_or_default()), end)
    }

    fn word(&mut self) -> PlainPart<'t> {
        let (kind, length) = match self.text.as_bytes()[self.at] {
            b'f' | b'F' => (PlainKind::False, 5),
            b't' | b'T' => (PlainKind::True, 4),
            _ => (PlainKind::Null, 4),
        };
        self.cell(kind, Cow::Borrowed(""), self.at + length)
    }
}

#[cfg(test)]
mod tests {
    use super::{PlainKind, PlainPart, PlainRows};
    use crate::Span;

    /// Kind and text of each cell with its UTF-16 offset; a row end is `)`.
    fn read(text: &str, start: u32) -> Vec<(String, u32)> {
        let rows = PlainRows { text: text.to_owned(), rows: 1, span: Span { start, end: 0 } };
        let shown = |part| match part {
            PlainPart::Cell { kind: PlainKind::Text, text, start } => (format!("'{text}'"), start),
            PlainPart::Cell { kind, text, start } => (format!("{kind:?}{text}"), start),
            PlainPart::RowEnd { last_end } => (")".to_owned(), last_end),
        };
        rows.parts().map(shown).collect()
    }

    fn cells(list: &[(&str, u32)]) -> Vec<(String, u32)> {
        list.iter().map(|(text, start)| ((*text).to_owned(), *start)).collect()
    }

    #[test]
    fn cells_report_their_kind_and_offset() {
        assert_eq!(
            read("(1, -2.5 ,+3,\tNULL,'a'),\n( true,fAlse, 1e-3, -1E+5)", 10),
            cells(&[
                ("Integer1", 11),
                ("Floating-2.5", 14),
                ("Integer3", 20),
                ("Null", 24),
                ("'a'", 29),
                (")", 32),
                ("True", 37),
                ("False", 42),
                ("Floating1e-3", 49),
                ("Floating-1E+5", 55),
                (")", 60),
            ])
        );
    }

    #[test]
    fn quoted_strings_may_contain_quotes_and_row_ends() {
        assert_eq!(
            read("('it''s', '', '''', '),(')", 0),
            cells(&[("'it's'", 1), ("''", 10), ("'''", 14), ("'),('", 20), (")", 25)])
        );
    }

    #[test]
    fn offsets_count_utf_16_units() {
        assert_eq!(
            read("('é€𝄞', 7), ('ü', 8 )", 0),
            cells(&[
                ("'é€𝄞'", 1),
                ("Integer7", 9),
                (")", 10),
                ("'ü'", 14),
                ("Integer8", 19),
                (")", 20)
            ])
        );
    }

    #[test]
    fn truncated_rows_yield_the_cells_read_so_far() {
        assert_eq!(read("('a''", 0), cells(&[("'a''", 1)]));
        assert_eq!(read("(tru", 0), cells(&[("True", 1)]));
        assert_eq!(read("", 0), cells(&[]));
    }
}
