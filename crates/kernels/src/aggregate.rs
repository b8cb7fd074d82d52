//! Aggregates of one contiguous slice.
//!
//! Sixteen accumulators per sum or extreme: one accumulator would wait for the addition's
//! latency at every row, sixteen keep the vector units busy on every x86-64 and arm64 level.

use crate::Native;

const LANES: usize = 16;

/// Sum as a double.
#[must_use]
pub fn sum_float<T: Native>(values: &[T]) -> f64 {
    let chunks = values.chunks_exact(LANES);
    let tail: f64 = chunks.remainder().iter().map(|value| value.to_f64()).sum();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value.to_f64();
        }
    }
    lanes.iter().sum::<f64>() + tail
}

/// Sum as a 64-bit integer, wrapping.
#[must_use]
pub fn sum_integer<T: Native>(values: &[T]) -> i64 {
    values.iter().fold(0_i64, |sum, value| sum.wrapping_add(value.to_i64()))
}

/// Smallest value; `None` for no values.
#[must_use]
pub fn minimum<T: Native>(values: &[T]) -> Option<T> {
    extreme(values, |candidate, best| candidate < best)
}

/// Greatest value; `None` for no values.
#[must_use]
pub fn maximum<T: Native>(values: &[T]) -> Option<T> {
    extreme(values, |candidate, best| candidate > best)
}

#[inline]
fn extreme<T: Native>(values: &[T], better: impl Fn(T, T) -> bool) -> Option<T> {
    let first = *values.first()?;
    let chunks = values.chunks_exact(LANES);
    let mut lanes = [first; LANES];
    let remainder = chunks.remainder();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if better(value, *lane) { value } else { *lane };
        }
    }
    let all = lanes.iter().chain(remainder);
    Some(all.fold(first, |best, &value| if better(value, best) { value } else { best }))
}
