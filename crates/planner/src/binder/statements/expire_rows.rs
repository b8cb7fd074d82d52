//! EXPIRE ROWS: which rows of a materialized view are shown.
//!
//! A policy is kept as a query over the view's own table, and each reader of the view reads that
//! query: so it counts at once and for every reader, and dropping it shows again what it hid.

use tidemark_ast::{
    BinaryOperator, CallNode, ExpireRows, ExpireRule, LatestOn, Name, Node, NodeId, OrderItem,
    SelectItem, SelectNode, Span, Tree, UnaryOperator, WindowSpec,
};
use tidemark_catalog::{Every, ExpirePolicy};
use tidemark_storage::TableSchema;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::statements::materialized_policy::interval_of;
use crate::binder::{Binder, error};

/// How often rows are looked after that expired, unless CLEANUP EVERY says otherwise.
const USUAL_CLEANUP: Every = Every { count: 1, unit: 'h' };

impl Binder<'_> {
    /// The policy that a clause sets for a view. `rows` has the view's columns under its name: its
    /// table, or the query that will fill it, whose nodes are those before `first`.
    pub(crate) fn expire_policy(
        &mut self,
        expire: &ExpireRows,
        schema: &TableSchema,
        (rows, first): (Node, NodeId),
    ) -> EngineResult<ExpirePolicy> {
        let at = expire.span;
        self.refuse_other_types(&expire.rule, schema)?;
        let cleanup = expire.cleanup.as_ref().map(interval_of).transpose()?;
        let own_nodes = self.tree.nodes.iter().skip(first as usize);
        if own_nodes.clone().any(is_query) {
            let message = "EXPIRE ROWS looks at the view's own rows alone";
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        let has_window =
            own_nodes.clone().any(|node| matches!(node, Node::Call(call) if call.over.is_some()));
        let checked = self.shown_rows(expire, rows, has_window);
        let parameters = self.parameters.types().len();
        self.within(&checked, |inner| inner.query(checked.root).map(|_| ()))?;
        if self.parameters.types().len() > parameters {
            let message = "bind variables are not allowed in EXPIRE ROWS";
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        let name = Name { text: schema.name.clone(), quoted: true, span: at };
        let own = Node::Table { name, alias: None, timestamp: None };
        let tree = serde_json::to_string(&self.shown_rows(expire, own, has_window));
        Ok(ExpirePolicy {
            text: expire.text.clone(),
            tree: tree.map_err(|failure| EngineError::internal(failure.to_string()))?,
            cleanup: cleanup.unwrap_or(USUAL_CLEANUP),
        })
    }

    /// KEEP HIGHEST without a number compares: what it compares has an order that is a number's.
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
            "KEEP HIGHEST and LOWEST without a number compare numbers and times, not {}",
            found.name()
        );
        Err(error::at(ErrorCode::TypeMismatch, message, name.span)
            .with_hint("KEEP 1 HIGHEST ON … keeps one row of each group by any order"))
    }

    /// The query that has the rows of `source` which do not expire.
    fn shown_rows(&self, expire: &ExpireRows, source: Node, has_window: bool) -> Tree {
        let mut query = Query { tree: self.part(self.tree.root), at: expire.span };
        let from = query.add(source);
        let (mut filter, mut latest_on, mut qualify) = (None, None, None);
        match &expire.rule {
            ExpireRule::When { condition } => {
                // Where it is not known the row stays.
                let is_not = query.add(Node::Boolean { value: false });
                let is_gone = query.call("coalesce", vec![*condition, is_not], None);
                let operator = UnaryOperator::Not;
                let stays = Some(query.add(Node::Unary { operator, operand: is_gone }));
                if has_window { qualify = stays } else { filter = stays }
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
                let place = query.call("row_number", Vec::new(), Some(window(keys, vec![order])));
                qualify = Some(query.compared(BinaryOperator::LessOrEqual, place, *count));
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

/// A tree that a query is added to.
struct Query {
    tree: Tree,
    at: Span,
}

impl Query {
    fn add(&mut self, node: Node) -> NodeId {
        self.tree.nodes.push(node);
        self.tree.spans.push(self.at);
        self.tree.nodes.len() as NodeId - 1
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
