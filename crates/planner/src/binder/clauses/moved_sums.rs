//! Rewrites `sum(x + k)` to `sum(x) + k * count(x)`: many sums that differ only in the constant `k`
//! then need only two aggregates.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, lit};
use hashbrown::HashMap;
use tidemark_ast::BinaryOperator;
use tidemark_functions::{Argument, moved_by_constant, resolve_aggregate, resolve_operator};
use tidemark_types::SqlType;

/// Minimum number of sums for which the rewrite is used.
const MIN_SUMS: usize = 3;

/// A sum that can be rewritten. Its argument is a constant plus an integer of at most 32 bits, so
/// the rewrite cannot overflow.
pub(crate) struct MovedSum {
    pub(crate) sum: Expr,
    pub(crate) count: Expr,
    constant: i64,
}

impl MovedSum {
    fn of(aggregate: &Expr) -> Option<Self> {
        let Expr::AggregateFunction(call) = aggregate else { return None };
        let is_plain = !call.params.distinct
            && call.params.order_by.is_empty()
            && call.params.null_treatment.is_none();
        let ([argument], "sum", true) = (call.params.args.as_slice(), call.func.name(), is_plain)
        else {
            return None;
        };
        let (moved, constant) = moved_by_constant(argument)?;
        let same = |name: &str| {
            let resolved =
                resolve_aggregate(name, false, &[Argument::column(SqlType::Long)]).ok()?;
            let is_of_longs =
                resolved.argument_types == [SqlType::Long] && resolved.return_type == SqlType::Long;
            let filter = call.params.filter.clone();
            let (udaf, args) = (resolved.udaf, vec![moved.clone()]);
            let function = AggregateFunction::new_udf(udaf, args, false, filter, vec![], None);
            is_of_longs.then_some(Expr::AggregateFunction(function))
        };
        Some(Self { sum: same("sum")?, count: same("count")?, constant })
    }

    /// Returns the original sum as an expression over the two aggregate columns.
    pub(crate) fn value(&self, sum: Expr, count: Expr) -> Option<Expr> {
        let long = Argument::column(SqlType::Long);
        let by = |operator, left, right| {
            let resolved = resolve_operator(operator, &long, &long).ok()?;
            Some((resolved.build)(left, right))
        };
        let constant = lit(ScalarValue::Int64(Some(self.constant)));
        let product = by(BinaryOperator::Multiply, constant, count)?;
        by(BinaryOperator::Add, sum, product)
    }
}

/// The rewrite for each aggregate; `None` if the aggregate is not such a sum, or if too few sums
/// could share its two aggregates.
pub(crate) fn moved_sums(aggregates: &[Expr]) -> Vec<Option<MovedSum>> {
    let found: Vec<_> = aggregates.iter().map(MovedSum::of).collect();
    let mut uses = HashMap::<Expr, usize>::new();
    for moved in found.iter().flatten() {
        *uses.entry(moved.sum.clone()).or_default() += 1;
    }
    found.into_iter().map(|moved| moved.filter(|one| uses[&one.sum] >= MIN_SUMS)).collect()
}
