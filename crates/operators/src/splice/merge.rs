//! The SPLICE JOIN merge, which selects the left and right row for each output row.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxBuildHasher;
use tidemark_kernels::{NO_MATCH, RightChunk, pack};

/// A position within one side.
struct Walk<'a> {
    chunks: Vec<RightChunk<'a>>,
    chunk: usize,
    row: usize,
}

impl<'a> Walk<'a> {
    /// Starts at the position `at`.
    fn new(chunks: Vec<RightChunk<'a>>, (chunk, row): (usize, usize)) -> Self {
        let mut walk = Self { chunks, chunk, row };
        walk.settle();
        walk
    }

    /// Returns the next row's timestamp.
    fn time(&self) -> Option<i64> {
        self.chunks.get(self.chunk)?.timestamps.get(self.row).copied()
    }

    /// Advances past the next row. Returns the row's packed index and its key.
    fn step(&mut self) -> (u64, usize) {
        let key = self.chunks.get(self.chunk).and_then(|chunk| chunk.keys.get(self.row));
        let row = pack(self.chunk, self.row);
        self.row += 1;
        self.settle();
        (row, key.map_or(0, |&key| key as usize))
    }

    /// Moves from the end of a chunk to the next chunk, so that the position is always either at a
    /// row or past the last chunk.
    fn settle(&mut self) {
        while self.chunks.get(self.chunk).is_some_and(|chunk| self.row >= chunk.timestamps.len()) {
            (self.chunk, self.row) = (self.chunk + 1, 0);
        }
    }
}

/// The position of the merge between two batches.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    left: (usize, usize),
    right: (usize, usize),
    last_left: Vec<u64>,
    last_right: Vec<u64>,
    /// Right rows at one timestamp that no left row has matched yet, by key.
    waiting: HashMap<usize, VecDeque<u64>, FxBuildHasher>,
}

/// Rows from both sides that form output rows; [`NO_MATCH`] if a side has no row.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) left: Vec<u64>,
    pub(crate) right: Vec<u64>,
}

impl Pairs {
    fn push(&mut self, left: u64, right: u64) {
        self.left.push(left);
        self.right.push(right);
    }
}

fn last(rows: &[u64], key: usize) -> u64 {
    rows.get(key).copied().unwrap_or(NO_MATCH)
}

fn note(rows: &mut Vec<u64>, key: usize, row: u64) {
    if rows.len() <= key {
        rows.resize(key + 1, NO_MATCH);
    }
    rows[key] = row;
}

impl Merge {
    /// Returns the next rows. There are at least `required` rows, unless both sides end first. All
    /// rows with the same timestamp are returned together.
    pub(crate) fn next(
        &mut self,
        left: Vec<RightChunk<'_>>,
        right: Vec<RightChunk<'_>>,
        required: usize,
    ) -> Pairs {
        let mut left = Walk::new(left, self.left);
        let mut right = Walk::new(right, self.right);
        let mut pairs = Pairs::default();
        while pairs.left.len() < required {
            match (left.time(), right.time()) {
                (Some(left_ts), Some(right_ts)) if left_ts == right_ts => {
                    self.timestamp(left_ts, &mut left, &mut right, &mut pairs);
                }
                (Some(left_ts), right_ts) if right_ts.is_none_or(|right_ts| left_ts < right_ts) => {
                    let (row, key) = left.step();
                    note(&mut self.last_left, key, row);
                    pairs.push(row, last(&self.last_right, key));
                }
                (_, Some(_)) => {
                    let (row, key) = right.step();
                    note(&mut self.last_right, key, row);
                    pairs.push(last(&self.last_left, key), row);
                }
                _ => break,
            }
        }
        self.left = (left.chunk, left.row);
        self.right = (right.chunk, right.row);
        pairs
    }

    /// Merges both sides' rows at `ts`.
    fn timestamp(&mut self, ts: i64, left: &mut Walk<'_>, right: &mut Walk<'_>, pairs: &mut Pairs) {
        let mut at_once = vec![];
        while right.time() == Some(ts) {
            let (row, key) = right.step();
            at_once.push((row, key));
            self.waiting.entry(key).or_default().push_back(row);
        }
        while left.time() == Some(ts) {
            let (row, key) = left.step();
            note(&mut self.last_left, key, row);
            if let Some(used) = self.waiting.get_mut(&key).and_then(VecDeque::pop_front) {
                note(&mut self.last_right, key, used);
            }
            pairs.push(row, last(&self.last_right, key));
        }
        for (row, key) in at_once {
            // Rows with the same key are removed in order, so a row at the front is still
            // unmatched.
            let Some(queue) = self.waiting.get_mut(&key) else { continue };
            if queue.front() == Some(&row) {
                queue.pop_front();
                note(&mut self.last_right, key, row);
                pairs.push(last(&self.last_left, key), row);
            }
        }
        self.waiting.clear();
    }

    /// Memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        8 * (self.last_left.capacity() + self.last_right.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_equal_timestamps_are_paired_in_order() {
        let chunk = |timestamps, keys| vec![RightChunk { timestamps, keys }];
        let left = chunk(&[10, 20, 20, 30], &[0, 0, 1, 1]);
        let right = chunk(&[5, 20, 20, 20], &[0, 0, 0, 1]);
        let mut merge = Merge::default();
        let (mut lefts, mut rights) = (vec![], vec![]);
        loop {
            let pairs = merge.next(left.clone(), right.clone(), 1);
            if pairs.left.is_empty() {
                break;
            }
            lefts.extend(pairs.left);
            rights.extend(pairs.right);
        }
        assert_eq!(lefts, [NO_MATCH, 0, 1, 2, 1, 3]);
        assert_eq!(rights, [0, 0, 1, 3, 2, 3]);
    }
}
