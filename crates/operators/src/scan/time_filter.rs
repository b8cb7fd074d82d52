//! Converts comparisons of the designated timestamp with constants into time ranges.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator};
use tidemark_storage::{TableSnapshot, TimeRange};

/// Returns the range of the designated timestamp selected by a filter, if the filter does not test
/// anything else.
pub(crate) fn range_in(table: &TableSnapshot, filter: &Expr) -> Option<TimeRange> {
    let definition = table.schema();
    range_of(filter, &definition.columns.get(definition.timestamp?)?.name)
}

/// Returns the range selected by comparing the timestamp with constants, including BETWEEN; `None`
/// for any other expression.
fn range_of(filter: &Expr, timestamp: &str) -> Option<TimeRange> {
    match filter {
        Expr::BinaryExpr(binary) => {
            if let (Some(()), Some(value)) =
                (column_named(&binary.left, timestamp), constant(&binary.right))
            {
                return compare(binary.op, value);
            }
            let value = constant(&binary.left)?;
            column_named(&binary.right, timestamp)?;
            compare(binary.op.swap()?, value)
        }
        Expr::Between(between) if !between.negated => {
            column_named(&between.expr, timestamp)?;
            let (low, high) = (constant(&between.low)?, constant(&between.high)?);
            Some(TimeRange { lo: low, hi: high.saturating_add(1) })
        }
        _ => None,
    }
}

fn column_named(expr: &Expr, name: &str) -> Option<()> {
    matches!(expr, Expr::Column(column) if column.name == name).then_some(())
}

fn constant(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) => timestamp(value),
        _ => None,
    }
}

/// Returns a timestamp as an integer.
pub(super) fn timestamp(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampMicrosecond(value, None)
        | ScalarValue::TimestampNanosecond(value, None) => *value,
        _ => None,
    }
}

/// Returns the times that satisfy a comparison with a value.
pub(super) fn compare(op: Operator, value: i64) -> Option<TimeRange> {
    let after = value.saturating_add(1);
    let (lo, hi) = match op {
        Operator::Lt => (i64::MIN, value),
        Operator::LtEq => (i64::MIN, after),
        Operator::Gt => (after, i64::MAX),
        Operator::GtEq => (value, i64::MAX),
        Operator::Eq | Operator::IsNotDistinctFrom => (value, after),
        _ => return None,
    };
    Some(TimeRange { lo, hi })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::{col, lit};

    fn micros(value: i64) -> Expr {
        lit(ScalarValue::TimestampMicrosecond(Some(value), None))
    }

    #[test]
    fn timestamp_comparisons_become_half_open_ranges() {
        let range = |filter: Expr| range_of(&filter, "ts").map(|range| (range.lo, range.hi));
        assert_eq!(range(col("ts").lt(micros(5))), Some((i64::MIN, 5)));
        assert_eq!(range(micros(5).lt(col("ts"))), Some((6, i64::MAX)));
        assert_eq!(range(col("ts").eq(micros(5))), Some((5, 6)));
        assert_eq!(range(col("ts").between(micros(1), micros(2))), Some((1, 3)));
        assert_eq!(range(col("other").lt(micros(5))), None);
        assert_eq!(range(col("ts").not_eq(micros(5))), None);
    }
}
