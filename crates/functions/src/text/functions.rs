//! String functions.
//!
//! Positions are counted in characters, starting at 1. A null argument yields null unless the
//! function's entry states otherwise.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{Int32Type, Int64Type, UInt32Type};
use datafusion::common::Result;
use regex::{Captures, Regex};
use tidemark_kernels::Case;
use tidemark_types::SqlType::{Binary, Boolean, Int, Ipv4, Long, Long256, String as Str, Uuid};
use tidemark_types::account;

use crate::column::{Call, build, build_flags, build_text, internal, invalid};
use crate::native::Kernel;
use crate::resolve::ResolveError;
use crate::signature::Param::{Is, Text};
use crate::signature::{Bound, Function, Overload, ResultType, direct, per_call, pure};
use crate::text::bounded_text::BoundedText;
use crate::text::formatted::push_base64;
use crate::text::formatted::quoted;
use crate::text::parse;
use crate::text::pattern::{refused, regex};
use crate::text::vectorized;

/// Applies a function to each string in the first argument.
fn map(call: &Call<'_>, write: impl Fn(&str, &mut BoundedText)) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    build_text(call.rows, |row, out| {
        let Some(text) = texts.get(row) else { return false };
        write(text, out);
        true
    })
}

/// Returns the byte offset of the character with index `count`, or the string's length if it has
/// fewer characters.
fn byte_of(text: &str, count: usize) -> usize {
    if text.is_ascii() {
        return count.min(text.len());
    }
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

fn characters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Returns the first (with `left`) or last `count` characters. A negative count drops that many
/// characters from the other end.
fn edge(call: &Call<'_>, left: bool) -> Result<ArrayRef> {
    let (texts, counts) = (call.texts(0)?, call.primitive::<Int32Type>(1)?);
    if counts.scalar
        && let Some(count) = counts.get(0)
    {
        let required = count.unsigned_abs() as usize;
        let substring = |length: usize| {
            let length_kept =
                if count < 0 { length.saturating_sub(required) } else { required.min(length) };
            (if left { 0 } else { length - length_kept }, length_kept)
        };
        if let Some(substrings) = vectorized::substrings(&texts, substring)? {
            return Ok(substrings);
        }
    }
    build_text(call.rows, |row, out| {
        let (Some(text), Some(count)) = (texts.get(row), counts.get(row)) else { return false };
        let length = characters(text);
        let required = count.unsigned_abs() as usize;
        let length_kept =
            if count < 0 { length.saturating_sub(required) } else { required.min(length) };
        out.push_str(if left {
            &text[..byte_of(text, length_kept)]
        } else {
            &text[byte_of(text, length - length_kept)..]
        });
        true
    })
}

fn substring(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    let starts = call.primitive::<Int32Type>(1)?;
    let to_end = call.arguments.len() == 2;
    let lengths = call.primitive::<Int32Type>(if to_end { 1 } else { 2 })?;
    let of_row = |row: usize| {
        let (start, length) = (starts.get(row)?, lengths.get(row)?);
        characters_of(start, if to_end { i32::MAX } else { length })
    };
    if starts.scalar
        && lengths.scalar
        && let Some((first, length)) = of_row(0)
    {
        let piece = |all: usize| (first.min(all), length.min(all - first.min(all)));
        if let Some(substrings) = vectorized::substrings(&texts, piece)? {
            return Ok(substrings);
        }
    }
    build_text(call.rows, |row, out| {
        let (Some(text), Some((first, length))) = (texts.get(row), of_row(row)) else {
            return false;
        };
        let rest = &text[byte_of(text, first)..];
        out.push_str(&rest[..byte_of(rest, length)]);
        true
    })
}

/// Returns the 0-based index of the first character, and the number of characters, of a substring
/// that starts at position `start`. Returns `None` for a negative length.
fn characters_of(start: i32, length: i32) -> Option<(usize, usize)> {
    let (first, length) = (i64::from(start) - 1, i64::from(length));
    if length < 0 {
        return None;
    }
    // Positions before the start of the string shorten the result.
    let cut = (length + first.min(0)).max(0);
    Some((first.max(0) as usize, cut as usize))
}

/// Returns the 1-based position of the first occurrence of one string in another; 0 if not found.
fn position(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, required) = (call.texts(0)?, call.texts(1)?);
    Ok(build::<Int32Type>(call.rows, |row| {
        let (text, required) = (texts.get(row)?, required.get(row)?);
        let found = text.find(required).map(|at| characters(&text[..at]) + 1);
        Some(found.unwrap_or(0) as i32)
    }))
}

fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, from, to) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
    build_text(call.rows, |row, out| {
        let (Some(text), Some(from), Some(to)) = (texts.get(row), from.get(row), to.get(row))
        else {
            return false;
        };
        if from.is_empty() {
            out.push_str(text);
            return true;
        }
        let mut rest = text;
        while let Some(at) = rest.find(from).filter(|_| !out.refuses(0)) {
            out.push_str(&rest[..at]);
            out.push_str(to);
            rest = &rest[at + from.len()..];
        }
        out.push_str(rest);
        true
    })
}

/// Maximum length of a padded string in characters. Without this limit, a single number could
/// exhaust memory.
const MAX_PADDED: i32 = 1 << 20;

/// Implements `LIKE pattern ESCAPE 'c'` by converting the escape character to a backslash.
fn like_escape(call: &Call<'_>) -> Result<ArrayRef> {
    let (patterns, escapes) = (call.texts(0)?, call.texts(1)?);
    let rows = if escapes.scalar { call.rows.min(1) } else { call.rows };
    let longer = |row: usize| escapes.get(row).is_some_and(|escape| characters(escape) > 1);
    if (0..rows).any(longer) {
        return Err(invalid("ESCAPE must be empty or one character"));
    }
    build_text(call.rows, |row, out| {
        let (Some(pattern), Some(escape)) = (patterns.get(row), escapes.get(row)) else {
            return false;
        };
        let escape = escape.chars().next();
        let mut escaped = false;
        for letter in pattern.chars() {
            if !escaped && Some(letter) == escape {
                escaped = true;
                continue;
            }
            if escaped || letter == '\\' {
                out.push('\\');
            }
            out.push(letter);
            escaped = false;
        }
        if escaped {
            // A trailing escape character, which LIKE rejects.
            out.push('\\');
        }
        true
    })
}

fn pad(call: &Call<'_>, left: bool) -> Result<ArrayRef> {
    let (texts, lengths) = (call.texts(0)?, call.primitive::<Int32Type>(1)?);
    let fills = if call.arguments.len() == 3 { Some(call.texts(2)?) } else { None };
    for row in 0..if lengths.scalar { call.rows.min(1) } else { call.rows } {
        if lengths.get(row).is_some_and(|length| length > MAX_PADDED) {
            return Err(invalid(format!(
                "breached memory limit set for lpad [limit={MAX_PADDED}]"
            )));
        }
    }
    build_text(call.rows, |row, out| {
        let (Some(text), Some(length)) = (texts.get(row), lengths.get(row)) else { return false };
        let fill = match &fills {
            None => " ",
            Some(fills) => match fills.get(row) {
                None => return false,
                Some(fill) => fill,
            },
        };
        let Ok(length) = usize::try_from(length) else { return false };
        let have = characters(text);
        if have >= length || fill.is_empty() {
            out.push_str(&text[..byte_of(text, length)]);
            return true;
        }
        let padding = fill.chars().cycle().take(length - have);
        if left {
            out.extend(padding);
            out.push_str(text);
        } else {
            out.push_str(text);
            out.extend(padding);
        }
        true
    })
}

fn split_part(bound: &Bound<'_>) -> std::result::Result<Kernel, ResolveError> {
    let zero = |value: &datafusion::common::ScalarValue| {
        matches!(
            value.cast_to(&arrow::datatypes::DataType::Int64),
            Ok(datafusion::common::ScalarValue::Int64(Some(0)))
        )
    };
    if bound.arguments[2].constant.as_ref().is_some_and(zero) {
        let message = "field position must not be zero".into();
        return Err(ResolveError::InvalidArgument { index: 2, message });
    }
    Ok(Arc::new(|call: &Call<'_>| {
        let (texts, separators) = (call.texts(0)?, call.texts(1)?);
        let numbers = call.primitive::<Int32Type>(2)?;
        build_text(call.rows, |row, out| {
            let (Some(text), Some(separator), Some(number)) =
                (texts.get(row), separators.get(row), numbers.get(row))
            else {
                return false;
            };
            let nth = number.unsigned_abs() as usize;
            let field = match (nth.checked_sub(1), separator.is_empty()) {
                (None, _) => None,
                (Some(index), true) => (index == 0).then_some(text),
                (Some(index), false) if number > 0 => text.split(separator).nth(index),
                (Some(index), false) => text.rsplit(separator).nth(index),
            };
            out.push_str(field.unwrap_or_default());
            true
        })
    }))
}

fn regexp_replace(bound: &Bound<'_>) -> std::result::Result<Kernel, ResolveError> {
    let known: Option<Regex> = match bound.arguments[1].text() {
        Some(text) => Some(regex(&text).map_err(|message| refused(1, &text, message))?),
        None => None,
    };
    Ok(Arc::new(move |call: &Call<'_>| {
        let (texts, patterns, replacements) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
        // A `Regex` locks its scratch memory. Cloning it for each batch avoids contention.
        let known = known.clone();
        let only = if replacements.scalar { replacements.get(0) } else { None };
        let template = known.as_ref().zip(only).map(|(known, with)| Template::new(with, known));
        let mut failed = None;
        let replaced = build_text(call.rows, |row, out| {
            let (Some(text), Some(pattern), Some(with)) =
                (texts.get(row), patterns.get(row), replacements.get(row))
            else {
                return false;
            };
            match (&known, &template) {
                (Some(known), Some(template)) => replace_matches(known, text, template, out),
                (Some(known), None) => {
                    replace_matches(known, text, &Template::new(with, known), out);
                }
                (None, _) => match regex(pattern) {
                    Ok(made) => replace_matches(&made, text, &Template::new(with, &made), out),
                    Err(message) => {
                        failed.get_or_insert(message);
                    }
                },
            }
            true
        });
        failed.map_or(replaced, |message| Err(invalid(message)))
    }))
}

/// A replacement in Java's syntax, made up of literal strings and groups of the match. `$1x` is
/// group 1 followed by an x, and `\\$` is a dollar sign. `$name` and `${name}` are named groups.
struct Template<'a> {
    elements: Vec<TemplateElement<'a>>,
}

enum TemplateElement<'a> {
    Text(&'a str),
    /// A group, by number. A group that the pattern does not contain is an empty string.
    Group(usize),
}

impl<'a> Template<'a> {
    fn new(with: &'a str, pattern: &Regex) -> Self {
        let mut parts = Vec::new();
        let mut rest = with;
        while let Some(at) = rest.find(['\\', '$']) {
            let (text, special) = rest.split_at(at);
            parts.push(TemplateElement::Text(text));
            let after = &special[1..];
            if special.starts_with('\\') {
                // The next character is literal.
                let next = after.chars().next().map_or(0, char::len_utf8);
                parts.push(TemplateElement::Text(&after[..next]));
                rest = &after[next..];
            } else if let Some((name, end)) = group_name(after) {
                let named = |name| pattern.capture_names().position(|own| own == Some(name));
                let number = name.parse().ok().or_else(|| named(name));
                parts.extend(number.map(TemplateElement::Group));
                rest = &after[end..];
            } else {
                parts.push(TemplateElement::Text("$"));
                rest = after.strip_prefix('$').unwrap_or(after);
            }
        }
        parts.push(TemplateElement::Text(rest));
        Self { elements: parts }
    }
}

/// Returns the name or number of the group after a dollar sign, and its end offset.
fn group_name(after: &str) -> Option<(&str, usize)> {
    if let Some(braced) = after.strip_prefix('{') {
        let end = braced.find('}')?;
        return Some((&braced[..end], end + 2));
    }
    let is_number = after.starts_with(|c: char| c.is_ascii_digit());
    let goes_on =
        |c: char| c.is_ascii_digit() || (!is_number && (c.is_ascii_alphabetic() || c == '_'));
    let end = after.find(|c| !goes_on(c)).unwrap_or(after.len());
    (end > 0).then(|| (&after[..end], end))
}

/// The range of a match and its groups. Groups are captured only if needed, because capturing is
/// slower.
type Match<'t> = (Range<usize>, Option<Captures<'t>>);

fn with_range(found: Captures<'_>) -> Option<Match<'_>> {
    Some((found.get(0)?.range(), Some(found)))
}

fn replace_matches(pattern: &Regex, text: &str, with: &Template<'_>, out: &mut BoundedText) {
    if with.elements.iter().any(|element| matches!(element, TemplateElement::Group(_))) {
        replace_each(pattern.captures_iter(text).filter_map(with_range), text, with, out);
    } else {
        replace_each(pattern.find_iter(text).map(|found| (found.range(), None)), text, with, out);
    }
}

fn replace_each<'t>(
    matches: impl Iterator<Item = Match<'t>>,
    text: &str,
    with: &Template<'_>,
    out: &mut BoundedText,
) {
    let mut copied = 0;
    for (index, (at, groups)) in matches.enumerate() {
        if out.refuses(0)
            || (index % MATCHES_BETWEEN_CHECKS == MATCHES_BETWEEN_CHECKS - 1
                && account::check().is_err())
        {
            return;
        }
        out.push_str(&text[copied..at.start]);
        for element in &with.elements {
            out.push_str(match element {
                TemplateElement::Text(text) => text,
                TemplateElement::Group(number) => {
                    let group = groups.as_ref().and_then(|groups| groups.get(*number));
                    group.map_or("", |group| group.as_str())
                }
            });
        }
        copied = at.end;
        // There is no further match, not even an empty one, after a match at the end of the string.
        if copied == text.len() {
            return;
        }
    }
    out.push_str(&text[copied..]);
}

/// Number of matches between checks of the query's deadline and cancellation.
const MATCHES_BETWEEN_CHECKS: usize = 1024;

fn char_length(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    if let Some(lengths) = vectorized::lengths(&texts, characters)? {
        return Ok(Arc::new(Int32Array::new(lengths.into(), texts.array.nulls().cloned())));
    }
    Ok(build::<Int32Type>(call.rows, |row| i32::try_from(characters(texts.get(row)?)).ok()))
}

/// Returns the length of each string in bytes, multiplied by `count`.
fn bytes(call: &Call<'_>, count: usize) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    Ok(build::<Int32Type>(call.rows, |row| i32::try_from(texts.get(row)?.len() * count).ok()))
}

fn length(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    if let Some(mut lengths) = vectorized::lengths(&texts, characters)? {
        if let Some(nulls) = texts.array.nulls().filter(|nulls| nulls.null_count() > 0) {
            for row in (0..lengths.len()).filter(|&row| nulls.is_null(row)) {
                lengths[row] = -1;
            }
        }
        return Ok(Arc::new(Int32Array::from(lengths)));
    }
    Ok(build::<Int32Type>(call.rows, |row| {
        Some(texts.get(row).map_or(-1, |text| characters(text) as i32))
    }))
}

fn binary_length(call: &Call<'_>) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let bytes = array.as_binary_opt::<i64>().ok_or_else(|| internal("not binary"))?;
    Ok(build::<Int64Type>(call.rows, |row| {
        let row = if scalar { 0 } else { row };
        Some(if bytes.is_null(row) { -1 } else { bytes.value(row).len() as i64 })
    }))
}

fn base64(call: &Call<'_>) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let bytes = array.as_binary_opt::<i64>().ok_or_else(|| internal("not binary"))?;
    let limits = call.primitive::<Int32Type>(1)?;
    build_text(call.rows, |row, out| {
        let at = if scalar { 0 } else { row };
        let (false, Some(limit)) = (bytes.is_null(at), limits.get(row)) else {
            return false;
        };
        let value = bytes.value(at);
        push_base64(&value[..value.len().min(limit.max(0) as usize)], usize::MAX, out);
        true
    })
}

fn quote_ident(text: &str, out: &mut BoundedText) {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        out.push_str(text);
        return;
    }
    quoted(text, '"', out);
}

/// Converts the case of strings.
fn in_case(call: &Call<'_>, case: Case) -> Result<ArrayRef> {
    if let Some(texts) = vectorized::recased(&call.texts(0)?, case)? {
        return Ok(texts);
    }
    match case {
        Case::Upper => map(call, |text, out| {
            recased(text, out, str::make_ascii_uppercase, str::to_uppercase);
        }),
        Case::Lower => map(call, |text, out| {
            recased(text, out, str::make_ascii_lowercase, str::to_lowercase);
        }),
    }
}

/// Converts the case of a string. The result may be three times as long in bytes.
fn recased(text: &str, out: &mut BoundedText, ascii: fn(&mut str), change: fn(&str) -> String) {
    if text.is_ascii() {
        out.push_changed(text, ascii);
    } else if !out.refuses(3 * text.len()) {
        out.push_str(&change(text));
    }
}

fn bar(call: &Call<'_>) -> Result<ArrayRef> {
    let of = |index| call.primitive::<arrow::datatypes::Float64Type>(index);
    let (values, lows, highs) = (of(0)?, of(1)?, of(2)?);
    let widths = call.primitive::<Int32Type>(3)?;
    build_text(call.rows, |row, out| {
        let (Some(value), Some(low), Some(high), Some(width)) =
            (values.get(row), lows.get(row), highs.get(row), widths.get(row))
        else {
            return false;
        };
        if low >= high || !(1..=MAX_PADDED).contains(&width) {
            return false;
        }
        let fraction = ((value - low) / (high - low)).clamp(0.0, 1.0);
        let eighths = (fraction * f64::from(width) * 8.0).round() as usize;
        out.extend(std::iter::repeat_n('█', eighths / 8));
        out.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)).copied());
        true
    })
}

/// Packs LONGs into bytes, least significant number first.
fn of_longs<const BYTES: usize>(call: &Call<'_>) -> Result<ArrayRef> {
    let longs = (0..BYTES / 8).map(|index| call.primitive::<Int64Type>(index));
    let longs = longs.collect::<Result<Vec<_>>>()?;
    let values = (0..call.rows).map(|row| {
        let mut bytes = [0; BYTES];
        for (chunk, long) in bytes.rchunks_exact_mut(8).zip(&longs) {
            chunk.copy_from_slice(&long.get(row)?.to_be_bytes());
        }
        Some(bytes)
    });
    let size = BYTES as i32;
    let array = arrow::array::FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, size)?;
    Ok(Arc::new(array))
}

fn netmask(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    Ok(build::<UInt32Type>(call.rows, |row| {
        let text = texts.get(row).filter(|text| text.contains('/'))?;
        parse::ipv4_network(text).map(|(_, mask, _)| mask)
    }))
}

const T1: &[crate::signature::Param] = &[Text];
const T2: &[crate::signature::Param] = &[Text, Text];

macro_rules! one {
    ($name:literal, $write:expr, $summary:literal) => {
        pure($name, &[direct(T1, Str, |call| map(call, $write))], $summary)
    };
}

/// Defines a function that trims blanks, or the characters given as a second argument.
macro_rules! trimming {
    ($name:literal, $method:ident, $summary:literal) => {
        pure(
            $name,
            &[
                direct(T1, Str, |call| map(call, |text, out| out.push_str(text.$method(' ')))),
                direct(T2, Str, |call| {
                    let (texts, cut) = (call.texts(0)?, call.texts(1)?);
                    build_text(call.rows, |row, out| match (texts.get(row), cut.get(row)) {
                        (Some(text), Some(cut)) => {
                            out.push_str(text.$method(|c: char| cut.contains(c)));
                            true
                        }
                        _ => false,
                    })
                }),
            ],
            $summary,
        )
    };
}

const SUBSTRING: &[Overload] = &[
    direct(&[Text, Is(Int)], Str, substring),
    per_call(&[Text, Is(Int), Is(Int)], ResultType::Is(Str), |bound| {
        if bound.arguments[2].integer().is_some_and(|length| length < 0) {
            let message = "length must not be negative".into();
            return Err(ResolveError::InvalidArgument { index: 2, message });
        }
        Ok(Arc::new(substring))
    }),
];

pub(crate) const FUNCTIONS: &[Function] = &[
    pure("upper", &[direct(T1, Str, |call| in_case(call, Case::Upper))], "upper case"),
    pure("to_uppercase", &[direct(T1, Str, |call| in_case(call, Case::Upper))], "upper case"),
    pure("lower", &[direct(T1, Str, |call| in_case(call, Case::Lower))], "lower case"),
    pure("to_lowercase", &[direct(T1, Str, |call| in_case(call, Case::Lower))], "lower case"),
    trimming!("trim", trim_matches, "removes spaces, or the given characters, from both ends"),
    trimming!("btrim", trim_matches, "removes spaces, or the given characters, from both ends"),
    trimming!("ltrim", trim_start_matches, "removes leading spaces, or the given characters"),
    trimming!("rtrim", trim_end_matches, "removes trailing spaces, or the given characters"),
    one!("quote_ident", quote_ident, "identifier, in double quotes if it needs them"),
    one!("quote_literal", |text, out| quoted(text, '\'', out), "string literal in single quotes"),
    pure(
        "length",
        &[direct(T1, Int, length), direct(&[Is(Binary)], Long, binary_length)],
        "number of characters in a string, or of bytes in a BINARY; -1 for null",
    ),
    pure(
        "char_length",
        &[direct(T1, Int, char_length)],
        "number of characters in a string; null for null",
    ),
    pure("character_length", &[direct(T1, Int, char_length)], "alias of char_length"),
    pure(
        "length_bytes",
        &[direct(T1, Int, |call| {
            let texts = call.texts(0)?;
            Ok(build::<Int32Type>(call.rows, |row| {
                Some(texts.get(row).map_or(-1, |text| text.len() as i32))
            }))
        })],
        "length of a string in UTF-8 bytes; -1 for null",
    ),
    pure(
        "octet_length",
        &[direct(T1, Int, |call| bytes(call, 1))],
        "length of a string in UTF-8 bytes; null for null",
    ),
    pure(
        "bit_length",
        &[direct(T1, Int, |call| bytes(call, 8))],
        "length of a string in UTF-8 bits; null for null",
    ),
    pure("left", &[direct(&[Text, Is(Int)], Str, |call| edge(call, true))], "first n characters"),
    pure("right", &[direct(&[Text, Is(Int)], Str, |call| edge(call, false))], "last n characters"),
    pure("substring", SUBSTRING, "substring at a position: (string, start [, length])"),
    pure("substr", SUBSTRING, "alias of substring"),
    pure(
        "strpos",
        &[direct(T2, Int, position)],
        "1-based position of the first occurrence of a substring; 0 if not found",
    ),
    pure(
        "position",
        &[direct(T2, Int, position)],
        "1-based position of the first occurrence of a substring; 0 if not found",
    ),
    pure(
        "replace",
        &[direct(&[Text, Text, Text], Str, replace)],
        "replaces every occurrence of a substring",
    ),
    pure(
        "like_escape",
        &[direct(T2, Str, like_escape)],
        "LIKE pattern with its escape character replaced by a backslash",
    ),
    pure(
        "lpad",
        &[
            direct(&[Text, Is(Int)], Str, |call| pad(call, true)),
            direct(&[Text, Is(Int), Text], Str, |call| pad(call, true)),
        ],
        "pads a string on the left to a length, or truncates it",
    ),
    pure(
        "rpad",
        &[
            direct(&[Text, Is(Int)], Str, |call| pad(call, false)),
            direct(&[Text, Is(Int), Text], Str, |call| pad(call, false)),
        ],
        "pads a string on the right to a length, or truncates it",
    ),
    pure(
        "split_part",
        &[per_call(&[Text, Text, Is(Int)], ResultType::Is(Str), split_part)],
        "nth field of a string split at a separator, counting from 1, or from the end if n is \
         negative",
    ),
    pure(
        "starts_with",
        &[direct(T2, Boolean, |call| {
            let (texts, prefixes) = (call.texts(0)?, call.texts(1)?);
            let starts = |row| Some(texts.get(row)?.starts_with(prefixes.get(row)?));
            Ok(build_flags(call.rows, |row| starts(row) == Some(true)))
        })],
        "whether a string starts with a prefix; false for null",
    ),
    pure(
        "regexp_replace",
        &[per_call(&[Text, Text, Text], ResultType::Is(Str), regexp_replace)],
        "replaces every match of a regular expression; $1 is the first group",
    ),
    pure(
        "base64",
        &[direct(&[Is(Binary), Is(Int)], Str, base64)],
        "first n bytes, encoded as Base64",
    ),
    pure(
        "bar",
        &[direct(
            &[
                Is(tidemark_types::SqlType::Double),
                Is(tidemark_types::SqlType::Double),
                Is(tidemark_types::SqlType::Double),
                Is(Int),
            ],
            tidemark_types::SqlType::Varchar,
            bar,
        )],
        "horizontal bar, accurate to 1/8 of a character: (value, min, max, width)",
    ),
    pure(
        "to_uuid",
        &[direct(&[Is(Long), Is(Long)], Uuid, of_longs::<16>)],
        "UUID from its low and high 64 bits",
    ),
    pure(
        "to_long128",
        &[direct(&[Is(Long), Is(Long)], Uuid, of_longs::<16>)],
        "alias of to_uuid: 128-bit value from its low and high 64 bits",
    ),
    pure(
        "to_long256",
        &[direct(&[Is(Long), Is(Long), Is(Long), Is(Long)], Long256, of_longs::<32>)],
        "LONG256 from four 64-bit numbers, the lowest first",
    ),
    pure("netmask", &[direct(T1, Ipv4, netmask)], "netmask of a network such as 10.0.0.0/8"),
];
