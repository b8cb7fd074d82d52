//! Time ranges, and operations on range lists.

/// First and last timestamp of rows.
pub(crate) type Span = (i64, i64);

/// Half-open range of timestamps in the column's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First timestamp in the range.
    pub lo: i64,
    /// First timestamp after the range.
    pub hi: i64,
}

impl TimeRange {
    /// The full time range.
    pub const EVER: Self = Self { lo: i64::MIN, hi: i64::MAX };

    /// Merges ranges that overlap or touch. The input may be in any order; the result is ascending
    /// and disjoint.
    #[must_use]
    pub fn union(mut ranges: Vec<Self>) -> Vec<Self> {
        ranges.retain(|range| range.lo < range.hi);
        ranges.sort_unstable_by_key(|range| range.lo);
        ranges.dedup_by(|next, last| {
            let meets = next.lo <= last.hi;
            if meets {
                last.hi = last.hi.max(next.hi);
            }
            meets
        });
        ranges
    }

    /// Intersection of two lists of ascending, disjoint ranges.
    #[must_use]
    pub fn intersection(left: &[Self], right: &[Self]) -> Vec<Self> {
        let mut both = Vec::new();
        let (mut a, mut b) = (left, right);
        while let ([one, later_a @ ..], [other, later_b @ ..]) = (a, b) {
            let (lo, hi) = (one.lo.max(other.lo), one.hi.min(other.hi));
            if lo < hi {
                both.push(Self { lo, hi });
            }
            if one.hi <= other.hi {
                a = later_a;
            } else {
                b = later_b;
            }
        }
        both
    }

    /// Returns the time that is covered by the first list but not by the second. Both lists are
    /// ascending and disjoint.
    #[must_use]
    pub fn difference(ranges: &[Self], without: &[Self]) -> Vec<Self> {
        let mut left = Vec::new();
        let mut removed = without;
        for range in ranges {
            let mut lo = range.lo;
            while let [one, later @ ..] = removed {
                if one.lo >= range.hi {
                    break;
                }
                if lo < one.lo {
                    left.push(Self { lo, hi: one.lo });
                }
                lo = lo.max(one.hi);
                if one.hi > range.hi {
                    // The removed range may extend into the next range.
                    break;
                }
                removed = later;
            }
            if lo < range.hi {
                left.push(Self { lo, hi: range.hi });
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(ranges: &[TimeRange], at: i64) -> bool {
        ranges.iter().any(|range| range.lo <= at && at < range.hi)
    }

    /// Compares the results with the same operations on sets of timestamps.
    #[test]
    fn range_list_operations_match_set_operations() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below) as i64
        };
        for _ in 0..5_000 {
            let mut list = || -> (Vec<TimeRange>, Vec<TimeRange>) {
                let count = random(7);
                let lows = (0..count).map(|_| random(60)).collect::<Vec<_>>();
                let ranges = lows.into_iter().map(|lo| TimeRange { lo, hi: lo + random(9) });
                let ranges: Vec<_> = ranges.collect();
                (ranges.clone(), TimeRange::union(ranges))
            };
            let ((given, some), (_, others)) = (list(), list());
            let both = TimeRange::intersection(&some, &others);
            let difference = TimeRange::difference(&some, &others);
            let outside = TimeRange::difference(&[TimeRange::EVER], &some);
            for ranges in [&some, &both, &difference, &outside] {
                assert!(ranges.iter().all(|range| range.lo < range.hi));
            }
            for ranges in [&some, &both, &outside] {
                assert!(ranges.windows(2).all(|pair| pair[0].hi < pair[1].lo), "{ranges:?}");
            }
            assert!(difference.windows(2).all(|pair| pair[0].hi <= pair[1].lo), "{difference:?}");
            for at in -1..75 {
                assert_eq!(covers(&some, at), covers(&given, at));
                assert_eq!(covers(&both, at), covers(&some, at) && covers(&others, at));
                assert_eq!(covers(&difference, at), covers(&some, at) && !covers(&others, at));
                assert_eq!(covers(&outside, at), !covers(&some, at));
            }
        }
    }
}
