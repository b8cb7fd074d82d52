//! Naive operators over plain rows, as a reference for the production operators.

#![allow(unreachable_pub)]

use crate::support::Row;

/// Bucket start and symbol, and their rows.
pub type Group = ((i64, Option<String>), Vec<Row>);

/// Rows grouped by bucket start and symbol, in order of bucket, then of first appearance.
pub fn groups(rows: &[Row], step: Option<i64>, keyed: bool) -> Vec<Group> {
    let mut groups: Vec<Group> = vec![];
    for row in rows {
        let bucket = step.map_or(0, |step| row.ts.div_euclid(step) * step);
        let key = (bucket, row.symbol.clone().filter(|_| keyed));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(row.clone()),
            None => groups.push((key, vec![row.clone()])),
        }
    }
    groups
}

/// Returns the last row per symbol in timestamp order. Among rows with equal timestamps, the row
/// stored later is returned.
pub fn latest(rows: &[Row]) -> Vec<Row> {
    let is_last = |(index, row): &(usize, &Row)| {
        !rows[index + 1..].iter().any(|later| later.symbol == row.symbol)
    };
    rows.iter().enumerate().filter(is_last).map(|(_, row)| row.clone()).collect()
}

/// Each left row with the last right row at or before it.
pub fn asof<'a>(
    left: &Row,
    right: &'a [Row],
    keyed: bool,
    strict: bool,
    tolerance: Option<i64>,
) -> Option<&'a Row> {
    let fits = |row: &&Row| {
        (if strict { row.ts < left.ts } else { row.ts <= left.ts })
            && (!keyed || row.symbol == left.symbol)
    };
    let found = right.iter().rev().find(fits)?;
    tolerance.is_none_or(|tolerance| left.ts - found.ts <= tolerance).then_some(found)
}
