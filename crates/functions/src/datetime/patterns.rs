//! Formats and parses times.

use std::sync::Arc;

use tidemark_types::EngineResult;
use tidemark_types::timestamp::TimestampUnit;
use tidemark_types::timestamp_pattern::TimestampPattern;

use super::times::{KernelResult, times, try_build_times};
use crate::cast::unit_of;
use crate::column::{Call, stopped, try_build_text};
use crate::resolve::{Argument, ResolveError};
use crate::signature::Bound;

/// Index of the pattern argument.
const PATTERN: usize = 1;

/// Compiles the pattern, if it is constant.
fn pattern_of(
    bound: &Bound<'_>,
    compile: fn(&str) -> EngineResult<TimestampPattern>,
) -> Result<Option<TimestampPattern>, ResolveError> {
    let text = bound.arguments.get(PATTERN).and_then(Argument::text);
    text.map(|text| compile(&text))
        .transpose()
        .map_err(|error| ResolveError::InvalidArgument { index: PATTERN, message: error.message })
}

pub(super) fn to_str(bound: &Bound<'_>) -> KernelResult {
    let known = pattern_of(bound, TimestampPattern::compile)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 0)?;
        let patterns = call.texts(PATTERN)?;
        let mut bytes = Vec::new();
        try_build_text(call.rows, |row, out| {
            let Some(value) = at(row) else { return Ok(false) };
            bytes.clear();
            match (&known, patterns.get(row)) {
                (Some(pattern), _) => pattern.format(&mut bytes, value, unit),
                (None, Some(text)) => {
                    let pattern = TimestampPattern::compile(text).map_err(stopped)?;
                    pattern.format(&mut bytes, value, unit);
                }
                (None, None) => return Ok(false),
            }
            out.push_str(std::str::from_utf8(&bytes).unwrap_or_default());
            Ok(true)
        })
    }))
}

/// Parses a day such as `2026-11-21` as DATE; null for any other string.
pub(super) fn from_day(_: &Bound<'_>) -> KernelResult {
    let pattern = TimestampPattern::compile("yyyy-MM-dd")
        .map_err(|error| ResolveError::InvalidArgument { index: 0, message: error.message })?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let texts = call.texts(0)?;
        try_build_times(call.rows, TimestampUnit::Millis, |row| {
            Ok(texts.get(row).and_then(|text| pattern.parse(text, TimestampUnit::Millis)))
        })
    }))
}

/// Builds the kernel that parses strings with a pattern, or as ISO timestamps if there is no
/// pattern.
pub(super) fn from_str(bound: &Bound<'_>) -> KernelResult {
    let known = pattern_of(bound, TimestampPattern::compile_parser)?;
    let iso = bound.types.len() == 1;
    let unit = unit_of(bound.returns).unwrap_or(TimestampUnit::Micros);
    Ok(Arc::new(move |call: &Call<'_>| {
        let texts = call.texts(0)?;
        let patterns = call.texts(usize::from(!iso))?;
        try_build_times(call.rows, unit, |row| {
            let Some(text) = texts.get(row) else { return Ok(None) };
            Ok(match (&known, patterns.get(row)) {
                _ if iso => tidemark_types::timestamp::parse(text, unit),
                (Some(pattern), _) => pattern.parse(text, unit),
                (None, Some(pattern)) => {
                    TimestampPattern::compile_parser(pattern).map_err(stopped)?.parse(text, unit)
                }
                (None, None) => None,
            })
        })
    }))
}
