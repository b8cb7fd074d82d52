//! Times as text and out of text.

use std::sync::Arc;

use tidemark_types::timestamp::TimestampUnit;
use tidemark_types::timestamp_pattern::TimestampPattern;

use super::times::{Made, build_times, times};
use crate::cast::unit_of;
use crate::column::{Call, build_text};
use crate::signature::Bound;

fn pattern_of(bound: &Bound<'_>) -> Option<TimestampPattern> {
    bound.arguments.get(1)?.text().map(|text| TimestampPattern::compile(&text))
}

pub(super) fn to_str(bound: &Bound<'_>) -> Made {
    let known = pattern_of(bound);
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 0)?;
        let patterns = call.texts(1)?;
        let mut bytes = Vec::new();
        build_text(call.rows, |row, out| {
            let Some(value) = at(row) else { return false };
            bytes.clear();
            match (&known, patterns.get(row)) {
                (Some(pattern), _) => pattern.format(&mut bytes, value, unit),
                (None, Some(text)) => {
                    TimestampPattern::compile(text).format(&mut bytes, value, unit);
                }
                (None, None) => return false,
            }
            out.push_str(std::str::from_utf8(&bytes).unwrap_or_default());
            true
        })
    }))
}

/// Reads text by a pattern, or as ISO when there is none.
pub(super) fn from_str(bound: &Bound<'_>) -> Made {
    let known = pattern_of(bound);
    let iso = bound.types.len() == 1;
    let unit = unit_of(bound.returns).unwrap_or(TimestampUnit::Micros);
    Ok(Arc::new(move |call: &Call<'_>| {
        let texts = call.texts(0)?;
        let patterns = call.texts(usize::from(!iso))?;
        Ok(build_times(call.rows, unit, |row| {
            let text = texts.get(row)?;
            match &known {
                _ if iso => tidemark_types::timestamp::parse(text, unit),
                Some(pattern) => pattern.parse(text, unit),
                None => TimestampPattern::compile(patterns.get(row)?).parse(text, unit),
            }
        }))
    }))
}
