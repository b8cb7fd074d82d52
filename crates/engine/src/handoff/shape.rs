//! Maps SQL text to one of the handoff's queries and its parameter values.

use tidemark_ast::LiftedQuery;
use tidemark_border::HandoffQuery;

/// Header of a parameter row whose values are all in text format.
const ALL_TEXT: [u8; 2] = [0, 0];

/// A handoff's queries.
#[derive(Debug)]
pub(super) struct Shapes(Vec<HandoffQuery>);

impl Shapes {
    pub(super) fn new(queries: Vec<HandoffQuery>) -> Self {
        Self(queries)
    }

    /// Finds the query with this SQL text, or the parameterized query that the text matches. Also
    /// returns the parameter row, which is empty for a query without parameters.
    pub(super) fn find(&self, text: &str) -> Option<(usize, Vec<u8>)> {
        let is_text = |query: &HandoffQuery| query.types.is_empty() && query.text == text;
        if let Some(at) = self.0.iter().position(is_text) {
            return Some((at, Vec::new()));
        }
        let lifted = LiftedQuery::of(text)?;
        let is_lifted = |query: &HandoffQuery| {
            let types = query.types.iter().map(Option::as_deref);
            query.text == lifted.text && types.eq(lifted.types.iter().copied())
        };
        Some((self.0.iter().position(is_lifted)?, row_of(&lifted)?))
    }

    /// Returns the part of the response that describes the query's columns.
    pub(super) fn columns(&self, query: usize) -> &str {
        &self.0[query].columns
    }
}

fn row_of(lifted: &LiftedQuery<'_>) -> Option<Vec<u8>> {
    let mut row = ALL_TEXT.to_vec();
    row.extend_from_slice(&u16::try_from(lifted.values.len()).ok()?.to_be_bytes());
    for value in &lifted.values {
        row.extend_from_slice(&i32::try_from(value.len()).ok()?.to_be_bytes());
        row.extend_from_slice(value.as_bytes());
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str, types: &[&str]) -> HandoffQuery {
        let types = types.iter().map(|of| (*of != "TEXT").then(|| (*of).to_owned())).collect();
        HandoffQuery { text: text.to_owned(), types, columns: String::new() }
    }

    fn values(row: &[u8]) -> Vec<String> {
        let mut rest = row.get(4..).unwrap_or_default();
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
        Some((at, values(&row)))
    }

    #[test]
    fn handoff_queries_are_matched_and_their_parameter_values_are_extracted() {
        let shapes = Shapes::new(vec![
            query("SELECT 1", &[]),
            query("SELECT 1 WHERE a = $1 AND b IN ($2, $3)", &["TEXT", "INT", "DOUBLE"]),
            query("SELECT 1 WHERE a = $1", &["LONG"]),
            query("SELECT 1 WHERE a = 5", &[]),
        ]);
        let is = |text: &str, at: usize, values: &[&str]| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(found(&shapes, text), Some((at, values)), "{text}");
        };
        is("SELECT 1", 0, &[]);
        is("SELECT 1 WHERE a = 'it''s' AND b IN (7, 1.50)", 1, &["it's", "7", "1.50"]);
        is("SELECT 1 WHERE a = '' AND b IN (2147483647, 0.0)", 1, &["", "2147483647", "0.0"]);
        let text = "SELECT 1 WHERE a = 'ö '' AND b IN (1' AND b IN (3, 4.5)";
        is(text, 1, &["ö ' AND b IN (1", "3", "4.5"]);
        is("SELECT 1 WHERE a = 2147483648", 2, &["2147483648"]);
        is("SELECT 1 WHERE a = 5", 3, &[]);
    }

    #[test]
    fn different_queries_do_not_match_a_handoff_query() {
        let shapes = Shapes::new(vec![
            query("SELECT 1 WHERE a = $1 AND b = $2", &["TEXT", "INT"]),
            query("SELECT 1 WHERE c < $1;", &["DOUBLE"]),
        ]);
        for text in [
            "",
            "SELECT 1 WHERE a = $1 AND b = $2",
            "SELECT 1 WHERE a = 'x' AND b = 2147483648",
            "SELECT 1 WHERE a = 'x' AND b = 1.5",
            "SELECT 1 WHERE a = 'x' AND b = 1 ",
            "SELECT 1 WHERE a = 'x' AND b = 1_000",
            "SELECT 1 WHERE a = 'x' AND b = 1L",
            "SELECT 1 WHERE a = 'x' AND b = -1",
            "SELECT 1 WHERE a = '17' AND b = 1",
            "SELECT 1 WHERE a = '-17' AND b = 1",
            "SELECT 1 WHERE a = 'x AND b = 1",
            "SELECT 1 WHERE a = 'x'' AND b = 1",
            "SELECT 1 WHERE a = x AND b = 1",
            "SELECT 1 WHERE a = E'x' AND b = 1",
            "SELECT 1 where a = 'x' AND b = 1",
            "SELECT 1 WHERE c < 1;",
            "SELECT 1 WHERE c < 1.;",
            "SELECT 1 WHERE c < .5;",
            "SELECT 1 WHERE c < 1.5e3;",
            "SELECT 1 WHERE c < 1.5",
        ] {
            assert_eq!(found(&shapes, text), None, "{text}");
        }
        let long = format!("SELECT 1 WHERE a = '{}' AND b = 1", "x".repeat(4_096));
        assert_eq!(found(&shapes, &long), None);
    }
}
