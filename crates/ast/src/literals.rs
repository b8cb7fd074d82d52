//! Automatic parameterization: queries that differ only in the literals of their WHERE clause share
//! one query with parameters, so its tree, bound statement and plan are built once. A literal is
//! replaced only where a parameter certainly has the same meaning: the operand of a comparison, a
//! bound of BETWEEN, or an item of an IN list.
//!
//! The session looks up the parameterized query before it parses the SQL text. A handed-off
//! connection does the same for each statement that it receives, and both must derive the same
//! query. SQL text that this module does not understand is not parameterized; the parser reads it
//! and reports errors.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Longer statements and lists rarely recur with the same number of literals.
const MAX_TEXT_BYTES: usize = 4_096;
const MAX_VALUES: usize = 16;
/// Integers with more digits may be out of range for LONG.
const MAX_DIGITS: usize = 18;

/// A query with parameters, and their values in the original SQL text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiftedQuery<'t> {
    /// The SQL text with `$1`, `$2`, … in place of the literals.
    pub text: String,
    /// The parameters' types; `None` for a string, which takes the other operand's type.
    pub types: Vec<Option<&'static str>>,
    /// The literals as parameter values, without quotes.
    pub values: Vec<Cow<'t, str>>,
}

impl<'t> LiftedQuery<'t> {
    /// Derives the parameterized query from SQL text; `None` if no literal can be replaced.
    #[must_use]
    pub fn of(text: &'t str) -> Option<Self> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let tokens = tokens(text)?;
        let places = |kind: Kind| {
            let found = tokens.iter().enumerate().filter(move |(_, token)| token.kind == kind);
            found.map(|(at, _)| at)
        };
        let mut wheres = places(Kind::Where);
        let start = wheres.next()? + 1;
        if wheres.next().is_some() || places(Kind::Select).nth(1).is_some() {
            return None;
        }
        let lifted = Self { text: String::with_capacity(text.len()), ..Self::default() };
        Lift { text, tokens: &tokens, open: Vec::new(), copied: 0, lifted }.run(start)
    }
}

/// Token classes that this module distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Select,
    Where,
    In,
    Between,
    And,
    Or,
    Not,
    /// First word of a clause that ends the WHERE clause.
    Clause,
    Comparison,
    /// `Open` is an opening parenthesis; `OpenOther` is any other opening bracket.
    Open,
    OpenOther,
    Close,
    Comma,
    Semicolon,
    /// A literal that can be replaced, with its type. The type of a string is `None`.
    Literal(Option<&'static str>),
    Other,
    /// The end marker, after the last token.
    End,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

/// Tokenizes SQL text that begins with SELECT. Returns `None` if the text already has parameters or
/// variables, or contains syntax that is not handled here.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token> = Vec::with_capacity(text.len() / 3 + 1);
    // `brackets` counts open square brackets: inside them, a colon separates the bounds of a slice.
    let (mut start, mut brackets) = (0, 0_usize);
    while let Some(&first) = bytes.get(start) {
        let rest = &bytes[start..];
        let (kind, end) = match first {
            b' ' | b'\t'..=b'\r' => {
                start += 1;
                continue;
            }
            b'-' if rest.starts_with(b"--") => {
                start += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                start += 4 + text[start + 2..].find("*/")?;
                continue;
            }
            b'0'..=b'9' => number(text, start),
            b'\'' => quoted(bytes, start)?,
            b'"' | b'`' => (Kind::Other, closing(bytes, start)?),
            b':' if rest.starts_with(b"::") || rest.starts_with(b":=") => (Kind::Other, start + 2),
            b':' if brackets == 0 && is_word(*rest.get(1)?) => return None,
            b'<' | b'>' | b'=' | b'!' => {
                let signs = rest.iter().take_while(|byte| b"<>=!~*".contains(byte)).count();
                let is_comparison = COMPARISONS.contains(&&rest[..signs]);
                (if is_comparison { Kind::Comparison } else { Kind::Other }, start + signs)
            }
            _ if is_word(first) => {
                let end = word_end(text, start)?;
                (keyword(&bytes[start..end], bytes.get(end))?, end)
            }
            b'(' => (Kind::Open, start + 1),
            b'[' | b'{' => (Kind::OpenOther, start + 1),
            b')' | b']' | b'}' => (Kind::Close, start + 1),
            b',' => (Kind::Comma, start + 1),
            b';' => (Kind::Semicolon, start + 1),
            _ if b".+-*/%~|&^?:#".contains(&first) => (Kind::Other, start + 1),
            _ => return None,
        };
        match first {
            b'[' => brackets += 1,
            b']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        if tokens.is_empty() && kind != Kind::Select {
            return None;
        }
        tokens.push(Token { kind, start, end });
        start = end;
    }
    tokens.push(Token { kind: Kind::End, start, end: start });
    Some(tokens)
}

const COMPARISONS: [&[u8]; 7] = [b"=", b"<", b">", b"<=", b">=", b"<>", b"!="];

/// Whether this byte can start a word. Such bytes and digits can continue a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 128
}

/// Returns the end of the word that continues at `at`, or `None` if a non-ASCII character, which
/// may be a space, follows.
fn word_end(text: &str, mut at: usize) -> Option<usize> {
    let is_ascii_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'$');
    loop {
        at += text.as_bytes()[at..].iter().take_while(is_ascii_part).count();
        match text[at..].chars().next() {
            Some(letter) if !letter.is_ascii() && letter.is_alphanumeric() => {
                at += letter.len_utf8();
            }
            Some(other) if !other.is_ascii() => return None,
            _ => return Some(at),
        }
    }
}

/// Returns `None` for an E directly before a quoted string, because that string can contain escape
/// sequences.
fn keyword(word: &[u8], next: Option<&u8>) -> Option<Kind> {
    let mut capitals = [0; 8];
    let Some(capitals) = capitals.get_mut(..word.len()) else { return Some(Kind::Other) };
    capitals.copy_from_slice(word);
    capitals.make_ascii_uppercase();
    Some(match &*capitals {
        b"SELECT" => Kind::Select,
        b"WHERE" => Kind::Where,
        b"IN" => Kind::In,
        b"BETWEEN" => Kind::Between,
        b"AND" => Kind::And,
        b"OR" => Kind::Or,
        b"NOT" => Kind::Not,
        b"SAMPLE" | b"LATEST" | b"GROUP" | b"ORDER" | b"LIMIT" | b"HAVING" | b"QUALIFY"
        | b"WINDOW" | b"FETCH" | b"OFFSET" | b"FOR" | b"FILL" | b"ALIGN" | b"PIVOT" => Kind::Clause,
        b"E" if next == Some(&b'\'') => return None,
        _ => Kind::Other,
    })
}

/// The number at `at` and its end.
fn number(text: &str, at: usize) -> (Kind, usize) {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_$.".contains(byte);
    let end = at + text.as_bytes()[at..].iter().take_while(is_part).count();
    let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let written = &text[at..end];
    let of = match written.split_once('.') {
        Some((integer, fraction)) if is_whole(integer) && is_whole(fraction) => "DOUBLE",
        None if is_whole(written) && written.parse::<i32>().is_ok() => "INT",
        None if is_whole(written) && written.len() <= MAX_DIGITS => "LONG",
        _ => return (Kind::Other, end),
    };
    (Kind::Literal(Some(of)), end)
}

/// The quoted string at `at` and its end; `None` if it is unterminated. A string that contains a
/// number is not replaced, because it would be interpreted as a timestamp if it were a parameter.
fn quoted(bytes: &[u8], at: usize) -> Option<(Kind, usize)> {
    let end = closing(bytes, at)?;
    let inner = &bytes[at + 1..end - 1];
    let digits = inner.strip_prefix(b"-").or(inner.strip_prefix(b"+")).unwrap_or(inner);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    Some((if is_number { Kind::Other } else { Kind::Literal(None) }, end))
}

/// The end of the quoted token that starts at `at`; doubled quotes are part of its content.
fn closing(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = bytes[at];
    let mut end = at + 1;
    loop {
        end += 1 + bytes[end..].iter().position(|byte| *byte == quote)?;
        if bytes.get(end) != Some(&quote) {
            return Some(end);
        }
        end += 1;
    }
}

/// A pass over the tokens that follow WHERE.
struct Lift<'t, 'k> {
    text: &'t str,
    tokens: &'k [Token],
    /// The token before each open bracket.
    open: Vec<Kind>,
    /// Offset up to which the text has been copied.
    copied: usize,
    lifted: LiftedQuery<'t>,
}

impl<'t> Lift<'t, '_> {
    fn run(mut self, from: usize) -> Option<LiftedQuery<'t>> {
        for at in from..self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Open => self.open.push(self.tokens[at - 1].kind),
                Kind::OpenOther => self.open.push(Kind::Other),
                // An unmatched closing bracket means that the WHERE clause is itself inside
                // brackets.
                Kind::Close => drop(self.open.pop()?),
                Kind::Clause if self.open.is_empty() => break,
                Kind::Literal(of) if self.is_compared(at) => self.lift(at, of),
                _ => {}
            }
        }
        let Self { text, copied, mut lifted, .. } = self;
        lifted.text.push_str(&text[copied..]);
        (1..=MAX_VALUES).contains(&lifted.values.len()).then_some(lifted)
    }

    /// Whether the literal is an entire comparison operand and all brackets around it only group
    /// conditions.
    fn is_compared(&self, at: usize) -> bool {
        let ends = matches!(
            self.tokens[at + 1].kind,
            Kind::Close
                | Kind::Comma
                | Kind::Semicolon
                | Kind::End
                | Kind::Clause
                | Kind::And
                | Kind::Or
        );
        let (groups, is_list) = match self.open.as_slice() {
            [groups @ .., Kind::In] => (groups, true),
            groups => (groups, false),
        };
        let before = self.tokens[at - 1].kind;
        ends && groups.iter().all(|before| GROUPS.contains(before))
            && match before {
                Kind::Comma | Kind::Open => is_list,
                Kind::Comparison | Kind::In | Kind::Between => !is_list,
                // In `BETWEEN 1 AND 2`, the second literal is three tokens after BETWEEN.
                Kind::And => !is_list && self.tokens[at - 3].kind == Kind::Between,
                _ => false,
            }
    }

    fn lift(&mut self, at: usize, of: Option<&'static str>) {
        let Token { start, end, .. } = self.tokens[at];
        let value = match (of, &self.text[start..end]) {
            (Some(_), written) => Cow::Borrowed(written),
            (None, written) => match &written[1..written.len() - 1] {
                inner if inner.contains('\'') => inner.replace("''", "'").into(),
                inner => inner.into(),
            },
        };
        self.lifted.types.push(of);
        self.lifted.values.push(value);
        self.lifted.text.push_str(&self.text[self.copied..start]);
        // Writing to a string cannot fail.
        let _ = write!(self.lifted.text, "${}", self.lifted.values.len());
        self.copied = end;
    }
}

/// Tokens before a bracket that only groups conditions.
const GROUPS: [Kind; 5] = [Kind::Where, Kind::And, Kind::Or, Kind::Not, Kind::Open];

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the parameterized query, then its values, each with its type if known.
    fn lifted(text: &str) -> Option<String> {
        let LiftedQuery { text, types, values } = LiftedQuery::of(text)?;
        let values = types.iter().zip(&values);
        let values = values.map(|(of, value)| format!(" | {value}:{}", of.unwrap_or("?")));
        Some(text + &values.collect::<String>())
    }

    #[test]
    fn literals_end_at_token_boundaries() {
        for (where_, expected) in [
            ("a = 7", "a = $1 | 7:INT"),
            ("a = 007", "a = $1 | 007:INT"),
            ("a = 7-- c", "a = $1-- c | 7:INT"),
            ("a = 7/* c */OR b > 2.5", "a = $1/* c */OR b > $2 | 7:INT | 2.5:DOUBLE"),
            ("a = 7\tLIMIT 3", "a = $1\tLIMIT 3 | 7:INT"),
            ("größe = 7 AND \"a'b\" = 'ö'", "größe = $1 AND \"a'b\" = $2 | 7:INT | ö:?"),
            ("a = 999999999999999999", "a = $1 | 999999999999999999:LONG"),
            ("a[1:n] = 7", "a[1:n] = $1 | 7:INT"),
            ("a[b[1]:n] = 7", "a[b[1]:n] = $1 | 7:INT"),
            ("a::int = 7", "a::int = $1 | 7:INT"),
            ("NOT (a = '''')", "NOT (a = $1) | ':?"),
        ] {
            let text = format!("SELECT 1 FROM t WHERE {where_}");
            let expected = format!("SELECT 1 FROM t WHERE {expected}");
            assert_eq!(lifted(&text).as_deref(), Some(expected.as_str()), "{text}");
        }
        for where_ in [
            "a = 7x",
            "a = 7'",
            "a = 7'x'",
            "a = 7.",
            "a = 7..8",
            "a = 7_",
            "a = 7$",
            "a = 7ö",
            "a = 7\u{a0}OR b",
            "a = 1e5",
            "a = 1e-5",
            "a = 1.5e3",
            "a = .5",
            "a = 0x17",
            "a = 9999999999999999999",
            "a = '+17'",
            "a = 'x' 'y'",
            "a = 'x'\\",
            "a = $$x$$ AND b = 1",
            r"a = e'\' AND b = 1' AND c = 2",
            "a := 5",
            "a = :n AND b = 1",
            "a <<= 5 OR a => 5 OR a !~ 'x' OR a << 2 OR a ~ 'x'",
            "a = 7 /* c",
            "a = 7) AND (b = 1",
        ] {
            assert_eq!(lifted(&format!("SELECT 1 FROM t WHERE {where_}")), None, "{where_}");
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic() {
        let good = "SELECT a[1:2] FROM \"t\" WHERE a IN ('ö''', 1.5) AND b = 7 -- c\n LIMIT 5";
        for at in 0..good.len() {
            for other in ["'", "\"", "ö", "\u{a0}", "/*", "(", ")", "$", "E", "7", ".", ":", ""] {
                if let (Some(before), Some(after)) = (good.get(..at), good.get(at + 1..)) {
                    for text in [format!("{before}{other}{after}"), format!("{before}{other}")] {
                        let lifted = LiftedQuery::of(&text);
                        assert!(lifted.is_none_or(|found| found.text.starts_with("SELECT")));
                    }
                }
            }
        }
    }
}
