//! Computes a chunk's cells as arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::DataType;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{cast, concat, is_not_null, take};
use datafusion::common::{Result, ScalarValue};
use tidemark_types::account;

use super::node::FillValue;
use crate::error::engine_error;

/// Marks a missing row.
pub(super) const MISSING: u32 = u32::MAX;

/// Cells of the grid, ordered by bucket and then by key.
#[derive(Default)]
pub(super) struct Cells {
    labels: Vec<i64>,
    keys: Vec<usize>,
    /// Each cell's input row; [`MISSING`] if the input has none.
    rows: Vec<u32>,
    /// Latest input row for each cell's key.
    newest: Vec<u32>,
}

impl Cells {
    pub(super) fn push(&mut self, label: i64, key: usize, row: u32, newest: u32) {
        self.labels.push(label);
        self.keys.push(key);
        self.rows.push(row);
        self.newest.push(newest);
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn labels(&self) -> &[i64] {
        &self.labels
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = usize> {
        self.keys.iter().copied()
    }

    fn known(&self) -> UInt32Array {
        self.rows.iter().map(|&row| (row != MISSING).then_some(row)).collect()
    }
}

/// Source of a missing cell's value.
pub(super) enum Missing {
    Null,
    /// The row with this index.
    Row(u32),
    /// The row at this offset from the latest row of the cell's key.
    Newest(u32),
}

/// Source of a column's values.
pub(super) enum Values {
    Taken { source: ArrayRef, missing: Missing },
    Line(Line),
}

impl Values {
    /// Creates the values of a column of `input`. `key_of_row` contains each row's key.
    pub(super) fn new(
        column: &ArrayRef,
        value: &FillValue,
        input: &RecordBatch,
        key_of_row: &[usize],
        keys: usize,
    ) -> Result<Self> {
        let after = column.len() as u32;
        let (more, missing) = match value {
            FillValue::Linear if is_number(column.data_type()) => {
                return Line::new(column, key_of_row, keys).map(Self::Line);
            }
            FillValue::Null | FillValue::Linear => (None, Missing::Null),
            FillValue::Prev => (None, Missing::Newest(0)),
            FillValue::PrevOf(of) => (Some(Arc::clone(input.column(*of))), Missing::Newest(after)),
            FillValue::Constant(constant) => (Some(constant.to_array()?), Missing::Row(after)),
        };
        let Some(more) = more else {
            return Ok(Self::Taken { source: Arc::clone(column), missing });
        };
        let more = cast(&more, column.data_type())?;
        let bytes = column.get_array_memory_size() + more.get_array_memory_size();
        account::check_allocation(bytes).map_err(engine_error)?;
        Ok(Self::Taken { source: concat(&[column.as_ref(), more.as_ref()])?, missing })
    }

    /// Returns the column's cells. Chunks must be requested in order. `times` contains the
    /// timestamps of the input rows.
    pub(super) fn of(&mut self, cells: &Cells, times: &[i64]) -> Result<ArrayRef> {
        let (source, missing) = match self {
            Self::Line(line) => return line.of(cells, times).and_then(without_null),
            Self::Taken { source, missing } => (source, missing),
        };
        let rows = cells.rows.iter().zip(&cells.newest);
        let rows = rows.map(|(&row, &newest)| match missing {
            _ if row != MISSING => Some(row),
            Missing::Null => None,
            Missing::Row(row) => Some(*row),
            Missing::Newest(after) => (newest != MISSING).then_some(after.wrapping_add(newest)),
        });
        without_null(take(source, &rows.collect::<UInt32Array>(), None)?)
    }
}

/// Interpolates missing cells between the known neighbours with the same key. A null counts as
/// unknown.
pub(super) struct Line {
    source: ArrayRef,
    points: ArrayRef,
    /// For each known row, the next known row with the same key.
    next: Vec<u32>,
    /// Latest known row of each key.
    left: Vec<u32>,
}

impl Line {
    fn new(source: &ArrayRef, key_of_row: &[usize], keys: usize) -> Result<Self> {
        let points = as_doubles(source)?;
        let (mut next, mut right) = (vec![MISSING; points.len()], vec![MISSING; keys]);
        for (row, &key) in key_of_row.iter().enumerate().rev() {
            if points.is_valid(row) {
                next[row] = std::mem::replace(&mut right[key], row as u32);
            }
        }
        Ok(Self { source: Arc::clone(source), points, next, left: vec![MISSING; keys] })
    }

    fn of(&mut self, cells: &Cells, times: &[i64]) -> Result<ArrayRef> {
        let known = take(&self.source, &cells.known(), None)?;
        let points = self.points.as_primitive::<Float64Type>();
        let mut lines = Vec::with_capacity(cells.len());
        for ((&label, &key), &row) in cells.labels.iter().zip(&cells.keys).zip(&cells.rows) {
            if row != MISSING && points.is_valid(row as usize) {
                self.left[key] = row;
            }
            let left = self.left[key] as usize;
            let right = self.next.get(left).map_or(MISSING, |&right| right) as usize;
            let ends = times.get(left).zip(times.get(right));
            lines.push(ends.map(|(start, end)| {
                let way = label.wrapping_sub(*start) as f64 / end.wrapping_sub(*start) as f64;
                points.value(left) + (points.value(right) - points.value(left)) * way
            }));
        }
        let lines: ArrayRef = Arc::new(Float64Array::from(lines));
        let lines = from_doubles(&lines, self.source.data_type())?;
        Ok(zip(&is_not_null(&known)?, &known, &lines)?)
    }
}

/// Replaces nulls with false or 0 for types that have no null.
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

fn from_doubles(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if let DataType::Timestamp(_, _) = data_type {
        return Ok(cast(&cast(column, &DataType::Int64)?, data_type)?);
    }
    Ok(cast(column, data_type)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, types::Int64Type};

    fn fill(value: &FillValue) -> Vec<Option<i64>> {
        // Two keys and four buckets. Key 0 has rows in buckets 0 and 3; key 1 has rows in bucket 1.
        let no = MISSING;
        let rows = [0, no, no, 1, no, no, 2, no];
        let newest = [0, no, 0, 1, 0, 1, 2, 1];
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 7, 6]));
        let input = RecordBatch::try_from_iter([("c", Arc::clone(&column))]).unwrap();
        let mut values = Values::new(&column, value, &input, &[0, 1, 0], 2).unwrap();
        let mut filled = Vec::new();
        // Requests the cells in two chunks.
        for cells in [0..3, 3..8] {
            let mut chunk = Cells::default();
            for cell in cells {
                chunk.push(cell as i64 / 2 * 10, cell % 2, rows[cell], newest[cell]);
            }
            filled.extend(values.of(&chunk, &[0, 10, 30]).unwrap().as_primitive::<Int64Type>());
        }
        filled
    }

    #[test]
    fn each_fill_mode_fills_missing_cells() {
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
