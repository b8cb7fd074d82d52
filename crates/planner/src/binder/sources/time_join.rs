//! ASOF, LT and SPLICE JOIN, and helpers for all time-based joins.

use std::sync::Arc;

use datafusion::logical_expr::{Expr, Extension, LogicalPlan};
use tidemark_ast::{AsofTolerance, BinaryOperator, JoinOn, LogicalOperator, Node, Span};
use tidemark_functions::in_nanoseconds;
use tidemark_operators::{AsofJoinNode, AsofKind, SpliceJoinNode, StepUnit};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::predicate;
use crate::binder::sources::join::{Condition, Side, combined, filled_in, side};
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, ScopeColumn, TimeOrder};
use crate::binder::{Binder, Typed, error, names};

/// The unit in which two timestamps are compared: the finer of their units. In the coarser unit, a
/// row could match another row that is later by less than one unit.
pub(crate) fn finer(left: &ScopeColumn, right: &ScopeColumn) -> SqlType {
    if right.sql_type == SqlType::TimestampNs { right.sql_type } else { left.sql_type }
}

/// The error for a side without a timestamp.
fn no_timestamp(which: &str, keyword: Span) -> EngineError {
    let message = format!("{which} side of time series join has no timestamp");
    error::at(ErrorCode::NotSupported, message, keyword)
}

impl Binder<'_> {
    /// Binds an ASOF or LT JOIN.
    pub(crate) fn time_join(
        &mut self,
        kind: AsofKind,
        left: &Relation,
        right: &Relation,
        on: Option<&JoinOn>,
        tolerance: Option<&AsofTolerance>,
        keyword: Span,
    ) -> EngineResult<Relation> {
        let Some((left_time, right_time)) = self.times(left, right, keyword) else {
            return Ok(combined(left, right));
        };
        let condition = match on {
            Some(on) => {
                let word = match kind {
                    AsofKind::Asof => "ASOF",
                    AsofKind::Lt => "LT",
                };
                self.refuse_inequality(on, word)?;
                self.condition(on, left, right)?
            }
            None => Condition::default(),
        };
        condition.refuse_widened()?;
        if !condition.residual.is_empty() {
            return Err(unsupported_condition(keyword));
        }
        let unit = finer(&left_time, &right_time);
        let nanoseconds = unit == SqlType::TimestampNs;
        let tolerance = match tolerance {
            Some(tolerance) => Some(self.tolerance(tolerance, nanoseconds)?),
            None => None,
        };
        let (left_plan, left_key) = in_time_order(left, &left_time, unit)?;
        let (right_plan, right_key) = in_time_order(right, &right_time, unit)?;
        let node = AsofJoinNode::try_new(
            left_plan,
            right_plan,
            left_key,
            right_key,
            condition.keys,
            kind,
            tolerance,
        )
        .map_err(error::plan)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        let width = left.columns.len();
        let mut joined = combined(left, right);
        joined.copy_timestamp(left, TimeOrder::Ascending);
        joined.plan = filled_in(plan, &joined, |index| index >= width)?;
        Ok(joined)
    }

    fn refuse_inequality(&self, on: &JoinOn, word: &str) -> EngineResult<()> {
        let JoinOn::Expression { condition } = on else { return Ok(()) };
        let mut pending = vec![*condition];
        while let Some(id) = pending.pop() {
            match self.node(id)? {
                Node::Logical { operator: LogicalOperator::And, operands } => {
                    pending.extend(operands.iter().rev());
                }
                Node::Column { .. } | Node::Binary { operator: BinaryOperator::Equal, .. } => {}
                other => {
                    let at = match other {
                        Node::Binary { operator_span, .. } => *operator_span,
                        _ => self.tree.span(id),
                    };
                    let text = names::canonical(self.tree, id);
                    return Err(error::at(
                        ErrorCode::NotSupported,
                        format!("unsupported {word} join expression [expr='{text}']"),
                        at,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Converts TOLERANCE to the join's unit.
    fn tolerance(&mut self, tolerance: &AsofTolerance, nanoseconds: bool) -> EngineResult<i64> {
        let at = self.tree.span(tolerance.interval);
        let (count, unit) = self.duration(tolerance.interval)?;
        let nanos = match unit {
            StepUnit::Nanosecond => 1,
            StepUnit::Microsecond => 1_000,
            StepUnit::Millisecond => 1_000_000,
            StepUnit::Second => 1_000_000_000,
            StepUnit::Minute => 60_000_000_000,
            StepUnit::Hour => 3_600_000_000_000,
            StepUnit::Day => 86_400_000_000_000,
            StepUnit::Week => 7 * 86_400_000_000_000,
            StepUnit::Month | StepUnit::Year => {
                let letter = unit.letter();
                return Err(error::at(
                    ErrorCode::InvalidValue,
                    format!("unsupported TOLERANCE unit [unit={letter}]"),
                    at,
                ));
            }
        };
        let total = count.saturating_mul(nanos);
        Ok(if nanoseconds { total } else { total / 1_000 })
    }

    /// Both sides' timestamps. If a side has no timestamp, the error is deferred until the select
    /// list is bound, so an unknown name is reported first.
    pub(crate) fn times(
        &mut self,
        left: &Relation,
        right: &Relation,
        keyword: Span,
    ) -> Option<(ScopeColumn, ScopeColumn)> {
        let times = match (left.timestamp_column(), right.timestamp_column()) {
            (Some(left), Some(right)) => (left.clone(), right.clone()),
            (None, _) => {
                self.deferred.get_or_insert(no_timestamp("left", keyword));
                return None;
            }
            (_, None) => {
                self.deferred.get_or_insert(no_timestamp("right", keyword));
                return None;
            }
        };
        times.0.origin.note();
        times.1.origin.note();
        Some(times)
    }

    /// Binds a SPLICE JOIN. Its rows have two timestamps, so none is designated.
    pub(crate) fn splice_join(
        &mut self,
        left: &Relation,
        right: &Relation,
        on: Option<&JoinOn>,
        keyword: Span,
    ) -> EngineResult<Relation> {
        let Some((left_time, right_time)) = self.times(left, right, keyword) else {
            return Ok(combined(left, right));
        };
        let condition = match on {
            Some(on) => {
                self.refuse_inequality(on, "SPLICE")?;
                self.condition(on, left, right)?
            }
            None => Condition::default(),
        };
        condition.refuse_widened()?;
        if !condition.residual.is_empty() {
            return Err(unsupported_condition(keyword));
        }
        let unit = finer(&left_time, &right_time);
        let (left_plan, left_key) = in_time_order(left, &left_time, unit)?;
        let (right_plan, right_key) = in_time_order(right, &right_time, unit)?;
        let node =
            SpliceJoinNode::try_new(left_plan, right_plan, left_key, right_key, condition.keys)
                .map_err(error::plan)?;
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        let mut joined = combined(left, right);
        joined.plan = filled_in(plan, &joined, |_| true)?;
        Ok(joined)
    }
}

/// One side's rows in time order, and the side's timestamp in the join's unit, which is the finer
/// of the two sides' units.
pub(crate) fn in_time_order(
    side: &Relation,
    time: &ScopeColumn,
    unit: SqlType,
) -> EngineResult<(LogicalPlan, Expr)> {
    let mut plan = side.plan.clone();
    if side.order != TimeOrder::Ascending {
        plan = relation::sort_by_time(plan, time.expr())?;
    }
    let finer = unit == SqlType::TimestampNs && time.sql_type != SqlType::TimestampNs;
    Ok((plan, if finer { in_nanoseconds(time.expr()) } else { time.expr() }))
}

/// The error for a join condition other than equality.
pub(crate) fn unsupported_condition(keyword: Span) -> EngineError {
    error::at(ErrorCode::NotSupported, "unsupported join condition", keyword)
}

/// A join's conditions, grouped by the side they read.
#[derive(Default)]
pub(crate) struct Terms {
    pub(crate) left: Vec<Typed>,
    pub(crate) right: Vec<Typed>,
    pub(crate) both: Vec<Typed>,
}

impl Terms {
    pub(crate) fn of(rest: Vec<Typed>, left: &Relation, right: &Relation) -> Self {
        let mut terms = Self::default();
        for term in rest {
            match side(&term.expr, left, right) {
                Side::Left => terms.left.push(term),
                Side::Right => terms.right.push(term),
                Side::Both | Side::Neither => terms.both.push(term),
            }
        }
        terms
    }
}

/// Filters the relation by all conditions.
pub(crate) fn only(source: Relation, terms: Vec<Typed>) -> EngineResult<Relation> {
    if terms.is_empty() {
        return Ok(source);
    }
    let plan = relation::filter(source.plan.clone(), predicate::all(terms).expr)?;
    Ok(source.with_plan(plan))
}
