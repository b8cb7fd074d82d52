//! `json_extract`: extracts a value from a JSON document. The path consists of names and indexes.
//!
//! The document is scanned once to check that it is complete. Values outside the path are not
//! materialized.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, UInt32Type,
};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType;
use tidemark_types::timestamp::{self, TimestampUnit};

use crate::column::{Call, build, build_flags, build_text, internal};
use crate::native::Kernel;
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::{Function, mismatch, resolved, special};
use crate::text::parse;

/// Maximum nesting depth. A deeper document counts as malformed.
const MAX_DEPTH: usize = 1_000;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

/// Parses `$.name[2].other`, where `$` is optional; `None` for an invalid path.
fn parse_path(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, more) = after.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Name(name.to_owned()));
            rest = more;
        } else {
            let (index, more) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = more;
        }
    }
    Some(steps)
}

/// A read position in a document.
struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Returns a string's content without resolving its escapes.
    fn text(&mut self) -> Option<&'t [u8]> {
        if !self.take(b'"') {
            return None;
        }
        let start = self.at;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(&self.bytes[start..self.at - 1]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// Skips a value and returns it as written.
    fn value(&mut self) -> Option<&'t [u8]> {
        let first = self.peek()?;
        let start = self.at;
        if !matches!(first, b'{' | b'[') {
            self.scalar(first)?;
            return Some(&self.bytes[start..self.at]);
        }
        let mut open = Vec::new();
        loop {
            match self.peek()? {
                byte @ (b'{' | b'[') => {
                    open.push(byte + 2);
                    self.at += 1;
                    if open.len() > MAX_DEPTH {
                        return None;
                    }
                }
                byte @ (b'}' | b']') => {
                    self.at += 1;
                    if open.pop() != Some(byte) {
                        return None;
                    }
                    if open.is_empty() {
                        return Some(&self.bytes[start..self.at]);
                    }
                }
                b',' | b':' => self.at += 1,
                byte => self.scalar(byte)?,
            }
        }
    }

    fn scalar(&mut self, first: u8) -> Option<()> {
        if first == b'"' {
            return self.text().map(|_| ());
        }
        let start = self.at;
        let ends = |byte: &u8| {
            byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b'{' | b'}' | b'[' | b']')
        };
        while self.bytes.get(self.at).is_some_and(|byte| !ends(byte)) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Moves to the value of an object member or array element.
    fn enter(&mut self, step: &Step) -> Option<()> {
        let (open, close) = match step {
            Step::Name(_) => (b'{', b'}'),
            Step::Index(_) => (b'[', b']'),
        };
        if !self.take(open) || self.peek()? == close {
            return None;
        }
        let mut number = 0;
        loop {
            let found = match step {
                Step::Index(index) => number == *index,
                Step::Name(name) => {
                    let key = self.text()?;
                    let same = key == name.as_bytes()
                        || (key.contains(&b'\\') && unescaped(key).as_deref() == Some(name));
                    if !self.take(b':') {
                        return None;
                    }
                    same
                }
            };
            if found {
                return Some(());
            }
            self.value()?;
            if !self.take(b',') {
                return None;
            }
            number += 1;
        }
    }
}

/// The value at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found<'t> {
    /// A string's content with its escapes unresolved.
    Text(&'t [u8]),
    /// JSON null.
    Null,
    /// A number, `true`, `false`, an object or an array, as written.
    Plain(&'t str),
}

/// Returns the value at `path`; `None` if it does not exist or the document is malformed.
fn find<'t>(document: &'t str, path: &[Step]) -> Option<Found<'t>> {
    let bytes = document.as_bytes();
    let mut whole = Reader { bytes, at: 0 };
    if whole.peek()? == b'n' {
        return Some(Found::Null);
    }
    // This rejects incomplete documents.
    whole.value()?;
    if whole.peek().is_some() {
        return None;
    }
    let mut reader = Reader { bytes, at: 0 };
    for step in path {
        reader.enter(step)?;
    }
    match reader.peek()? {
        b'n' => Some(Found::Null),
        b'"' => reader.text().map(Found::Text),
        _ => std::str::from_utf8(reader.value()?).ok().map(Found::Plain),
    }
}

/// Returns a string with its escapes resolved; `None` if an escape is malformed.
fn unescaped(raw: &[u8]) -> Option<String> {
    let raw = std::str::from_utf8(raw).ok()?;
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match rest.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => unicode(&mut rest)?,
            same @ ('"' | '\\' | '/') => same,
            _ => return None,
        });
    }
    Some(out)
}

/// Returns the character for `\uXXXX` or a surrogate pair.
fn unicode(rest: &mut std::str::Chars<'_>) -> Option<char> {
    let mut unit = || -> Option<u32> {
        let digits: String = rest.by_ref().take(4).collect();
        if digits.len() == 4 { u32::from_str_radix(&digits, 16).ok() } else { None }
    };
    let high = unit()?;
    if !(0xD800..0xDC00).contains(&high) {
        return char::from_u32(high);
    }
    if rest.next()? != '\\' || rest.next()? != 'u' {
        return None;
    }
    let digits: String = rest.by_ref().take(4).collect();
    let low = u32::from_str_radix(&digits, 16).ok()?.checked_sub(0xDC00)?;
    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + low)
}

impl Found<'_> {
    /// Returns a value as a string: strings without their quotes, objects and arrays as written.
    fn shown(self) -> Option<String> {
        match self {
            Self::Text(raw) => unescaped(raw),
            Self::Null => Some(String::new()),
            Self::Plain(text) => Some(text.to_owned()),
        }
    }

    fn double(self) -> Option<f64> {
        match self {
            Self::Plain("true") => Some(1.0),
            Self::Plain("false") => Some(0.0),
            Self::Plain(text) => parse::double(text),
            Self::Text(_) => parse::double(&self.shown()?),
            Self::Null => None,
        }
    }

    /// Returns a whole number, truncating any decimal places.
    fn long(self) -> Option<i64> {
        let text = match self {
            Self::Plain(text) => text.to_owned(),
            other => other.shown()?,
        };
        let fits = |value: &f64| value.abs() < 9.223_372_036_854_775e18;
        parse::integer(&text).or_else(|| self.double().filter(fits).map(|value| value as i64))
    }

    /// Returns a time. Strings are parsed; numbers are in the type's unit.
    fn time(self, unit: TimestampUnit) -> Option<i64> {
        match self {
            Self::Text(_) => timestamp::parse(&self.shown()?, unit),
            other => other.long(),
        }
    }
}

/// Binds `json_extract(document, path)`. `to` is the type of an enclosing cast and becomes the
/// result type. If a value cannot be read directly as this type, the result is a string.
pub fn resolve_json(
    arguments: &[Argument],
    to: SqlType,
) -> std::result::Result<ResolvedScalar, ResolveError> {
    let [document, path] = arguments else {
        return Err(mismatch("json_extract", std::iter::once(2), arguments));
    };
    let is_text = |argument: &Argument| {
        argument.sql_type.is_text() || matches!(argument.sql_type, SqlType::Null | SqlType::Char)
    };
    if !is_text(document) || !is_text(path) {
        return Err(mismatch("json_extract", [0, 2].into_iter(), arguments));
    }
    if path.constant.is_none() {
        let message = "constant or bind variable expected".to_owned();
        return Err(ResolveError::InvalidArgument { index: 1, message });
    }
    let steps = path.text().and_then(|text| parse_path(&text));
    let returns = match to {
        SqlType::Boolean
        | SqlType::Short
        | SqlType::Int
        | SqlType::Long
        | SqlType::Float
        | SqlType::Double
        | SqlType::Date
        | SqlType::Timestamp
        | SqlType::Ipv4 => to,
        _ => SqlType::Varchar,
    };
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| extract(call, steps.as_deref(), returns));
    let types = vec![SqlType::Varchar; 2];
    Ok(resolved("json_extract", Volatility::Immutable, types, returns, arguments, kernel))
}

fn extract(call: &Call<'_>, path: Option<&[Step]>, returns: SqlType) -> Result<ArrayRef> {
    let documents = call.texts(0)?;
    let at = |row: usize| find(documents.get(row)?, path?);
    let rows = call.rows;
    Ok(match returns {
        SqlType::Varchar => {
            return build_text(rows, |row, out| {
                let text = at(row).and_then(Found::shown);
                text.inspect(|text| out.push_str(text)).is_some()
            });
        }
        SqlType::Boolean => build_flags(rows, |row| at(row) == Some(Found::Plain("true"))),
        SqlType::Short => build::<Int16Type>(rows, |row| at(row)?.long()?.try_into().ok()),
        SqlType::Int => build::<Int32Type>(rows, |row| at(row)?.long()?.try_into().ok()),
        SqlType::Long => build::<Int64Type>(rows, |row| at(row)?.long()),
        SqlType::Float => build::<Float32Type>(rows, |row| Some(at(row)?.double()? as f32)),
        SqlType::Double => build::<Float64Type>(rows, |row| at(row)?.double()),
        SqlType::Date => {
            build::<TimestampMillisecondType>(rows, |row| at(row)?.time(TimestampUnit::Millis))
        }
        SqlType::Timestamp => {
            build::<TimestampMicrosecondType>(rows, |row| at(row)?.time(TimestampUnit::Micros))
        }
        SqlType::Ipv4 => build::<UInt32Type>(rows, |row| match at(row)? {
            Found::Text(_) => parse::ipv4(&at(row)?.shown()?),
            other => other.long()?.try_into().ok(),
        }),
        other => return Err(internal(format!("cannot read JSON as {}", other.name()))),
    })
}

pub(crate) const FUNCTIONS: &[Function] = &[special(
    "json_extract",
    |_, arguments| resolve_json(arguments, SqlType::Varchar),
    "value at a path in a JSON document, such as .name[0]; a cast around the call sets its type",
)];

#[cfg(test)]
mod tests {
    use super::*;

    fn text(document: &str, path: &str) -> Option<String> {
        find(document, &parse_path(path)?)?.shown()
    }

    #[test]
    fn json_paths_are_parsed() {
        let name = |name: &str| Step::Name(name.into());
        assert_eq!(parse_path("$.a.b c[2]"), Some(vec![name("a"), name("b c"), Step::Index(2)]));
        assert_eq!(parse_path(""), Some(Vec::new()));
        for path in ["a", ".", "$.a[", ".a[x]", ".a[-1]", "..a", "[1]x"] {
            assert_eq!(parse_path(path), None, "{path}");
        }
    }

    #[test]
    fn values_are_found_at_their_paths() {
        let document = r#" {"a": {"b": [1, 2.5, "x\n\u0041\ud83d\ude00"]}, "c": null, "d": {} } "#;
        for (path, expected) in [
            (".a.b[1]", Some("2.5")),
            ("$.a.b[2]", Some("x\nA😀")),
            (".a.b", Some(r#"[1, 2.5, "x\n\u0041\ud83d\ude00"]"#)),
            (".c", Some("")),
            (".d", Some("{}")),
            (".d.e", None),
            (".a.b[3]", None),
            (".a[0]", None),
            (".e", None),
        ] {
            assert_eq!(text(document, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn malformed_json_has_no_values() {
        for document in ["", "{", r#"{"a":1"#, r#"{"a":1]"#, r#"{"a":"x}"#, r#"{"a":1} 2"#, "]"] {
            assert_eq!(text(document, ".a"), None, "{document}");
        }
        let deep = format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000));
        assert_eq!(text(&deep, "[0]"), None);
        assert_eq!(text(r#"{"a":"\x"}"#, ".a"), None);
    }

    #[test]
    fn json_values_are_converted_to_the_requested_type() {
        let found = |document| find(document, &[]).unwrap();
        assert_eq!(found("1.9").long(), Some(1));
        assert_eq!(found("9223372036854775807").long(), Some(i64::MAX));
        assert_eq!(found("1e30").long(), None);
        assert_eq!(found("\"12\"").long(), Some(12));
        assert_eq!(found("true").long(), Some(1));
        assert_eq!(found("[1]").long(), None);
        assert_eq!(found("17").time(TimestampUnit::Micros), Some(17));
    }
}
