//! Hash table memory usage.

/// Number of buckets that the CPU probes together. A table has this many additional control bytes.
const GROUP: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };
/// Number of buckets in the smallest non-empty table.
const MIN_BUCKETS: usize = 4;

/// Returns the size in bytes of a hash table with capacity for this many entries of this size. A
/// table is at most seven eighths full.
pub(super) fn table_bytes(capacity: usize, entry: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    let buckets = capacity.checked_mul(8).map(|parts| parts.div_ceil(7).max(MIN_BUCKETS));
    let buckets = buckets.and_then(usize::checked_next_power_of_two);
    let bytes = |buckets: usize| {
        let entries = buckets.checked_mul(entry)?.checked_next_multiple_of(GROUP)?;
        entries.checked_add(buckets)?.checked_add(GROUP)
    };
    buckets.and_then(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use hashbrown::{HashSet, HashTable};

    use super::*;

    #[test]
    fn table_bytes_reports_the_allocated_bytes() {
        for capacity in (0..3_000).chain([1 << 20, 7 << 17, (7 << 17) + 1]) {
            let set = HashSet::<i64>::with_capacity(capacity);
            assert_eq!(set.allocation_size(), table_bytes(capacity, size_of::<i64>()));
            // A table's capacity is at least the requested capacity.
            assert_eq!(set.allocation_size(), table_bytes(set.capacity(), size_of::<i64>()));
            let table = HashTable::<(u32, u64, u64)>::with_capacity(capacity);
            let counted = table_bytes(capacity, size_of::<(u32, u64, u64)>());
            assert_eq!(table.allocation_size(), counted);
        }
    }
}
