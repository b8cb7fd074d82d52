//! Splits an interval string: finds suffixes outside brackets, splits lists and expands brackets.

use super::span::{Budget, Result, check_count, fail, shown};

/// Maximum number of brackets; greater than the number of fields in a date.
const MAX_BRACKETS: usize = 16;

/// Splits at the first `mark` outside brackets.
pub(super) fn split_mark(text: &str, mark: char) -> (&str, Option<&str>) {
    match outside(text, |c| c == mark) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Returns the offset of the first character outside brackets for which `is_mark` returns true.
pub(super) fn outside(text: &str, is_mark: impl Fn(char) -> bool) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth <= 0 && is_mark(c) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the offset of the bracket that closes a bracket opened just before `text`.
fn closing(text: &str) -> Result<usize> {
    let mut depth = 1;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at);
                }
            }
            _ => {}
        }
    }
    fail("Unclosed '[' in interval")
}

/// Returns the strings that a list and its brackets expand to. Each is a date with its own time of
/// day or with that of the list.
pub(super) fn elements(dates: &str, budget: &mut Budget) -> Result<Vec<String>> {
    let trimmed = dates.trim();
    let Some(inner) = trimmed.strip_prefix('[') else { return expanded(trimmed, budget) };
    let close = closing(inner)?;
    let (list, tail) = (&inner[..close], inner[close + 1..].trim_start());
    if tail.starts_with('-') {
        // The brackets contain the years of a date and are not a list.
        return expanded(trimmed, budget);
    }
    if !tail.is_empty() && !tail.starts_with('T') {
        let tail = shown(tail);
        return fail(format!("Expected 'T' and a time after the list of dates, got: {tail}"));
    }
    if list.trim().is_empty() {
        return fail("Empty bracket expansion");
    }
    let mut found = Vec::new();
    let mut rest = Some(list);
    while let Some(list) = rest {
        let (item, after) = split_mark(list, ',');
        rest = after;
        let item = item.trim();
        if item.is_empty() {
            return fail("Empty element in a list of dates");
        }
        // The time of day is inserted before the element's own zone, filter and duration.
        let marks = outside(item, |c| matches!(c, '@' | '#' | ';')).unwrap_or(item.len());
        let (date, own) = item.split_at(marks);
        let tail = if has_time(date) { "" } else { tail };
        // A zone after the list's time of day overrides the element's zone.
        let own = match own.strip_prefix('@') {
            Some(zone) if tail.contains('@') => zone.find(['#', ';']).map_or("", |at| &zone[at..]),
            _ => own,
        };
        found.extend(expanded(&format!("{date}{tail}{own}"), budget)?);
    }
    Ok(found)
}

/// Whether a list element has its own time of day.
fn has_time(date: &str) -> bool {
    if date.starts_with('$') {
        time_of_variable(date).is_some()
    } else {
        date.contains('T') || is_driver_time(date.trim())
    }
}

/// Whether a space separates date and time, as drivers format them.
fn is_driver_time(date: &str) -> bool {
    let blank = outside(date, |c| c == ' ');
    blank.is_some_and(|at| date[at..].trim_start().starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the offset of the `T` that starts a variable's time of day. A `T` that is not followed
/// by a digit or bracket is a unit.
pub(super) fn time_of_variable(text: &str) -> Option<usize> {
    let starts = |(at, _): &(usize, &str)| {
        let next = text.as_bytes().get(at + 1);
        next.is_some_and(|byte| byte.is_ascii_digit() || *byte == b'[')
    };
    text.match_indices('T').find(starts).map(|(at, _)| at)
}

/// A section of a string: the text before a bracket, and the alternatives in the bracket.
struct Section<'a> {
    head: &'a str,
    choices: Vec<String>,
}

/// Expands every bracket: returns all combinations of the alternatives.
fn expanded(text: &str, budget: &mut Budget) -> Result<Vec<String>> {
    let mut sections = Vec::new();
    let (mut count, mut start) = (1_usize, 0);
    while let Some(length) = text[start..].find('[') {
        let open = start + length;
        let close = open + 1 + closing(&text[open + 1..])?;
        let choices = choices(&text[..open], &text[open + 1..close])?;
        count = count.saturating_mul(choices.len());
        sections.push(Section { head: &text[start..open], choices });
        if sections.len() > MAX_BRACKETS {
            let text = shown(text);
            return fail(format!("too many brackets [limit={MAX_BRACKETS}]: {text}"));
        }
        start = close + 1;
    }
    // A bracket is usually longer than each of its alternatives.
    budget.take_texts(count, count.saturating_mul(text.len() + sections.len()))?;
    let mut found = vec![String::with_capacity(text.len())];
    for Section { head, choices } in sections {
        if let [choice] = choices.as_slice() {
            for text in &mut found {
                text.extend([head, choice]);
            }
            continue;
        }
        let longer = |text: &String| {
            let text = text.clone();
            choices.iter().map(move |choice| format!("{text}{head}{choice}")).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    for found in &mut found {
        found.push_str(&text[start..]);
    }
    Ok(found)
}

/// Returns the alternatives in the bracket after `head`.
fn choices(head: &str, list: &str) -> Result<Vec<String>> {
    if list.trim().is_empty() {
        return fail("Empty bracket expansion");
    }
    let width = width_after(head);
    let mut found = Vec::new();
    let mut items = list.split(',').map(str::trim).peekable();
    while let Some(item) = items.next() {
        if item.is_empty() && items.peek().is_none() {
            // A trailing comma is ignored.
            break;
        }
        if item.contains(':') {
            check_count(found.len())?;
            found.push(item.to_owned());
        } else {
            numbers(item, width, &mut found)?;
        }
    }
    Ok(found)
}

/// Returns the width of the field after `head`. A weekday has one digit, and a fraction is not
/// padded.
fn width_after(head: &str) -> usize {
    let is_week_day = head.ends_with('-') && head.trim_end_matches('-').contains("-W");
    if is_week_day || head.ends_with('.') { 1 } else { 2 }
}

/// Parses `5` or `05..12`, padded to the width of the field.
fn numbers(item: &str, width: usize, found: &mut Vec<String>) -> Result<()> {
    let number = |text: &str| -> Result<u32> {
        let digits = text.trim();
        match digits.parse() {
            Ok(number) if digits.starts_with(|c: char| c.is_ascii_digit()) => Ok(number),
            _ => fail(format!("Expected number in bracket expansion: {}", shown(text))),
        }
    };
    let (low, high) = match item.split_once("..") {
        Some((low, high)) => (number(low)?, number(high)?),
        None if width == 1 && number(item).is_ok() => {
            check_count(found.len())?;
            found.push(item.to_owned());
            return Ok(());
        }
        None => (number(item)?, number(item)?),
    };
    if low > high {
        return fail(format!("Range must be ascending: {low}..{high}"));
    }
    check_count(found.len().saturating_add((high - low) as usize))?;
    found.extend((low..=high).map(|value| format!("{value:0width$}")));
    Ok(())
}
