//! Query results, cached by parameter values.
//!
//! Results are cached with the query's plan and dropped with it at the next commit. This helps
//! clients that poll, that is, repeat queries whose results have not changed. Only small results
//! are cached, and only when the same values occur a second time, so values that never recur are
//! not copied. A query without parameters must itself be small, so that setup dominates its
//! execution time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tidemark_border::{ExecuteOptions, RowFormat, Summary};

/// Maximum number of value sets stored per query. Each set either has a cached result or has
/// occurred only once.
const MAX_VALUES: usize = 1024;
/// Maximum total size in bytes of a result and its parameter values.
const MAX_RESULT_BYTES: usize = 4 * 1024;
/// Maximum size in bytes of all cached results of a database.
const MAX_BYTES: usize = 16 << 20;
/// Memory used by a cache entry in bytes, excluding its values and result.
const ENTRY_BYTES: usize = 256;

/// A result's cache key: the parameter values, the row selection and the encoding.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResultKey {
    values: Vec<u8>,
    rows: RowFormat,
    skip: u64,
    take: Option<u64>,
    count_all: bool,
    last: Option<u64>,
    first_chunk_rows: Option<u64>,
}

impl ResultKey {
    /// Returns a copy of a parameter row for use as a cache key; `None` if the row is too long to
    /// be cached.
    pub(crate) fn values(row: &[u8]) -> Option<Vec<u8>> {
        (row.len() <= MAX_RESULT_BYTES).then(|| row.to_vec())
    }

    /// Creates a key from `values`, which [`Self::values`] returned.
    pub(crate) fn new(values: Vec<u8>, options: &ExecuteOptions) -> Self {
        let ExecuteOptions { skip, take, count_all, last, first_chunk_rows, .. } = *options;
        let rows = options.rows.clone();
        Self { values, rows, skip, take, count_all, last, first_chunk_rows }
    }
}

/// A complete result.
#[derive(Debug, Clone)]
pub(crate) struct CachedResult {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: u64,
    pub(crate) summary: Summary,
}

/// Memory used by all cached results of a database.
#[derive(Debug, Clone, Default)]
pub(super) struct CachedBytes(Arc<AtomicUsize>);

impl CachedBytes {
    fn try_reserve(&self, bytes: usize) -> bool {
        let reserved = self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            Some(all + bytes).filter(|&all| all <= MAX_BYTES)
        });
        reserved.is_ok()
    }

    fn release(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The cached results of one query, dropped together with the query's cached plan.
#[derive(Debug)]
pub(crate) struct CachedResults {
    known: Mutex<Known>,
    all: CachedBytes,
}

#[derive(Debug, Default)]
struct Known {
    /// Results by key; `None` for values that have occurred only once.
    results: HashMap<ResultKey, Option<CachedResult>>,
    bytes: usize,
}

impl CachedResults {
    pub(super) fn new(all: &CachedBytes) -> Self {
        Self { known: Mutex::default(), all: all.clone() }
    }

    /// Returns the cached result for this key, if any.
    pub(crate) fn get(&self, key: &ResultKey) -> Option<CachedResult> {
        self.known.lock().results.get(key)?.clone()
    }

    /// Caches a complete result if it is small and its values have now occurred twice.
    pub(crate) fn put(&self, key: ResultKey, (bytes, rows): (&[u8], u64), summary: Summary) {
        let values = key.values.len();
        if bytes.len() + values > MAX_RESULT_BYTES {
            return;
        }
        let mut known = self.known.lock();
        match known.results.get_mut(&key) {
            Some(result @ None) if self.all.try_reserve(bytes.len()) => {
                *result = Some(CachedResult { bytes: bytes.to_vec(), rows, summary });
                known.bytes += bytes.len();
            }
            Some(_) => {}
            None => {
                if known.results.len() >= MAX_VALUES {
                    self.all.release(known.bytes);
                    *known = Known::default();
                }
                if self.all.try_reserve(values + ENTRY_BYTES) {
                    known.bytes += values + ENTRY_BYTES;
                    known.results.insert(key, None);
                }
            }
        }
    }
}

impl Drop for CachedResults {
    fn drop(&mut self) {
        self.all.release(self.known.get_mut().bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result_key(values: &[u8], take: Option<u64>) -> ResultKey {
        let rows = RowFormat::Pg { format_codes: vec![0], nanoseconds: false };
        let (values, last, first_chunk_rows) = (values.to_vec(), None, None);
        ResultKey { values, rows, skip: 0, take, count_all: false, last, first_chunk_rows }
    }

    fn put(results: &CachedResults, values: &[u8], bytes: usize) {
        let summary = Summary { rows_returned: 1, ..Summary::default() };
        results.put(result_key(values, None), (&vec![7; bytes], 1), summary);
    }

    #[test]
    fn a_result_is_cached_only_after_its_parameter_values_repeat() {
        let results = CachedResults::new(&CachedBytes::default());
        for is_cached in [false, false, true] {
            assert_eq!(results.get(&result_key(b"s1", None)).is_some(), is_cached);
            put(&results, b"s1", 100);
        }
        let CachedResult { bytes, rows, summary } = results.get(&result_key(b"s1", None)).unwrap();
        assert_eq!((bytes, rows, summary.rows_returned), (vec![7; 100], 1, 1));
        // Neither other values nor the same values in another encoding match the cached result.
        assert!(results.get(&result_key(b"s2", None)).is_none());
        assert!(results.get(&result_key(b"s1", Some(1))).is_none());
        let binary = RowFormat::Pg { format_codes: vec![1], nanoseconds: false };
        assert!(results.get(&ResultKey { rows: binary, ..result_key(b"s1", None) }).is_none());
    }

    #[test]
    fn parameter_values_above_the_size_limit_are_not_copied() {
        let row = vec![7; MAX_RESULT_BYTES];
        assert_eq!(ResultKey::values(&row).as_deref(), Some(&row[..]));
        assert_eq!(ResultKey::values(&[0; MAX_RESULT_BYTES + 1]), None);
    }

    #[test]
    fn large_results_are_not_cached() {
        let results = CachedResults::new(&CachedBytes::default());
        (0..3).for_each(|_| put(&results, b"large", MAX_RESULT_BYTES));
        assert!(results.get(&result_key(b"large", None)).is_none());
    }

    #[test]
    fn cached_results_have_a_size_limit_and_release_their_memory() {
        let all = CachedBytes::default();
        let queries: Vec<CachedResults> = (0..10).map(|_| CachedResults::new(&all)).collect();
        for query in &queries {
            for values in 0..MAX_VALUES {
                (0..2).for_each(|_| put(query, &values.to_le_bytes(), 3_000));
            }
        }
        let used = all.0.load(Ordering::Relaxed);
        assert!(used > MAX_BYTES - 4_000 && used <= MAX_BYTES, "{used}");
        // Inserts one more set of values than the limit per query allows.
        put(&queries[0], b"more", 1);
        assert!(all.0.load(Ordering::Relaxed) < used - 1_000_000);
        drop(queries);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }
}
