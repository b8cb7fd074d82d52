//! Copies many short value ranges into one vector.

/// Consecutive rows of one of several sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRange {
    /// Index of the source.
    pub source: usize,
    /// First row.
    pub start: usize,
    /// Number of rows.
    pub len: usize,
}

/// Number of values copied per step, if the source has that many. Most ranges are shorter, but a
/// fixed-length copy needs no branch. Surplus values are overwritten.
const AT_ONCE: usize = 16;

/// Concatenates the values of all ranges. Panics if a range is out of bounds.
#[must_use]
pub fn gather<T: Copy>(sources: &[&[T]], ranges: &[SourceRange]) -> Vec<T> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f")]
        fn avx512<T: Copy>(sources: &[&[T]], ranges: &[SourceRange]) -> Vec<T> {
            portable(sources, ranges)
        }
        #[target_feature(enable = "avx2")]
        fn avx2<T: Copy>(sources: &[&[T]], ranges: &[SourceRange]) -> Vec<T> {
            portable(sources, ranges)
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: this CPU has the instructions the function is compiled for.
            return unsafe { avx512(sources, ranges) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(sources, ranges) };
        }
    }
    portable(sources, ranges)
}

// Inlined so that it is compiled for each caller's vector width.
#[allow(clippy::inline_always)]
#[inline(always)]
fn portable<T: Copy>(sources: &[&[T]], ranges: &[SourceRange]) -> Vec<T> {
    let rows = ranges.iter().map(|range| range.len).sum::<usize>();
    let mut target: Vec<T> = Vec::with_capacity(rows + AT_ONCE);
    for &SourceRange { source, start, len } in ranges {
        let values = &sources[source][start..];
        match values.first_chunk::<AT_ONCE>() {
            Some(first) if len <= AT_ONCE => {
                let end = target.len() + len;
                target.extend_from_slice(first);
                target.truncate(end);
            }
            _ => target.extend_from_slice(&values[..len]),
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gather_matches_a_naive_loop() {
        let mut seed = 3_u64;
        let mut random = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % bound
        };
        for _ in 0..500 {
            let sources: Vec<Vec<u32>> =
                (0..3).map(|_| (0..=random(60)).map(|_| random(1_000) as u32).collect()).collect();
            let ranges: Vec<SourceRange> = (0..random(20))
                .map(|_| {
                    let source = random(3);
                    let start = random(sources[source].len() + 1);
                    SourceRange { source, start, len: random(sources[source].len() - start + 1) }
                })
                .collect();
            let values = |s: &SourceRange| sources[s.source][s.start..s.start + s.len].to_vec();
            let expected: Vec<u32> = ranges.iter().flat_map(values).collect();
            let slices: Vec<&[u32]> = sources.iter().map(Vec::as_slice).collect();
            assert_eq!(gather(&slices, &ranges), expected);
            assert_eq!(portable(&slices, &ranges), expected);
        }
    }
}
