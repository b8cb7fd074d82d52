//! Queries that differ in their literals alone, as `ts/session/literals.ts` makes them: which texts
//! are one of them, and with which values.

use tidemark_border::{LentQuery, LiteralKind};
use tidemark_types::{EngineError, EngineResult};

/// Characters of a text that is one of many, at most.
const LONGEST_TEXT: usize = 4_096;
/// The beginning of a row of parameters: all of them are texts.
const ALL_TEXT: [u8; 2] = [0, 0];
const LARGEST_INT: u64 = i32::MAX as u64;
const MOST_DIGITS: usize = 18;

/// The queries of a loan.
#[derive(Debug)]
pub(super) struct Shapes(Vec<LentQuery>);

impl Shapes {
    /// Fails where a query has no part of text around each literal, or where a literal could end
    /// elsewhere than its part says.
    pub(super) fn new(queries: Vec<LentQuery>) -> EngineResult<Self> {
        let is_whole = |query: &LentQuery| {
            let LentQuery { parts, literals, .. } = query;
            parts.len() == literals.len() + 1 && parts[1..].iter().all(|part| ends_literal(part))
        };
        if queries.iter().all(is_whole) {
            Ok(Self(queries))
        } else {
            Err(EngineError::internal("a query whose literals have no ends"))
        }
    }

    /// The first query that a text is of, and its row of parameters; of no parameters no row.
    pub(super) fn find(&self, text: &str) -> Option<(usize, Vec<u8>)> {
        let row = |query: &LentQuery| match query.literals.as_slice() {
            [] => (query.parts[0] == text).then(Vec::new),
            _ => row_of(query, text),
        };
        self.0.iter().enumerate().find_map(|(at, query)| Some((at, row(query)?)))
    }

    /// What an answer says of its columns.
    pub(super) fn columns(&self, query: usize) -> &str {
        &self.0[query].columns
    }
}

/// What a literal cannot go on with, or nothing.
fn ends_literal(part: &str) -> bool {
    part.is_empty() || part.starts_with([' ', '\n', '\r', '\t', ')', ',', ';'])
}

fn row_of(query: &LentQuery, text: &str) -> Option<Vec<u8>> {
    let (first, others) = query.parts.split_first()?;
    if text.len() > LONGEST_TEXT {
        return None;
    }
    let mut rest = text.strip_prefix(first.as_str())?;
    let mut row = ALL_TEXT.to_vec();
    row.extend_from_slice(&u16::try_from(others.len()).ok()?.to_be_bytes());
    for (kind, part) in query.literals.iter().zip(others) {
        let written = match kind {
            LiteralKind::Text => quoted(rest)?,
            _ => number(rest, *kind)?,
        };
        rest = rest[written.len()..].strip_prefix(part.as_str())?;
        match kind {
            LiteralKind::Text => {
                let inner = &written[1..written.len() - 1];
                let value = inner.replace("''", "'");
                push(&mut row, &value)?;
            }
            _ => push(&mut row, written)?,
        }
    }
    rest.is_empty().then_some(row)
}

fn push(row: &mut Vec<u8>, value: &str) -> Option<()> {
    row.extend_from_slice(&i32::try_from(value.len()).ok()?.to_be_bytes());
    row.extend_from_slice(value.as_bytes());
    Some(())
}

/// The text in quotes that `rest` begins with; none where it is a number.
fn quoted(rest: &str) -> Option<&str> {
    let bytes = rest.as_bytes();
    if bytes.first() != Some(&b'\'') {
        return None;
    }
    let mut at = 1;
    let end = loop {
        match bytes.get(at)? {
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => break at + 1,
            _ => at += 1,
        }
    };
    let digits = &bytes[1..end - 1];
    let digits = digits.strip_prefix(b"-").or(digits.strip_prefix(b"+")).unwrap_or(digits);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    (!is_number).then(|| &rest[..end])
}

/// The number of this kind that `rest` begins with.
fn number(rest: &str, kind: LiteralKind) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(rest);
    if whole == 0 {
        return None;
    }
    if kind == LiteralKind::Double {
        let fraction = digits(rest[whole..].strip_prefix('.')?);
        return (fraction > 0).then(|| &rest[..whole + 1 + fraction]);
    }
    let written = &rest[..whole];
    let is_int = written.parse::<u64>().ok()? <= LARGEST_INT;
    (whole <= MOST_DIGITS && is_int == (kind == LiteralKind::Int)).then_some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(parts: &[&str], literals: &[LiteralKind]) -> LentQuery {
        LentQuery {
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            literals: literals.to_vec(),
            columns: String::new(),
        }
    }

    fn values(row: &[u8]) -> Vec<String> {
        let mut rest = &row[4..];
        let mut values = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let (value, behind) = after.split_at(i32::from_be_bytes(*length) as usize);
            values.push(String::from_utf8_lossy(value).into_owned());
            rest = behind;
        }
        values
    }

    fn found(shapes: &Shapes, text: &str) -> Option<(usize, Vec<String>)> {
        let (at, row) = shapes.find(text)?;
        Some((at, if row.is_empty() { Vec::new() } else { values(&row) }))
    }

    #[test]
    fn texts_are_found_with_their_values() {
        use LiteralKind::{Double, Int, Long, Text};
        let shapes = Shapes::new(vec![
            query(&["SELECT 1"], &[]),
            query(&["q WHERE a = ", " AND b IN (", ", ", ")"], &[Text, Int, Double]),
            query(&["q WHERE a = ", ""], &[Long]),
        ])
        .unwrap();
        let is = |text: &str, at: usize, values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(found(&shapes, text), Some((at, values)), "{text}");
        };
        is("SELECT 1", 0, &[]);
        is("q WHERE a = 'it''s' AND b IN (7, 1.50)", 1, &["it's", "7", "1.50"]);
        is("q WHERE a = '' AND b IN (2147483647, 0.0)", 1, &["", "2147483647", "0.0"]);
        is("q WHERE a = 'ö '' AND b IN (1' AND b IN (3, 4.5)", 1, &["ö ' AND b IN (1", "3", "4.5"]);
        is("q WHERE a = 2147483648", 2, &["2147483648"]);
    }

    #[test]
    fn other_texts_are_not_found() {
        use LiteralKind::{Double, Int, Text};
        let shapes = Shapes::new(vec![
            query(&["q WHERE a = ", " AND b = ", ""], &[Text, Int]),
            query(&["q WHERE c < ", ";"], &[Double]),
        ])
        .unwrap();
        for text in [
            "",
            "q WHERE a = 'x' AND b = 2147483648",
            "q WHERE a = 'x' AND b = 1.5",
            "q WHERE a = 'x' AND b = 1 ",
            "q WHERE a = 'x' AND b = 1_000",
            "q WHERE a = 'x' AND b = 1L",
            "q WHERE a = 'x' AND b = -1",
            "q WHERE a = '17' AND b = 1",
            "q WHERE a = '-17' AND b = 1",
            "q WHERE a = 'x AND b = 1",
            "q WHERE a = 'x'' AND b = 1",
            "q WHERE a = x AND b = 1",
            "q where a = 'x' AND b = 1",
            "q WHERE c < 1;",
            "q WHERE c < 1.;",
            "q WHERE c < .5;",
            "q WHERE c < 1.5e3;",
            "q WHERE c < 1.5",
        ] {
            assert_eq!(found(&shapes, text), None, "{text}");
        }
        let long = format!("q WHERE a = '{}' AND b = 1", "x".repeat(LONGEST_TEXT));
        assert_eq!(found(&shapes, &long), None);
    }

    #[test]
    fn literals_that_could_go_on_are_refused() {
        for part in ["x", "'", ".5", "-- c", "\u{a0}AND", "_"] {
            let refused = Shapes::new(vec![query(&["q WHERE a = ", part], &[LiteralKind::Int])]);
            assert!(refused.is_err(), "{part}");
        }
        assert!(Shapes::new(vec![query(&["q"], &[LiteralKind::Int])]).is_err());
        assert!(Shapes::new(vec![query(&[], &[])]).is_err());
    }
}
