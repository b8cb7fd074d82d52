//! Queries that a live view can keep current: one row for each row in a single table, with window
//! functions that read earlier rows. The plan determines how far in time the effects of a table
//! change extend.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNodeCore, WindowFrameBound, WindowFrameUnits, ident, lit,
};
use tidemark_ast::{Name, Node, NodeId, SelectNode, Span, Tree};
use tidemark_operators::{BucketSpec, LogicalNode, PERIOD_NUMBER, SnapshotTable};
use tidemark_storage::{TableId, TableSchema, TimeRange};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::error;
use crate::binder::expressions::anchor::DayBegin;
use crate::binder::state::relation;
use crate::binder::statements::incremental::buckets::{column_of, floored, restricted};
use crate::binder::statements::incremental::{IncrementalRows, ViewShape, stored};

/// The time range in which a base table row affects the view's rows.
#[derive(Debug, Clone, Default)]
pub struct LiveReach {
    /// The longest RANGE frame, in units of the designated timestamp.
    span: i64,
    periods: Vec<Period>,
    /// Whether effects are unbounded, so the first row can affect the last row.
    is_endless: bool,
    /// Whether the query has window functions.
    has_windows: bool,
    /// Whether all window functions are computed in a single pass, with a state that can be saved.
    is_one_pass: bool,
}

/// Periods after which functions restart.
#[derive(Debug, Clone)]
enum Period {
    Days(DayBegin),
    Buckets(BucketSpec),
}

impl Period {
    fn around(&self, at: i64) -> (i64, i64) {
        match self {
            Self::Days(days) => days.around(at),
            Self::Buckets(buckets) => buckets.around(at, at),
        }
    }
}

impl LiveReach {
    /// Whether each view row depends on a single base row.
    #[must_use]
    pub fn is_row(&self) -> bool {
        !self.has_windows
    }

    /// Whether the functions' state after the last row is sufficient to compute later rows.
    #[must_use]
    pub fn is_one_pass(&self) -> bool {
        self.has_windows && self.is_one_pass
    }

    /// Whether a change affects all later rows.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// The kind of bound, as reported by repairs.
    #[must_use]
    pub fn plan(&self) -> &'static str {
        match (self.is_endless, self.span > 0, self.periods.is_empty()) {
            (true, ..) | (false, false, true) => "none",
            (false, true, true) => "range",
            (false, false, false) => "anchor",
            (false, true, false) => "range+anchor",
        }
    }

    /// Returns an upper bound on the timestamps of view rows that depend on base rows at `last`.
    #[must_use]
    pub fn until(&self, last: i64) -> i64 {
        if self.is_endless {
            return i64::MAX;
        }
        let ends = self.periods.iter().map(|period| period.around(last).1.saturating_sub(1));
        ends.fold(last.saturating_add(self.span), i64::max)
    }

    /// Returns a lower bound on the timestamps of base rows that affect view rows at `first`.
    #[must_use]
    pub fn since(&self, first: i64) -> i64 {
        if self.is_endless {
            return i64::MIN;
        }
        let begins = self.periods.iter().map(|period| period.around(first).0);
        begins.fold(first.saturating_sub(self.span), i64::min)
    }
}

impl IncrementalRows<LiveReach> {
    /// Plans the view's rows in the time ranges `shown`, computed from the base's rows in the
    /// ranges `read`.
    pub fn within(
        &self,
        read: &[TimeRange],
        shown: &[TimeRange],
        table: &TableSchema,
    ) -> EngineResult<LogicalPlan> {
        let base = self.base.schema().id;
        let plan = restricted(self.plan.clone(), base, read)?;
        if read == shown {
            return Ok(plan);
        }
        let time = table.timestamp_column();
        let time = time.ok_or_else(|| EngineError::internal("a live view has no timestamp"))?;
        let name = &time.name;
        let timestamp = |at: i64| match time.sql_type {
            SqlType::TimestampNs => lit(ScalarValue::TimestampNanosecond(Some(at), None)),
            _ => lit(ScalarValue::TimestampMicrosecond(Some(at), None)),
        };
        let is_in = |range: &TimeRange| {
            let begins = ident(name).gt_eq(timestamp(range.lo));
            if range.hi == i64::MAX {
                begins
            } else {
                begins.and(ident(name).lt(timestamp(range.hi)))
            }
        };
        match shown.iter().map(is_in).reduce(Expr::or) {
            Some(predicate) => relation::filter(plan, predicate),
            None => relation::filter(plan, lit(false)),
        }
    }
}

fn refused_at(message: &str, at: Span) -> EngineError {
    error::at(ErrorCode::NotSupported, message.to_owned(), at)
}

const SIMPLE: &str = "live view select must be a simple scan of a single table with an optional \
                      WHERE";

/// Finds the only SELECT in the syntax tree of a live view's query, and returns it with its table.
pub(crate) fn simple_select(tree: &Tree, query: NodeId) -> EngineResult<(&SelectNode, &Name)> {
    let Some(Node::Query { declarations, with, body, order_by, limit }) = tree.get(query) else {
        return Err(refused_at(SIMPLE, tree.span(query)));
    };
    let refuse = |at: Span| Err(refused_at(SIMPLE, at));
    if !declarations.is_empty() {
        return refuse(tree.span(query));
    }
    if let Some(cte) = with.first() {
        return refuse(cte.name.span);
    }
    if let Some(key) = order_by.first() {
        return refuse(tree.span(key.expression));
    }
    if limit.is_some() {
        return refuse(tree.span(query));
    }
    let Some(Node::Select(select)) = tree.get(*body) else { return refuse(tree.span(*body)) };
    let clauses = select.group_by.iter().chain(&select.having).chain(&select.qualify);
    if let Some(id) = clauses.chain(&select.distinct_on).next() {
        return refuse(tree.span(*id));
    }
    let is_grouped = select.sample_by.is_some() || select.group_by_all || select.pivot.is_some();
    if is_grouped || select.distinct || select.latest_on.is_some() {
        return refuse(select.sample_by.as_ref().map_or(tree.span(*body), |by| by.span));
    }
    let Some(from) = select.from else { return refuse(tree.span(*body)) };
    let Some(Node::Table { name, timestamp: None, .. }) = tree.get(from) else {
        return refuse(tree.span(from));
    };
    for item in &select.items {
        if let Some(Node::Star { .. }) = tree.get(item.expression) {
            let message = "wildcard column select is not allowed in live view queries";
            return Err(refused_at(message, tree.span(item.expression)));
        }
    }
    for (node, span) in tree.nodes.iter().zip(&tree.spans) {
        let is_query = matches!(
            node,
            Node::Subquery { .. }
                | Node::Exists { .. }
                | Node::InQuery { .. }
                | Node::Derived { .. }
        );
        if is_query {
            return refuse(*span);
        }
    }
    Ok((select, name))
}

/// Rejects conditions on the designated timestamp, because START FROM defines where a view begins.
pub(crate) fn refuse_time_filter(
    tree: &Tree,
    select: &SelectNode,
    timestamp: &str,
) -> EngineResult<()> {
    let Some(filter) = select.filter else { return Ok(()) };
    let within = tree.span(filter);
    for (node, span) in tree.nodes.iter().zip(&tree.spans) {
        let Node::Column { path } = node else { continue };
        let is_time = path.last().is_some_and(|name| name.text.eq_ignore_ascii_case(timestamp));
        if is_time && span.start >= within.start && span.end <= within.end {
            let message = "a filter on the designated timestamp is not supported in live view: \
                           use START FROM to set where it starts";
            return Err(refused_at(message, *span));
        }
    }
    Ok(())
}

/// Position of a call whose result is not repeatable; the query's position if no such call is
/// found.
pub(crate) fn changing_call(tree: &Tree, query: NodeId) -> Span {
    const CLOCKS: &[&str] =
        &["now", "now_ns", "systimestamp", "systimestamp_ns", "sysdate", "today", "yesterday"];
    let found = tree.nodes.iter().zip(&tree.spans).find_map(|(node, span)| match node {
        Node::Call(call) => {
            let name = call.name.text.to_ascii_lowercase();
            let changes = name.starts_with("rnd_") || CLOCKS.contains(&name.as_str());
            changes.then_some(*span)
        }
        _ => None,
    });
    found.unwrap_or_else(|| tree.span(query))
}

/// Position of a window function with this name; the query's position if none is found.
fn call_of(tree: &Tree, name: &str) -> Span {
    let spans = tree.nodes.iter().zip(&tree.spans);
    let mut calls = spans.filter_map(|(node, span)| match node {
        Node::Call(call) if call.over.is_some() => Some((call, *span)),
        _ => None,
    });
    let known = calls.clone().find(|(call, _)| call.name.text.eq_ignore_ascii_case(name));
    known.or_else(|| calls.next()).map_or_else(|| tree.span(tree.root), |(_, span)| span)
}

/// The components of a plan over one table.
#[derive(Default)]
struct PlanComponents {
    windows: Vec<Expr>,
    /// The table's designated timestamp, and the number of nanoseconds per unit.
    time: Option<(Column, i64)>,
    /// Whether all windows are computed in a single pass.
    is_one_pass: bool,
    /// Whether the plan consists only of these components.
    is_simple: bool,
}

impl PlanComponents {
    fn of(plan: &LogicalPlan, base: TableId) -> EngineResult<Self> {
        let mut components = Self { is_one_pass: true, is_simple: true, ..Self::default() };
        plan.apply_with_subqueries(|node| {
            components.add(node, base)?;
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(error::plan)?;
        Ok(components)
    }

    fn add(&mut self, node: &LogicalPlan, base: TableId) -> datafusion::common::Result<()> {
        match node {
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {}
            LogicalPlan::Window(window) => {
                self.is_one_pass = false;
                self.windows.extend(window.window_expr.iter().cloned());
            }
            LogicalPlan::Extension(extension) => match LogicalNode::of(extension.node.as_ref()) {
                Some(LogicalNode::Windows(window)) => {
                    self.is_one_pass &= window.is_one_pass();
                    self.windows.extend(window.expressions().into_iter().filter(is_window));
                }
                _ => self.is_simple = false,
            },
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let table = provider.downcast_ref::<SnapshotTable>().map(SnapshotTable::table);
                let schema = table.map(|table| table.schema()).filter(|one| one.id == base);
                let column = schema.and_then(|schema| schema.timestamp_column());
                self.is_simple &= column.is_some();
                self.time = column.map(|column| {
                    let is_nanos = column.sql_type == SqlType::TimestampNs;
                    let name = Column::new_unqualified(column.name.clone());
                    (name, if is_nanos { 1 } else { 1_000 })
                });
            }
            _ => self.is_simple = false,
        }
        Ok(())
    }
}

impl ViewShape for LiveReach {
    fn of(plan: &LogicalPlan, base: TableId, tree: &Tree) -> EngineResult<Self> {
        let PlanComponents { windows, time, is_one_pass, is_simple } =
            PlanComponents::of(plan, base)?;
        let Some((time, nanos_per_tick)) = time.filter(|_| is_simple) else {
            return Err(refused_at(SIMPLE, tree.span(tree.root)));
        };
        let mut found = Self { is_one_pass, ..Self::default() };
        let mut periods: Vec<(String, Option<Period>)> = Vec::new();
        for window in &windows {
            let (name, function) = unaliased(window);
            if let Some(function) = function.filter(|one| one.fun.name() == PERIOD_NUMBER) {
                let period = period_of(&function.params.args[0], &time, nanos_per_tick == 1);
                periods.push((name, period));
            }
        }
        for window in &windows {
            let (_, Some(function)) = unaliased(window) else { continue };
            if function.fun.name() == PERIOD_NUMBER {
                continue;
            }
            found.has_windows = true;
            let index = call_of(tree, function.fun.name());
            check_function(function, &time).map_err(|message| refused_at(message, index))?;
            let anchor = function.params.partition_by.iter().find_map(|key| match key {
                Expr::Column(column) => periods.iter().find(|(name, _)| *name == column.name),
                _ => None,
            });
            match anchor {
                Some((_, Some(period))) => found.periods.push(period.clone()),
                Some((_, None)) => found.is_endless = true,
                None => match span_of(function) {
                    Some(nanos) => {
                        let ticks = nanos.saturating_add(nanos_per_tick - 1) / nanos_per_tick;
                        found.span = found.span.max(ticks);
                    }
                    None => found.is_endless = true,
                },
            }
        }
        Ok(found)
    }

    fn fits(now: SqlType, then: SqlType) -> bool {
        stored(now) == then
    }
}

fn is_window(expr: &Expr) -> bool {
    unaliased(expr).1.is_some()
}

/// A window function, and its column name.
fn unaliased(expr: &Expr) -> (String, Option<&WindowFunction>) {
    match expr {
        Expr::Alias(alias) => match alias.expr.as_ref() {
            Expr::WindowFunction(function) => (alias.name.clone(), Some(function.as_ref())),
            _ => (alias.name.clone(), None),
        },
        Expr::WindowFunction(function) => (String::new(), Some(function.as_ref())),
        _ => (String::new(), None),
    }
}

/// Derives an anchor's periods from its expression: days, or buckets of the designated timestamp.
/// `None` for other expressions.
fn period_of(value: &Expr, time: &Column, nanoseconds: bool) -> Option<Period> {
    let mut value = value;
    loop {
        value = match value {
            Expr::Cast(cast) => &cast.expr,
            Expr::Alias(alias) => &alias.expr,
            _ => break,
        };
    }
    if let Expr::ScalarFunction(call) = value
        && let Some(days) = call.func.inner().downcast_ref::<DayBegin>()
    {
        return Some(Period::Days(days.clone()));
    }
    let (spec, column) = floored(value)?;
    (column.name == time.name).then_some(Period::Buckets(BucketSpec { nanoseconds, ..spec }))
}

/// Rejects functions that read later rows, or that read rows in an order other than time order.
fn check_function(function: &WindowFunction, time: &Column) -> Result<(), &'static str> {
    let params = &function.params;
    let ahead = ["percent_rank", "cume_dist", "ntile", "lead", "interpolate", "lttb"];
    if ahead.contains(&function.fun.name()) {
        return Err("live view window functions cannot read later rows");
    }
    let by_time = |expr: &Expr| column_of(expr).is_some_and(|column| column.name == time.name);
    let ignores_frame = matches!(function.fun.name(), "row_number" | "rank" | "dense_rank" | "lag");
    match params.order_by.as_slice() {
        [] if ignores_frame => return Ok(()),
        [] => {}
        [key] if key.asc && by_time(&key.expr) => {}
        _ => {
            return Err("live view windows must be ordered by the designated timestamp, ascending");
        }
    }
    let is_now = |distance: &ScalarValue| match distance {
        ScalarValue::UInt64(Some(0)) => true,
        ScalarValue::IntervalMonthDayNano(Some(span)) => {
            (span.months, span.days, span.nanoseconds) == (0, 0, 0)
        }
        _ => false,
    };
    match &params.window_frame.end_bound {
        WindowFrameBound::Following(distance) if !is_now(distance) => {
            Err("live view window functions cannot read later rows")
        }
        _ => Ok(()),
    }
}

/// Length of a RANGE frame in nanoseconds; `None` if the frame is in ROWS mode or includes all
/// preceding rows.
fn span_of(function: &WindowFunction) -> Option<i64> {
    let frame = &function.params.window_frame;
    let ignores_frame = matches!(
        function.fun.name(),
        "row_number" | "rank" | "dense_rank" | "lag" | "moving_average"
    );
    if ignores_frame || frame.units != WindowFrameUnits::Range {
        return None;
    }
    match &frame.start_bound {
        WindowFrameBound::CurrentRow => Some(0),
        WindowFrameBound::Preceding(ScalarValue::IntervalMonthDayNano(Some(span)))
            if span.months == 0 && span.days == 0 =>
        {
            Some(span.nanoseconds)
        }
        _ => None,
    }
}
