//! Merges time-ordered sources into a row order. Reads only timestamps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

pub(crate) use tidemark_kernels::SourceRange;

/// Returns the order of all rows in `sources`, each of which is ascending. Among equal timestamps,
/// the earlier source comes first, so sources in arrival order keep that order.
pub(crate) fn merge_order(sources: &[&[i64]]) -> Vec<SourceRange> {
    let mut heads: BinaryHeap<Reverse<(i64, usize)>> = sources
        .iter()
        .enumerate()
        .filter_map(|(index, source)| Some(Reverse((*source.first()?, index))))
        .collect();
    let mut positions = vec![0; sources.len()];
    let mut order: Vec<SourceRange> = Vec::new();
    let mut current = heads.pop().map(|Reverse((_, source))| source);
    while let Some(source) = current {
        let start = positions[source];
        let rest = &sources[source][start..];
        let next = heads.peek_mut();
        let len = match next.as_deref() {
            None => rest.len(),
            // Rows with the same timestamp as the next head precede it only if this source arrived
            // first.
            Some(&Reverse((next, other))) if source < other => gallop(rest, |ts| ts <= next),
            Some(&Reverse((next, _))) => gallop(rest, |ts| ts < next),
        };
        positions[source] += len;
        current = match (rest.get(len), next) {
            // Replaces the next head; the heap then sinks it to its position.
            (Some(&ts), Some(mut head)) => {
                let Reverse((_, next)) = std::mem::replace(&mut *head, Reverse((ts, source)));
                Some(next)
            }
            (_, Some(head)) => Some(PeekMut::pop(head).0.1),
            (_, None) => None,
        };
        match order.last_mut() {
            Some(last) if last.source == source => last.len += len,
            _ => order.push(SourceRange { source, start, len }),
        }
    }
    order
}

/// Returns the number of leading rows for which `holds` is true. It must be true for a prefix of
/// the rows and false for all later rows.
fn gallop(rows: &[i64], holds: impl Fn(i64) -> bool) -> usize {
    let mut bound = 1;
    while bound < rows.len() && holds(rows[bound]) {
        bound *= 2;
    }
    let low = bound / 2;
    let high = rows.len().min(bound + 1);
    low + rows[low..high].partition_point(|&ts| holds(ts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_preserves_the_arrival_order_of_equal_timestamps() {
        let first: &[i64] = &[1, 5, 5, 9];
        let second: &[i64] = &[0, 5, 9, 12];
        let order = merge_order(&[first, second]);
        let rows: Vec<_> = order
            .iter()
            .flat_map(|s| (s.start..s.start + s.len).map(|row| (s.source, row)))
            .collect();
        let expected = vec![(1, 0), (0, 0), (0, 1), (0, 2), (1, 1), (0, 3), (1, 2), (1, 3)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn merging_matches_a_stable_sort() {
        let mut seed = 7_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for _ in 0..300 {
            let sources: Vec<Vec<i64>> = (0..=random(5))
                .map(|_| {
                    let mut rows: Vec<i64> = (0..random(40)).map(|_| random(30) as i64).collect();
                    rows.sort_unstable();
                    rows
                })
                .collect();
            let mut expected: Vec<(i64, usize, usize)> = sources
                .iter()
                .enumerate()
                .flat_map(|(s, rows)| rows.iter().enumerate().map(move |(r, &ts)| (ts, s, r)))
                .collect();
            expected.sort_unstable();
            let slices: Vec<&[i64]> = sources.iter().map(Vec::as_slice).collect();
            let found: Vec<(i64, usize, usize)> = merge_order(&slices)
                .iter()
                .flat_map(|s| (s.start..s.start + s.len).map(|r| (s.source, r)))
                .map(|(s, r)| (sources[s][r], s, r))
                .collect();
            assert_eq!(found, expected);
        }
    }
}
