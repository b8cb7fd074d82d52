//! Sorts rows by numeric keys. Rows are first distributed into key ranges. Any worker can then sort
//! a range independently, within the cache.

use std::ops::Range;

/// Maps a double to an integer that sorts in the same order. No value maps to 0 or `u64::MAX`, so
/// either can represent a null key.
#[inline]
#[must_use]
pub fn double_order(value: f64) -> u64 {
    // All NaNs are treated as one value.
    let bits = if value.is_nan() { f64::NAN.to_bits() & (u64::MAX >> 1) } else { value.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Maps an integer to an unsigned integer that sorts in the same order. The minimum integer is not
/// a valid value.
#[inline]
#[must_use]
pub fn integer_order(value: i64) -> u64 {
    (value as u64) ^ 1 << 63
}

/// Key ranges with similar numbers of rows. Rows are ordered first by group, which is a small
/// number, and then by key. No range contains rows from two groups.
#[derive(Debug)]
pub struct Ranges {
    /// Greatest key of each range, except for the last range in a group.
    bounds: Vec<u64>,
    /// Offset of each group's first bound, and the end of the last group's bounds.
    starts: Vec<usize>,
}

impl Ranges {
    /// Divides the key space into ranges that each contain about `each` rows of the sample. The
    /// sample contains groups and keys; `groups` is the number of groups.
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

    /// Returns the number of ranges.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bounds.len() + self.starts.len() - 1
    }

    /// Returns the range of a row.
    #[inline]
    fn find(&self, group: u32, key: u64) -> usize {
        let group = group as usize;
        let start = self.starts[group];
        let own = &self.bounds[start..self.starts[group + 1]];
        start + group + own.partition_point(|&bound| bound < key)
    }

    /// Returns the ranges of a group.
    #[must_use]
    pub fn of_group(&self, group: usize) -> Range<usize> {
        self.starts[group] + group..self.starts[group + 1] + group + 1
    }
}

/// Distributes rows into ranges, which are stored one after the other.
///
/// A first pass counts the rows. A second pass writes each row's entry, with the key in the upper
/// half and the row number in the lower half. Within a range, rows keep their input order.
#[derive(Debug, Default)]
pub struct Spread {
    /// The range of each row, cleared once the rows have been placed.
    found: Vec<u32>,
    placed: usize,
    ends: Vec<usize>,
    entries: Vec<u128>,
}

impl Spread {
    /// Counts rows by group and key. If `groups` is empty, all rows belong to group 0.
    pub fn count(&mut self, ranges: &Ranges, groups: &[u32], keys: &[u64]) {
        self.ends.resize(ranges.count(), 0);
        for (row, &key) in keys.iter().enumerate() {
            let range = ranges.find(groups.get(row).copied().unwrap_or(0), key);
            self.ends[range] += 1;
            self.found.push(range as u32);
        }
    }

    /// Allocates the entries. Must be called after all rows have been counted.
    pub fn begin(&mut self) {
        let mut rows = 0;
        for end in &mut self.ends {
            (*end, rows) = (rows, rows + *end);
        }
        self.entries = vec![0; rows];
    }

    /// Writes row entries in the order in which the rows were counted. Row numbers start at
    /// `first`.
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

    /// Returns the rows of a range, in input order.
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
    fn sort_keys_preserve_the_order_of_numbers() {
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

    /// The concatenated sorted ranges are in the order of a stable sort.
    #[test]
    fn concatenated_sorted_ranges_equal_a_stable_sort() {
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
