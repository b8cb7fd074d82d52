//! Value range of an integer column in a scan.

use std::ops::Range;

use arrow_array::Array;
use datafusion::common::Result;
use tidemark_storage::{Bounds, Slice, Zone};
use tidemark_types::account;

use super::exec::SliceScan;
use crate::error::engine_error;

/// Maximum number of rows to read if zone maps are missing.
const MAX_WITHOUT_ZONES: usize = 1 << 20;

/// Returns the minimum and maximum non-null values of an output column. Returns `None` if they
/// cannot be found quickly or differ by more than `max`.
pub(crate) fn integer_bounds(
    scan: &SliceScan,
    output: usize,
    max: u64,
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
            if !zone.is_some_and(|zone| found.add(&zone, max)) {
                return Ok(None);
            }
        }
    }
    // If a column contains only nulls, any bounds are valid.
    Ok(Some(found.0.unwrap_or_default()))
}

/// Computes the zones for rows that are not stored in a file.
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
    /// Merges a zone. Returns `false` if its bounds are not integers or are more than `max` apart.
    fn add(&mut self, zone: &Zone, max: u64) -> bool {
        let Bounds::Integer(min, greatest) = zone.bounds else { return false };
        if zone.is_null {
            return true;
        }
        let (min, greatest) = match self.0 {
            Some(known) => (known.0.min(min), known.1.max(greatest)),
            None => (min, greatest),
        };
        self.0 = Some((min, greatest));
        greatest.abs_diff(min) <= max
    }
}
