//! Tests comparisons of a number with a constant on whole blocks of a table. Blocks that cannot
//! contain a match are not read.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use tidemark_storage::{Bounds, Slice, Zone};

use super::exec::SliceScan;

type Expr = Arc<dyn PhysicalExpr>;

/// Doubles whose difference is less than this may compare as equal.
const TOLERANCE: f64 = 1e-9;

/// Tests whether a column is less than, greater than or equal to a constant. Nulls never pass.
#[derive(Debug)]
pub(super) struct ZoneTest {
    /// Column of the scan.
    column: usize,
    op: Operator,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Double(f64),
    Integer(i64),
}

impl ZoneTest {
    /// Compiles a predicate if it compares a number with a constant.
    pub(super) fn new(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let (left, op, right) = compared(certain(predicate))?;
        let (column, op, value) = match left.downcast_ref::<Column>() {
            Some(column) => (column, op, right),
            None => (right.downcast_ref::<Column>()?, op.swap()?, left),
        };
        let value = match value.downcast_ref::<Literal>()?.value() {
            ScalarValue::Float64(Some(value)) if value.is_finite() => Value::Double(*value),
            ScalarValue::Int64(Some(value)) => Value::Integer(*value),
            ScalarValue::Int32(Some(value)) => Value::Integer(i64::from(*value)),
            ScalarValue::Int16(Some(value)) => Value::Integer(i64::from(*value)),
            ScalarValue::Int8(Some(value)) => Value::Integer(i64::from(*value)),
            _ => return None,
        };
        let orders = [Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq, Operator::Eq];
        let data_type = scan.schema().field(column.index()).data_type();
        let fits = match value {
            Value::Double(_) => *data_type == DataType::Float64,
            Value::Integer(_) => data_type.is_signed_integer(),
        };
        (fits && orders.contains(&op)).then(|| Self { column: column.index(), op, value })
    }

    /// Whether any row in the zone may pass.
    fn may_match(&self, zone: &Zone) -> bool {
        // Whether the zone's minimum may be below the constant, and whether its maximum may be
        // above it.
        let (least_below, greatest_above) = match (zone.bounds, &self.value) {
            (Bounds::Double(min, greatest), Value::Double(value)) => {
                let near = TOLERANCE.max(value.abs() * f64::EPSILON);
                (min <= value + near, greatest >= value - near)
            }
            (Bounds::Integer(min, greatest), Value::Integer(value)) => match self.op {
                Operator::Lt => (min < *value, true),
                Operator::Gt => (true, greatest > *value),
                _ => (min <= *value, greatest >= *value),
            },
            _ => return true,
        };
        match self.op {
            Operator::Lt | Operator::LtEq => least_below,
            Operator::Gt | Operator::GtEq => greatest_above,
            _ => least_below && greatest_above,
        }
    }
}

/// Returns the condition inside `condition IS NOT DISTINCT FROM true`, or the predicate itself.
pub(super) fn certain(predicate: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    let Some(comparison) = predicate.downcast_ref::<BinaryExpr>() else { return predicate };
    let right = comparison.right().downcast_ref::<Literal>();
    let is_true = right.is_some_and(|right| *right.value() == ScalarValue::Boolean(Some(true)));
    let is_certain = *comparison.op() == Operator::IsNotDistinctFrom && is_true;
    if is_certain { comparison.left() } else { predicate }
}

/// Returns both sides of a numeric comparison.
pub(super) fn compared(predicate: &Expr) -> Option<(&Expr, Operator, &Expr)> {
    if let Some(comparison) = predicate.downcast_ref::<BinaryExpr>() {
        return Some((comparison.left(), *comparison.op(), comparison.right()));
    }
    let call = predicate.downcast_ref::<ScalarFunctionExpr>()?;
    // The function names in `DOUBLE_COMPARISONS`.
    let op = match call.name() {
        "double_less" => Operator::Lt,
        "double_less_or_equal" => Operator::LtEq,
        "double_greater" => Operator::Gt,
        "double_greater_or_equal" => Operator::GtEq,
        "double_equal" => Operator::Eq,
        _ => return None,
    };
    let [left, right] = call.args() else { return None };
    Some((left, op, right))
}

/// Returns the row ranges of a slice in which all tests may be satisfied.
pub(super) fn matching_ranges(
    tests: &[ZoneTest],
    scan: &SliceScan,
    slice: &Slice,
    rows: Range<usize>,
) -> Vec<Range<usize>> {
    let mut ranges = vec![rows];
    for test in tests {
        let column = scan.projection()[test.column];
        let left = |rows| blocks(slice, column, rows, |zone| test.may_match(zone));
        ranges = joined(ranges.into_iter().flat_map(left));
    }
    ranges
}

/// Returns the blocks, within some rows, in which a table column may have a match.
pub(crate) fn blocks(
    slice: &Slice,
    column: usize,
    rows: Range<usize>,
    may_hold: impl Fn(&Zone) -> bool,
) -> Vec<Range<usize>> {
    let Some(zones) = slice.zones(column, rows.clone()) else { return vec![rows] };
    let left = zones.into_iter().filter(|(_, zone)| zone.as_ref().is_none_or(&may_hold));
    joined(left.map(|(rows, _)| rows))
}

/// Merges adjacent row ranges.
fn joined(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = vec![];
    for rows in ranges {
        match joined.last_mut() {
            Some(last) if last.end == rows.start => last.end = rows.end,
            _ => joined.push(rows),
        }
    }
    joined
}
