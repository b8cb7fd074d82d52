//! LATERAL: a sub-query that is evaluated for each left row. If it selects the last row at or
//! before each left row's timestamp, it becomes an ASOF JOIN.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, ExprSchema, JoinType, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Extension, FetchType, LogicalPlan, Operator, SkipType,
};
use tidemark_ast::{JoinKind, Node, NodeId};
use tidemark_operators::{AsofJoinNode, AsofKind};
use tidemark_optimizer::all_of;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::expressions::subquery::{check_correlation, subquery};
use crate::binder::sources::join::{Condition, combined, filled_in, relational};
use crate::binder::sources::time_join::in_time_order;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, TimeOrder};
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// Binds a join with a query or function that may read columns from the sources on its left.
    pub(crate) fn lateral_join(
        &mut self,
        id: NodeId,
        left: Relation,
        (mut right, captured): (Relation, Vec<Expr>),
    ) -> EngineResult<Relation> {
        let Node::Join { join, left: _, right: right_id, on, tolerance: _, keyword_span: keyword } =
            self.node(id)?
        else {
            return Err(EngineError::internal("expected a join node"));
        };
        let (on, right_id, keyword) = (on.as_ref(), *right_id, *keyword);
        let kind = match join {
            JoinKind::Inner | JoinKind::Cross | JoinKind::Comma => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            _ if captured.is_empty() => return self.join_sources(id, left, right, right_id),
            _ => {
                let what = if self.unnest_of(right_id).is_some() { "UNNEST" } else { "LATERAL" };
                return Err(error::at(
                    ErrorCode::NotSupported,
                    format!("{what} is only supported with INNER, LEFT, or CROSS joins"),
                    keyword,
                ));
            }
        };
        let condition = match on {
            Some(on) => self.condition(on, &left, &right)?,
            None => Condition::default(),
        };
        let at = match self.node(right_id)? {
            Node::Derived { query, .. } => self.tree.span(*query),
            _ => self.tree.span(right_id),
        };
        check_correlation(&right, &captured, at)?;
        if let (true, Some(time)) = (is_always_true(&condition), left.timestamp_column())
            && let Some(last) = LastBefore::of(&right.plan, &captured, &time.expr())
            && last.fits(kind)
        {
            return last.joined(&left, &right, kind);
        }
        if !captured.is_empty() {
            right.plan = LogicalPlan::Subquery(subquery(right.plan, captured));
        }
        relational(left, right, condition, kind, self.condition_span(on, keyword))
    }
}

/// The components of `SELECT … FROM right WHERE key = left.key AND time <= left.time ORDER BY time
/// DESC LIMIT 1`.
struct LastBefore {
    /// The candidates for the last row, before they are compared with the left row.
    rows: LogicalPlan,
    /// Designated timestamp of `rows`.
    time: Expr,
    kind: AsofKind,
    /// Pairs of left and right values that must be equal.
    keys: Vec<(Expr, Expr)>,
    /// The selected expressions, over the columns of `rows` and of the left side.
    outputs: Vec<Expr>,
}

impl LastBefore {
    /// Returns `None` for queries of any other shape.
    fn of(plan: &LogicalPlan, captured: &[Expr], left_time: &Expr) -> Option<Self> {
        let mut outputs: Vec<Expr> =
            plan.schema().columns().into_iter().map(Expr::Column).collect();
        let (mut is_first, mut order) = (false, None);
        let mut at = plan;
        let filter = loop {
            match at {
                LogicalPlan::SubqueryAlias(alias) => {
                    let names = alias.schema.columns().into_iter();
                    let below = alias.input.schema().columns().into_iter().map(Expr::Column);
                    replace_all(&mut outputs, &names.zip(below).collect())?;
                    at = &alias.input;
                }
                LogicalPlan::Projection(projection) => {
                    let names = projection.schema.columns().into_iter();
                    let values = projection.expr.iter().map(|value| value.clone().unalias());
                    let values: HashMap<Column, Expr> = names.zip(values).collect();
                    replace_all(&mut outputs, &values)?;
                    replace_all(order.as_mut_slice(), &values)?;
                    at = &projection.input;
                }
                LogicalPlan::Limit(limit) if order.is_none() && !is_first => {
                    let skip = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
                    is_first = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1))));
                    at = (skip && is_first).then_some(limit.input.as_ref())?;
                }
                LogicalPlan::Sort(sort) if order.is_none() => {
                    let [by] = sort.expr.as_slice() else { return None };
                    if by.asc || !(is_first || sort.fetch == Some(1)) {
                        return None;
                    }
                    order = Some(by.expr.clone());
                    at = &sort.input;
                }
                LogicalPlan::Filter(filter) => break filter,
                _ => return None,
            }
        };
        let mut found = Terms { time: order?, captured, left_time, kind: None, keys: Vec::new() };
        let mut own = Vec::new();
        for term in split_conjunction(&filter.predicate) {
            if !reads_outer(term) {
                own.push(term.clone());
            } else if !found.take(term) {
                return None;
            }
        }
        let rows = filter.input.as_ref().clone();
        let reads_more = rows.exists(|node| Ok(node.contains_outer_reference())).unwrap_or(true);
        let Expr::Column(time) = &found.time else { return None };
        // Only the designated timestamp is non-nullable.
        let is_time = rows.schema().field_from_column(time).is_ok_and(|field| {
            matches!(field.data_type(), DataType::Timestamp(_, _)) && !field.is_nullable()
        });
        if reads_more || !is_time {
            return None;
        }
        let outputs = outputs.into_iter().map(|output| found.of_left(output));
        let outputs = outputs.collect::<Option<_>>()?;
        let Terms { time, kind, keys, .. } = found;
        let rows = match all_of(own) {
            Some(test) => relation::filter(rows, test).ok()?,
            None => rows,
        };
        Some(Self { rows, time, kind: kind?, keys, outputs })
    }

    /// Whether the outputs are valid for this kind of join. For unmatched left rows, all outputs
    /// are null, so in an outer join no output may be computed from the left side.
    fn fits(&self, kind: JoinType) -> bool {
        let is_own = |output: &Expr| match output {
            Expr::Column(column) => self.rows.schema().has_column(column),
            _ => false,
        };
        kind == JoinType::Inner || self.outputs.iter().all(is_own)
    }

    /// The rows of `left`, each with the outputs from its last preceding row.
    fn joined(self, left: &Relation, right: &Relation, kind: JoinType) -> EngineResult<Relation> {
        let time = left.timestamp_column().ok_or_else(no_time)?.clone();
        let (left_plan, left_key) = in_time_order(left, &time, time.sql_type)?;
        let left_columns = left_plan.schema().columns();
        let rows = relation::sort_by_time(self.rows, self.time.clone())?;
        let node = AsofJoinNode::try_new(
            left_plan,
            rows,
            left_key,
            self.time.clone(),
            self.keys,
            self.kind,
            None,
        )
        .map_err(error::plan)?;
        let mut plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
        if kind == JoinType::Inner {
            plan = relation::filter(plan, self.time.is_not_null())?;
        }
        let names = right.plan.schema().columns();
        let outputs = self.outputs.into_iter().zip(names);
        let outputs = outputs.map(|(value, name)| value.alias_qualified(name.relation, name.name));
        let columns = left_columns.into_iter().map(Expr::Column).chain(outputs).collect();
        let plan = relation::project(plan, columns)?;
        let width = left.columns.len();
        let mut joined = combined(left, right);
        joined.copy_timestamp(left, TimeOrder::Ascending);
        joined.plan = match kind {
            JoinType::Left => filled_in(plan, &joined, |index| index >= width)?,
            _ => plan,
        };
        Ok(joined)
    }
}

/// The conditions in a WHERE clause that compare a row with the left row.
struct Terms<'t> {
    time: Expr,
    captured: &'t [Expr],
    left_time: &'t Expr,
    kind: Option<AsofKind>,
    keys: Vec<(Expr, Expr)>,
}

impl Terms<'_> {
    /// Accepts an equality or the bound on time; returns false for any other condition.
    fn take(&mut self, term: &Expr) -> bool {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = comparison(term) else {
            return false;
        };
        let (own, outer, op) = match (reads_outer(left), reads_outer(right)) {
            (false, true) => (left, right, Some(*op)),
            (true, false) => (right, left, op.swap()),
            _ => return false,
        };
        let Some(op) = op else { return false };
        if outer.any_column_refs() {
            return false;
        }
        let Some(value) = self.of_left(outer.as_ref().clone()) else { return false };
        match op {
            Operator::Eq | Operator::IsNotDistinctFrom => {
                self.keys.push((value, own.as_ref().clone()));
                true
            }
            Operator::LtEq | Operator::Lt => {
                let is_bound =
                    self.kind.is_none() && **own == self.time && value == *self.left_time;
                let kind = if op == Operator::Lt { AsofKind::Lt } else { AsofKind::Asof };
                self.kind = Some(kind).filter(|_| is_bound);
                is_bound
            }
            _ => false,
        }
    }

    /// Converts references to the left row into expressions over that row.
    fn of_left(&self, expr: Expr) -> Option<Expr> {
        let mut is_whole = true;
        let replaced = expr.transform(|node| {
            let Expr::OuterReferenceColumn(_, column) = &node else {
                return Ok(Transformed::no(node));
            };
            let named = |captured: &&Expr| match captured {
                Expr::Alias(alias) => {
                    alias.relation == column.relation && alias.name == column.name
                }
                _ => false,
            };
            let Some(captured) = self.captured.iter().find(named) else {
                is_whole = false;
                return Ok(Transformed::no(node));
            };
            Ok(Transformed::yes(captured.clone().unalias()))
        });
        replaced.data().ok().filter(|_| is_whole)
    }
}

fn no_time() -> EngineError {
    EngineError::internal("rows lost their timestamp column")
}

fn reads_outer(expr: &Expr) -> bool {
    expr.exists(|node| Ok(matches!(node, Expr::OuterReferenceColumn(_, _)))).unwrap_or(true)
}

/// Replaces each column with the expression that computes it below a plan node; `None` if a column
/// has no such expression.
fn replace_all(exprs: &mut [Expr], values: &HashMap<Column, Expr>) -> Option<()> {
    for expr in exprs {
        let replaced = std::mem::take(expr).transform(|node| match &node {
            Expr::Column(column) => match values.get(column) {
                Some(value) => Ok(Transformed::yes(value.clone())),
                None => Err(error_of(column)),
            },
            _ => Ok(Transformed::no(node)),
        });
        *expr = replaced.data().ok()?;
    }
    Some(())
}

fn error_of(column: &Column) -> datafusion::common::DataFusionError {
    datafusion::common::DataFusionError::Internal(format!("no column {column}"))
}

/// Extracts the comparison from a condition. A condition with `<=` is also true for two nulls, but
/// this case is ignored, because the designated timestamp is never null.
fn comparison(term: &Expr) -> &Expr {
    match term {
        Expr::IsTrue(inner) => inner,
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            match (left.as_ref(), right.as_ref()) {
                (Expr::IsTrue(inner), Expr::BinaryExpr(nulls))
                    if nulls.op == Operator::And && is_null_test(nulls, inner) =>
                {
                    inner
                }
                _ => term,
            }
        }
        _ => term,
    }
}

/// Whether the tests check both comparison operands with IS NULL.
fn is_null_test(tests: &BinaryExpr, comparison: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = comparison else { return false };
    let asks = |test: &Expr, side: &Expr| matches!(test, Expr::IsNull(of) if **of == *side);
    asks(&tests.left, left) && asks(&tests.right, right)
}

/// Whether a condition is true for all pairs of rows.
fn is_always_true(condition: &Condition) -> bool {
    let is_true = |expr: &Expr| *expr == Expr::Literal(ScalarValue::Boolean(Some(true)), None);
    condition.keys.is_empty() && condition.residual.iter().all(|term| is_true(&term.expr))
}
