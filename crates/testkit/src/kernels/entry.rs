//! An entry of the kernel list, and the rows that all entries process.

use std::hint::black_box;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Number of rows. It is slightly more than a multiple of the block and vector lengths.
pub(super) const ROWS: usize = 32_768 + 37;
/// Number of distinct keys.
pub(super) const KEYS: u32 = 100;

/// A kernel and the number of rows it processes.
pub struct Entry {
    /// Name in the count list.
    pub name: &'static str,
    /// Number of rows per pass.
    pub rows: usize,
    /// Runs one pass.
    pub pass: Box<dyn FnMut()>,
}

impl Entry {
    /// Consumes the result of each pass, so that the compiler cannot remove the pass.
    pub(super) fn new<T>(
        name: &'static str,
        rows: usize,
        mut pass: impl FnMut() -> T + 'static,
    ) -> Self {
        let pass = Box::new(move || {
            black_box(pass());
        });
        Self { name, rows, pass }
    }
}

/// Columns as stored in tables.
#[derive(Debug, Clone)]
pub(super) struct Data {
    pub(super) times: Vec<i64>,
    pub(super) prices: Vec<f64>,
    pub(super) codes: Vec<i32>,
    pub(super) groups: Vec<u32>,
    pub(super) numbers: Vec<i64>,
    pub(super) validity: Vec<u8>,
}

impl Data {
    pub(super) fn new() -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(22);
        let mut now = 1_704_067_200_000_000;
        let times = (0..ROWS).map(|_| {
            now += random.random_range(0..260_000);
            now
        });
        let times = times.collect();
        let prices = (0..ROWS).map(|_| random.random_range(1_000_000..9_000_000));
        let prices: Vec<f64> = prices.map(|cents: i64| cents as f64 / 100.0).collect();
        let codes = (0..ROWS).map(|_| random.random_range(0..KEYS) as i32);
        let codes: Vec<i32> = codes.collect();
        let groups = codes.iter().map(|&code| code as u32).collect();
        let numbers = (0..ROWS).map(|_| random.random_range(-90_000..90_000)).collect();
        // One in nine rows is null.
        let validity = (0..ROWS.div_ceil(8)).map(|_| {
            (0..8).fold(0, |byte, bit| byte | u8::from(random.random_range(0..9) > 0) << bit)
        });
        let validity = validity.collect();
        Self { times, prices, codes, groups, numbers, validity }
    }
}
