//! Rows in the order of keys that are numbers: spread over ranges of keys first, so that each range
//! is sorted by itself, in the cache, by any worker.

use std::ops::Range;

/// The order of null among the values of a key is 0 or `u64::MAX`: no value has one of these.
#[inline]
#[must_use]
pub fn double_order(value: f64) -> u64 {
    // All that are no number are one value.
    let bits = if value.is_nan() { f64::NAN.to_bits() & (u64::MAX >> 1) } else { value.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The order of an integer, of which the least one is none of the values.
#[inline]
#[must_use]
pub fn integer_order(value: i64) -> u64 {
    (value as u64) ^ 1 << 63
}

/// Ranges of keys with about as many rows each. Rows come by a group first, which is a small
/// number, then by their key; no range has rows of two groups.
#[derive(Debug)]
pub struct Ranges {
    /// The greatest key of each range but the last of a group.
    bounds: Vec<u64>,
    /// Where the bounds of each group begin, and where the last ones end.
    starts: Vec<usize>,
}

impl Ranges {
    /// Ranges of `each` rows of a sample of groups and keys; there are so many `groups`.
    #[must_use]
    pub fn new(mut sample: Vec<(u32, u64)>, groups: usize, each: usize) -> Self {
        sample.sort_unstable();
        let mut bounds: Vec<u64> = vec![];
        let mut starts = Vec::with_capacity(groups + 1);
        let mut rest = sample.as_slice();
        for group in 0..groups {
            let start = bounds.len();
            starts.push(start);
            let (own, later) = rest.split_at(rest.partition_point(|row| row.0 as usize <= group));
            rest = later;
            let inner = own.len().saturating_sub(1);
            for &(_, key) in own[..inner].iter().skip(each.max(1) - 1).step_by(each.max(1)) {
                if bounds.len() == start || bounds.last() != Some(&key) {
                    bounds.push(key);
                }
            }
        }
        starts.push(bounds.len());
        Self { bounds, starts }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bounds.len() + self.starts.len() - 1
    }

    /// The range of a row.
    #[inline]
    fn find(&self, group: u32, key: u64) -> usize {
        let group = group as usize;
        let start = self.starts[group];
        let own = &self.bounds[start..self.starts[group + 1]];
        start + group + own.partition_point(|&bound| bound < key)
    }

    /// The ranges of a group.
    #[must_use]
    pub fn of_group(&self, group: usize) -> Range<usize> {
        self.starts[group] + group..self.starts[group + 1] + group + 1
    }
}

/// Rows by range, those of one part after those of another: first all are counted, then each is
/// put in its place, its key in the upper half, its number in the lower.
#[derive(Debug, Default)]
pub struct Spread {
    /// The range of each row, until it has its place.
    found: Vec<u32>,
    placed: usize,
    ends: Vec<usize>,
    entries: Vec<u128>,
}

impl Spread {
    /// Counts rows of these groups (none: all are of group 0) and keys.
    pub fn count(&mut self, ranges: &Ranges, groups: &[u32], keys: &[u64]) {
        self.ends.resize(ranges.count(), 0);
        for (row, &key) in keys.iter().enumerate() {
            let range = ranges.find(groups.get(row).copied().unwrap_or(0), key);
            self.ends[range] += 1;
            self.found.push(range as u32);
        }
    }

    /// Makes room: all rows are counted.
    pub fn begin(&mut self) {
        let mut rows = 0;
        for end in &mut self.ends {
            (*end, rows) = (rows, rows + *end);
        }
        self.entries = vec![0; rows];
    }

    /// Places rows, in the order in which they were counted; their numbers begin with `first`.
    pub fn place(&mut self, keys: &[u64], first: u64) {
        let found = &self.found[self.placed..];
        for ((number, &key), &range) in (first..).zip(keys).zip(found) {
            let place = &mut self.ends[range as usize];
            self.entries[*place] = u128::from(key) << 64 | u128::from(number);
            *place += 1;
        }
        self.placed += keys.len();
        if self.placed == self.found.len() {
            self.found = vec![];
            self.placed = 0;
        }
    }

    /// The rows of a range, as they came.
    #[must_use]
    pub fn range(&self, range: usize) -> &[u128] {
        let Some(&end) = self.ends.get(range) else { return &[] };
        let start = range.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order() {
        let doubles = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            0.0,
            5e-324,
            1.0,
            f64::INFINITY,
        ];
        assert!(doubles.windows(2).all(|two| double_order(two[0]) < double_order(two[1])));
        assert!(double_order(-0.0) < double_order(0.0));
        assert_eq!(double_order(f64::NAN), double_order(-f64::NAN));
        assert!(double_order(f64::NAN) > double_order(f64::INFINITY));
        assert!(double_order(f64::NEG_INFINITY) > 0 && double_order(f64::NAN) < u64::MAX);
        let integers = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
        assert!(integers.windows(2).all(|two| integer_order(two[0]) < integer_order(two[1])));
    }

    /// Range after range, sorted, rows are where a stable sort puts them.
    #[test]
    fn ranges_follow_each_other() {
        let mut seed = 11_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for round in 0..300 {
            let groups = random(5) as usize + 1;
            let different = [1, 2, 9, 1 << 30][round % 4];
            let rows: Vec<(u32, u64)> = (0..random(400))
                .map(|_| (random(groups as u64) as u32, random(different) << random(3)))
                .collect();
            let sample = rows.iter().copied().step_by(random(3) as usize + 1).collect();
            let ranges = Ranges::new(sample, groups, random(6) as usize);
            let (of, keys): (Vec<u32>, Vec<u64>) = rows.iter().copied().unzip();
            let cut = random(rows.len() as u64 + 1) as usize;
            let mut spread = Spread::default();
            spread.count(&ranges, &of[..cut], &keys[..cut]);
            spread.count(&ranges, &of[cut..], &keys[cut..]);
            spread.begin();
            spread.place(&keys[..cut], 0);
            spread.place(&keys[cut..], cut as u64);
            let mut found = vec![];
            for group in 0..groups {
                for range in ranges.of_group(group) {
                    let mut own = spread.range(range).to_vec();
                    own.sort_unstable();
                    found.extend(own.into_iter().map(|entry| entry as u64 as usize));
                }
            }
            let mut expected: Vec<usize> = (0..rows.len()).collect();
            expected.sort_by_key(|&row| rows[row]);
            assert_eq!(found, expected);
        }
    }
}
