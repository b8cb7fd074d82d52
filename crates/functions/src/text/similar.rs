//! SIMILAR TO patterns as regular expressions.

use arrow::array::ArrayRef;
use datafusion::common::Result;
use tidemark_types::SqlType::String as Str;

use crate::column::{Call, build_text, invalid, try_build_text};
use crate::signature::Param::Text;
use crate::signature::{Function, direct, pure};
use crate::text::bounded_text::BoundedText;

/// Computes `similar_pattern(pattern [, escape])`. The whole string must match; `%` and `_` have
/// the same meaning as in LIKE.
fn similar_pattern(call: &Call<'_>) -> Result<ArrayRef> {
    let patterns = call.texts(0)?;
    let escapes = if call.arguments.len() == 2 { Some(call.texts(1)?) } else { None };
    let longer = |escape: &str| escape.chars().nth(1).is_some();
    if let Some(escapes) = &escapes
        && (0..call.rows).any(|row| escapes.get(row).is_some_and(longer))
    {
        return Err(invalid("ESCAPE must be empty or one character"));
    }
    build_text(call.rows, |row, out| {
        let escape = escapes.as_ref().map_or(Some("\\"), |escapes| escapes.get(row));
        let (Some(pattern), Some(escape)) = (patterns.get(row), escape) else { return false };
        push_pattern(out, pattern, escape.chars().next());
        true
    })
}

/// Computes `similar_substring(pattern, escape)`. It is like `similar_pattern`, but the section
/// between two escaped quotes becomes a group. The match before that section is as short as
/// possible.
fn similar_substring(call: &Call<'_>) -> Result<ArrayRef> {
    let (patterns, escapes) = (call.texts(0)?, call.texts(1)?);
    try_build_text(call.rows, |row, out| {
        let (Some(pattern), Some(escape)) = (patterns.get(row), escapes.get(row)) else {
            return Ok(false);
        };
        let mark = format!("{escape}\"");
        let sections: Vec<&str> = pattern.split(&mark).collect();
        let ([before, required, behind], Some(letter), true) =
            (sections.as_slice(), escape.chars().next(), escape.chars().count() == 1)
        else {
            let message =
                format!("the pattern must enclose the part to extract between two {mark}");
            return Err(invalid(message));
        };
        out.push_str("(?s)^(?:");
        push_section(out, before, Some(letter), ".*?");
        out.push_str(")(");
        push_section(out, required, Some(letter), ".*");
        out.push_str(")(?:");
        push_section(out, behind, Some(letter), ".*");
        out.push_str(")$");
        Ok(true)
    })
}

fn push_pattern(out: &mut BoundedText, pattern: &str, escape: Option<char>) {
    out.push_str("(?s)^(?:");
    push_section(out, pattern, escape, ".*");
    out.push_str(")$");
}

/// Appends a section of a pattern as a regular expression; `any` is the translation of `%`.
fn push_section(out: &mut BoundedText, pattern: &str, escape: Option<char>, any: &str) {
    let (mut escaped, mut in_brackets) = (false, false);
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if !escaped && Some(letter) == escape {
            escaped = true;
            continue;
        }
        match letter {
            _ if escaped => push_literal(out, letter),
            '[' if !in_brackets => {
                in_brackets = true;
                out.push('[');
            }
            ']' => {
                in_brackets = false;
                out.push(']');
            }
            '\\' => out.push_str("\\\\"),
            // `[:digit:]` and similar classes.
            '[' if letters.as_str().starts_with(':') => {
                let class = letters.as_str();
                let end = class.find(":]").map_or(class.len(), |end| end + 2);
                out.push('[');
                out.push_str(&class[..end]);
                letters = class[end..].chars();
            }
            // In Rust's regular expressions, these characters would start a nested set operation.
            '[' | '&' | '~' if in_brackets => push_literal(out, letter),
            _ if in_brackets => out.push(letter),
            '%' => out.push_str(any),
            '_' => out.push('.'),
            '.' | '^' | '$' => push_literal(out, letter),
            _ => out.push(letter),
        }
        escaped = false;
    }
}

fn push_literal(out: &mut BoundedText, letter: char) {
    if letter.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(letter);
}

pub(crate) const FUNCTIONS: &[Function] = &[
    pure(
        "similar_pattern",
        &[direct(&[Text], Str, similar_pattern), direct(&[Text, Text], Str, similar_pattern)],
        "converts a SIMILAR TO pattern to a regular expression",
    ),
    pure(
        "similar_substring",
        &[direct(&[Text, Text], Str, similar_substring)],
        "converts a SUBSTRING(… SIMILAR …) pattern to a regular expression with a group",
    ),
];
