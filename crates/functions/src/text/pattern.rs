//! LIKE, ILIKE, regular expressions and IPv4 containment. A null string matches nothing, so the
//! negated forms include rows with null.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, DictionaryArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Int32Type, UInt32Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::Expr;
use memchr::memmem::Finder;
use regex::Regex;
use tidemark_ast::BinaryOperator;
use tidemark_types::{SqlType, account};

use crate::column::{Call, Texts, build_flags, internal, invalid};
use crate::native::Kernel;
use crate::operator::infix::operator;
use crate::resolve::{Argument, ResolveError, ResolvedOperator};
use crate::signature::Bound;
use crate::text::parse;
use crate::text::vectorized;

pub(crate) fn resolve(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Result<ResolvedOperator, ResolveError> {
    let none =
        || ResolveError::NoOperator { sign: op.sign(), left: left.sql_type, right: right.sql_type };
    let text = |argument: &Argument| {
        argument.sql_type.is_text() || matches!(argument.sql_type, SqlType::Char | SqlType::Null)
    };
    let contains = matches!(op, BinaryOperator::Contains | BinaryOperator::ContainsOrEqual);
    if contains || matches!(op, BinaryOperator::ContainedBy | BinaryOperator::ContainedByOrEqual) {
        let (address, network) = if contains { (right, left) } else { (left, right) };
        let fits = address.sql_type == SqlType::Ipv4 && text(network);
        return if fits { containment(op, contains, network) } else { Err(none()) };
    }
    if !text(left) || !text(right) {
        return Err(none());
    }
    let syntax = match op {
        BinaryOperator::Like | BinaryOperator::NotLike => Syntax::Like { any_case: false },
        BinaryOperator::ILike | BinaryOperator::NotILike => Syntax::Like { any_case: true },
        _ => Syntax::Regex,
    };
    if let Some(pattern) = right.text() {
        syntax.compile(&pattern).map_err(|message| refused(1, &pattern, message))?;
    }
    // If the dictionary is shorter than the batch, symbols are matched once per dictionary value.
    let source = if left.sql_type == SqlType::Symbol { SqlType::Symbol } else { SqlType::Varchar };
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| matches_kernel(call, syntax));
    let types = (source, SqlType::Varchar, SqlType::Boolean);
    let name = match syntax {
        Syntax::Regex => "matches",
        Syntax::Like { any_case: false } => "like",
        Syntax::Like { any_case: true } => "ilike",
        Syntax::Glob => "glob",
    };
    let plain = operator(name, types, "", kernel);
    if matches!(op, BinaryOperator::NotMatches | BinaryOperator::NotLike | BinaryOperator::NotILike)
    {
        let build = plain.build;
        let build = Arc::new(move |left, right| Expr::Not(Box::new(build(left, right))));
        return Ok(ResolvedOperator { build, ..plain });
    }
    Ok(plain)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Like { any_case: bool },
    Regex,
    Glob,
}

/// Maximum size in bytes of a pattern that needs an automaton. Compiling it requires 100 times this
/// size.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// A compiled pattern. Simple LIKE patterns do not need an automaton.
enum Matcher {
    Equal(String),
    Prefix(String),
    Suffix(String),
    Inside(Box<Finder<'static>>),
    Regex(Regex),
    Nothing,
}

impl Matcher {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Equal(pattern) => text == pattern,
            Self::Prefix(pattern) => text.starts_with(pattern.as_str()),
            Self::Suffix(pattern) => text.ends_with(pattern.as_str()),
            Self::Inside(pattern) => pattern.find(text.as_bytes()).is_some(),
            Self::Regex(regex) => regex.is_match(text),
            Self::Nothing => false,
        }
    }
}

impl Syntax {
    fn compile(self, pattern: &str) -> Result<Matcher, String> {
        match self {
            Self::Regex => regex(pattern).map(Matcher::Regex),
            Self::Like { any_case } => like(pattern, any_case),
            Self::Glob => glob(pattern),
        }
    }
}

/// Compiles a regular expression of at most [`MAX_PATTERN_BYTES`].
pub(crate) fn regex(pattern: &str) -> Result<Regex, String> {
    check_length(pattern)?;
    compiled(pattern)
}

fn check_length(pattern: &str) -> Result<(), String> {
    let length = pattern.len();
    if length > MAX_PATTERN_BYTES {
        return Err(format!(
            "pattern is {length} bytes long: at most {MAX_PATTERN_BYTES} bytes are allowed"
        ));
    }
    Ok(())
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    // Compilation can be slow and may run once per row.
    account::check().map_err(|error| error.message)?;
    Regex::new(pattern).map_err(|error| {
        let reason = error.to_string();
        let last = reason.lines().last().unwrap_or_default();
        format!("invalid regular expression: {}", last.trim_start_matches("error: "))
    })
}

/// Returns the error for an invalid constant pattern. It points to the unclosed bracket of a
/// character class, or else to the end of the pattern.
pub(crate) fn refused(index: usize, pattern: &str, message: String) -> ResolveError {
    let length = pattern.chars().count();
    let offset = if message.contains("character class") {
        pattern.chars().rev().position(|c| c == '[').map_or(length, |back| length - 1 - back)
    } else {
        length
    };
    ResolveError::InvalidPattern { index, offset, message }
}

fn like(pattern: &str, any_case: bool) -> Result<Matcher, String> {
    let inner = pattern.trim_start_matches('%').trim_end_matches('%');
    let simple = !any_case && !inner.contains(['%', '_', '\\']) && !pattern.ends_with("\\%");
    if simple {
        let (open_start, open_end) = (pattern.starts_with('%'), pattern.ends_with('%'));
        let inner = inner.to_owned();
        return Ok(match (open_start, open_end) {
            (false, false) => Matcher::Equal(inner),
            (false, true) => Matcher::Prefix(inner),
            (true, false) => Matcher::Suffix(inner),
            (true, true) => Matcher::Inside(Box::new(Finder::new(&inner).into_owned())),
        });
    }
    check_length(pattern)?;
    let mut translated = String::from(if any_case { "(?is)^" } else { "(?s)^" });
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            '%' => translated.push_str(".*"),
            '_' => translated.push('.'),
            '\\' => {
                let escaped = characters
                    .next()
                    .ok_or_else(|| "LIKE pattern must not end with escape character".to_owned())?;
                translated.push_str(&regex::escape(escaped.encode_utf8(&mut [0; 4])));
            }
            c => translated.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    translated.push('$');
    compiled(&translated).map(Matcher::Regex)
}

/// Builds the kernel for `glob(text, pattern)`, which matches `*`, `?`, `[a-z]` and `[!a-z]`
/// against the whole string.
pub(crate) fn glob_kernel(bound: &Bound<'_>) -> Result<Kernel, ResolveError> {
    let pattern = &bound.arguments[1];
    let text = pattern.text();
    // A parameter that has no value yet does not count as null.
    let is_null = pattern.constant.as_ref().is_some_and(ScalarValue::is_null);
    if text.as_deref() == Some("") || is_null {
        let message = "glob pattern must not be null or empty".to_owned();
        return Err(refused(1, "", message));
    }
    if let Some(text) = text {
        Syntax::Glob.compile(&text).map_err(|message| refused(1, &text, message))?;
    }
    Ok(Arc::new(|call: &Call<'_>| matches_kernel(call, Syntax::Glob)))
}

/// Compiles a glob into a regular expression. An empty or unclosed character class matches nothing.
fn glob(pattern: &str) -> Result<Matcher, String> {
    check_length(pattern)?;
    let mut translated = String::from("(?s)^");
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '*' => translated.push_str(".*"),
            '?' => translated.push('.'),
            '[' => {
                // A closing bracket directly after the opening bracket belongs to the class.
                let negated = rest.starts_with('!');
                let inside = &rest[usize::from(negated)..];
                let first = inside.chars().next().map_or(0, char::len_utf8);
                let Some(end) = inside[first..].find(']') else { return Ok(Matcher::Nothing) };
                let (class, behind) = inside.split_at(first + end);
                rest = &behind[1..];
                match class_of(class, negated) {
                    Some(class) => translated.push_str(&class),
                    None => return Ok(Matcher::Nothing),
                }
            }
            letter => translated.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
        }
    }
    translated.push('$');
    compiled(&translated).map(Matcher::Regex)
}

/// Returns the characters and ranges in a class; `None` if a range is empty.
fn class_of(class: &str, negated: bool) -> Option<String> {
    let mut out = String::from(if negated { "[^" } else { "[" });
    let letters: Vec<char> = class.chars().collect();
    let mut at = 0;
    while let Some(&low) = letters.get(at) {
        let (high, length) = match letters.get(at + 1..at + 3) {
            Some(['-', high]) => (*high, 3),
            _ => (low, 1),
        };
        if high < low {
            return None;
        }
        let _ = write!(out, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high));
        at += length;
    }
    out.push(']');
    Some(out)
}

fn matches_kernel(call: &Call<'_>, syntax: Syntax) -> Result<ArrayRef> {
    let patterns = call.texts(1)?;
    if !patterns.scalar {
        let texts = texts_of_any(call)?;
        let mut failed = None;
        let found = build_flags(call.rows, |row| {
            let (Some(text), Some(pattern)) = (texts.get(row), patterns.get(row)) else {
                return false;
            };
            match syntax.compile(pattern) {
                Ok(matcher) => matcher.matches(text),
                Err(message) => {
                    failed.get_or_insert(message);
                    false
                }
            }
        });
        return failed.map_or(Ok(found), |message| Err(invalid(message)));
    }
    let Some(pattern) = patterns.get(0) else { return Ok(build_flags(call.rows, |_| false)) };
    let matcher = syntax.compile(pattern).map_err(invalid)?;
    let (array, scalar) = call.array(0)?;
    if let (Some(symbols), false) = (as_symbols(&array), scalar) {
        let values = symbols.values().as_string::<i32>();
        if values.len() <= call.rows {
            let matching: Vec<bool> =
                (0..values.len()).map(|key| matcher.matches(values.value(key))).collect();
            let keys = symbols.keys();
            let found = BooleanBuffer::collect_bool(call.rows, |row| {
                keys.is_valid(row) && matching[keys.value(row) as usize]
            });
            return Ok(Arc::new(BooleanArray::new(found, None)));
        }
    }
    let texts = texts_of_any(call)?;
    if let (Matcher::Inside(substring), AnyTexts::Texts(texts)) = (&matcher, &texts)
        && let Some(found) = vectorized::containing(texts, substring)?
    {
        return Ok(Arc::new(BooleanArray::new(found, None)));
    }
    Ok(build_flags(call.rows, |row| texts.get(row).is_some_and(|text| matcher.matches(text))))
}

fn as_symbols(array: &ArrayRef) -> Option<&DictionaryArray<Int32Type>> {
    array.as_any().downcast_ref()
}

/// The strings of the first argument, which is SYMBOL or VARCHAR.
enum AnyTexts {
    Symbols { symbols: DictionaryArray<Int32Type>, scalar: bool },
    Texts(Texts),
}

impl AnyTexts {
    fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Symbols { symbols, scalar } => {
                let key = symbols.key(if *scalar { 0 } else { row })?;
                Some(symbols.values().as_string_opt::<i32>()?.value(key))
            }
            Self::Texts(texts) => texts.get(row),
        }
    }
}

fn texts_of_any(call: &Call<'_>) -> Result<AnyTexts> {
    let (array, scalar) = call.array(0)?;
    if let Some(symbols) = as_symbols(&array).cloned() {
        return Ok(AnyTexts::Symbols { symbols, scalar });
    }
    let views = array.as_string_view_opt().ok_or_else(|| internal("not a string"))?.clone();
    Ok(AnyTexts::Texts(Texts::new(views, scalar)))
}

fn containment(
    op: BinaryOperator,
    swapped: bool,
    network: &Argument,
) -> Result<ResolvedOperator, ResolveError> {
    if let Some(text) = network.text().filter(|text| parse::ipv4_network(text).is_none()) {
        return Err(ResolveError::Invalid { message: format!("invalid argument: {text}") });
    }
    let or_equal =
        matches!(op, BinaryOperator::ContainedByOrEqual | BinaryOperator::ContainsOrEqual);
    let (address_at, network_at) = if swapped { (1, 0) } else { (0, 1) };
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let addresses = call.primitive::<UInt32Type>(address_at)?;
        let networks = call.texts(network_at)?;
        let inside = |address: u32, network: &str| {
            let Some((base, mask, bits)) = parse::ipv4_network(network) else { return false };
            // Strict containment requires a network with more than one address.
            address & mask == base && (or_equal || bits < 32)
        };
        Ok(build_flags(call.rows, |row| match (addresses.get(row), networks.get(row)) {
            (Some(address), Some(network)) => inside(address, network),
            _ => false,
        }))
    });
    let (left, right) =
        if swapped { (SqlType::Varchar, SqlType::Ipv4) } else { (SqlType::Ipv4, SqlType::Varchar) };
    Ok(operator("ipv4_contained", (left, right, SqlType::Boolean), op.sign(), kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, syntax: Syntax, pattern: &str) -> bool {
        syntax.compile(pattern).unwrap().matches(text)
    }

    #[test]
    fn a_glob_character_class_may_end_with_a_hyphen() {
        assert!(matches("a-c", Syntax::Glob, "a[b-]c"));
        assert!(matches("[q]", Syntax::Glob, "[[]q]"));
        assert!(!matches("ac", Syntax::Glob, "a[]c"));
    }

    #[test]
    fn like_supports_two_wildcards_and_an_escape() {
        let like = Syntax::Like { any_case: false };
        for (text, pattern, expected) in [
            ("hello", "hello", true),
            ("hello", "h%", true),
            ("hello", "%lo", true),
            ("hello", "%ell%", true),
            ("hello", "h_llo", true),
            ("hello", "h_lo", false),
            ("a%b", "a\\%b", true),
            ("axb", "a\\%b", false),
            ("a\nb", "a%b", true),
            ("", "", true),
            ("", "%", true),
            ("HELLO", "h%", false),
        ] {
            assert_eq!(matches(text, like, pattern), expected, "{text} like {pattern}");
        }
        assert!(matches("HÉllo", Syntax::Like { any_case: true }, "hé%"));
        assert!(like.compile("a\\").is_err());
    }

    #[test]
    fn a_regex_may_match_any_part_of_the_string() {
        assert!(matches("abc", Syntax::Regex, "b"));
        assert!(!matches("abc", Syntax::Regex, "^b"));
        assert!(Syntax::Regex.compile("(").is_err());
    }
}
