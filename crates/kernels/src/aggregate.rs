//! Aggregates over one contiguous slice.
//!
//! Sums and extremes use sixteen accumulators each. With a single accumulator, each row would wait
//! for the previous addition. Sixteen keep the vector units busy at every x86-64 and arm64 level.

use crate::Native;
use crate::widest::widest;

const LANES: usize = 16;

widest! {
    /// Returns the sum as a double.
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
}

widest! {
    /// Returns the sum as a 64-bit integer, which wraps on overflow.
    pub fn sum_integer<T: Native>(values: &[T]) -> i64 {
        values.iter().fold(0_i64, |sum, value| sum.wrapping_add(value.to_i64()))
    }
}

widest! {
    /// Returns the minimum value; `None` if there are no values.
    pub fn minimum<T: Native>(values: &[T]) -> Option<T> {
        extreme(values, |candidate, best| candidate < best)
    }
}

widest! {
    /// Returns the maximum value; `None` if there are no values.
    pub fn maximum<T: Native>(values: &[T]) -> Option<T> {
        extreme(values, |candidate, best| candidate > best)
    }
}

// Inlined so that it is compiled for each caller's vector width.
#[allow(clippy::inline_always)]
#[inline(always)]
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
