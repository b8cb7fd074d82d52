//! Between which integers the values of a scan's column lie.

use std::ops::Range;

use arrow_array::Array;
use datafusion::common::Result;
use tidemark_storage::{Bounds, Slice, Zone};
use tidemark_types::account;

use super::exec::SliceScan;
use crate::error::engine_error;

/// Rows that are looked at for want of zones, at most.
const MAX_WITHOUT_ZONES: usize = 1 << 20;

/// The least and the greatest value of an output column, if that is quickly found and they are no
/// further apart than `most`. Nulls are none of them.
pub(crate) fn integer_bounds(
    scan: &SliceScan,
    output: usize,
    most: u64,
) -> Result<Option<(i64, i64)>> {
    let Some(&column) = scan.projection().get(output) else { return Ok(None) };
    let (mut found, mut left) = (Found::default(), MAX_WITHOUT_ZONES);
    for unit in scan.units() {
        account::check().map_err(engine_error)?;
        let zones = match unit.slice.zones(column, unit.rows.clone()) {
            Some(zones) => zones,
            None if unit.slice.is_plain() && unit.rows.len() <= left => {
                left -= unit.rows.len();
                zones_of(&unit.slice, column, unit.rows.clone())?
            }
            None => return Ok(None),
        };
        for (_, zone) in zones {
            if !zone.is_some_and(|zone| found.add(&zone, most)) {
                return Ok(None);
            }
        }
    }
    // Of nulls alone any bounds are those.
    Ok(Some(found.0.unwrap_or_default()))
}

/// The same of rows that no file has.
fn zones_of(
    slice: &Slice,
    column: usize,
    rows: Range<usize>,
) -> Result<Vec<(Range<usize>, Option<Zone>)>> {
    let cells = slice.columns(&[column], rows.clone()).map_err(engine_error)?;
    let zones = cells.iter().filter(|cells| !cells.is_empty());
    Ok(zones.map(|cells| (rows.clone(), Zone::of(cells.as_ref()))).collect())
}

#[derive(Default)]
struct Found(Option<(i64, i64)>);

impl Found {
    /// Takes a zone in; `false` if that is no use.
    fn add(&mut self, zone: &Zone, most: u64) -> bool {
        let Bounds::Integer(least, greatest) = zone.bounds else { return false };
        if zone.is_null {
            return true;
        }
        let (least, greatest) = match self.0 {
            Some(known) => (known.0.min(least), known.1.max(greatest)),
            None => (least, greatest),
        };
        self.0 = Some((least, greatest));
        greatest.abs_diff(least) <= most
    }
}
