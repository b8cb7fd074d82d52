//! EXPIRE ROWS: determines which rows of a materialized view are visible.
//!
//! A policy is stored as a query over the view's own table, and everyone who reads the view reads
//! this query instead. The policy takes effect immediately, and hidden rows reappear if it is
//! dropped.

use std::sync::Arc;

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use tidemark_ast::{
    BinaryOperator, CallNode, ExpireRows, ExpireRule, LatestOn, Name, Node, NodeId, OrderItem,
    SelectItem, SelectNode, Span, Tree, UnaryOperator, WindowSpec,
};
use tidemark_catalog::{Every, ExpirePolicy, IncrementalView};
use tidemark_operators::SnapshotTable;
use tidemark_storage::{Snapshot, TableSchema, TimeRange};
use tidemark_types::calendar::MICROS_PER_DAY;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::BindContext;
use crate::binder::clauses::query::Clauses;
use crate::binder::statements::incremental::policy::interval_of;
use crate::binder::{Binder, error};

/// Functions that return the current time, and functions that are monotonic in time if their other
/// arguments are constant.
const GOING_ON: [&str; 9] = [
    "now",
    "systimestamp",
    "sysdate",
    "today",
    "yesterday",
    "tomorrow",
    "dateadd",
    "timestamp_floor",
    "date_trunc",
];

/// Default interval for removing expired rows if CLEANUP EVERY is not given.
const USUAL_CLEANUP: Every = Every { count: 1, unit: 'h' };

impl Binder<'_> {
    /// Builds the expiry policy from a clause. `rows` is the node of the view's table, or of the
    /// query that will fill this table. Its columns are the view's columns, qualified with the
    /// view's name. The clause's nodes begin at `first`, after those of the query.
    pub(crate) fn expire_policy(
        &mut self,
        expire: &ExpireRows,
        schema: &TableSchema,
        (rows, first): (Node, NodeId),
    ) -> EngineResult<ExpirePolicy> {
        let ExpireRows { rule, text, cleanup, span } = expire;
        let at = *span;
        self.refuse_other_types(rule, schema)?;
        let cleanup = cleanup.as_ref().map(interval_of).transpose()?;
        let own_nodes =
            self.tree.numbered().filter(move |(id, _)| *id >= first).map(|(_, node)| node);
        if own_nodes.clone().any(is_query) {
            let message = "EXPIRE ROWS can only read the rows of the view itself";
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        let has_window =
            own_nodes.clone().any(|node| matches!(node, Node::Call(call) if call.over.is_some()));
        let compares = if has_window {
            Compares::Rows
        } else if self.is_of_time(rule, schema, own_nodes.clone())? {
            Compares::Time
        } else {
            Compares::Cells
        };
        let checked = self.shown_rows(expire, rows, compares);
        let parameters = self.parameters.types().len();
        self.within(&checked, |inner| inner.query(checked.root).map(|_| ()))?;
        if self.parameters.types().len() > parameters {
            let message = "bind variables are not allowed in EXPIRE ROWS";
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        let name = Name { text: schema.name.clone(), quoted: true, span: at };
        let own = Node::Table { name, alias: None, timestamp: None };
        let tree = serde_json::to_string(&self.shown_rows(expire, own, compares));
        Ok(ExpirePolicy {
            text: text.clone(),
            tree: tree.map_err(|failure| EngineError::internal(failure.to_string()))?,
            cleanup: cleanup.unwrap_or(USUAL_CLEANUP),
        })
    }

    /// For KEEP HIGHEST without a number, rejects column types without a numeric order, because the
    /// clause compares values.
    fn refuse_other_types(&self, rule: &ExpireRule, schema: &TableSchema) -> EngineResult<()> {
        let ExpireRule::KeepExtreme { count: None, column, .. } = rule else { return Ok(()) };
        let Node::Column { path } = self.node(*column)? else { return Ok(()) };
        let [name] = path.as_slice() else { return Ok(()) };
        let Some(index) = schema.column_index(&name.text) else { return Ok(()) };
        let found = schema.columns[index].sql_type;
        let is_number = found.is_integer() || found.is_floating() || found.is_timestamp();
        if is_number || matches!(found, SqlType::Date | SqlType::Decimal(..)) {
            return Ok(());
        }
        let message = format!(
            "KEEP HIGHEST and LOWEST without a count require numbers or times, found {}",
            found.name()
        );
        Err(error::at(ErrorCode::TypeMismatch, message, name.span)
            .with_hint("use KEEP 1 HIGHEST ON … to keep one row of each group in any order"))
    }

    /// Whether a condition compares only the designated timestamp. Such a condition is never null
    /// and can be converted to a time range.
    fn is_of_time<'n>(
        &self,
        rule: &ExpireRule,
        schema: &TableSchema,
        own_nodes: impl Iterator<Item = &'n Node>,
    ) -> EngineResult<bool> {
        let ExpireRule::When { condition } = rule else { return Ok(false) };
        let Node::Binary { operator, left, right, .. } = self.node(*condition)? else {
            return Ok(false);
        };
        let is_order = matches!(
            operator,
            BinaryOperator::Less
                | BinaryOperator::LessOrEqual
                | BinaryOperator::Greater
                | BinaryOperator::GreaterOrEqual
        );
        let is_timestamp = |node: &Node| {
            let Node::Column { path } = node else { return false };
            let name = path.last().and_then(|name| schema.column_index(&name.text));
            name.is_some() && name == schema.timestamp
        };
        let is_side = is_timestamp(self.node(*left)?) || is_timestamp(self.node(*right)?);
        let columns = own_nodes.filter(|node| matches!(node, Node::Column { .. })).count();
        Ok(is_order && is_side && columns == 1)
    }

    /// The query for the rows of `source` that have not expired.
    fn shown_rows(&self, expire: &ExpireRows, source: Node, compares: Compares) -> Tree {
        let mut query = Query { tree: self.subtree(self.tree.root), at: expire.span };
        let from = query.add(source);
        let (mut filter, mut latest_on, mut qualify) = (None, None, None);
        match &expire.rule {
            ExpireRule::When { condition } => {
                let is_gone = match compares {
                    Compares::Time => *condition,
                    // A row for which the condition is null is retained.
                    Compares::Cells | Compares::Rows => {
                        let is_not = query.add(Node::Boolean { value: false });
                        query.call("coalesce", vec![*condition, is_not], None)
                    }
                };
                let operator = UnaryOperator::Not;
                let stays = Some(query.add(Node::Unary { operator, operand: is_gone }));
                if compares == Compares::Rows { qualify = stays } else { filter = stays }
            }
            ExpireRule::KeepLatest { timestamp, keys } => {
                let (timestamp, keys) = (*timestamp, keys.clone());
                latest_on = Some(LatestOn { timestamp, keys, span: expire.span });
            }
            ExpireRule::KeepExtreme { count: None, highest, column, keys } => {
                let over = window(keys, Vec::new());
                let name = if *highest { "max" } else { "min" };
                let extreme = query.call(name, vec![*column], Some(over));
                qualify = Some(query.compared(BinaryOperator::Equal, *column, extreme));
            }
            ExpireRule::KeepExtreme { count: Some(count), highest, column, keys } => {
                let order = OrderItem { expression: *column, descending: *highest, nulls: None };
                let index = query.call("row_number", Vec::new(), Some(window(keys, vec![order])));
                qualify = Some(query.compared(BinaryOperator::LessOrEqual, index, *count));
            }
        }
        let star = Node::Star { qualifier: None, exclude: Vec::new(), replace: Vec::new() };
        let star = query.add(star);
        let items = vec![SelectItem { expression: star, alias: None }];
        let select = SelectNode {
            distinct: false,
            distinct_on: Vec::new(),
            items,
            from: Some(from),
            filter,
            latest_on,
            sample_by: None,
            group_by: Vec::new(),
            group_by_all: false,
            having: None,
            windows: Vec::new(),
            qualify,
            pivot: None,
            hint: None,
        };
        query.tree.root = query.add(Node::Select(select));
        query.tree
    }
}

/// The data that a policy's condition reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compares {
    /// Only the designated timestamp.
    Time,
    /// Columns of the same row.
    Cells,
    /// Other rows as well, through window functions.
    Rows,
}

/// The earliest timestamp that a time-based policy shows, in the view's timestamp unit; older rows
/// can be removed. `None` if no policy exists or hidden rows may become visible again.
pub(crate) fn shown_since(
    view: &IncrementalView,
    snapshot: &Arc<Snapshot>,
    context: &BindContext,
) -> EngineResult<Option<i64>> {
    let (Some(policy), Some(table)) = (&view.expire, snapshot.table_by_id(view.table)) else {
        return Ok(None);
    };
    let is_known = serde_json::from_str(&policy.tree).is_ok_and(|tree: Tree| is_monotonic(&tree));
    if !is_known {
        return Ok(None);
    }
    let now = context.now_micros;
    let midnight = now - now.rem_euclid(MICROS_PER_DAY);
    let mut since = i64::MAX;
    // Subtracting a month is not monotonic: 0:00 on 31 March can yield an earlier time than 12:00
    // on 28 March. The policy is therefore also evaluated at the next four midnights.
    let days = (1..=4).map(|days| midnight.saturating_add(days * MICROS_PER_DAY));
    for now_micros in std::iter::once(now).chain(days) {
        let context = BindContext { now_micros, ..context.clone() };
        let none = Tree::default();
        let mut binder = Binder::new(&none, snapshot, &context, &Clauses);
        let shown = binder.unexpired(&table, view.table, policy)?;
        let Some(first) = first_of(&shown.plan) else { return Ok(None) };
        since = since.min(first);
    }
    Ok(Some(since))
}

/// Whether a policy compares only with times that never move backwards. This holds if it calls only
/// functions in `GOING_ON` and contains no CASE, no IN list and no logical operator.
fn is_monotonic(tree: &Tree) -> bool {
    tree.nodes.iter().all(|node| match node {
        Node::Call(call) => GOING_ON.iter().any(|name| call.name.text.eq_ignore_ascii_case(name)),
        Node::Case { .. } | Node::InList { .. } | Node::Logical { .. } => false,
        _ => true,
    })
}

/// If a plan reads all of a table's rows at or after some timestamp, returns that timestamp.
fn first_of(plan: &LogicalPlan) -> Option<i64> {
    match plan {
        LogicalPlan::Projection(projection) => first_of(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => first_of(&alias.input),
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            let provider = source_as_provider(&scan.source).ok()?;
            match provider.downcast_ref::<SnapshotTable>()?.ranges() {
                [TimeRange { lo, hi: i64::MAX }] => Some(*lo),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A syntax tree to which a query is added.
struct Query {
    tree: Tree,
    at: Span,
}

impl Query {
    fn add(&mut self, node: Node) -> NodeId {
        self.tree.push(node, self.at)
    }

    fn call(&mut self, name: &str, arguments: Vec<NodeId>, over: Option<WindowSpec>) -> NodeId {
        let name = Name { text: name.to_owned(), quoted: false, span: self.at };
        let (order_by, distinct, filter, ignore_nulls) = (Vec::new(), false, None, false);
        let call = CallNode { name, arguments, distinct, order_by, filter, ignore_nulls, over };
        self.add(Node::Call(call))
    }

    fn compared(&mut self, operator: BinaryOperator, left: NodeId, right: NodeId) -> NodeId {
        self.add(Node::Binary { operator, left, right, operator_span: self.at })
    }
}

fn is_query(node: &Node) -> bool {
    matches!(
        node,
        Node::Query { .. }
            | Node::Select(_)
            | Node::SetOperation { .. }
            | Node::Values { .. }
            | Node::Table { .. }
    )
}

fn window(keys: &[NodeId], order_by: Vec<OrderItem>) -> WindowSpec {
    WindowSpec { name: None, partition_by: keys.to_vec(), order_by, frame: None, anchor: None }
}
