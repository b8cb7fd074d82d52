//! Aggregates of rows scattered over groups: one slot per group, indexed, never hashed.

use crate::{Native, Validity};

/// Marks a key that has no group yet in a table of slots.
const NO_GROUP: u32 = u32::MAX;

/// Where [`assign_groups`] reports what it found.
#[derive(Debug, Default)]
pub struct GroupSink {
    /// Group of each row.
    pub groups: Vec<u32>,
    /// Key of each group that was new, in order of first appearance.
    pub new_keys: Vec<u32>,
    /// Row of that first appearance, counted as `groups` is.
    pub new_rows: Vec<u32>,
}

/// Appends the group of each row to `sink`, numbering unseen keys from `next_group` on.
///
/// Key 0 is null, key `c + 1` is code `c`. `slots[key]` is the group of a key, `u32::MAX` for
/// none yet; it is longer than the greatest key.
pub fn assign_groups(
    codes: &[i32],
    validity: Option<Validity<'_>>,
    first_row: usize,
    slots: &mut [u32],
    next_group: &mut u32,
    sink: &mut GroupSink,
) {
    let mut assign = |row: usize, key: usize| {
        let mut group = slots[key];
        if group == NO_GROUP {
            group = *next_group;
            slots[key] = group;
            *next_group += 1;
            sink.new_keys.push(key as u32);
            sink.new_rows.push(row as u32);
        }
        group
    };
    let start = sink.groups.len();
    match validity {
        None => {
            let groups = codes
                .iter()
                .enumerate()
                .map(|(index, &code)| assign(start + index, code.wrapping_add(1) as u32 as usize));
            sink.groups.extend(groups);
        }
        Some(validity) => {
            let groups = codes.iter().enumerate().map(|(index, &code)| {
                let valid = validity.is_valid(first_row + index);
                let key = if valid { code.wrapping_add(1) as u32 as usize } else { 0 };
                assign(start + index, key)
            });
            sink.groups.extend(groups);
        }
    }
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

/// Adds each value to its group's sum, wrapping.
pub fn sum_integer_by<T: Native>(values: &[T], groups: &[u32], sums: &mut [i64]) {
    for (value, &group) in values.iter().zip(groups) {
        let sum = &mut sums[group as usize];
        *sum = sum.wrapping_add(value.to_i64());
    }
}

/// Lowers each group's minimum. Slots start at the type's greatest value.
pub fn minimum_by<T: Native>(values: &[T], groups: &[u32], best: &mut [T]) {
    for (&value, &group) in values.iter().zip(groups) {
        let slot = &mut best[group as usize];
        *slot = if value < *slot { value } else { *slot };
    }
}

/// Raises each group's maximum. Slots start at the type's smallest value.
pub fn maximum_by<T: Native>(values: &[T], groups: &[u32], best: &mut [T]) {
    for (&value, &group) in values.iter().zip(groups) {
        let slot = &mut best[group as usize];
        *slot = if value > *slot { value } else { *slot };
    }
}

/// Keeps each group's last value.
pub fn last_by<T: Native>(values: &[T], groups: &[u32], last: &mut [T]) {
    for (&value, &group) in values.iter().zip(groups) {
        last[group as usize] = value;
    }
}
