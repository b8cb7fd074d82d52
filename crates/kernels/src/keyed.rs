//! Aggregates over rows that belong to many groups in any order. A group's slot is found by index,
//! without hashing.

use crate::{Native, Validity};

/// Marks a key that does not yet have a group in an array of slots.
const NO_GROUP: u32 = u32::MAX;

/// Output of [`assign_groups`].
#[derive(Debug, Default)]
pub struct GroupSink {
    /// The group of each row.
    pub groups: Vec<u32>,
    /// The key of each new group, in order of first appearance.
    pub new_keys: Vec<u32>,
    /// The row in which each new group first appeared, numbered in the same way as the rows in
    /// `groups`.
    pub new_rows: Vec<u32>,
}

/// Appends each row's group to `sink`. New keys are numbered starting at `next_group`.
///
/// Key 0 is null, and key `c + 1` is code `c`. `slots[key]` is a key's group, or `u32::MAX` if the
/// key does not have a group yet. `slots` must be longer than the greatest key.
pub fn assign_groups(
    codes: &[i32],
    validity: Option<Validity<'_>>,
    first_row: usize,
    slots: &mut [u32],
    next_group: &mut u32,
    sink: &mut GroupSink,
) {
    sink.groups.reserve(codes.len());
    for (block, codes) in codes.chunks(BLOCK).enumerate() {
        let first_row = first_row + block * BLOCK;
        let valid = validity.map_or(u64::MAX, |validity| validity.word(first_row));
        if valid == u64::MAX
            && let Some(codes) = codes.first_chunk()
            && let Some(groups) = known_groups(codes, slots)
        {
            sink.groups.extend_from_slice(&groups);
            continue;
        }
        for (row, &code) in codes.iter().enumerate() {
            let key = if valid >> row & 1 == 1 { code.wrapping_add(1) as u32 } else { 0 };
            let slot = &mut slots[key as usize];
            if *slot == NO_GROUP {
                *slot = *next_group;
                *next_group += 1;
                sink.new_keys.push(key);
                sink.new_rows.push(sink.groups.len() as u32);
            }
            sink.groups.push(*slot);
        }
    }
}

/// Number of rows whose groups are looked up together. Most blocks contain no new key.
const BLOCK: usize = 64;

/// Returns the groups for a block without nulls, if every key already has a group.
fn known_groups(codes: &[i32; BLOCK], slots: &[u32]) -> Option<[u32; BLOCK]> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: this CPU has the instructions the function is compiled for.
        return unsafe { gathered::groups(codes, slots) };
    }
    let mut groups = [NO_GROUP; BLOCK];
    let mut known = true;
    for (group, &code) in groups.iter_mut().zip(codes) {
        *group = *slots.get(code.wrapping_add(1) as u32 as usize)?;
        known &= *group != NO_GROUP;
    }
    known.then_some(groups)
}

/// Lookup of eight slots at a time.
#[cfg(target_arch = "x86_64")]
mod gathered {
    use std::arch::x86_64::{
        _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_cmpeq_epi32,
        _mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_epi8,
        _mm256_set1_epi32, _mm256_storeu_si256,
    };

    use super::BLOCK;

    /// Returns the groups for these codes; `None` if a key has no group or is beyond the slots.
    #[target_feature(enable = "avx2")]
    pub(super) fn groups(codes: &[i32; BLOCK], slots: &[u32]) -> Option<[u32; BLOCK]> {
        let last = i32::try_from(slots.len().checked_sub(1)?).ok()?;
        let (last, one) = (_mm256_set1_epi32(last), _mm256_set1_epi32(1));
        let none = _mm256_set1_epi32(-1);
        let mut known = none;
        let mut found = [0; BLOCK];
        for (codes, found) in codes.as_chunks::<8>().0.iter().zip(found.as_chunks_mut::<8>().0) {
            // SAFETY: loads and stores of eight 32-bit numbers may be unaligned, and the gather
            // does not read beyond the last slot.
            unsafe {
                let keys = _mm256_add_epi32(_mm256_loadu_si256(codes.as_ptr().cast()), one);
                let within = _mm256_min_epu32(keys, last);
                let groups = _mm256_i32gather_epi32::<4>(slots.as_ptr().cast(), within);
                let is_none = _mm256_cmpeq_epi32(groups, none);
                let is_within = _mm256_cmpeq_epi32(keys, within);
                known = _mm256_and_si256(known, _mm256_andnot_si256(is_none, is_within));
                _mm256_storeu_si256(found.as_mut_ptr().cast(), groups);
            }
        }
        (_mm256_movemask_epi8(known) == -1).then_some(found)
    }
}

/// Writes each value's distance from `min`, truncated to 32 bits. Returns the bitwise OR of all
/// distances. A power of two that exceeds the result also exceeds every distance.
pub fn distances<T: Native>(values: &[T], min: i64, distances: &mut [i32]) -> u64 {
    let mut bits = 0;
    for (value, distance) in values.iter().zip(distances) {
        let far = value.to_i64().wrapping_sub(min);
        bits |= far as u64;
        *distance = far as i32;
    }
    bits
}

/// Counts rows per group.
pub fn count_by(groups: &[u32], counts: &mut [i64]) {
    for &group in groups {
        let count = &mut counts[group as usize];
        *count = count.wrapping_add(1);
    }
}

/// Adds each value to its group's sum.
pub fn sum_float_by<T: Native>(values: &[T], groups: &[u32], sums: &mut [f64]) {
    for (value, &group) in values.iter().zip(groups) {
        sums[group as usize] += value.to_f64();
    }
}

/// Adds each value to its group's sum, which wraps on overflow.
pub fn sum_integer_by<T: Native>(values: &[T], groups: &[u32], sums: &mut [i64]) {
    for (value, &group) in values.iter().zip(groups) {
        let sum = &mut sums[group as usize];
        *sum = sum.wrapping_add(value.to_i64());
    }
}

/// Updates each group's minimum. Slots are initialised to the type's greatest value.
pub fn minimum_by<T: Native>(values: &[T], groups: &[u32], best: &mut [T]) {
    for (&value, &group) in values.iter().zip(groups) {
        let slot = &mut best[group as usize];
        *slot = if value < *slot { value } else { *slot };
    }
}

/// Updates each group's maximum. Slots are initialised to the type's smallest value.
pub fn maximum_by<T: Native>(values: &[T], groups: &[u32], best: &mut [T]) {
    for (&value, &group) in values.iter().zip(groups) {
        let slot = &mut best[group as usize];
        *slot = if value > *slot { value } else { *slot };
    }
}

/// Stores each group's last value.
pub fn last_by<T: Native>(values: &[T], groups: &[u32], last: &mut [T]) {
    for (&value, &group) in values.iter().zip(groups) {
        last[group as usize] = value;
    }
}
