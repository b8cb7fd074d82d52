//! Comparisons of a number with a value that is known when the scan runs. Each comparison is a
//! range. All ranges on one column, including `BETWEEN`, are combined and need a single vectorised
//! pass over the column. `<>` needs a separate pass.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{DataType, Schema, TimeUnit};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use tidemark_kernels::matching;

use super::exec::SliceScan;
use super::passing::Condition;
use super::zones::{certain, compared};

/// A comparison of a number with a value.
#[derive(Debug)]
pub(super) struct NumberTest {
    /// Column of the scan.
    pub(super) column: usize,
    op: Operator,
    value: Arc<dyn PhysicalExpr>,
    /// The original condition.
    condition: Condition,
}

/// Values that pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Numbers {
    /// A closed range.
    Doubles(f64, f64),
    Integers(i64, i64),
    /// All values except one.
    AllExcept {
        than: i64,
        nulls: bool,
    },
}

/// A scan's tests, once their values are known.
#[derive(Debug, Default)]
pub(super) struct Ranges<'a> {
    /// Scan columns and the values that pass.
    pub(super) columns: Vec<(usize, Numbers)>,
    /// Conditions that turned out not to be ranges.
    pub(super) other_conditions: Vec<&'a Condition>,
}

impl NumberTest {
    /// Compiles a predicate if it compares a number with a value that is known when the scan runs.
    pub(super) fn new(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let (left, op, right) = compared(certain(predicate))?;
        let (column, op, value) = match left.downcast_ref::<Column>() {
            Some(column) => (column, op, right),
            None => (right.downcast_ref::<Column>()?, op.swap()?, left),
        };
        let schema = scan.schema();
        let data_type = schema.field(column.index()).data_type();
        let is_double = *data_type == DataType::Float64;
        let fits = is_double || data_type.is_signed_integer() || is_timestamp(data_type);
        let same_type = value.data_type(schema).is_ok_and(|found| found == *data_type);
        let is_value = collect_columns(value).is_empty() && !is_volatile(value);
        // Doubles must be compared by Tidemark's functions because DataFusion's comparisons use a
        // different order. Equality of doubles has a tolerance, so it is not a range.
        let is_ours = !is_double || certain(predicate).is::<ScalarFunctionExpr>();
        let orders = match op {
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => true,
            Operator::Eq
            | Operator::IsNotDistinctFrom
            | Operator::NotEq
            | Operator::IsDistinctFrom => !is_double,
            _ => false,
        };
        let test = || Self {
            column: column.index(),
            op,
            value: Arc::clone(value),
            condition: Condition::new(scan, predicate),
        };
        (fits && is_ours && same_type && is_value && orders).then(test)
    }

    /// Returns the values that pass; `None` for a comparison with null or with a value that is not
    /// a number.
    fn between(&self) -> Result<Option<Numbers>> {
        if let Some(literal) = self.value.downcast_ref::<Literal>() {
            return Ok(between(self.op, literal.value()));
        }
        let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
        match self.value.evaluate(&nothing)? {
            ColumnarValue::Scalar(value) => Ok(between(self.op, &value)),
            ColumnarValue::Array(_) => internal_err!("expected one value"),
        }
    }
}

impl<'a> Ranges<'a> {
    pub(super) fn of(tests: &'a [NumberTest]) -> Result<Self> {
        let mut ranges = Self::default();
        for test in tests {
            let Some(found) = test.between()? else {
                ranges.other_conditions.push(&test.condition);
                continue;
            };
            let mut own = ranges.columns.iter_mut().filter(|(column, _)| *column == test.column);
            match own.find_map(|(_, known)| Some((known.and(found)?, known))) {
                Some((both, known)) => *known = both,
                None => ranges.columns.push((test.column, found)),
            }
        }
        Ok(ranges)
    }
}

impl Numbers {
    /// Returns the intersection of two ranges.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Doubles(a, b), Self::Doubles(c, d)) => Some(Self::Doubles(a.max(c), b.min(d))),
            (Self::Integers(a, b), Self::Integers(c, d)) => {
                Some(Self::Integers(a.max(c), b.min(d)))
            }
            _ => None,
        }
    }

    /// Returns which rows of a column pass the test.
    pub(super) fn passing(self, column: &dyn Array) -> Result<BooleanBuffer> {
        let words = match (self, column.data_type()) {
            (Self::Doubles(min, greatest), DataType::Float64) => {
                let values = column.as_primitive::<Float64Type>().values();
                Some(matching(values, |value| is_within(value, min, greatest)))
            }
            (_, DataType::Int8) => self.integers::<Int8Type>(column),
            (_, DataType::Int16) => self.integers::<Int16Type>(column),
            (_, DataType::Int32) => self.integers::<Int32Type>(column),
            (_, DataType::Int64) => self.integers::<Int64Type>(column),
            (_, DataType::Timestamp(unit, None)) => match unit {
                TimeUnit::Millisecond => self.integers::<TimestampMillisecondType>(column),
                TimeUnit::Microsecond => self.integers::<TimestampMicrosecondType>(column),
                TimeUnit::Nanosecond => self.integers::<TimestampNanosecondType>(column),
                TimeUnit::Second => None,
            },
            _ => None,
        };
        let words = words.ok_or_else(|| {
            internal_datafusion_err!("a range has a different type than its column")
        })?;
        let found = BooleanBuffer::new(Buffer::from_vec(words), 0, column.len());
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0).map(NullBuffer::inner);
        Ok(match nulls {
            Some(valid) if matches!(self, Self::AllExcept { nulls: true, .. }) => &found | &!valid,
            Some(valid) => &found & valid,
            None => found,
        })
    }

    /// Returns which integers of a column pass.
    fn integers<P>(self, column: &dyn Array) -> Option<Vec<u64>>
    where
        P: ArrowPrimitiveType,
        P::Native: TryFrom<i64> + PartialOrd,
    {
        let values = column.as_primitive_opt::<P>()?.values();
        let (passing, otherwise) = match self {
            Self::Integers(min, greatest) => {
                let ends = P::Native::try_from(min).ok().zip(P::Native::try_from(greatest).ok());
                let within =
                    |(min, greatest)| matching(values, |value| is_within(value, min, greatest));
                (ends.map(within), 0)
            }
            Self::AllExcept { than, .. } => {
                let than = P::Native::try_from(than).ok();
                (than.map(|than| matching(values, |value| value != than)), u64::MAX)
            }
            Self::Doubles(..) => return None,
        };
        // If a bound is outside the range of the column's type, all values are on the same side of
        // it.
        Some(passing.unwrap_or_else(|| vec![otherwise; values.len().div_ceil(64)]))
    }
}

fn is_timestamp(data_type: &DataType) -> bool {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond};
    matches!(data_type, DataType::Timestamp(Millisecond | Microsecond | Nanosecond, None))
}

/// Whether a value is within a closed range.
#[expect(clippy::needless_bitwise_bool, reason = "without a branch, the loop is vectorized")]
#[inline]
fn is_within<T: PartialOrd + Copy>(value: T, min: T, greatest: T) -> bool {
    (value >= min) & (value <= greatest)
}

/// Returns the values that satisfy a comparison.
fn between(op: Operator, value: &ScalarValue) -> Option<Numbers> {
    if let ScalarValue::Float64(value) = value {
        let value = value.filter(|value| value.is_finite())?;
        return Some(match op {
            Operator::Lt => Numbers::Doubles(f64::NEG_INFINITY, value.next_down()),
            Operator::LtEq => Numbers::Doubles(f64::NEG_INFINITY, value),
            Operator::Gt => Numbers::Doubles(value.next_up(), f64::INFINITY),
            Operator::GtEq => Numbers::Doubles(value, f64::INFINITY),
            _ => return None,
        });
    }
    let (value, min, greatest) = match *value {
        ScalarValue::Int8(value) => (i64::from(value?), i64::from(i8::MIN), i64::from(i8::MAX)),
        ScalarValue::Int16(value) => (i64::from(value?), i64::from(i16::MIN), i64::from(i16::MAX)),
        ScalarValue::Int32(value) => (i64::from(value?), i64::from(i32::MIN), i64::from(i32::MAX)),
        ScalarValue::Int64(value)
        | ScalarValue::TimestampMillisecond(value, None)
        | ScalarValue::TimestampMicrosecond(value, None)
        | ScalarValue::TimestampNanosecond(value, None) => (value?, i64::MIN, i64::MAX),
        _ => return None,
    };
    // Reversed bounds form an empty range.
    let nothing = Numbers::Integers(greatest, min);
    let below = value.checked_sub(1).filter(|below| *below >= min);
    let above = value.checked_add(1).filter(|above| *above <= greatest);
    Some(match op {
        Operator::Lt => below.map_or(nothing, |below| Numbers::Integers(min, below)),
        Operator::LtEq => Numbers::Integers(min, value),
        Operator::Gt => above.map_or(nothing, |above| Numbers::Integers(above, greatest)),
        Operator::GtEq => Numbers::Integers(value, greatest),
        // For a non-null value, both operators have the same result.
        Operator::Eq | Operator::IsNotDistinctFrom => Numbers::Integers(value, value),
        Operator::NotEq => Numbers::AllExcept { than: value, nulls: false },
        Operator::IsDistinctFrom => Numbers::AllExcept { than: value, nulls: true },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int8Array, Int64Array, TimestampMicrosecondArray};

    use super::*;

    const OPERATORS: [Operator; 8] = [
        Operator::Lt,
        Operator::LtEq,
        Operator::Gt,
        Operator::GtEq,
        Operator::Eq,
        Operator::IsNotDistinctFrom,
        Operator::NotEq,
        Operator::IsDistinctFrom,
    ];

    fn holds<T: PartialOrd>(op: Operator, left: &T, right: &T) -> bool {
        match op {
            Operator::Lt => left < right,
            Operator::LtEq => left <= right,
            Operator::Gt => left > right,
            Operator::GtEq => left >= right,
            Operator::NotEq | Operator::IsDistinctFrom => left != right,
            _ => left == right,
        }
    }

    /// Checks that a row passes if and only if it satisfies the comparison. Null passes only IS
    /// DISTINCT FROM.
    fn check<T: PartialOrd>(
        values: &[Option<T>],
        column: &dyn Array,
        scalar: impl Fn(&T) -> ScalarValue,
    ) {
        for bound in values.iter().flatten() {
            for op in OPERATORS {
                let Some(found) = between(op, &scalar(bound)) else {
                    assert_eq!(*column.data_type(), DataType::Float64);
                    assert!(!matches!(op, Operator::Lt | Operator::LtEq));
                    assert!(!matches!(op, Operator::Gt | Operator::GtEq));
                    continue;
                };
                let found: Vec<bool> = found.passing(column).unwrap().iter().collect();
                let hold = |value: &Option<T>| match value {
                    Some(value) => holds(op, value, bound),
                    None => op == Operator::IsDistinctFrom,
                };
                assert_eq!(found, values.iter().map(hold).collect::<Vec<_>>(), "{op}");
            }
        }
    }

    #[test]
    fn a_range_accepts_the_same_values_as_the_original_comparison() {
        let doubles = [0.0, -0.0, 1.5, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324];
        let doubles: Vec<Option<f64>> = doubles.map(Some).into_iter().chain([None]).collect();
        let column = Float64Array::from(doubles.clone());
        check(&doubles, &column, |&value| ScalarValue::Float64(Some(value)));
        let bytes: Vec<Option<i8>> = [i8::MIN, -1, 0, 3, i8::MAX].map(Some).into();
        let column = Int8Array::from(bytes.clone());
        check(&bytes, &column, |&value| ScalarValue::Int8(Some(value)));
        let longs = [i64::MIN + 1, -1, 0, 3, i64::MAX].map(Some);
        let longs: Vec<Option<i64>> = longs.into_iter().chain([None]).collect();
        let column = Int64Array::from(longs.clone());
        check(&longs, &column, |&value| ScalarValue::Int64(Some(value)));
        let column = TimestampMicrosecondArray::from(longs.clone());
        check(&longs, &column, |&value| ScalarValue::TimestampMicrosecond(Some(value), None));
    }

    #[test]
    fn comparisons_with_null_have_no_range() {
        assert_eq!(between(Operator::Lt, &ScalarValue::Float64(None)), None);
        assert_eq!(between(Operator::Lt, &ScalarValue::Int64(None)), None);
        assert_eq!(between(Operator::Lt, &ScalarValue::Float64(Some(f64::NAN))), None);
        assert_eq!(between(Operator::Eq, &ScalarValue::Float64(Some(1.0))), None);
    }

    #[test]
    fn ranges_of_one_column_are_intersected() {
        let of = |op, value| between(op, &ScalarValue::Int64(Some(value))).unwrap();
        let both = of(Operator::GtEq, 3).and(of(Operator::Lt, 9)).unwrap();
        assert_eq!(both, Numbers::Integers(3, 8));
        let column = Int64Array::from(vec![2, 3, 8, 9]);
        let passing = |range: Numbers| range.passing(&column).unwrap().iter().collect::<Vec<_>>();
        assert_eq!(passing(both), [false, true, true, false]);
        let nothing = of(Operator::Gt, i64::MAX).and(of(Operator::Gt, 0)).unwrap();
        assert_eq!(passing(nothing), [false; 4]);
    }
}
