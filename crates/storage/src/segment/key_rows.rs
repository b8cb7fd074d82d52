//! Caches the last row of each key in a symbol column, per block. A block's last rows are computed
//! once searches have read more rows than the computation would read. The results are cached with
//! the cells, which never change, and are not stored on disk.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, Int32Array};
use tidemark_kernels::{Validity, note_last_rows};
use tidemark_types::account;

/// Rows per block.
const BLOCK_ROWS: usize = 512 << 10;
/// Minimum number of rows in a block for its last rows to be worth caching.
const MIN_ROWS: usize = 4 << 10;
/// A block's last rows are computed after its rows have been searched this many times, because
/// recording a row takes longer than reading it.
const TIMES_READ: usize = 2;
/// Maximum size of these caches across the process, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Marks a key that does not occur in a block.
const NO_ROW: u32 = u32::MAX;

static CACHED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Known or possible position of the last row with one of the given keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastRow {
    /// No row has any of the keys.
    Nowhere,
    /// Position of the last row.
    At(usize),
    /// The last row, if any, is before this position.
    Before(usize),
}

/// Last rows of a column's keys, for the blocks computed so far.
#[derive(Debug, Default)]
pub(crate) struct KeyRows(OnceLock<Box<[Block]>>);

#[derive(Debug, Default)]
struct Block {
    /// Number of rows that readers searched.
    read: AtomicUsize,
    /// Last row of each key, relative to the start of the block.
    last: OnceLock<Noted>,
}

#[derive(Debug)]
struct Noted(Box<[u32]>);

impl Drop for Noted {
    fn drop(&mut self) {
        CACHED_BYTES.fetch_sub(size_of_val(&*self.0), Ordering::Relaxed);
    }
}

impl KeyRows {
    /// Returns the last of `rows` that has one of `keys`. `cells` is the whole column, with keys up
    /// to `max_key`. If the row is unknown, the reader searches `step` rows next.
    pub(crate) fn last_of(
        &self,
        cells: &Int32Array,
        max_key: i32,
        keys: &[i32],
        rows: Range<usize>,
        step: usize,
    ) -> LastRow {
        let mut end = rows.end.min(cells.len());
        while end > rows.start {
            let number = (end - 1) / BLOCK_ROWS;
            let start = number * BLOCK_ROWS;
            let len = BLOCK_ROWS.min(cells.len() - start);
            let block = self.block(cells.len(), number);
            let known = || block.noted(&cells.slice(start, len), max_key, step);
            let Some(Noted(last)) = block.last.get().or_else(known) else {
                return LastRow::Before(end);
            };
            let of_keys = keys.iter().filter_map(|&key| last.get(key as u32 as usize));
            let of_keys = of_keys.filter(|&&row| row != NO_ROW).max();
            match of_keys.map(|&row| start + row as usize) {
                // The last row with one of the keys is after the range. Whether the range also
                // contains such a row is not known.
                Some(row) if row >= end => return LastRow::Before(end),
                Some(row) if row >= rows.start => return LastRow::At(row),
                _ => end = start,
            }
        }
        LastRow::Nowhere
    }

    fn block(&self, len: usize, number: usize) -> &Block {
        let empty = || (0..len.div_ceil(BLOCK_ROWS)).map(|_| Block::default()).collect();
        &self.0.get_or_init(empty)[number]
    }
}

impl Block {
    /// Returns the last row of each key in `cells`, once computing these rows is worthwhile and
    /// memory allows it.
    fn noted(&self, cells: &Int32Array, max_key: i32, step: usize) -> Option<&Noted> {
        let read = self.read.fetch_add(step, Ordering::Relaxed);
        if cells.len() < MIN_ROWS || read < TIMES_READ * cells.len() {
            return None;
        }
        // If memory is short, tries again after the same number of searches.
        self.read.store(0, Ordering::Relaxed);
        let noted = Noted::of(cells, max_key)?;
        Some(self.last.get_or_init(|| noted))
    }
}

impl Noted {
    /// Computes the last rows of a block; `None` if they would take more memory than the block's
    /// cells, or more than is available.
    fn of(cells: &Int32Array, max_key: i32) -> Option<Self> {
        let keys = usize::try_from(max_key).map_or(0, |key| key + 1);
        let bytes = keys * size_of::<u32>();
        let grown = |used: usize| Some(used + bytes).filter(|&used| used <= MAX_BYTES);
        if keys > cells.len() || account::check_allocation(bytes).is_err() {
            return None;
        }
        CACHED_BYTES.try_update(Ordering::Relaxed, Ordering::Relaxed, grown).ok()?;
        let mut last = Self(vec![NO_ROW; keys].into());
        let nulls = cells.nulls().filter(|nulls| nulls.null_count() > 0);
        let validity = nulls.map(|nulls| Validity::new(nulls.validity(), nulls.offset()));
        note_last_rows(cells.values(), validity, &mut last.0);
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// Prevents one test from using up the memory that other tests need.
    static MEMORY_LOCK: Mutex<()> = Mutex::new(());

    fn random(seed: &mut u64, bound: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) % bound
    }

    #[test]
    fn cached_last_rows_match_a_full_scan() {
        let _room = MEMORY_LOCK.lock();
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let mut seed = seed.unwrap_or(0x2026_1128_u64);
        println!("SEED={seed}");
        for round in 0..12 {
            // Blocks with a few rows, and columns with more than one full block.
            let rows = [0, 5, MIN_ROWS, 40_000, BLOCK_ROWS + 30_000][round % 5];
            let symbols = [1, 40, 3_000][round % 3];
            let nulls = round % 2 == 0;
            let mut cell = || {
                let is_null = nulls && random(&mut seed, 9) == 0;
                (!is_null).then(|| random(&mut seed, symbols) as i32)
            };
            let cells: Int32Array = (0..rows).map(|_| cell()).collect();
            let key_rows = KeyRows::default();
            let max_key = cells.iter().flatten().max().unwrap_or(-1);
            let mut is_known = false;
            for _ in 0..200 {
                let keys = 0..random(&mut seed, 4);
                let keys: Vec<i32> = keys.map(|_| random(&mut seed, symbols + 2) as i32).collect();
                let end = random(&mut seed, rows as u64 + 1) as usize;
                let start = random(&mut seed, end as u64 + 1) as usize;
                let has = |row: usize| cells.is_valid(row) && keys.contains(&cells.value(row));
                let walked = (start..end).rev().find(|&row| has(row));
                let step = random(&mut seed, 20_000) as usize;
                let found = key_rows.last_of(&cells, max_key, &keys, start..end, step);
                is_known |= !matches!(found, LastRow::Before(_));
                match found {
                    LastRow::Nowhere => assert_eq!(walked, None),
                    LastRow::At(row) => assert_eq!(walked, Some(row)),
                    LastRow::Before(row) => {
                        assert!(row <= end && walked.is_none_or(|walked| walked < row));
                    }
                }
            }
            assert!(is_known || rows < MIN_ROWS, "round {round}");
        }
    }

    #[test]
    fn cached_last_rows_have_a_size_limit_and_are_freed_with_their_segment() {
        let _room = MEMORY_LOCK.lock();
        let cells: Int32Array = (0..BLOCK_ROWS as i32).map(Some).collect();
        let max_key = BLOCK_ROWS as i32 - 1;
        assert!(Noted::of(&cells.slice(0, 100), max_key).is_none(), "more keys than rows");
        let mut all = Vec::new();
        while let Some(noted) = Noted::of(&cells, max_key) {
            all.push(noted);
        }
        assert!(CACHED_BYTES.load(Ordering::Relaxed) <= MAX_BYTES);
        assert!(all.len() <= MAX_BYTES / (BLOCK_ROWS * 4));
        let one = all.pop();
        assert!(one.is_some());
        drop(one);
        assert!(Noted::of(&cells, max_key).is_some());
    }
}
