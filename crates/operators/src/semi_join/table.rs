//! What a hash table takes.

/// Bytes of a hash table with room for so many entries of so many bytes: it is seven parts in eight
/// full at most.
pub(super) fn table_bytes(capacity: usize, entry: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    let buckets = capacity.checked_mul(8).map(|parts| parts.div_ceil(7));
    let buckets = buckets.and_then(usize::checked_next_power_of_two);
    buckets.and_then(|buckets| buckets.checked_mul(entry + 1)).unwrap_or(usize::MAX)
}
