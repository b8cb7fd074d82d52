//! String concatenation and encoding as in `PostgreSQL`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::Int32Type;
use datafusion::common::Result;
use tidemark_types::SqlType::{Binary, Int, String as Str, Varchar};
use tidemark_types::bounded::check_stop;

use crate::column::{Call, Texts, build, build_text, internal, invalid, stopped, try_build_text};
use crate::signature::Param::{Is, Shown, Text};
use crate::signature::{Body, Function, Overload, ResultType, direct, pure};
use crate::text::bounded_text::BoundedText;
use crate::text::hash::hexadecimal;
use crate::text::parse;

/// Number of bytes buffered before they are appended to a string.
const BUFFER_BYTES: usize = 4 << 10;

/// Computes `initcap(text)`, with the first letter of each word in upper case and all other letters
/// in lower case.
fn initcap(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    let mut buffer = String::new();
    try_build_text(call.rows, |row, out| {
        let Some(text) = texts.get(row) else { return Ok(false) };
        let mut is_first = true;
        for letter in text.chars() {
            match (letter.is_ascii(), is_first) {
                (true, true) => buffer.push(letter.to_ascii_uppercase()),
                (true, false) => buffer.push(letter.to_ascii_lowercase()),
                (false, true) => buffer.extend(letter.to_uppercase()),
                (false, false) => buffer.extend(letter.to_lowercase()),
            }
            is_first = !letter.is_alphanumeric();
            if buffer.len() >= BUFFER_BYTES {
                check_stop().map_err(stopped)?;
                out.push_str(&buffer);
                buffer.clear();
            }
        }
        out.push_str(&buffer);
        buffer.clear();
        Ok(true)
    })
}

fn chr(call: &Call<'_>) -> Result<ArrayRef> {
    let codes = call.primitive::<Int32Type>(0)?;
    try_build_text(call.rows, |row, out| {
        let Some(code) = codes.get(row) else { return Ok(false) };
        let letter = u32::try_from(code).ok().filter(|code| *code > 0).and_then(char::from_u32);
        out.push(letter.ok_or_else(|| invalid(format!("invalid character code: {code}")))?);
        Ok(true)
    })
}

fn ascii(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    Ok(build::<Int32Type>(call.rows, |row| {
        texts.get(row).map(|text| text.chars().next().map_or(0, |letter| letter as i32))
    }))
}

fn repeat(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, counts) = (call.texts(0)?, call.primitive::<Int32Type>(1)?);
    build_text(call.rows, |row, out| {
        let (Some(text), Some(count)) = (texts.get(row), counts.get(row)) else { return false };
        let count = usize::try_from(count).unwrap_or(0);
        if text.is_empty() || out.refuses(text.len().saturating_mul(count)) {
            return true;
        }
        for _ in 0..count {
            out.push_str(text);
        }
        true
    })
}

/// Concatenates all non-null arguments after the first, which is the separator.
fn concat_ws(call: &Call<'_>) -> Result<ArrayRef> {
    let all: Vec<Texts> =
        (0..call.arguments.len()).map(|index| call.texts(index)).collect::<Result<_>>()?;
    let Some((separators, parts)) = all.split_first() else {
        return Err(internal("concat_ws requires a separator"));
    };
    build_text(call.rows, |row, out| {
        let Some(separator) = separators.get(row) else { return false };
        for (index, text) in parts.iter().filter_map(|argument| argument.get(row)).enumerate() {
            out.push_str(if index > 0 { separator } else { "" });
            out.push_str(text);
        }
        true
    })
}

/// Computes `format(pattern, …)`: `%s` is a string, `%I` an identifier, `%L` a literal and `%%` a
/// percent sign.
///
/// Each placeholder uses the next argument, or the nth argument with `%n$s`. `%10s` sets the width,
/// `%-10s` aligns left, and `%*s` or `%*n$s` reads the width from an argument.
fn format_text(call: &Call<'_>) -> Result<ArrayRef> {
    let all: Vec<Texts> =
        (0..call.arguments.len()).map(|index| call.texts(index)).collect::<Result<_>>()?;
    let Some((patterns, values)) = all.split_first() else {
        return Err(internal("format requires a pattern"));
    };
    let mut buffer = BoundedText::default();
    try_build_text(call.rows, |row, out| {
        let Some(pattern) = patterns.get(row) else { return Ok(false) };
        let mut next = 0;
        let mut rest = pattern;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                out.push('%');
                rest = after;
                continue;
            }
            let named = argument_index(&mut rest)?;
            let width = width(&mut rest, &mut next, values, row)?;
            next = named.unwrap_or(next);
            let Some(kind) = rest.chars().next() else {
                return Err(invalid("format: the pattern ends after '%'"));
            };
            let value = argument(values, next)?.get(row);
            if width == 0 {
                write_value(kind, value, out)?;
            } else {
                buffer.clear();
                write_value(kind, value, &mut buffer)?;
                pad(buffer.get().map_err(stopped)?, width, out);
            }
            rest = &rest[kind.len_utf8()..];
            next += 1;
        }
        out.push_str(rest);
        Ok(true)
    })
}

/// Parses `n$` and returns the argument's 0-based index; `None` if no argument is specified.
fn argument_index(rest: &mut &str) -> Result<Option<usize>> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, after) = rest.split_at(digits);
    let Some(after) = after.strip_prefix('$').filter(|_| digits > 0) else { return Ok(None) };
    let index = number.parse::<usize>().unwrap_or(usize::MAX).checked_sub(1);
    *rest = after;
    index
        .map(Some)
        .ok_or_else(|| invalid("format: %0$ is invalid because arguments are numbered from 1"))
}

fn argument(values: &[Texts], index: usize) -> Result<&Texts> {
    let missing = || invalid(format!("format: argument {} is missing", index.saturating_add(1)));
    values.get(index).ok_or_else(missing)
}

/// Parses the width of a value in characters. A negative width means left-aligned; 0 means
/// unspecified.
fn width(rest: &mut &str, next: &mut usize, values: &[Texts], row: usize) -> Result<i64> {
    let (is_left, mut after) = match rest.strip_prefix('-') {
        Some(after) => (true, after.trim_start_matches('-')),
        None => (false, *rest),
    };
    let width = if let Some(behind) = after.strip_prefix('*') {
        after = behind;
        let at = argument_index(&mut after)?.unwrap_or(*next);
        *next = at.saturating_add(1);
        let text = argument(values, at)?.get(row).unwrap_or("0");
        text.parse().ok()
    } else {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = after.split_at(digits);
        after = behind;
        if number.is_empty() { Some(0) } else { number.parse().ok() }
    };
    *rest = after;
    let width = width.filter(|width: &i32| *width > i32::MIN).map(i64::from);
    let width = width.ok_or_else(|| invalid("format: the width must be an integer"))?;
    Ok(if is_left { -width.abs() } else { width })
}

/// Pads a string with blanks to a width, on the left or, if the width is negative, on the right.
fn pad(text: &str, width: i64, out: &mut BoundedText) {
    let missing = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
    let missing = missing.saturating_sub(text.chars().count());
    if width < 0 {
        out.push_str(text);
    }
    if !out.refuses(missing) {
        (0..missing).for_each(|_| out.push(' '));
    }
    if width > 0 {
        out.push_str(text);
    }
}

fn write_value(kind: char, value: Option<&str>, out: &mut BoundedText) -> Result<()> {
    match (kind, value) {
        ('s', value) => out.push_str(value.unwrap_or_default()),
        ('L', None) => out.push_str("NULL"),
        ('L', Some(value)) => quoted(value, '\'', out),
        ('I', Some(value)) if is_plain_name(value) => out.push_str(value),
        ('I', Some(value)) => quoted(value, '"', out),
        ('I', None) => {
            return Err(invalid("format: null cannot be formatted as an identifier (%I)"));
        }
        _ => return Err(invalid(format!("format: unknown specifier '%{kind}'; use %s, %I or %L"))),
    }
    Ok(())
}

fn is_plain_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && letters.all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '_' | '$'))
}

pub(crate) fn quoted(text: &str, mark: char, out: &mut BoundedText) {
    out.push(mark);
    for letter in text.chars() {
        if letter == mark {
            out.push(mark);
        }
        out.push(letter);
    }
    out.push(mark);
}

/// Computes `encode(bytes, 'hex' | 'base64' | 'escape')`.
fn encode(call: &Call<'_>) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let values = array.as_binary_opt::<i64>().ok_or_else(|| internal("not binary"))?;
    let formats = call.texts(1)?;
    try_build_text(call.rows, |row, out| {
        let at = if scalar { 0 } else { row };
        let (false, Some(format)) = (values.is_null(at), formats.get(row)) else {
            return Ok(false);
        };
        encoded(values.value(at), format, out)?;
        Ok(true)
    })
}

fn encode_text(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, formats) = (call.texts(0)?, call.texts(1)?);
    let (_, is_constant) = call.array(0)?;
    try_build_text(call.rows, |row, out| {
        let (Some(text), Some(format)) = (texts.get(row), formats.get(row)) else {
            return Ok(false);
        };
        // A constant that starts with `\x` is in PostgreSQL's bytea syntax.
        if is_constant && text.starts_with("\\x") {
            let bytes = parse::bytes(text);
            let bytes = bytes.ok_or_else(|| invalid(format!("invalid hex: '{text}'")))?;
            encoded(&bytes, format, out)?;
            return Ok(true);
        }
        encoded(text.as_bytes(), format, out)?;
        Ok(true)
    })
}

pub(crate) fn encoded(bytes: &[u8], format: &str, out: &mut BoundedText) -> Result<()> {
    if format.eq_ignore_ascii_case("hex") {
        if !out.refuses(2 * bytes.len()) {
            hexadecimal(bytes, out);
        }
    } else if format.eq_ignore_ascii_case("base64") {
        push_base64(bytes, LINE, out);
    } else if format.eq_ignore_ascii_case("escape") {
        for byte in bytes {
            match byte {
                b'\\' => out.push_str("\\\\"),
                0 | 128.. => out.push_str(&format!("\\{byte:03o}")),
                _ => out.push(char::from(*byte)),
            }
        }
    } else {
        let shown: String = format.chars().take(20).collect();
        return Err(invalid(format!("invalid encoding '{shown}': expected hex, base64 or escape")));
    }
    Ok(())
}

/// Base64 characters per line, as in `PostgreSQL`.
const LINE: usize = 76;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes as Base64, with `line` characters per line.
pub(crate) fn push_base64(bytes: &[u8], line: usize, out: &mut BoundedText) {
    if out.refuses(bytes.len() / 3 * 4 + bytes.len() / 57 + 8) {
        return;
    }
    for (index, group) in bytes.chunks(3).enumerate() {
        if index > 0 && index * 4 % line == 0 {
            out.push('\n');
        }
        let at = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            out.push(if place > group.len() { '=' } else { char::from(letter) });
        }
    }
}

const fn variadic(body: fn(&Call<'_>) -> Result<ArrayRef>) -> [Overload; 1] {
    let gives = ResultType::Is(Varchar);
    [Overload {
        parameters: &[Text, Shown],
        variadic: true,
        result: gives,
        body: Body::Direct(body),
    }]
}

const FORMAT: [Overload; 2] = {
    let [more] = variadic(format_text);
    [direct(&[Text], Varchar, format_text), more]
};

pub(crate) const FUNCTIONS: &[Function] = &[
    pure(
        "initcap",
        &[direct(&[Text], Str, initcap)],
        "converts the first letter of each word to upper case and the others to lower case",
    ),
    pure("chr", &[direct(&[Is(Int)], Str, chr)], "character with the given code point"),
    pure("ascii", &[direct(&[Text], Int, ascii)], "code point of the first character"),
    pure("repeat", &[direct(&[Text, Is(Int)], Varchar, repeat)], "string repeated n times"),
    pure(
        "concat_ws",
        &variadic(concat_ws),
        "concatenates the arguments after the first, separated by the first; nulls are skipped",
    ),
    pure("format", &FORMAT, "pattern with strings (%s), names (%I) and literals (%L) inserted"),
    pure(
        "encode",
        &[
            direct(&[Is(Binary), Text], Varchar, encode),
            direct(&[Text, Text], Varchar, encode_text),
        ],
        "encodes bytes as a string: hex, base64 or escape",
    ),
];
