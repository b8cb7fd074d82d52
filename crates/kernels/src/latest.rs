//! Picking the last row of each key.

use crate::Validity;

/// Walks backwards and reports each row whose key was not seen before; stops as soon as
/// `remaining` keys have been found. Key 0 is null, key `c + 1` is code `c`.
pub fn pick_latest(
    codes: &[i32],
    validity: Option<Validity<'_>>,
    seen: &mut [bool],
    remaining: &mut usize,
    mut pick: impl FnMut(usize),
) {
    for (row, &code) in codes.iter().enumerate().rev() {
        let valid = validity.is_none_or(|validity| validity.is_valid(row));
        let key = if valid { code.wrapping_add(1) as u32 as usize } else { 0 };
        if !seen[key] {
            seen[key] = true;
            pick(row);
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                return;
            }
        }
    }
}
