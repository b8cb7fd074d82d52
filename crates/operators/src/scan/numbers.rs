//! Comparisons of a number with a value that is known when the scan runs. Each is a range, and so
//! are those of one column together, `BETWEEN` among them: one pass over the column in vectors.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer};
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

/// A condition that holds for no null: a number lies on one side of a value.
#[derive(Debug)]
pub(super) struct NumberTest {
    /// The scan's column.
    pub(super) column: usize,
    op: Operator,
    value: Arc<dyn PhysicalExpr>,
    /// The condition itself.
    condition: Condition,
}

/// Numbers that pass, both ends among them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Between {
    Doubles(f64, f64),
    Integers(i64, i64),
}

/// What the tests of a scan are, once their values are known.
#[derive(Debug, Default)]
pub(super) struct Ranges<'a> {
    /// The scan's columns with what passes, each column once.
    pub(super) columns: Vec<(usize, Between)>,
    /// Conditions that are no ranges after all.
    pub(super) others: Vec<&'a Condition>,
}

impl NumberTest {
    /// The test that a predicate is.
    pub(super) fn new(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let (left, op, right) = compared(certain(predicate))?;
        let (column, op, value) = match left.downcast_ref::<Column>() {
            Some(column) => (column, op, right),
            None => (right.downcast_ref::<Column>()?, op.swap()?, left),
        };
        let schema = scan.schema();
        let wanted = schema.field(column.index()).data_type();
        let is_double = *wanted == DataType::Float64;
        let fits = is_double || wanted.is_signed_integer() || is_timestamp(wanted);
        let same_type = value.data_type(schema).is_ok_and(|found| found == *wanted);
        let is_value = collect_columns(value).is_empty() && !is_volatile(value);
        // Doubles are compared by functions of ours: those of `DataFusion` have an order of their
        // own. Those that are nearly equal are equal: that is no range.
        let is_ours = !is_double || certain(predicate).is::<ScalarFunctionExpr>();
        let orders = match op {
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => true,
            Operator::Eq | Operator::IsNotDistinctFrom => !is_double,
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

    /// The numbers that pass; `None` beside a null, and where the value is no number.
    fn between(&self) -> Result<Option<Between>> {
        if let Some(literal) = self.value.downcast_ref::<Literal>() {
            return Ok(between(self.op, literal.value()));
        }
        let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
        match self.value.evaluate(&nothing)? {
            ColumnarValue::Scalar(value) => Ok(between(self.op, &value)),
            ColumnarValue::Array(_) => internal_err!("one value for many rows"),
        }
    }
}

impl<'a> Ranges<'a> {
    pub(super) fn of(tests: &'a [NumberTest]) -> Result<Self> {
        let mut ranges = Self::default();
        for test in tests {
            let Some(found) = test.between()? else {
                ranges.others.push(&test.condition);
                continue;
            };
            match ranges.columns.iter_mut().find(|(column, _)| *column == test.column) {
                Some((_, known)) => *known = known.and(found),
                None => ranges.columns.push((test.column, found)),
            }
        }
        Ok(ranges)
    }
}

impl Between {
    /// What lies in both; of one column they are of one kind.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Doubles(a, b), Self::Doubles(c, d)) => Self::Doubles(a.max(c), b.min(d)),
            (Self::Integers(a, b), Self::Integers(c, d)) => Self::Integers(a.max(c), b.min(d)),
            _ => self,
        }
    }

    /// The rows of a column that pass.
    pub(super) fn passing(self, column: &dyn Array) -> Result<BooleanBuffer> {
        let words = match (self, column.data_type()) {
            (Self::Doubles(least, greatest), DataType::Float64) => {
                let values = column.as_primitive::<Float64Type>().values();
                Some(matching(values, |value| is_within(value, least, greatest)))
            }
            (Self::Integers(least, greatest), data_type) => match data_type {
                DataType::Int8 => within::<Int8Type>(column, least, greatest),
                DataType::Int16 => within::<Int16Type>(column, least, greatest),
                DataType::Int32 => within::<Int32Type>(column, least, greatest),
                DataType::Int64 => within::<Int64Type>(column, least, greatest),
                DataType::Timestamp(unit, None) => match unit {
                    TimeUnit::Millisecond => {
                        within::<TimestampMillisecondType>(column, least, greatest)
                    }
                    TimeUnit::Microsecond => {
                        within::<TimestampMicrosecondType>(column, least, greatest)
                    }
                    TimeUnit::Nanosecond => {
                        within::<TimestampNanosecondType>(column, least, greatest)
                    }
                    TimeUnit::Second => None,
                },
                _ => None,
            },
            _ => None,
        };
        let words = words.ok_or_else(|| internal_datafusion_err!("a range of another type"))?;
        let found = BooleanBuffer::new(Buffer::from_vec(words), 0, column.len());
        Ok(match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => &found & nulls.inner(),
            None => found,
        })
    }
}

fn is_timestamp(data_type: &DataType) -> bool {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond};
    matches!(data_type, DataType::Timestamp(Millisecond | Microsecond | Nanosecond, None))
}

/// Whether a value lies within a closed range.
#[expect(clippy::needless_bitwise_bool, reason = "without a branch the loop is one of vectors")]
#[inline]
fn is_within<T: PartialOrd + Copy>(value: T, least: T, greatest: T) -> bool {
    (value >= least) & (value <= greatest)
}

/// The integers of a column that lie within a range of the widest type.
fn within<P>(column: &dyn Array, least: i64, greatest: i64) -> Option<Vec<u64>>
where
    P: ArrowPrimitiveType,
    P::Native: TryFrom<i64> + PartialOrd,
{
    let values = column.as_primitive_opt::<P>()?.values();
    // Values have the column's type, so that a bound is beyond it where nothing passes alone.
    let bounds = P::Native::try_from(least).ok().zip(P::Native::try_from(greatest).ok());
    Some(match bounds {
        Some((least, greatest)) => matching(values, |value| is_within(value, least, greatest)),
        None => vec![0; values.len().div_ceil(64)],
    })
}

/// The range of a comparison with a value.
fn between(op: Operator, value: &ScalarValue) -> Option<Between> {
    if let ScalarValue::Float64(value) = value {
        let value = value.filter(|value| value.is_finite())?;
        return Some(match op {
            Operator::Lt => Between::Doubles(f64::NEG_INFINITY, value.next_down()),
            Operator::LtEq => Between::Doubles(f64::NEG_INFINITY, value),
            Operator::Gt => Between::Doubles(value.next_up(), f64::INFINITY),
            Operator::GtEq => Between::Doubles(value, f64::INFINITY),
            _ => return None,
        });
    }
    let (value, least, greatest) = match *value {
        ScalarValue::Int8(value) => (i64::from(value?), i64::from(i8::MIN), i64::from(i8::MAX)),
        ScalarValue::Int16(value) => (i64::from(value?), i64::from(i16::MIN), i64::from(i16::MAX)),
        ScalarValue::Int32(value) => (i64::from(value?), i64::from(i32::MIN), i64::from(i32::MAX)),
        ScalarValue::Int64(value)
        | ScalarValue::TimestampMillisecond(value, None)
        | ScalarValue::TimestampMicrosecond(value, None)
        | ScalarValue::TimestampNanosecond(value, None) => (value?, i64::MIN, i64::MAX),
        _ => return None,
    };
    // Of two bounds the wrong way round nothing lies between.
    let nothing = Between::Integers(greatest, least);
    let below = value.checked_sub(1).filter(|below| *below >= least);
    let above = value.checked_add(1).filter(|above| *above <= greatest);
    Some(match op {
        Operator::Lt => below.map_or(nothing, |below| Between::Integers(least, below)),
        Operator::LtEq => Between::Integers(least, value),
        Operator::Gt => above.map_or(nothing, |above| Between::Integers(above, greatest)),
        Operator::GtEq => Between::Integers(value, greatest),
        // Beside a value that is no null both say the same.
        Operator::Eq | Operator::IsNotDistinctFrom => Between::Integers(value, value),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int8Array, Int64Array, TimestampMicrosecondArray};

    use super::*;

    const OPERATORS: [Operator; 6] = [
        Operator::Lt,
        Operator::LtEq,
        Operator::Gt,
        Operator::GtEq,
        Operator::Eq,
        Operator::IsNotDistinctFrom,
    ];

    fn holds<T: PartialOrd>(op: Operator, left: &T, right: &T) -> bool {
        match op {
            Operator::Lt => left < right,
            Operator::LtEq => left <= right,
            Operator::Gt => left > right,
            Operator::GtEq => left >= right,
            _ => left == right,
        }
    }

    /// The rows that pass are those for which the comparison holds; a null is none of them.
    fn check<T: PartialOrd>(
        values: &[Option<T>],
        column: &dyn Array,
        scalar: impl Fn(&T) -> ScalarValue,
    ) {
        for bound in values.iter().flatten() {
            for op in OPERATORS {
                let Some(found) = between(op, &scalar(bound)) else {
                    assert!(matches!(op, Operator::Eq | Operator::IsNotDistinctFrom));
                    continue;
                };
                let found: Vec<bool> = found.passing(column).unwrap().iter().collect();
                let hold =
                    |value: &Option<T>| value.as_ref().is_some_and(|value| holds(op, value, bound));
                assert_eq!(found, values.iter().map(hold).collect::<Vec<_>>(), "{op}");
            }
        }
    }

    #[test]
    fn ranges_pass_what_the_comparison_passes() {
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
    fn beside_a_null_there_is_no_range() {
        assert_eq!(between(Operator::Lt, &ScalarValue::Float64(None)), None);
        assert_eq!(between(Operator::Lt, &ScalarValue::Int64(None)), None);
        assert_eq!(between(Operator::Lt, &ScalarValue::Float64(Some(f64::NAN))), None);
        assert_eq!(between(Operator::Eq, &ScalarValue::Float64(Some(1.0))), None);
    }

    #[test]
    fn ranges_of_one_column_are_one() {
        let of = |op, value| between(op, &ScalarValue::Int64(Some(value))).unwrap();
        let both = of(Operator::GtEq, 3).and(of(Operator::Lt, 9));
        assert_eq!(both, Between::Integers(3, 8));
        let column = Int64Array::from(vec![2, 3, 8, 9]);
        let passing = |range: Between| range.passing(&column).unwrap().iter().collect::<Vec<_>>();
        assert_eq!(passing(both), [false, true, true, false]);
        let nothing = of(Operator::Gt, i64::MAX).and(of(Operator::Gt, 0));
        assert_eq!(passing(nothing), [false; 4]);
    }
}
