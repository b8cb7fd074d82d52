//! Searches in sorted timestamps.

/// Returns the first index at or after `from` whose timestamp is not before `bound`; `ts.len()` if
/// there is none.
///
/// The search gallops, so its cost grows with the logarithm of the distance. Both short runs (many
/// small buckets) and long runs (few large buckets) are therefore cheap.
#[must_use]
pub fn run_end(ts: &[i64], from: usize, bound: i64) -> usize {
    gallop(ts, from, |value| value < bound)
}

/// Returns the first index at or after `from` whose timestamp is after `bound`; `ts.len()` if there
/// is none.
#[must_use]
pub fn upper_bound(ts: &[i64], from: usize, bound: i64) -> usize {
    gallop(ts, from, |value| value <= bound)
}

#[inline]
pub(crate) fn gallop(ts: &[i64], from: usize, before: impl Fn(i64) -> bool) -> usize {
    let Some(tail) = ts.get(from..) else { return ts.len() };
    let mut step = 1;
    let mut low = 0;
    while step <= tail.len() && before(tail[step - 1]) {
        low = step;
        step *= 2;
    }
    let window = &tail[low..step.min(tail.len())];
    from + low + window.partition_point(|&value| before(value))
}
