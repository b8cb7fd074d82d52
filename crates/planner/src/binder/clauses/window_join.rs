//! WINDOW JOIN: a select block with one row per left row. Its aggregates read the right rows in a
//! window around the left row, so nothing is grouped.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, Operator, binary_expr, ident, lit, when,
};
use tidemark_ast::{FrameBound, JoinKind, JoinOn, Node, NodeId, OrderItem, SelectNode, Span};
use tidemark_functions::CastMode;
use tidemark_operators::{WindowBound, WindowJoinExprs, WindowJoinNode, WindowRange};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::clauses::aggregate::refuse_order;
use crate::binder::clauses::stage::{Exprs, collect_aggregates, collect_plain_columns};
use crate::binder::clauses::stage::{Item, aliases_of};
use crate::binder::clauses::stage::{Replaced, Stage};
use crate::binder::expressions::expression::has_window;
use crate::binder::expressions::{constant, predicate};
use crate::binder::sources::join::{Condition, combined, refuse_tolerance};
use crate::binder::sources::time_join::{Terms, finer, in_time_order, only};
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope, TimeOrder};
use crate::binder::{Binder, Typed, error};

/// One WINDOW JOIN in a chain.
struct Windowed<'a> {
    right: Relation,
    on: Option<&'a JoinOn>,
    low: &'a FrameBound,
    high: &'a FrameBound,
    include_prevailing: bool,
    keyword: Span,
}

impl<'a> Binder<'a> {
    /// Binds a select block over WINDOW JOINs.
    pub(crate) fn window_select(
        &mut self,
        from: NodeId,
        select: &SelectNode,
        order_by: &[OrderItem],
    ) -> EngineResult<Relation> {
        let (left, joins) = self.window_chain(from)?;
        let mut source = left.clone();
        for join in &joins {
            source = combined(&source, &join.right);
        }
        let items = self.items(&select.items, &source)?;
        self.report_deferred()?;
        self.refuse_beside(select, "WINDOW JOIN")?;
        let grouped = select.group_by.first().copied().or(select.group_by_all.then_some(from));
        if let Some(at) = grouped {
            return Err(refused("GROUP BY cannot be used with WINDOW JOIN", self.tree.span(at)));
        }
        self.check_items(&items, &left, &source)?;
        let aliases = aliases_of(&items);
        let extras = self.extras(&source, &aliases, select, order_by)?;
        let mut aggregates = Exprs::default();
        for expr in items.iter().map(|item| &item.value.expr).chain(extras.iter().map(|e| &e.expr))
        {
            collect_aggregates(expr, &mut aggregates);
        }
        let time = left
            .timestamp_column()
            .cloned()
            .ok_or_else(|| EngineError::internal("a time join has no timestamp"))?;
        let mut retained = self.filtered_if(left.clone(), select.filter)?;
        (retained.plan, _) = in_time_order(&retained, &time, time.sql_type)?;
        let mut replaced = Replaced::default();
        let owners = owners(&aggregates, &joins)?;
        for (number, join) in joins.iter().enumerate() {
            let own = aggregates.iter().zip(&owners).filter(|(_, owner)| **owner == number);
            let own = own.map(|(aggregate, _)| aggregate.clone()).collect();
            retained.plan =
                self.windowed((&left, retained.plan), join, own, (number, &mut replaced))?;
        }
        let mut rewritten = Vec::with_capacity(items.len());
        for item in items {
            let expr = replaced.apply(item.value.expr.clone())?;
            rewritten.push(Item { value: Typed { expr, ..item.value }, ..item });
        }
        let stage = Stage {
            source,
            plan: retained.plan,
            items: rewritten,
            replaced,
            timestamp: Some(time.expr()),
            order: TimeOrder::Ascending,
            rows: ListRows::default(),
        };
        self.finished(stage, &aliases, select, order_by)
    }

    /// Returns the left side of a chain of WINDOW JOINs, and the joins in order.
    fn window_chain(&mut self, from: NodeId) -> EngineResult<(Relation, Vec<Windowed<'a>>)> {
        let mut nodes = Vec::new();
        let mut at = from;
        while let Node::Join { join: JoinKind::Window { low, high, include_prevailing }, .. } =
            self.node(at)?
        {
            let Node::Join { join, left, right, on, tolerance, keyword_span } = self.node(at)?
            else {
                break;
            };
            refuse_tolerance(join, tolerance.as_ref())?;
            nodes.push((low, high, *include_prevailing, *right, on.as_ref(), *keyword_span));
            at = *left;
        }
        let left = self.source(at)?;
        let mut joins = Vec::with_capacity(nodes.len());
        for (low, high, include_prevailing, right, on, keyword) in nodes.into_iter().rev() {
            let right = self.source(right)?;
            self.times(&left, &right, keyword);
            joins.push(Windowed { right, on, low, high, include_prevailing, keyword });
        }
        Ok((left, joins))
    }

    /// Rejects clauses that group rows. A WINDOW JOIN does not group rows, and a HORIZON JOIN has
    /// already grouped them.
    pub(crate) fn refuse_beside(&self, select: &SelectNode, join: &str) -> EngineResult<()> {
        let SelectNode { sample_by, latest_on, pivot, .. } = select;
        if let Some(sample_by) = sample_by {
            let at = self.tree.span(sample_by.interval);
            return Err(refused(&format!("SAMPLE BY cannot be used with {join}"), at));
        }
        if let Some(latest_on) = latest_on {
            return Err(refused(&format!("LATEST ON cannot be used with {join}"), latest_on.span));
        }
        if let Some((axis, _)) = pivot.as_ref().and_then(|pivot| pivot.axes.first()) {
            let at = self.tree.span(*axis);
            return Err(refused(&format!("PIVOT cannot be used with {join}"), at));
        }
        Ok(())
    }

    /// The error for a window function in a query whose join already aggregates.
    pub(crate) fn refuse_windows(&self, items: &[Item], join: &str) -> EngineResult<()> {
        match items.iter().find(|item| has_window(&item.value.expr)) {
            Some(item) => {
                let message = format!("WINDOW functions are not allowed in {join} queries");
                Err(refused(&message, self.item_span(item)))
            }
            None => Ok(()),
        }
    }

    fn item_span(&self, item: &Item) -> Span {
        item.node.map(|id| self.tree.span(id)).unwrap_or_default()
    }

    /// Rejects right-side columns outside aggregates, because they have no single value per row.
    fn check_items(&self, items: &[Item], left: &Relation, source: &Relation) -> EngineResult<()> {
        self.refuse_windows(items, "WINDOW JOIN")?;
        for item in items {
            let mut columns = Exprs::default();
            collect_plain_columns(&item.value.expr, &mut columns);
            let foreign = source.columns[left.columns.len()..]
                .iter()
                .find(|column| columns.contains(&column.expr()));
            if let Some(column) = foreign {
                let qualifier = column.qualifier.as_deref().unwrap_or_default();
                let name = &column.name;
                let message = format!(
                    "WINDOW join cannot reference right table non-aggregate column: \
                     {qualifier}.{name}"
                );
                return Err(refused(&message, self.item_span(item)));
            }
        }
        Ok(())
    }

    /// Adds one join's aggregates to the left rows.
    fn windowed(
        &mut self,
        (left, plan): (&Relation, LogicalPlan),
        join: &Windowed<'_>,
        aggregates: Vec<Expr>,
        (number, replaced): (usize, &mut Replaced),
    ) -> EngineResult<LogicalPlan> {
        let Some((left_time, right_time)) = self.times(left, &join.right, join.keyword) else {
            self.report_deferred()?;
            return Ok(plan);
        };
        let condition = match join.on {
            Some(on) => self.condition(on, left, &join.right)?,
            None => Condition::default(),
        };
        let terms = Terms::of(condition.residual, left, &join.right);
        let right = only(join.right.clone(), terms.right)?;
        let unit = finer(&left_time, &right_time);
        let units = (left_time.sql_type, unit);
        let range = self.window_range(left, join, units, terms.left)?;
        let (right_plan, right_timestamp) = in_time_order(&right, &right_time, unit)?;
        let retained = Relation { plan, order: TimeOrder::Ascending, ..left.clone() };
        let (plan, left_timestamp) = in_time_order(&retained, &left_time, unit)?;
        let mut named = Vec::with_capacity(aggregates.len());
        for (index, aggregate) in aggregates.into_iter().enumerate() {
            refuse_order(&aggregate, "WINDOW JOIN")?;
            let name = relation::fresh(&format!("w{number}a{index}"), &plan);
            named.push(aggregate.clone().alias(&name));
            replaced.insert(aggregate, ident(name));
        }
        let exprs = WindowJoinExprs {
            left_timestamp,
            right_timestamp,
            keys: condition.keys,
            filter: (!terms.both.is_empty()).then(|| predicate::all(terms.both).expr),
            aggregates: named,
        };
        let node = WindowJoinNode::try_new(plan, right_plan, exprs, range).map_err(error::plan)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    /// A join's window. It is empty for left rows that fail an ON condition that reads only the
    /// left side.
    fn window_range(
        &mut self,
        left: &Relation,
        join: &Windowed<'_>,
        units: (SqlType, SqlType),
        guards: Vec<Typed>,
    ) -> EngineResult<WindowRange> {
        let (mut low, low_ts) = self.window_bound(join.low, left, &join.right, units)?;
        let (high, high_ts) = self.window_bound(join.high, left, &join.right, units)?;
        if let (Some(low), Some(high)) = (low_ts, high_ts)
            && high < low
        {
            let message = "WINDOW join hi value cannot be less than lo value";
            return Err(refused(message, self.bound_span(join.high, join.keyword)));
        }
        if !guards.is_empty() {
            let guard = predicate::all(guards).expr;
            low.distance = when(guard, low.distance).end().map_err(error::plan)?;
        }
        Ok(WindowRange { low, high, include_prevailing: join.include_prevailing })
    }

    fn bound_span(&self, bound: &FrameBound, otherwise: Span) -> Span {
        match bound {
            FrameBound::Preceding { value, .. } | FrameBound::Following { value, .. } => {
                self.tree.span(*value)
            }
            _ => otherwise,
        }
    }

    /// A window bound, and its distance from the timestamp if that distance is constant. `units`
    /// contains the left timestamp's unit, which applies to numbers without a unit, and the join's
    /// unit.
    fn window_bound(
        &mut self,
        bound: &FrameBound,
        left: &Relation,
        right: &Relation,
        units: (SqlType, SqlType),
    ) -> EngineResult<(WindowBound, Option<i64>)> {
        let (value, word, following) = match bound {
            FrameBound::Preceding { value, unit } => (*value, unit.as_deref(), false),
            FrameBound::Following { value, unit } => (*value, unit.as_deref(), true),
            _ => {
                let here = WindowBound { distance: lit(0_i64), unit: 1, following: true };
                return Ok((here, Some(0)));
            }
        };
        let at = self.tree.span(value);
        let typed = self.expression(value, &Scope::rows(left)).map_err(|failure| {
            // The column exists on the right side but cannot be used here.
            match self.expression(value, &Scope::rows(right)) {
                Ok(_) => {
                    refused("RANGE BETWEEN expression must not reference right table columns", at)
                }
                Err(_) => failure,
            }
        })?;
        let typed = self.settled(typed, SqlType::Long)?;
        if !typed.sql_type.is_integer() && typed.sql_type != SqlType::Null {
            return Err(error::at(ErrorCode::TypeMismatch, "integer expression expected", at));
        }
        let typed = self.cast(typed, SqlType::Long, CastMode::Implicit, at)?;
        let known = typed.constant.as_ref().and_then(constant::as_i64);
        if known.is_some_and(|value| value < 0) {
            let message = "non-negative integer expression expected";
            return Err(error::at(ErrorCode::InvalidValue, message, at));
        }
        let (multiple, divisor) = scale(word, units);
        let distance = match (known, &typed.constant) {
            (Some(value), _) => lit(value / divisor),
            (None, Some(_)) => lit(ScalarValue::Int64(None)),
            _ if divisor > 1 => binary_expr(typed.expr, Operator::Divide, lit(divisor)),
            _ => typed.expr,
        };
        let known = known.map(|value| (value / divisor).saturating_mul(multiple));
        let known = known.map(|value| if following { value } else { -value });
        Ok((WindowBound { distance, unit: multiple, following }, known))
    }
}

/// The error for a feature that this kind of query does not support.
pub(crate) fn refused(message: &str, at: Span) -> EngineError {
    error::at(ErrorCode::NotSupported, message, at)
}

/// Converts a unit word to the join's unit, as a multiplier and a divisor. If no unit is given, the
/// left timestamp's unit applies.
fn scale(word: Option<&str>, (left, unit): (SqlType, SqlType)) -> (i64, i64) {
    let Some(word) = word else { return (if left == unit { 1 } else { 1_000 }, 1) };
    let word = word.to_ascii_lowercase();
    let nanos: i64 = match word.strip_suffix('s').unwrap_or(&word) {
        "nanosecond" => 1,
        "microsecond" => 1_000,
        "millisecond" => 1_000_000,
        "second" => 1_000_000_000,
        "minute" => 60_000_000_000,
        "hour" => 3_600_000_000_000,
        "week" => 7 * 86_400_000_000_000,
        _ => 86_400_000_000_000,
    };
    match unit {
        SqlType::TimestampNs => (nanos, 1),
        _ if nanos < 1_000 => (1, 1_000),
        _ => (nanos / 1_000, 1),
    }
}

/// The join to which each aggregate belongs: the join whose right side the aggregate reads, or the
/// first join if the aggregate reads no right side.
fn owners(aggregates: &[Expr], joins: &[Windowed<'_>]) -> EngineResult<Vec<usize>> {
    let reads = |aggregate: &Expr, join: &Windowed<'_>| {
        let mut found = false;
        let _ = aggregate.apply(|node| {
            found |= matches!(node, Expr::Column(_))
                && join.right.columns.iter().any(|column| column.is(node));
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        found
    };
    let owner = |aggregate: &Expr| {
        let mut reading = (0..joins.len()).filter(|&number| reads(aggregate, &joins[number]));
        match (reading.next(), reading.next()) {
            (Some(_), Some(second)) => Err(refused(
                "an aggregate cannot read the right sides of two WINDOW JOINs",
                joins[second].keyword,
            )),
            (only, _) => Ok(only.unwrap_or(0)),
        }
    };
    aggregates.iter().map(owner).collect()
}
