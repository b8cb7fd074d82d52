//! What a hash table takes.

/// Buckets that are looked at together, by the processor; a table has control bytes for so many
/// more.
const GROUP: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };
/// Buckets of the least table that has room for an entry.
const MIN_BUCKETS: usize = 4;

/// Bytes of a hash table with room for so many entries of so many bytes: it is seven parts in eight
/// full at most.
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
    fn tables_take_what_was_counted() {
        for capacity in (0..3_000).chain([1 << 20, 7 << 17, (7 << 17) + 1]) {
            let set = HashSet::<i64>::with_capacity(capacity);
            assert_eq!(set.allocation_size(), table_bytes(capacity, size_of::<i64>()));
            // What a table says it has room for is what it was made for, or more.
            assert_eq!(set.allocation_size(), table_bytes(set.capacity(), size_of::<i64>()));
            let table = HashTable::<(u32, u64, u64)>::with_capacity(capacity);
            let counted = table_bytes(capacity, size_of::<(u32, u64, u64)>());
            assert_eq!(table.allocation_size(), counted);
        }
    }
}
