//! Finds the last row of each key or stores it in a table.

use crate::Validity;

/// Visits the rows from last to first and reports the first visited row of each key. Stops when
/// `remaining` keys have been found. Key 0 is null, and key `c + 1` is code `c`.
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

/// Stores the last row of each code in `last[code]`. Entries for codes without a row are unchanged.
pub fn note_last_rows(codes: &[i32], validity: Option<Validity<'_>>, last: &mut [u32]) {
    let mut note = |row: usize, code: i32| {
        if let Some(position) = last.get_mut(code as u32 as usize) {
            *position = row as u32;
        }
    };
    match validity {
        None => codes.iter().enumerate().for_each(|(row, &code)| note(row, code)),
        Some(validity) => validity.for_each_run(0..codes.len(), |rows| {
            for row in rows {
                note(row, codes[row]);
            }
        }),
    }
}
