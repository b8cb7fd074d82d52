//! Minimum and maximum of each block in a column. They are computed on first use and cached with
//! the mapped file, whose cells never change. They are not stored in the file.

use std::ops::Range;
use std::sync::OnceLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType, UInt16Type,
};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use tidemark_kernels::{Native, maximum, minimum};

/// Rows per block.
const ZONE_ROWS: usize = 8 * 1024;

/// Statistics about a block's cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zone {
    /// Minimum and maximum.
    pub bounds: Bounds,
    /// Whether any cell is null.
    pub has_nulls: bool,
    /// Whether all cells are null.
    pub is_null: bool,
}

/// Minimum and maximum. For doubles, they may include values stored under nulls. For integers, they
/// include such values only if all cells are null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bounds {
    /// Bounds of DOUBLE and FLOAT.
    Double(f64, f64),
    /// Bounds of integers and timestamps.
    Integer(i64, i64),
}

impl Zone {
    /// Computes the zone of these cells; `None` if they are not numbers.
    #[must_use]
    pub fn of(cells: &dyn Array) -> Option<Self> {
        let bounds = match cells.data_type() {
            DataType::Float64 => double::<Float64Type>(cells),
            DataType::Float32 => double::<Float32Type>(cells),
            DataType::Int64 => integer::<Int64Type>(cells),
            DataType::Int32 => integer::<Int32Type>(cells),
            DataType::Int16 => integer::<Int16Type>(cells),
            DataType::Int8 => integer::<Int8Type>(cells),
            DataType::UInt16 => integer::<UInt16Type>(cells),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                integer::<TimestampMicrosecondType>(cells)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                integer::<TimestampNanosecondType>(cells)
            }
            _ => None,
        };
        let nulls = cells.null_count();
        Some(Self { bounds: bounds?, has_nulls: nulls > 0, is_null: nulls == cells.len() })
    }
}

fn extremes<P: ArrowPrimitiveType<Native: Native>>(
    cells: &dyn Array,
) -> Option<(P::Native, P::Native)> {
    let values = cells.as_primitive_opt::<P>()?.values();
    minimum(values).zip(maximum(values))
}

/// Minimum and maximum of the cells that are not null; `None` if all are null.
fn valid_extremes<P: ArrowPrimitiveType<Native: Native>>(
    cells: &dyn Array,
) -> Option<(P::Native, P::Native)> {
    cells.as_primitive_opt::<P>()?.iter().flatten().fold(None, |found, value| {
        let (min, greatest) = found.unwrap_or((value, value));
        let min = if value < min { value } else { min };
        Some((min, if value > greatest { value } else { greatest }))
    })
}

fn double<P: ArrowPrimitiveType<Native: Native>>(cells: &dyn Array) -> Option<Bounds> {
    let (min, greatest) = extremes::<P>(cells)?;
    let (min, greatest) = (min.to_f64(), greatest.to_f64());
    // NaN makes the bounds unknown.
    (min <= greatest).then_some(Bounds::Double(min, greatest))
}

fn integer<P: ArrowPrimitiveType<Native: Native>>(cells: &dyn Array) -> Option<Bounds> {
    let known = if cells.null_count() > 0 { valid_extremes::<P>(cells) } else { None };
    let (min, greatest) = known.or_else(|| extremes::<P>(cells))?;
    Some(Bounds::Integer(min.to_i64(), greatest.to_i64()))
}

/// The zones computed so far for a column.
#[derive(Debug, Default)]
pub(crate) struct Zones(OnceLock<Box<[OnceLock<Option<Zone>>]>>);

impl Zones {
    /// Returns the zones of some rows, each with the rows that it covers. `cells` is the whole
    /// column.
    pub(crate) fn of(
        &self,
        cells: &dyn Array,
        rows: Range<usize>,
    ) -> Vec<(Range<usize>, Option<Zone>)> {
        let len = cells.len();
        let rows = rows.start..rows.end.min(len);
        let empty = || (0..len.div_ceil(ZONE_ROWS)).map(|_| OnceLock::new()).collect();
        let zones = self.0.get_or_init(empty);
        let zone = |block: usize| {
            let start = block * ZONE_ROWS;
            let own = start.max(rows.start)..rows.end.min(start + ZONE_ROWS);
            let find = || Zone::of(&cells.slice(start, ZONE_ROWS.min(len - start)));
            (own, zones.get(block).and_then(|zone| *zone.get_or_init(find)))
        };
        (rows.start / ZONE_ROWS..rows.end.div_ceil(ZONE_ROWS)).map(zone).collect()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int32Array, StringArray};

    use super::*;

    #[test]
    fn zone_map_bounds_contain_all_cells() {
        let cells: Float64Array = (0..20_000).map(|row| Some(f64::from(row % 9_000))).collect();
        let zones = Zones::default();
        for rows in [0..20_000, 8_000..9_000, 19_999..20_000, 20_000..20_000] {
            let found = zones.of(&cells, rows.clone());
            assert_eq!(found.iter().map(|(own, _)| own.len()).sum::<usize>(), rows.len());
            for (own, zone) in found {
                let Some(Zone { bounds: Bounds::Double(min, greatest), .. }) = zone else {
                    panic!("no zone for {own:?}")
                };
                assert!(own.clone().all(|row| (min..=greatest).contains(&cells.value(row))));
            }
        }
        let first = zones.of(&cells, 0..1)[0].1;
        let bounds = Bounds::Double(0.0, 8_191.0);
        assert_eq!(first, Some(Zone { bounds, has_nulls: false, is_null: false }));
    }

    #[test]
    fn zone_maps_count_nulls_and_exist_only_for_numbers() {
        let cells = Int32Array::from(vec![Some(3), None, Some(-7)]);
        let zone = Zones::default().of(&cells, 0..3)[0].1;
        assert!(zone.is_some_and(|zone| zone.has_nulls));
        assert_eq!(zone.map(|zone| zone.bounds), Some(Bounds::Integer(-7, 3)));
        let cells = Int32Array::from(vec![None, None]);
        assert!(Zones::default().of(&cells, 0..2)[0].1.is_some_and(|zone| zone.is_null));
        let doubles = Float64Array::from(vec![f64::NAN, 1.0]);
        assert_eq!(Zones::default().of(&doubles, 0..2)[0].1, None);
        assert_eq!(Zones::default().of(&StringArray::from(vec!["a"]), 0..1)[0].1, None);
    }
}
