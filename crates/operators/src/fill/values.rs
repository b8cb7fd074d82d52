//! What missing cells become: arrays in, arrays out.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, UInt32Array};
use arrow_schema::DataType;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{cast, concat, is_not_null, take};
use datafusion::common::{Result, ScalarValue};

use super::node::FillValue;

/// The full grid of a result: buckets by keys, and the input row of each cell.
pub(crate) struct Cells {
    /// Timestamps of the buckets, ascending.
    pub(crate) labels: Vec<i64>,
    /// Number of keys, at least 1.
    pub(crate) keys: usize,
    /// Input row of each cell, bucket by bucket; `u32::MAX` where the input has none.
    pub(crate) rows: Vec<u32>,
}

const MISSING: u32 = u32::MAX;

impl Cells {
    /// A column over all cells.
    pub(crate) fn fill(&self, column: &ArrayRef, value: &FillValue) -> Result<ArrayRef> {
        let filled = match value {
            FillValue::Null => take(column, &self.known(), None)?,
            FillValue::Prev | FillValue::PrevOf(_) => take(column, &self.previous(), None)?,
            FillValue::Constant(constant) => self.constant(column, constant)?,
            FillValue::Linear if is_number(column.data_type()) => self.linear(column)?,
            FillValue::Linear => take(column, &self.known(), None)?,
        };
        without_null(filled)
    }

    /// A column over all cells; missing ones hold the previous known value of another column.
    pub(crate) fn fill_from(&self, column: &ArrayRef, other: &ArrayRef) -> Result<ArrayRef> {
        let other = cast(other, column.data_type())?;
        let both = concat(&[column.as_ref(), other.as_ref()])?;
        let after = column.len() as u32;
        let previous = self.previous();
        let rows = self.rows.iter().zip(&previous).map(|(&row, previous)| {
            if row == MISSING { previous.map(|previous| after + previous) } else { Some(row) }
        });
        without_null(take(&both, &rows.collect::<UInt32Array>(), None)?)
    }

    fn known(&self) -> UInt32Array {
        self.rows.iter().map(|&row| (row != MISSING).then_some(row)).collect()
    }

    fn previous(&self) -> UInt32Array {
        let mut last = vec![MISSING; self.keys];
        let cells = self.rows.iter().enumerate().map(|(cell, &row)| {
            let slot = &mut last[cell % self.keys];
            if row != MISSING {
                *slot = row;
            }
            (*slot != MISSING).then_some(*slot)
        });
        cells.collect()
    }

    fn constant(&self, column: &ArrayRef, constant: &ScalarValue) -> Result<ArrayRef> {
        let constant = cast(&constant.to_array()?, column.data_type())?;
        let with_constant = concat(&[column.as_ref(), constant.as_ref()])?;
        let after = column.len() as u32;
        let rows = self.rows.iter().map(|&row| if row == MISSING { after } else { row });
        Ok(take(&with_constant, &UInt32Array::from_iter_values(rows), None)?)
    }

    /// Missing cells on the line between the key's known neighbours. A null is not known.
    fn linear(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let known = take(column, &self.known(), None)?;
        let points = as_doubles(&known)?;
        let points = points.as_primitive::<Float64Type>();
        let mut lines: Vec<Option<f64>> = vec![None; self.rows.len()];
        for key in 0..self.keys {
            let mut left: Option<usize> = None;
            for cell in (key..self.rows.len()).step_by(self.keys) {
                if points.is_null(cell) {
                    continue;
                }
                if let Some(left) = left {
                    self.draw(points, left, cell, &mut lines);
                }
                left = Some(cell);
            }
        }
        let lines: ArrayRef = Arc::new(Float64Array::from(lines));
        let lines = from_doubles(&lines, column.data_type())?;
        let is_known: BooleanArray = is_not_null(&known)?;
        Ok(zip(&is_known, &known, &lines)?)
    }

    fn draw(&self, points: &Float64Array, left: usize, right: usize, lines: &mut [Option<f64>]) {
        let time = |cell: usize| self.labels[cell / self.keys];
        let span = time(right).wrapping_sub(time(left)) as f64;
        let rise = points.value(right) - points.value(left);
        for cell in (left + self.keys..right).step_by(self.keys) {
            let way = time(cell).wrapping_sub(time(left)) as f64 / span;
            lines[cell] = Some(points.value(left) + rise * way);
        }
    }
}

/// Types without null hold false and 0 instead.
fn without_null(filled: ArrayRef) -> Result<ArrayRef> {
    match filled.data_type() {
        DataType::Boolean | DataType::Int8 | DataType::Int16 if filled.null_count() > 0 => {
            let zero = ScalarValue::new_zero(filled.data_type())
                .unwrap_or(ScalarValue::Boolean(Some(false)));
            Ok(zip(&is_not_null(&filled)?, &filled, &zero.to_scalar()?)?)
        }
        _ => Ok(filled),
    }
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || matches!(data_type, DataType::Timestamp(_, _))
}

fn as_doubles(column: &ArrayRef) -> Result<ArrayRef> {
    if let DataType::Timestamp(_, _) = column.data_type() {
        return Ok(cast(&cast(column, &DataType::Int64)?, &DataType::Float64)?);
    }
    Ok(cast(column, &DataType::Float64)?)
}

fn from_doubles(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if let DataType::Timestamp(_, _) = wanted {
        return Ok(cast(&cast(column, &DataType::Int64)?, wanted)?);
    }
    Ok(cast(column, wanted)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, types::Int64Type};

    fn fill(value: &FillValue) -> Vec<Option<i64>> {
        // Two keys, four buckets; key 0 has rows in buckets 0 and 3, key 1 in bucket 1.
        let rows = vec![0, MISSING, MISSING, 1, MISSING, MISSING, 2, MISSING];
        let cells = Cells { labels: vec![0, 10, 20, 30], keys: 2, rows };
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 7, 6]));
        let filled = cells.fill(&column, value).unwrap();
        filled.as_primitive::<Int64Type>().iter().collect()
    }

    #[test]
    fn each_value_fills_its_way() {
        let (one, seven, six) = (Some(1), Some(7), Some(6));
        assert_eq!(fill(&FillValue::Null), [one, None, None, seven, None, None, six, None]);
        assert_eq!(fill(&FillValue::Prev), [one, None, one, seven, one, seven, six, seven]);
        let zero = Some(0);
        let constant = FillValue::Constant(ScalarValue::Int64(zero));
        assert_eq!(fill(&constant), [one, zero, zero, seven, zero, zero, six, zero]);
        let (two, four) = (Some(2), Some(4));
        assert_eq!(fill(&FillValue::Linear), [one, None, two, seven, four, None, six, None]);
    }
}
