//! ASOF matching: for each left timestamp, finds the last right row at or before it. With `strict`,
//! the right row must be before it.
//!
//! The right side is a list of chunks in time order. A match is a packed pair of chunk and row.

use std::ops::Range;

use crate::search::gallop;
use crate::upper_bound;

/// No right row matches.
pub const NO_MATCH: u64 = u64::MAX;
/// The rows before the cursor's start position have not yet been searched for this key.
pub const UNKNOWN: u64 = u64::MAX - 1;

/// One chunk of the right side: sorted timestamps and, for keyed joins, the key of each row.
#[derive(Debug, Clone, Copy)]
pub struct RightChunk<'a> {
    /// Timestamps, ascending within and across chunks.
    pub timestamps: &'a [i64],
    /// Dense keys; empty for joins without keys.
    pub keys: &'a [u32],
}

/// Position in a list of chunks: the first right row the cursor has not passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the chunk.
    pub chunk: usize,
    /// Row within the chunk.
    pub row: usize,
}

/// Packs the position of a right row into one number. A greater number means a later row.
#[inline]
#[must_use]
pub fn pack(chunk: usize, row: usize) -> u64 {
    (chunk as u64) << 32 | row as u64
}

/// Returns the chunk and row of a packed match.
#[inline]
#[must_use]
pub fn unpack(packed: u64) -> (usize, usize) {
    ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize)
}

/// Maximum number of right rows per left row at which the two sides are merged row by row. Above
/// this number, right rows are found by searching.
const DENSE: usize = 8;
/// Number of left-row ranges that are matched in one loop. Interleaving them hides the latency of
/// the comparisons.
const LANES: usize = 4;

/// Appends each left row's match to `matches` and moves `cursor` forward. `before` is the last row
/// before the cursor (or [`NO_MATCH`]). With `strict`, equal timestamps do not match.
pub fn match_unkeyed(
    left: &[i64],
    right: &[RightChunk<'_>],
    cursor: &mut Cursor,
    before: &mut u64,
    strict: bool,
    matches: &mut Vec<u64>,
) {
    // `strict` moves the bound by one unit, so the same comparison serves both cases.
    let bias = i64::from(strict);
    let mut rest = left;
    while let Some(chunk) = right.get(cursor.chunk) {
        let times = chunk.timestamps;
        let base = pack(cursor.chunk, 0);
        // For left rows beyond the chunk's last row, later chunks may contain a later match.
        let inside = match times.last() {
            Some(&last) => gallop(rest, 0, |ts| ts.saturating_sub(bias) < last),
            None => 0,
        };
        let (own, later) = rest.split_at(inside);
        rest = later;
        let early = match times.first() {
            Some(&first) if cursor.row == 0 => gallop(own, 0, |ts| ts.saturating_sub(bias) < first),
            _ => 0,
        };
        matches.resize(matches.len() + early, *before);
        if let Some(last) = own.last() {
            let end = upper_bound(times, cursor.row, last.saturating_sub(bias));
            let own = &own[early..];
            let rows = end - cursor.row;
            if rows <= DENSE * own.len() && own.len() >= 2 * LANES {
                let lanes = (times, cursor.row..end, base.wrapping_sub(1));
                match_dense(own, lanes, bias, matches);
            } else {
                let mut row = cursor.row;
                matches.extend(own.iter().map(|ts| {
                    row = advance(times, row, ts.saturating_sub(bias));
                    base.wrapping_add(row as u64).wrapping_sub(1)
                }));
            }
            cursor.row = end;
        }
        if rest.is_empty() {
            return;
        }
        if !times.is_empty() {
            *before = base | (times.len() - 1) as u64;
        }
        *cursor = Cursor { chunk: cursor.chunk + 1, row: 0 };
    }
    matches.resize(matches.len() + rest.len(), *before);
}

/// Matches left rows with the rows of one chunk when both sides have a similar number of rows. Each
/// step advances one side by one row without branching. A match is `base` plus the number of right
/// rows that are not after the left row.
fn match_dense(
    left: &[i64],
    (times, rows, base): (&[i64], Range<usize>, u64),
    bias: i64,
    matches: &mut Vec<u64>,
) {
    let start = matches.len();
    matches.resize(start + left.len(), 0);
    let found = &mut matches[start..];
    let mut lanes = [(0, 0); LANES];
    let mut ends = [0; LANES];
    for (lane, (next, row)) in lanes.iter_mut().enumerate() {
        *next = left.len() * lane / LANES;
        *row = upper_bound(times, rows.start, left[*next].saturating_sub(bias));
        ends[lane] = left.len() * (lane + 1) / LANES;
    }
    let steps = |lane: usize, (next, row): (usize, usize)| {
        let last = left[ends[lane] - 1].saturating_sub(bias);
        ends[lane] - next + upper_bound(times, row, last) - row
    };
    let all: [usize; LANES] = std::array::from_fn(|lane| steps(lane, lanes[lane]));
    let shared = all.iter().copied().min().unwrap_or(0);
    let mut step = |(next, row): &mut (usize, usize)| {
        let goes_on = times[*row] <= left[*next].saturating_sub(bias);
        found[*next] = base.wrapping_add(*row as u64);
        *row += usize::from(goes_on);
        *next += usize::from(!goes_on);
    };
    for _ in 0..shared {
        lanes.iter_mut().for_each(&mut step);
    }
    for (lane, all) in lanes.iter_mut().zip(all) {
        (shared..all).for_each(|_| step(lane));
    }
}

/// Returns the first row at or after `row` that is after `bound`. The search tries a few linear
/// steps before galloping, because the row is usually near and long jumps are expensive.
#[inline]
fn advance(times: &[i64], row: usize, bound: i64) -> usize {
    const STEPS: usize = 8;
    let window = &times[row..times.len().min(row + STEPS)];
    for (step, &ts) in window.iter().enumerate() {
        if ts > bound {
            return row + step;
        }
    }
    upper_bound(times, row + window.len(), bound)
}

/// Like [`match_unkeyed`], but matches only right rows with the same key. `last[key]` is the key's
/// last row before the cursor, [`NO_MATCH`] or [`UNKNOWN`]. For an unknown key, `look_back` is
/// called once. A left key that is outside `last` matches nothing.
pub fn match_keyed(
    left: &[i64],
    left_keys: &[u32],
    right: &[RightChunk<'_>],
    cursor: &mut Cursor,
    last: &mut [u64],
    strict: bool,
    matches: &mut Vec<u64>,
    mut look_back: impl FnMut(&mut [u64], u32),
) {
    let bias = i64::from(strict);
    let mut chunk = right.get(cursor.chunk).copied();
    for (&ts, &key) in left.iter().zip(left_keys) {
        let bound = ts.saturating_sub(bias);
        while let Some(RightChunk { timestamps, keys }) = chunk {
            let base = pack(cursor.chunk, 0);
            let mut row = cursor.row;
            while row < timestamps.len().min(keys.len()) && timestamps[row] <= bound {
                last[keys[row] as usize] = base | row as u64;
                row += 1;
            }
            cursor.row = row;
            if row < timestamps.len() {
                break;
            }
            *cursor = Cursor { chunk: cursor.chunk + 1, row: 0 };
            chunk = right.get(cursor.chunk).copied();
        }
        let mut found = last.get(key as usize).copied().unwrap_or(NO_MATCH);
        if found == UNKNOWN {
            look_back(last, key);
            found = last.get(key as usize).copied().unwrap_or(NO_MATCH);
        }
        matches.push(found);
    }
}
