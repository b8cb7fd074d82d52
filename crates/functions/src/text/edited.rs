//! String functions that edit by position or character, decode Base64 and hexadecimal, and split
//! strings into lists as in `PostgreSQL`.

use std::sync::Arc;

use arrow::array::{ArrayRef, LargeBinaryBuilder};
use arrow::datatypes::Int32Type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::common::Result;
use regex::Regex;
use rustc_hash::FxHashMap;
use tidemark_types::SqlType::{Binary, Boolean, Int, String as Str, Varchar};
use tidemark_types::account;

use crate::column::{Call, build_text, invalid, stopped, try_build_text};
use crate::native::Kernel;
use crate::resolve::ResolveError;
use crate::signature::Param::{Is, Text};
use crate::signature::{Bound, Function, ResultType, direct, per_call, pure};
use crate::text::bounded_text::BoundedText;
use crate::text::formatted::encoded;
use crate::text::parse;
use crate::text::pattern::{glob_kernel, refused, regex};
use crate::text::text_array::push_item;

fn reverse(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    build_text(call.rows, |row, out| {
        let Some(text) = texts.get(row) else { return false };
        if !out.refuses(text.len()) {
            out.extend(text.chars().rev());
        }
        true
    })
}

/// Computes `translate(text, from, to)`, which replaces each letter in `from` with the letter at
/// the same position in `to`. Letters without a counterpart are removed.
fn translate(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, from, to) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
    let mut letters: FxHashMap<char, Option<char>> = FxHashMap::default();
    let mut of_row = None;
    build_text(call.rows, |row, out| {
        let (Some(text), Some(from_row), Some(to_row)) =
            (texts.get(row), from.get(row), to.get(row))
        else {
            return false;
        };
        if of_row.is_none() || !(from.scalar && to.scalar) {
            of_row = Some(row);
            letters.clear();
            let mut new = to_row.chars();
            for old in from_row.chars() {
                let new = new.next();
                letters.entry(old).or_insert(new);
            }
        }
        for letter in text.chars() {
            match letters.get(&letter) {
                None => out.push(letter),
                Some(new) => out.extend(*new),
            }
        }
        true
    })
}

/// Computes `overlay(text, part, from [, length])`, which replaces `length` characters with `part`,
/// starting at position `from`.
fn overlay(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, substrings) = (call.texts(0)?, call.texts(1)?);
    let starts = call.primitive::<Int32Type>(2)?;
    let lengths = match call.arguments.len() {
        4 => Some(call.primitive::<Int32Type>(3)?),
        _ => None,
    };
    try_build_text(call.rows, |row, out| {
        let (Some(text), Some(substring), Some(start)) =
            (texts.get(row), substrings.get(row), starts.get(row))
        else {
            return Ok(false);
        };
        let length = match &lengths {
            Some(lengths) => match lengths.get(row) {
                Some(length) => i64::from(length),
                None => return Ok(false),
            },
            None => substring.chars().count() as i64,
        };
        if start < 1 {
            return Err(invalid(format!("overlay: position must be at least 1, found {start}")));
        }
        let end = (i64::from(start) - 1 + length).max(0);
        let (start, end) = (start as usize - 1, usize::try_from(end).unwrap_or(usize::MAX));
        out.extend(text.chars().take(start));
        out.push_str(substring);
        out.extend(text.chars().skip(end));
        Ok(true)
    })
}

/// Builds the kernel for `substring(text FROM pattern)`, which returns the first group of the first
/// match, or the whole match if there are no groups.
fn regexp_substr(bound: &Bound<'_>) -> std::result::Result<Kernel, ResolveError> {
    let known: Option<Regex> = match bound.arguments[1].text() {
        Some(text) => Some(regex(&text).map_err(|message| refused(1, &text, message))?),
        None => None,
    };
    Ok(Arc::new(move |call: &Call<'_>| {
        let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
        // A `Regex` locks its scratch memory. Cloning it for each batch avoids contention.
        let known = known.clone();
        try_build_text(call.rows, |row, out| {
            let (Some(text), Some(pattern)) = (texts.get(row), patterns.get(row)) else {
                return Ok(false);
            };
            let created;
            let pattern = if let Some(known) = &known {
                known
            } else {
                created = regex(pattern).map_err(invalid)?;
                &created
            };
            let found = pattern.captures(text);
            let substring = found.and_then(|found| found.get(usize::from(found.len() > 1)));
            out.push_str(substring.map_or("", |substring| substring.as_str()));
            Ok(substring.is_some())
        })
    }))
}

/// Builds a BINARY column.
fn try_build_bytes(
    call: &Call<'_>,
    mut bytes: impl FnMut(usize) -> Result<Option<Vec<u8>>>,
) -> Result<ArrayRef> {
    let mut builder = LargeBinaryBuilder::new();
    for row in 0..call.rows {
        let value = bytes(row)?;
        account::check_allocation(value.as_ref().map_or(0, Vec::len)).map_err(stopped)?;
        builder.append_option(value);
    }
    Ok(Arc::new(builder.finish()))
}

/// Decodes a Base64 string; whitespace is ignored.
fn base64_bytes(text: &str) -> Result<Vec<u8>> {
    account::check_allocation(text.len() * 2).map_err(stopped)?;
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(letters).map_err(|error| invalid(format!("invalid base64: {error}")))
}

fn from_base64(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    try_build_bytes(call, |row| texts.get(row).map(base64_bytes).transpose())
}

/// Computes `decode(text, 'hex' | 'base64')`.
fn decode(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, formats) = (call.texts(0)?, call.texts(1)?);
    try_build_bytes(call, |row| {
        let (Some(text), Some(format)) = (texts.get(row), formats.get(row)) else {
            return Ok(None);
        };
        if format.eq_ignore_ascii_case("base64") {
            return base64_bytes(text).map(Some);
        }
        if format.eq_ignore_ascii_case("hex") {
            let bytes = parse::hexadecimal(text);
            let bytes =
                bytes.ok_or_else(|| invalid("invalid hex: expected two digits per byte"))?;
            return Ok(Some(bytes));
        }
        let shown: String = format.chars().take(20).collect();
        Err(invalid(format!("invalid encoding '{shown}': expected hex or base64")))
    })
}

fn to_base64(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    try_build_text(call.rows, |row, out| {
        let Some(text) = texts.get(row) else { return Ok(false) };
        encoded(text.as_bytes(), "base64", out)?;
        Ok(true)
    })
}

/// Computes `string_to_array(text, separator [, null])`, which splits a string into an array in
/// text form. Without a separator, each character becomes an item.
fn string_to_array(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, separators) = (call.texts(0)?, call.texts(1)?);
    let nulls = match call.arguments.len() {
        3 => Some(call.texts(2)?),
        _ => None,
    };
    build_text(call.rows, |row, out| {
        let Some(text) = texts.get(row) else { return false };
        let null = nulls.as_ref().and_then(|nulls| nulls.get(row));
        out.push('{');
        match separators.get(row) {
            _ if text.is_empty() => {}
            Some("") => push_joined(std::iter::once(text), null, out),
            Some(separator) => push_joined(text.split(separator), null, out),
            None => push_joined(letters(text), null, out),
        }
        out.push('}');
        true
    })
}

fn letters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, letter)| &text[at..at + letter.len_utf8()])
}

fn push_joined<'t>(
    substrings: impl Iterator<Item = &'t str>,
    null: Option<&str>,
    out: &mut BoundedText,
) {
    for (index, substring) in substrings.enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_item(out, Some(substring).filter(|substring| null != Some(*substring)));
    }
}

pub(crate) const FUNCTIONS: &[Function] = &[
    pure("reverse", &[direct(&[Text], Varchar, reverse)], "characters in reverse order"),
    pure(
        "translate",
        &[direct(&[Text, Text, Text], Varchar, translate)],
        "replaces characters in argument 2 with their counterparts in argument 3, or removes them",
    ),
    pure(
        "overlay",
        &[
            direct(&[Text, Text, Is(Int)], Varchar, overlay),
            direct(&[Text, Text, Is(Int), Is(Int)], Varchar, overlay),
        ],
        "replaces characters: (string, new, start [, count]); default count: the length of new",
    ),
    pure(
        "regexp_substr",
        &[per_call(&[Text, Text], ResultType::Is(Varchar), regexp_substr)],
        "first match of a regular expression, or its first group; null if nothing matches",
    ),
    pure(
        "glob",
        &[per_call(&[Text, Text], ResultType::Is(Boolean), glob_kernel)],
        "whether a string matches a glob: * any characters, ? any one, [a-z] one of these, [!a-z] \
         any other",
    ),
    pure("from_base64", &[direct(&[Text], Binary, from_base64)], "decodes a Base64 string"),
    pure("to_base64", &[direct(&[Text], Varchar, to_base64)], "encodes a string as Base64"),
    pure("decode", &[direct(&[Text, Text], Binary, decode)], "decodes a hex or base64 string"),
    pure(
        "string_to_array",
        &[
            direct(&[Text, Text], Str, string_to_array),
            direct(&[Text, Text, Text], Str, string_to_array),
        ],
        "splits a string at a separator into {a,b}; parts equal to the third argument are null",
    ),
];
