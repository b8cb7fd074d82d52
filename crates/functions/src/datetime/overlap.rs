//! Implements `(start, end) OVERLAPS (start, end)`. Each end may be given as a period.

use arrow::array::ArrayRef;
use datafusion::common::Result;
use tidemark_types::timestamp::TimestampUnit;

use super::periods::periods;
use super::times::times;
use crate::column::{Call, build_flags};

/// A time in nanoseconds.
type Nanos = i128;

/// Returns the start and end of a row's range, each `None` if it is null.
type RangeOf = Box<dyn Fn(usize) -> (Option<Nanos>, Option<Nanos>)>;

fn nanos(value: i64, unit: TimestampUnit) -> Nanos {
    i128::from(value) * i128::from(unit.nanos())
}

/// Reads the start and end of each row's range. Either of them may be null. With `has_length`, the
/// end is given as a period.
fn range(call: &Call<'_>, start: usize, has_length: bool) -> Result<RangeOf> {
    let (from, unit) = times(call, start)?;
    if has_length {
        let lengths = periods(call, start + 1)?;
        return Ok(Box::new(move |row| {
            let first = from(row);
            let last =
                first.zip(lengths(row)).and_then(|(first, length)| length.after(first, unit));
            (first.map(|at| nanos(at, unit)), last.map(|at| nanos(at, unit)))
        }));
    }
    let (to, end_unit) = times(call, start + 1)?;
    Ok(Box::new(move |row| {
        (from(row).map(|at| nanos(at, unit)), to(row).map(|at| nanos(at, end_unit)))
    }))
}

/// Returns a range's earlier bound, and its later bound if known.
fn in_order((start, end): (Option<Nanos>, Option<Nanos>)) -> Option<(Nanos, Option<Nanos>)> {
    match (start, end) {
        (Some(start), Some(end)) => Some((start.min(end), Some(start.max(end)))),
        (Some(known), None) | (None, Some(known)) => Some((known, None)),
        (None, None) => None,
    }
}

/// Whether two ranges overlap. Their ends are exclusive, and an empty range consists only of its
/// start.
///
/// In `PostgreSQL`, the result may be unknown if a bound is missing; here it is false.
fn have_common(one: (Nanos, Option<Nanos>), other: (Nanos, Option<Nanos>)) -> bool {
    let (first, last) = if one.0 <= other.0 { (one, other) } else { (other, one) };
    if first.0 == last.0 {
        return first.1.is_some() && last.1.is_some();
    }
    first.1.is_some_and(|end| last.0 < end)
}

/// Computes `overlaps(start, end, start, end)`. `has_length` marks ends that are given as periods.
pub(super) fn overlaps(call: &Call<'_>, has_length: [bool; 2]) -> Result<ArrayRef> {
    let (one, other) = (range(call, 0, has_length[0])?, range(call, 2, has_length[1])?);
    Ok(build_flags(call.rows, |row| {
        let ranges = in_order(one(row)).zip(in_order(other(row)));
        ranges.is_some_and(|(one, other)| have_common(one, other))
    }))
}
