//! GROUP BY, explicit or implied. If it is implied, every item without an aggregate is a key.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Aggregate, Expr, Extension, LogicalPlan, SortExpr, ident};
use hashbrown::HashSet;
use tidemark_ast::{Name, Node, NodeId};
use tidemark_functions::{CastMode, cast, in_64_bits};
use tidemark_operators::SampleByNode;
use tidemark_optimizer::{captured, has_subquery};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::binder::clauses::grouping::is_grouping;
use crate::binder::clauses::moved_sums::moved_sums;
use crate::binder::clauses::order;
use crate::binder::clauses::stage::Item;
use crate::binder::clauses::stage::{Exprs, collect_aggregates, collect_plain_columns};
use crate::binder::clauses::stage::{Replaced, Stage};
use crate::binder::expressions::expression::{has_aggregate, has_window};
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, Scope, TimeOrder};
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Groups rows. `extras` are the expressions in ORDER BY and HAVING, which may contain
    /// aggregates.
    pub(crate) fn aggregate(
        &mut self,
        source: Relation,
        items: Vec<Item>,
        group_by: &[NodeId],
        extras: &[Typed],
    ) -> EngineResult<Stage> {
        let mut aggregates = Exprs::default();
        for item in &items {
            collect_aggregates(&item.value.expr, &mut aggregates);
        }
        for extra in extras {
            collect_aggregates(&extra.expr, &mut aggregates);
        }
        let levels = self.levels(group_by, &source, &items)?;
        let (plan, replaced) = if levels.is_plain() && !aggregates.iter().any(is_grouping) {
            let mut keys = levels.keys.clone();
            if group_by.is_empty() {
                implied_keys(&items, &source, &mut keys);
            }
            self.grouped_plan(&source, &keys, &aggregates)?
        } else {
            self.levels_plan(&levels, &aggregates, &[], |binder, keys, aggregates| {
                binder.grouped_plan(&source, keys, aggregates)
            })?
        };
        let keys = levels.keys;
        let mut rewritten = Vec::with_capacity(items.len());
        for item in items {
            let expr = replaced.apply(item.value.expr.clone())?;
            if !group_by.is_empty() && reads_source(&expr, &source) {
                return Err(self.ungrouped_column(&item, &source, &keys));
            }
            rewritten.push(Item { value: Typed { expr, ..item.value }, ..item });
        }
        Ok(Stage {
            source,
            plan,
            items: rewritten,
            replaced,
            timestamp: None,
            order: TimeOrder::Unknown,
            rows: ListRows::default(),
        })
    }

    /// Binds a GROUP BY key: a position, an item's name, or an expression.
    pub(crate) fn group_key(
        &mut self,
        id: NodeId,
        source: &Relation,
        items: &[Item],
    ) -> EngineResult<Typed> {
        let position = self.tree.span(id);
        let key = match self.node(id)? {
            Node::Integer { text } => {
                let index = order::position(text, items.len(), position)?;
                items[index].value.clone()
            }
            Node::Column { path } => match item_named(path, items) {
                Some(item) if item.node.is_some() => item.value.clone(),
                _ => match source.resolve(path) {
                    Ok(index) => {
                        let column = &source.columns[index];
                        Typed::computed(column.expr(), column.sql_type)
                    }
                    Err(failure) => self.outer_column(path)?.ok_or(failure)?,
                },
            },
            _ => {
                let scope = Scope { aggregates: true, ..Scope::rows(source) };
                self.expression(id, &scope)?
            }
        };
        let refused = match (has_aggregate(&key.expr), has_window(&key.expr)) {
            (true, _) => "aggregate functions are not allowed in GROUP BY",
            (_, true) => "window functions are not allowed in GROUP BY",
            _ => return Ok(key),
        };
        Err(error::at(ErrorCode::NotSupported, refused, position))
    }

    /// The error for an item that is neither a key nor an aggregate, positioned at the offending
    /// column.
    fn ungrouped_column(
        &self,
        item: &Item,
        source: &Relation,
        keys: &[(Expr, SqlType)],
    ) -> EngineError {
        let at = item.node.and_then(|id| self.first_ungrouped(id, source, keys));
        let fallback = item.node.map(|id| self.tree.span(id)).unwrap_or_default();
        error::at(
            ErrorCode::ColumnNotFound,
            "column must appear in GROUP BY clause or aggregate function",
            at.unwrap_or(fallback),
        )
    }

    fn first_ungrouped(
        &self,
        id: NodeId,
        source: &Relation,
        keys: &[(Expr, SqlType)],
    ) -> Option<tidemark_ast::Span> {
        match self.tree.get(id)? {
            Node::Column { path } => {
                let column = &source.columns[source.resolve(path).ok()?];
                let grouped = keys.iter().any(|(key, _)| *key == column.expr());
                (!grouped).then(|| self.tree.span(id))
            }
            Node::Binary { left, right, .. } => self
                .first_ungrouped(*left, source, keys)
                .or_else(|| self.first_ungrouped(*right, source, keys)),
            Node::Unary { operand, .. } | Node::Cast { operand, .. } => {
                self.first_ungrouped(*operand, source, keys)
            }
            Node::Concat { operands, .. } | Node::Logical { operands, .. } => {
                operands.iter().find_map(|id| self.first_ungrouped(*id, source, keys))
            }
            Node::Call(call)
                if !tidemark_functions::is_aggregate_call(
                    &call.name.text,
                    call.arguments.len(),
                ) =>
            {
                call.arguments.iter().find_map(|id| self.first_ungrouped(*id, source, keys))
            }
            _ => None,
        }
    }
}

fn item_named<'i>(path: &[Name], items: &'i [Item]) -> Option<&'i Item> {
    let [name] = path else { return None };
    items
        .iter()
        .find(|item| identifier::same(&item.name, &name.text) && !has_aggregate(&item.value.expr))
}

/// Adds the keys of an implied GROUP BY. An item without aggregates is one key. In an item with
/// aggregates, each column outside the aggregates is a separate key. Each column that a window
/// function reads is also a key, because windows are computed over the groups.
fn implied_keys(items: &[Item], source: &Relation, keys: &mut Vec<(Expr, SqlType)>) {
    let mut known: HashSet<Expr> = keys.iter().map(|(key, _)| key.clone()).collect();
    let mut add = |expr: &Expr, sql_type: SqlType| {
        if known.insert(expr.clone()) {
            keys.push((expr.clone(), sql_type));
        }
    };
    let mut whole = Vec::new();
    for item in items {
        let expr = &item.value.expr;
        let composed = has_aggregate(expr) || has_window(expr) || has_subquery(expr);
        if !composed && !matches!(expr, Expr::Column(_) | Expr::Literal(..)) {
            whole.extend(in_64_bits(expr));
            whole.push(expr.clone());
        }
    }
    for item in items {
        let expr = &item.value.expr;
        let mut columns = Exprs::default();
        if has_window(expr) {
            // `i % 2` in a window refers to the key `i % 2`, not to the column `i`.
            collect_plain_columns(&without(expr, &whole), &mut columns);
        } else {
            collect_plain_columns(expr, &mut columns);
        }
        if has_aggregate(expr) || has_window(expr) || has_subquery(expr) {
            for column in columns.iter() {
                add(column, type_of(column, source));
            }
        } else if item.value.constant.is_none() && (!columns.is_empty() || expr.is_volatile()) {
            add(expr, item.value.sql_type);
        }
    }
}

/// Replaces every occurrence of the keys in an expression with null.
fn without(expr: &Expr, keys: &[Expr]) -> Expr {
    let nothing = || Expr::Literal(ScalarValue::Null, None);
    let emptied = expr.clone().transform_down(|node| {
        if keys.contains(&node) {
            return Ok(Transformed::new(nothing(), true, TreeNodeRecursion::Jump));
        }
        Ok(Transformed::no(node))
    });
    emptied.map_or_else(|_| expr.clone(), |emptied| emptied.data)
}

/// For a key computed by INT arithmetic, returns the key's 64-bit form, which comparisons and
/// windows use. Also returns the 64-bit form of the column that holds the key's values.
fn as_long(key: &Expr, column: &Expr) -> Option<(Expr, Expr)> {
    let wide = in_64_bits(key)?;
    let long = cast(column.clone(), SqlType::Int, SqlType::Long, CastMode::Implicit).ok()?;
    Some((wide, long))
}

/// The SQL type of a source column.
pub(crate) fn type_of(expr: &Expr, source: &Relation) -> SqlType {
    source
        .columns
        .iter()
        .find(|column| column.is(expr))
        .map_or(SqlType::Null, |column| column.sql_type)
}

fn reads_source(expr: &Expr, source: &Relation) -> bool {
    expr.exists(|node| {
        let own =
            matches!(node, Expr::Column(_)) && source.columns.iter().any(|column| column.is(node));
        let inside = captured(node).into_iter().flatten();
        Ok(own || inside.into_iter().any(|read| reads_source(read, source)))
    })
    .unwrap_or(false)
}

/// Rejects ORDER BY inside an aggregate for clauses that read rows in time order.
pub(crate) fn refuse_order(aggregate: &Expr, clause: &str) -> EngineResult<()> {
    if order_of(aggregate).is_empty() {
        return Ok(());
    }
    let message = format!("ORDER BY inside a function is not supported with {clause}");
    Err(EngineError::new(ErrorCode::NotSupported, message)
        .with_hint("rows are read in time order: to sort them, move this query into a sub-query"))
}

/// Removes the ORDER BY from an aggregate whose input is already in that order.
fn without_order(aggregate: &Expr) -> Expr {
    let mut aggregate = aggregate.clone();
    if let Expr::AggregateFunction(call) = &mut aggregate {
        call.params.order_by.clear();
    }
    aggregate
}

/// The ORDER BY inside an aggregate.
pub(crate) fn order_of(aggregate: &Expr) -> &[SortExpr] {
    match aggregate {
        Expr::AggregateFunction(call) => &call.params.order_by,
        _ => &[],
    }
}

impl Binder<'_> {
    /// The row ordering that the aggregates require. All order-sensitive aggregates must require
    /// the same ordering.
    fn order_inside(&self, aggregates: &[Expr]) -> EngineResult<Vec<SortExpr>> {
        let is_ordered = |aggregate: &&Expr| match aggregate {
            Expr::AggregateFunction(call) => self.ordered_aggregates.contains(call.func.name()),
            _ => false,
        };
        let mut orders = aggregates.iter().filter(is_ordered).map(order_of);
        let Some(first) = orders.next() else { return Ok(Vec::new()) };
        if orders.any(|other| other != first) {
            let message =
                "functions in the same query must all have the same ORDER BY clause, or none";
            return Err(EngineError::new(ErrorCode::NotSupported, message)
                .with_hint("compute each in its own sub-query"));
        }
        Ok(first.to_vec())
    }

    /// Plans the grouping. Uses Tidemark's operator if all keys are symbols, there are no keys, or
    /// an aggregate depends on row order; otherwise `DataFusion`'s.
    pub(crate) fn grouped_plan(
        &self,
        source: &Relation,
        keys: &[(Expr, SqlType)],
        aggregates: &[Expr],
    ) -> EngineResult<(LogicalPlan, Replaced)> {
        let mut replaced = Replaced::default();
        let name = |prefix: &str, number: usize| format!("{prefix}{number}");
        let mut key_exprs = Vec::with_capacity(keys.len());
        for (number, (key, _)) in keys.iter().enumerate() {
            key_exprs.push(key.clone().alias(name("k", number)));
            let column = ident(name("k", number));
            if let Some((wide, long)) = as_long(key, &column) {
                replaced.insert(wide, long);
            }
            replaced.insert(key.clone(), column);
        }
        let order = self.order_inside(aggregates)?;
        let mut computed = Exprs::default();
        for (aggregate, moved) in aggregates.iter().zip(moved_sums(aggregates)) {
            let value = moved.and_then(|moved| {
                let mut column = |of: &Expr| ident(name("a", computed.push(of)));
                moved.value(column(&moved.sum), column(&moved.count))
            });
            let value = value.unwrap_or_else(|| ident(name("a", computed.push(aggregate))));
            replaced.insert(aggregate.clone(), value);
        }
        let named = computed.iter().enumerate();
        let aggregate_exprs: Vec<_> = named
            .map(|(number, aggregate)| without_order(aggregate).alias(name("a", number)))
            .collect();
        let input = source.plan.clone();
        let symbols = keys
            .iter()
            .all(|(key, sql_type)| *sql_type == SqlType::Symbol && matches!(key, Expr::Column(_)));
        let ordered = aggregates.iter().any(|aggregate| match aggregate {
            Expr::AggregateFunction(call) => self.ordered_aggregates.contains(call.func.name()),
            _ => false,
        });
        let input = match source.ascending_time() {
            _ if !order.is_empty() => relation::sort(input, order.into_iter())?,
            // Joining a correlated sub-query with its outer rows does not preserve the order.
            Some(column) if ordered && !self.outer.is_empty() => {
                relation::sort_by_time(input, column.expr())?
            }
            _ => input,
        };
        let is_empty = key_exprs.is_empty() && aggregates.is_empty();
        let plan = if (symbols || ordered) && !is_empty {
            let node = SampleByNode::try_new(input, None, key_exprs, aggregate_exprs)
                .map_err(error::plan)?
                .in_any_order(!ordered);
            LogicalPlan::Extension(Extension { node: Arc::new(node) })
        } else if is_empty {
            // With an empty grouping set and no aggregates, the result is always a single row.
            relation::one_row().plan
        } else {
            let node = Aggregate::try_new(Arc::new(input), key_exprs, aggregate_exprs)
                .map_err(error::plan)?;
            LogicalPlan::Aggregate(node)
        };
        Ok((plan, replaced))
    }
}
