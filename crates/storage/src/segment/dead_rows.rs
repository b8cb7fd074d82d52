//! Deleted rows in a segment's file. Readers skip them, and the next checkpoint omits them.

use std::ops::Range;

use tidemark_types::{EngineError, EngineResult};

use crate::log::codec::{Decoder, Encoder};
use crate::table::merge::SourceRange;

/// Deleted rows in a segment's file.
#[derive(Debug)]
pub(crate) struct DeadRows {
    /// Ascending, disjoint and not adjacent.
    pub(crate) rows: Vec<Range<usize>>,
    pub(crate) count: usize,
    /// First and last timestamp of the remaining rows; both are zero without a designated
    /// timestamp.
    pub(crate) bounds: (i64, i64),
}

impl DeadRows {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    /// Encodes the rows for a manifest.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.i64(self.bounds.0);
        out.i64(self.bounds.1);
        out.u32(self.rows.len() as u32);
        for rows in &self.rows {
            out.u64(rows.start as u64);
            out.u64(rows.len() as u64);
        }
    }

    /// Fails if the rows are outside a file of `file_rows` rows, or if no rows would remain.
    pub(crate) fn decode(input: &mut Decoder<'_>, file_rows: u64) -> EngineResult<Self> {
        let wrong = || EngineError::internal("deleted rows do not match the segment");
        let bounds = (input.i64()?, input.i64()?);
        let (mut rows, mut count, mut end) = (Vec::new(), 0, 0);
        for index in 0..input.u32()? {
            let (start, len) = (input.u64()?, input.u64()?);
            let apart = index == 0 || start > end;
            let until = start.checked_add(len).filter(|&end| len > 0 && end <= file_rows);
            end = until.filter(|_| apart).ok_or_else(wrong)?;
            rows.push(start as usize..end as usize);
            count += len as usize;
        }
        if rows.is_empty() || count as u64 == file_rows {
            return Err(wrong());
        }
        Ok(Self { rows, count, bounds })
    }

    /// Appends the live rows of a range to a row order.
    pub(crate) fn add_living(&self, range: SourceRange, order: &mut Vec<SourceRange>) {
        let end = range.start + range.len;
        let mut start = range.start;
        let first = self.rows.partition_point(|dead| dead.end <= start);
        for dead in self.rows[first..].iter().take_while(|dead| dead.start < end) {
            if dead.start > start {
                order.push(SourceRange { start, len: dead.start - start, ..range });
            }
            start = dead.end;
        }
        if start < end {
            order.push(SourceRange { start, len: end - start, ..range });
        }
    }
}

/// Sorts the ranges and merges those that touch or overlap.
pub(crate) fn united(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut united: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_rows_are_all_rows_outside_deleted_ranges() {
        let mut seed = 5_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % bound) as usize
        };
        for _ in 0..1_000 {
            let mut ranges = Vec::new();
            for _ in 0..random(6) {
                let start = random(40);
                ranges.push(start..start + 1 + random(6));
            }
            let is_dead = |row: usize| ranges.iter().any(|range| range.contains(&row));
            let rows = united(ranges.clone());
            let dead = DeadRows { count: rows.iter().map(Range::len).sum(), rows, bounds: (0, 0) };
            assert_eq!(dead.count(), (0..60).filter(|row| is_dead(*row)).count());
            let (start, len) = (random(20), random(40));
            let mut order = Vec::new();
            dead.add_living(SourceRange { source: 0, start, len }, &mut order);
            let found: Vec<usize> = order.iter().flat_map(|s| s.start..s.start + s.len).collect();
            let expected: Vec<usize> = (start..start + len).filter(|row| !is_dead(*row)).collect();
            assert_eq!(found, expected, "{ranges:?}");
            assert!(order.iter().all(|row_range| row_range.len > 0));
        }
    }
}
