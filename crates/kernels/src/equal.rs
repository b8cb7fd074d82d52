//! Pairs equal values in two sorted slices, such as the timestamps of two tables.
//!
//! If either slice has no duplicates, the loop has no branches. The side that is ahead changes from
//! row to row, so a branch on it would be mispredicted half the time.

use std::ops::Range;

use crate::search::{run_end, upper_bound};

/// Marks a left row with no equal value on the right.
pub const NO_ROW: u32 = u32::MAX;

/// Maximum number of rows processed before the remaining space for pairs is checked again.
const BLOCK: usize = 1024;

/// Position of a walk over two slices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EqualCursor {
    /// The next left row.
    pub left: usize,
    /// The first right row that may equal the next left row.
    pub right: usize,
    /// Number of pairs already returned for the next left row, if the output limit was reached
    /// partway through them.
    done: usize,
    /// Whether the next left row already has pairs.
    paired: bool,
}

impl EqualCursor {
    /// Continues at the same left row from the start of the next right slice.
    pub fn restart_right(&mut self) {
        (self.right, self.done) = (0, 0);
    }

    /// Moves to the start of the next left slice.
    pub fn restart_left(&mut self) {
        (self.left, self.done, self.paired) = (0, 0, false);
    }

    /// Advances to the left row `left` after all pairs of earlier rows have been returned.
    pub fn pass(&mut self, left: usize) {
        (self.left, self.done, self.paired) = (left, 0, false);
    }
}

/// Pairs of matching rows, in left-row order.
#[derive(Debug, Default)]
pub struct EqualPairs {
    /// Rows of the left slice.
    pub left: Vec<u32>,
    /// Rows of the right slice; [`NO_ROW`] for an unmatched left row.
    pub right: Vec<u32>,
}

impl EqualPairs {
    fn push(&mut self, left: usize, right: usize) {
        self.left.push(left as u32);
        self.right.push(right as u32);
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

/// Adds pairs of equal values until all of `left` has been processed or there are about `max`
/// pairs, but never more than `max`.
///
/// With `unmatched`, left rows without an equal value are added too; they do not count towards
/// `max`. Values that follow `right` must not equal any left value. Values that follow `left` may
/// equal its last value.
pub fn match_equal(
    left: &[i64],
    right: &[i64],
    at: &mut EqualCursor,
    pairs: &mut EqualPairs,
    max: usize,
    unmatched: bool,
) {
    let first = at.left + usize::from(at.paired);
    while at.left < left.len() && (pairs.is_empty() || pairs.len() + BLOCK <= max) {
        let capacity = max - pairs.len();
        if !skip(left, right, at) {
            break;
        }
        if at.done > 0 || !walk_block(left, right, at, pairs, capacity) {
            walk_runs(left, right, at, pairs, capacity);
        }
    }
    if at.left >= left.len()
        && let Some(&last) = left.last()
    {
        at.right = right[..at.right].partition_point(|&value| value < last);
    }
    at.paired = pairs.left.last().is_some_and(|&row| row as usize == at.left)
        || (at.paired && at.left < first);
    if unmatched {
        add_unmatched(first..at.left.max(first), pairs);
    }
}

/// Skips rows on either side that are smaller than all remaining rows on the other side. Returns
/// false at the end of the left side.
fn skip(left: &[i64], right: &[i64], at: &mut EqualCursor) -> bool {
    if let (Some(&one), Some(&other)) = (left.get(at.left), right.get(at.right)) {
        if other < one {
            at.right = run_end(right, at.right, one);
        } else if one < other {
            at.pass(run_end(left, at.left, other));
        }
    }
    if at.right >= right.len() {
        at.pass(left.len());
    }
    at.left < left.len()
}

/// Returns the end of a block that starts at `from` and has at most `max` values. Also returns
/// whether the block, including the value after it, is strictly ascending.
fn ascending(values: &[i64], from: usize, max: usize) -> (usize, bool) {
    let end = values.len().min(from + max);
    let seen = &values[from..values.len().min(end + 1)];
    // The loop does not exit early, so it has no branches and can be vectorised.
    let equal = seen
        .iter()
        .zip(&seen[1..])
        .fold(0_u64, |equal, (one, next)| equal | u64::from(one >= next));
    (end, equal == 0)
}

/// Pairs one block from each side. If both blocks have duplicates, pairs nothing and returns false.
fn walk_block(
    left: &[i64],
    right: &[i64],
    at: &mut EqualCursor,
    pairs: &mut EqualPairs,
    capacity: usize,
) -> bool {
    let max = BLOCK.min(capacity);
    let (left_end, left_ascends) = ascending(left, at.left, max);
    let (right_end, right_ascends) = ascending(right, at.right, max);
    if !left_ascends && !right_ascends {
        return false;
    }
    let (left, right) = (&left[at.left..left_end], &right[at.right..right_end]);
    let (mut lefts, mut rights) = ([0_u32; BLOCK], [0_u32; BLOCK]);
    let (mut one, mut other, mut found) = (0, 0, 0_usize);
    // After a pair, a side advances if its current row cannot equal the other side's next row.
    let (left_goes, right_goes) = (usize::from(right_ascends), usize::from(left_ascends));
    while let (Some(&left_value), Some(&right_value)) = (left.get(one), right.get(other)) {
        let Some((position, beside)) = lefts.get_mut(found).zip(rights.get_mut(found)) else {
            break;
        };
        (*position, *beside) = ((at.left + one) as u32, (at.right + other) as u32);
        let equal = usize::from(left_value == right_value);
        found += equal;
        one += usize::from(left_value < right_value) | (equal & left_goes);
        other += usize::from(right_value < left_value) | (equal & right_goes);
    }
    pairs.left.extend_from_slice(&lefts[..found]);
    pairs.right.extend_from_slice(&rights[..found]);
    at.left += one;
    at.right += other;
    true
}

/// Walks left rows, each of which may equal many right rows.
fn walk_runs(
    left: &[i64],
    right: &[i64],
    at: &mut EqualCursor,
    pairs: &mut EqualPairs,
    capacity: usize,
) {
    let full = pairs.len() + capacity;
    let end = left.len().min(at.left + BLOCK);
    while at.left < end && pairs.len() < full {
        let value = left[at.left];
        at.right = run_end(right, at.right, value);
        let behind = upper_bound(right, at.right, value);
        let from = at.right + at.done;
        let to = behind.min(from + full - pairs.len());
        (from..to).for_each(|row| pairs.push(at.left, row));
        if to < behind {
            at.done = to - at.right;
        } else {
            at.pass(at.left + 1);
        }
    }
}

/// Inserts the left rows in a range that have no pair.
fn add_unmatched(rows: Range<usize>, pairs: &mut EqualPairs) {
    let each_once = || pairs.left.iter().map(|&row| row as usize).eq(rows.clone());
    if pairs.len() == rows.len() && each_once() {
        return;
    }
    let found = std::mem::take(pairs);
    pairs.left.reserve(found.len() + rows.len());
    pairs.right.reserve(found.len() + rows.len());
    let mut next = rows.start;
    for (&left, &right) in found.left.iter().zip(&found.right) {
        (next..left as usize).for_each(|row| pairs.push(row, NO_ROW as usize));
        pairs.left.push(left);
        pairs.right.push(right);
        next = next.max(left as usize + 1);
    }
    (next..rows.end).for_each(|row| pairs.push(row, NO_ROW as usize));
}
