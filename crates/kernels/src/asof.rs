//! ASOF matching: for each left timestamp the last right row not after it (or before it).
//!
//! The right side is a list of chunks in time order. A match is a packed pair of chunk and row.

/// No right row matches.
pub const NO_MATCH: u64 = u64::MAX;
/// The key was not looked for yet among the rows before the cursor's start.
pub const UNKNOWN: u64 = u64::MAX - 1;

/// One chunk of the right side: sorted timestamps and, for keyed joins, the key of each row.
#[derive(Debug, Clone, Copy)]
pub struct RightChunk<'a> {
    /// Timestamps, ascending, also across chunks.
    pub timestamps: &'a [i64],
    /// Dense keys; empty for joins without keys.
    pub keys: &'a [u32],
}

/// Position in a list of chunks: the first right row that was not passed yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the chunk.
    pub chunk: usize,
    /// Row in it.
    pub row: usize,
}

/// A right row as one number; greater is later.
#[inline]
#[must_use]
pub fn pack(chunk: usize, row: usize) -> u64 {
    (chunk as u64) << 32 | row as u64
}

/// Chunk and row of a packed match.
#[inline]
#[must_use]
pub fn unpack(packed: u64) -> (usize, usize) {
    ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize)
}

/// Appends the match of each left row to `matches`, moving `cursor` forward. `before` is the last
/// row ahead of the cursor (or [`NO_MATCH`]). With `strict`, equal timestamps do not match.
pub fn match_unkeyed(
    left: &[i64],
    right: &[RightChunk<'_>],
    cursor: &mut Cursor,
    before: &mut u64,
    strict: bool,
    matches: &mut Vec<u64>,
) {
    // `strict` moves the bound by one unit, so that one comparison serves both.
    let bias = i64::from(strict);
    let mut index = 0;
    while let Some(chunk) = right.get(cursor.chunk) {
        let times = chunk.timestamps;
        let base = pack(cursor.chunk, 0);
        let mut row = cursor.row;
        let rest = &left[index..];
        let passed = rest.iter().take_while(|&&ts| {
            let bound = ts.saturating_sub(bias);
            row = advance(times, row, bound);
            // The chunk is used up: later chunks may hold a later match for this very row.
            if row == times.len() {
                return false;
            }
            matches.push(if row == 0 { *before } else { base | (row - 1) as u64 });
            true
        });
        index += passed.count();
        if row == times.len() {
            if row > 0 {
                *before = base | (row - 1) as u64;
            }
            *cursor = Cursor { chunk: cursor.chunk + 1, row: 0 };
        } else {
            cursor.row = row;
            return;
        }
    }
    matches.resize(matches.len() + left.len() - index, *before);
}

/// First row from `row` on that is after `bound`: a few plain steps, then a gallop, because
/// neighbours are the usual case and long jumps the expensive one.
#[inline]
fn advance(times: &[i64], row: usize, bound: i64) -> usize {
    const STEPS: usize = 8;
    let window = &times[row..times.len().min(row + STEPS)];
    for (step, &ts) in window.iter().enumerate() {
        if ts > bound {
            return row + step;
        }
    }
    crate::upper_bound(times, row + window.len(), bound)
}

/// As [`match_unkeyed`], among right rows of the same key. `last[key]` is the last row of a key
/// ahead of the cursor, [`NO_MATCH`] or [`UNKNOWN`]; for an unknown one `look_back` is asked
/// once. A left key outside of `last` matches nothing.
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
