//! Keys: equal values get equal bits before they are hashed, sorted or encoded.
//!
//! Both zeros share one key, and so do all NaNs, including within arrays. Periods of equal length
//! share one key: `1 day` and `24 hours`. Stored values never change; only the copies that are used
//! to group, join, sort and deduplicate do.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, IntervalMonthDayNanoType};
use arrow_array::{Array, ArrayRef, LargeListArray, StructArray};
use arrow_schema::{DataType, IntervalUnit};

use crate::period::Period;

/// Whether equal values of this type may have different bits.
#[must_use]
pub fn has_equal_forms(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 | DataType::Interval(IntervalUnit::MonthDayNano) => {
            true
        }
        DataType::Struct(fields) => fields.iter().any(|field| {
            let list = field.data_type();
            matches!(list, DataType::LargeList(item) if *item.data_type() == DataType::Float64)
        }),
        _ => false,
    }
}

/// Converts values to keys, as described in the module documentation.
#[must_use]
pub fn key_values(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let one = |value| Period::from(value).canonical().native().unwrap_or(value);
            let values = values.as_primitive::<IntervalMonthDayNanoType>();
            Arc::new(values.unary::<_, IntervalMonthDayNanoType>(one))
        }
        DataType::Struct(_) => array_keys(values).unwrap_or_else(|| Arc::clone(values)),
        _ => Arc::clone(values),
    }
}

/// Converts DOUBLE[] cells to keys; `None` for any other struct.
fn array_keys(values: &ArrayRef) -> Option<ArrayRef> {
    let cells = values.as_struct_opt()?;
    let [shape, elements] = cells.columns() else { return None };
    let lists = elements.as_list_opt::<i64>()?;
    let DataType::LargeList(item) = lists.data_type() else { return None };
    let (item, nulls) = (Arc::clone(item), lists.nulls().cloned());
    let elements = key_values(lists.values());
    let lists = LargeListArray::try_new(item, lists.offsets().clone(), elements, nulls).ok()?;
    let columns = vec![Arc::clone(shape), Arc::new(lists) as ArrayRef];
    let keys = StructArray::try_new(cells.fields().clone(), columns, cells.nulls().cloned());
    Some(Arc::new(keys.ok()?))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Float64Array, Int64Array};

    use super::*;

    #[test]
    fn no_numbers_share_a_key_except_positive_and_negative_zero() {
        let values = [0.0, -0.0, 1.5, -1.5, f64::MIN_POSITIVE, f64::MAX];
        let doubles: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        let keys = key_values(&doubles);
        let keys = keys.as_primitive::<Float64Type>();
        assert_eq!(keys.value(0).to_bits(), keys.value(1).to_bits());
        for (row, value) in values.into_iter().enumerate().skip(2) {
            assert_eq!(keys.value(row).to_bits(), value.to_bits());
        }
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![Some(-0.0), None]));
        let keys = key_values(&floats);
        let keys = keys.as_primitive::<Float32Type>();
        assert!(keys.value(0).is_sign_positive() && keys.is_null(1));
        let integers: ArrayRef = Arc::new(Int64Array::from(vec![0, 1]));
        assert!(Arc::ptr_eq(&key_values(&integers), &integers));
    }
}
