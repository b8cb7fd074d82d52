//! Comparisons of a sub-query's rows with the outer rows, in addition to equal keys. To find out
//! whether any row of a key passes, only its minimum value, its maximum value and null are tested.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection, col, lit,
};

use super::domain::Domain;
use super::rewrite::rewritten;
use super::subquery::has_subquery;
use crate::conditions::any_of;

/// A test that compares a row value with a domain value.
pub(super) struct Compared<'e> {
    test: &'e Expr,
    pub(super) own: &'e Expr,
    ends: &'static [&'static str],
    data_type: DataType,
    may_be_null: bool,
}

const LEAST: &str = "least";
const GREATEST: &str = "greatest";
const NULLS: &str = "nulls";

/// Returns the comparison in a test. The test may also treat two nulls as equal.
fn compared(test: &Expr) -> Option<&BinaryExpr> {
    match test {
        Expr::IsTrue(inner) => compared(inner),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let comparison = compared(left)?;
            is_both_null(right, comparison).then_some(comparison)
        }
        Expr::BinaryExpr(comparison) => Some(comparison),
        _ => None,
    }
}

/// Whether a test requires both sides to be null.
fn is_both_null(test: &Expr, BinaryExpr { left, right, .. }: &BinaryExpr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left: one, op: Operator::And, right: other }) = test else {
        return false;
    };
    **one == Expr::IsNull(left.clone()) && **other == Expr::IsNull(right.clone())
}

/// Whether a type's values are totally ordered.
fn is_ordered(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Timestamp(_, None) | DataType::Date32)
}

/// Replaces the compared value `own` in the test with `value`.
fn with(test: &Expr, own: &Expr, value: &Expr) -> Result<Expr> {
    rewritten(test.clone(), &mut |node| Ok((node == own).then(|| value.clone())))
}

impl Domain {
    /// Returns the comparison in a test over rows with this schema.
    pub(super) fn comparison<'e>(
        &self,
        test: &'e Expr,
        schema: &DFSchema,
    ) -> Result<Option<Compared<'e>>> {
        let Some(BinaryExpr { left, op, right }) = compared(test) else { return Ok(None) };
        let (own, op) = if self.is_outer(right) {
            (left, *op)
        } else if self.is_outer(left) {
            (right, op.swap().unwrap_or(*op))
        } else {
            return Ok(None);
        };
        let ends: &[&str] = match op {
            Operator::Lt | Operator::LtEq => &[LEAST],
            Operator::Gt | Operator::GtEq => &[GREATEST],
            Operator::NotEq | Operator::IsDistinctFrom => &[LEAST, GREATEST],
            _ => return Ok(None),
        };
        let is_plain = !self.in_expr(own) && !has_subquery(own) && !own.is_volatile();
        let data_type = own.get_type(schema)?;
        if !is_plain || own.column_refs().is_empty() || !is_ordered(&data_type) {
            return Ok(None);
        }
        let may_be_null = own.nullable(schema)?;
        Ok(Some(Compared { test, own, ends, data_type, may_be_null }))
    }

    /// Name of the compared column before rows are reduced to one per key.
    pub(super) fn name_of_value(&self) -> String {
        self.name_of_end("value")
    }

    /// Reduces the rows to one per key, with the minimum, the maximum and whether any value is
    /// null.
    pub(super) fn ends(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let value = self.name_of_value();
        let mut keys = plan.schema().columns();
        keys.retain(|column| column.name != value);
        let keys: Vec<_> = keys.into_iter().map(Expr::Column).collect();
        let value = col(value);
        let all = [min(value.clone()), max(value.clone()), count(lit(1)), count(value)];
        let [lowest, greatest, rows, known] =
            [LEAST, GREATEST, "rows", "known"].map(|name| self.name_of_end(name));
        let names = [&lowest, &greatest, &rows, &known];
        let all = all.into_iter().zip(names).map(|(value, name)| value.alias(name));
        let groups = Aggregate::try_new(Arc::new(plan), keys.clone(), all.collect())?;
        let nulls = col(rows).gt(col(known)).alias(self.name_of_end(NULLS));
        let columns = keys.into_iter().chain([col(lowest), col(greatest), nulls]).collect();
        let groups = Arc::new(LogicalPlan::Aggregate(groups));
        Ok(LogicalPlan::Projection(Projection::try_new(columns, groups)?))
    }

    /// Whether at least one row of a key passes the test, based on the output of [`Self::ends`].
    pub(super) fn between_ends(&self, compared: &Compared<'_>) -> Result<Expr> {
        let Compared { test, own, ends, data_type, may_be_null } = compared;
        let end = |name: &&str| with(test, own, &col(self.name_of_end(name)));
        let mut passes = ends.iter().map(end).collect::<Result<Vec<_>>>()?;
        if *may_be_null {
            let null = Expr::Literal(ScalarValue::try_from(data_type)?, None);
            passes.push(col(self.name_of_end(NULLS)).and(with(test, own, &null)?));
        }
        Ok(any_of(passes).unwrap_or_default())
    }
}
