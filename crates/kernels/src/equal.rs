//! Pairs of equal values of two sorted slices, as of two tables with the same timestamps.
//!
//! Where one of the slices has no value twice, each step costs the same whatever is compared: which
//! side is ahead changes from row to row, and a branch on it would be guessed wrong half the time.

use std::ops::Range;

use crate::search::{run_end, upper_bound};

/// The right row of a left one that has no equal.
pub const NO_ROW: u32 = u32::MAX;

/// Rows that are looked at without a look at the room for pairs.
const BLOCK: usize = 1024;

/// Where the walk over two slices is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EqualCursor {
    /// The next left row.
    pub left: usize,
    /// The first right row that it may equal.
    pub right: usize,
    /// How many of its pairs were made, where the room ended in between.
    done: usize,
    /// Whether the next left row has pairs already.
    paired: bool,
}

impl EqualCursor {
    /// The same place, seen from the beginning of another right slice.
    pub fn restart_right(&mut self) {
        (self.right, self.done) = (0, 0);
    }

    /// The beginning of another left slice.
    pub fn restart_left(&mut self) {
        (self.left, self.done, self.paired) = (0, 0, false);
    }

    /// The next left row has its pairs: goes on behind it.
    pub fn pass(&mut self, left: usize) {
        (self.left, self.done, self.paired) = (left, 0, false);
    }
}

/// Rows that belong together, in the order of the left ones.
#[derive(Debug, Default)]
pub struct EqualPairs {
    /// Rows of the left slice.
    pub left: Vec<u32>,
    /// Those of the right one; [`NO_ROW`] for none.
    pub right: Vec<u32>,
}

impl EqualPairs {
    fn push(&mut self, left: usize, right: usize) {
        self.left.push(left as u32);
        self.right.push(right as u32);
    }

    /// Forgets all pairs.
    pub fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
    }

    /// Number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

/// Adds pairs of equal values, about `most` of them and no more, until all of `left` is walked
/// over. With `unmatched`, left rows without an equal are pairs, too; they are not counted among
/// the `most`. What may follow `right` equals nothing; what follows `left` may equal its end.
pub fn match_equal(
    left: &[i64],
    right: &[i64],
    at: &mut EqualCursor,
    pairs: &mut EqualPairs,
    most: usize,
    unmatched: bool,
) {
    let first = at.left + usize::from(at.paired);
    while at.left < left.len() && (pairs.is_empty() || pairs.len() + BLOCK <= most) {
        let room = most - pairs.len();
        if !skip(left, right, at) {
            break;
        }
        if at.done > 0 || !walk_block(left, right, at, pairs, room) {
            walk_runs(left, right, at, pairs, room);
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

/// Passes the rows of either side that are before all others of the other side; false: the left
/// side ends.
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

/// The values from `from` on, some of them, if each is less than the next, which the last is also
/// where it is not among them.
fn ascending(values: &[i64], from: usize, most: usize) -> (usize, bool) {
    let end = values.len().min(from + most);
    let seen = &values[from..values.len().min(end + 1)];
    // No early end: the loop has no branch, and becomes vectors.
    let equal = seen
        .iter()
        .zip(&seen[1..])
        .fold(0_u64, |equal, (one, next)| equal | u64::from(one >= next));
    (end, equal == 0)
}

/// Walks over a block of either side; false, and nothing, where both have a value twice.
fn walk_block(
    left: &[i64],
    right: &[i64],
    at: &mut EqualCursor,
    pairs: &mut EqualPairs,
    room: usize,
) -> bool {
    let most = BLOCK.min(room);
    let (left_end, left_ascends) = ascending(left, at.left, most);
    let (right_end, right_ascends) = ascending(right, at.right, most);
    if !left_ascends && !right_ascends {
        return false;
    }
    let (left, right) = (&left[at.left..left_end], &right[at.right..right_end]);
    let (mut lefts, mut rights) = ([0_u32; BLOCK], [0_u32; BLOCK]);
    let (mut one, mut other, mut found) = (0, 0, 0_usize);
    // After a pair, the side goes on whose next row cannot equal this one of the other.
    let (left_goes, right_goes) = (usize::from(right_ascends), usize::from(left_ascends));
    while let (Some(&left_value), Some(&right_value)) = (left.get(one), right.get(other)) {
        let Some((place, beside)) = lefts.get_mut(found).zip(rights.get_mut(found)) else { break };
        (*place, *beside) = ((at.left + one) as u32, (at.right + other) as u32);
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

/// Walks over left rows, each of which may equal many right ones.
fn walk_runs(
    left: &[i64],
    right: &[i64],
    at: &mut EqualCursor,
    pairs: &mut EqualPairs,
    room: usize,
) {
    let full = pairs.len() + room;
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

/// Puts the left rows of a range that have no pair among the others.
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
