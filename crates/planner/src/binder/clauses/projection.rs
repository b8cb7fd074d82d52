//! Computes a query's output from the rows after FROM, WHERE and GROUP BY: the select list, window
//! functions, ORDER BY and DISTINCT.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, Window};
use tidemark_ast::{Node, NodeId, OrderItem};
use tidemark_optimizer::captured;
use tidemark_types::{EngineResult, ErrorCode, identifier};

use crate::binder::clauses::order;
use crate::binder::clauses::stage::{Item, Replaced, Stage, is_column};
use crate::binder::expressions::expression::{has_aggregate, has_window};
use crate::binder::expressions::sort_key::SortKey;
use crate::binder::state::list_rows::ListRows;
use crate::binder::state::relation;
use crate::binder::state::scope::{Alias, Relation, Scope, TimeOrder};
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// A select list without aggregates.
    pub(crate) fn ungrouped(source: Relation, items: Vec<Item>) -> Stage {
        let timestamp =
            source.timestamp_column().map(crate::binder::state::scope::ScopeColumn::expr);
        Stage {
            plan: source.plan.clone(),
            timestamp,
            order: source.order,
            source,
            items,
            replaced: Replaced::default(),
            rows: ListRows::default(),
        }
    }

    /// Rejects an expression that reads columns that do not exist after grouping.
    pub(crate) fn check_grouped(&self, stage: &Stage, expr: &Expr, at: NodeId) -> EngineResult<()> {
        let schema = stage.plan.schema();
        let is_missing = |expr: &Expr| {
            expr.exists(|node| {
                let inside = captured(node).into_iter().flatten();
                let mut inside = inside.flat_map(Expr::column_refs);
                let own = matches!(node, Expr::Column(column) if !schema.has_column(column))
                    && !stage.rows.are_read(node);
                Ok(own || inside.any(|column| !schema.has_column(column)))
            })
        };
        let (message, code) = if has_aggregate(expr) {
            ("aggregate functions are not allowed here without GROUP BY", ErrorCode::NotSupported)
        } else if is_missing(expr).map_err(error::plan)? {
            let message = "column must appear in GROUP BY clause or aggregate function";
            (message, ErrorCode::ColumnNotFound)
        } else {
            return Ok(());
        };
        Err(error::at(code, message, self.tree.span(at)))
    }

    /// Computes the select list and applies ORDER BY and DISTINCT.
    pub(crate) fn projected(
        &mut self,
        stage: Stage,
        aliases: &[Alias],
        order_by: &[OrderItem],
        is_distinct: bool,
    ) -> EngineResult<Relation> {
        let keys = self.sort_keys(&stage, aliases, order_by)?;
        let by_output = keys.iter().all(|key| key.output.is_some());
        let mut plan = stage.plan;
        let timestamp = stage.timestamp.as_ref();
        let ascends = stage.order == TimeOrder::Ascending;
        let already = is_time_order(&keys, timestamp) && ascends && !is_distinct;
        if !by_output && !already && !is_distinct {
            plan = relation::sort(plan, keys.iter().map(|key| key.sort(key.expr.clone())))?;
        }
        let designated = timestamp.and_then(|timestamp| {
            stage.items.iter().rposition(|item| is_column(&item.value.expr, timestamp))
        });
        let mut exprs: Vec<Expr> =
            stage.items.iter().map(|item| item.value.expr.clone().alias(&item.name)).collect();
        // Retain the unselected designated timestamp unless ORDER BY sorts by another column first,
        // or the select list contains another timestamp. The outer block uses that other timestamp
        // instead.
        let keeps = self.block_time.of_output && !is_distinct;
        let keeps = keeps && !stage.items.iter().any(|item| item.value.sql_type.is_timestamp());
        let unselected = timestamp
            .filter(|time| keeps && keys.first().is_none_or(|key| is_column(&key.expr, time)))
            .zip(stage.source.timestamp_column())
            .map(|(time, column)| {
                let mut name = "time".to_owned();
                while stage.items.iter().any(|item| item.name == name) {
                    name.push('_');
                }
                exprs.push(time.clone().alias(&name));
                relation::output_column(&name, column.sql_type)
            });
        plan = relation::project(plan, exprs)?;
        if is_distinct {
            plan = relation::distinct(plan);
        }
        let columns: Vec<_> = stage
            .items
            .iter()
            .map(|item| relation::output_column(&item.name, item.value.sql_type))
            .collect();
        if !keys.is_empty() && !already && (by_output || is_distinct) {
            let sorts = keys
                .iter()
                .filter_map(|key| key.output.map(|index| key.sort(columns[index].expr())));
            plan = relation::sort(plan, sorts)?;
        }
        let mut output = Relation {
            timestamp: designated.filter(|_| !is_distinct),
            order: stage.order,
            ..Relation::of(plan, columns)
        };
        output.designate_by(&keys);
        if let Some(time) = unselected {
            output.order = keys.first().map_or(stage.order, SortKey::time_order);
            output.unselected_time = Some(time);
        }
        Ok(output)
    }

    /// DISTINCT ON: returns each key's first row in ORDER BY order or, without ORDER BY, in input
    /// order.
    pub(crate) fn first_of_each(
        &mut self,
        mut stage: Stage,
        aliases: &[Alias],
        keys: &[NodeId],
        order_by: &[OrderItem],
    ) -> EngineResult<Stage> {
        let mut partition = Vec::with_capacity(keys.len());
        for &id in keys {
            let index = self.output_position(id, &stage.items)?;
            partition.push(if let Some(index) = index {
                stage.items[index].value.expr.clone()
            } else {
                let scope = Scope { aliases, ..Scope::rows(&stage.source) };
                let value = self.expression(id, &scope)?;
                let key = stage.replaced.apply(value.expr)?;
                self.check_grouped(&stage, &key, id)?;
                key
            });
        }
        let sorts = self.sort_keys(&stage, aliases, order_by)?;
        let mut read = partition.iter().chain(sorts.iter().map(|key| &key.expr));
        // Without ORDER BY, any row may be the first.
        if sorts.is_empty() || read.any(|expr| stage.rows.are_read(expr)) {
            stage.expand()?;
        }
        let mut order: Vec<SortExpr> = sorts.iter().map(|key| key.sort(key.expr.clone())).collect();
        if let (true, Some(time)) = (order.is_empty(), stage.ascending_time()) {
            order.push(SortExpr::new(time.clone(), true, true));
        }
        let number = crate::binder::expressions::window::row_number(partition, order);
        let name = relation::fresh("distinct row", &stage.plan);
        let exprs = vec![number.alias(&name)];
        let plan = Window::try_new(exprs, Arc::new(stage.plan)).map_err(error::plan)?;
        let first = datafusion::logical_expr::ident(name).eq(datafusion::logical_expr::lit(1_u64));
        stage.plan = relation::filter(LogicalPlan::Window(plan), first)?;
        stage.restore_time_order()?;
        Ok(stage)
    }

    /// Binds ORDER BY: positions, output names, expressions over the rows.
    fn sort_keys(
        &mut self,
        stage: &Stage,
        aliases: &[Alias],
        order_by: &[OrderItem],
    ) -> EngineResult<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order_by.len());
        for item in order_by {
            let output = self.output_position(item.expression, &stage.items)?;
            let (expr, sql_type, output) = if let Some(index) = output {
                let value = &stage.items[index].value;
                (value.expr.clone(), value.sql_type, Some(index))
            } else {
                let value = self.expression(item.expression, &order_scope(stage, aliases))?;
                let mut expr = stage.replaced.apply(value.expr)?;
                if has_window(&expr) {
                    // Window functions over groups are found by their rewritten expression.
                    expr = stage.replaced.apply(expr)?;
                }
                self.check_grouped(stage, &expr, item.expression)?;
                let same = stage.items.iter().position(|item| item.value.expr == expr);
                (expr, value.sql_type, same)
            };
            keys.push(SortKey::new(item, expr, sql_type, output));
        }
        Ok(keys)
    }

    /// Binds the window functions in ORDER BY. They are computed together with those in the select
    /// list.
    pub(crate) fn windows_of_order(
        &mut self,
        stage: &Stage,
        aliases: &[Alias],
        order_by: &[OrderItem],
    ) -> EngineResult<Vec<Expr>> {
        let mut found = Vec::new();
        for item in order_by {
            if let Node::Call(_) | Node::Binary { .. } | Node::Unary { .. } =
                self.node(item.expression)?
            {
                let value = self.expression(item.expression, &order_scope(stage, aliases))?;
                if has_window(&value.expr) {
                    let window = stage.replaced.apply(value.expr)?;
                    self.check_grouped(stage, &window, item.expression)?;
                    found.push(window);
                }
            }
        }
        Ok(found)
    }

    /// The output column that an ORDER BY item refers to by position or by name.
    fn output_position(&mut self, id: NodeId, items: &[Item]) -> EngineResult<Option<usize>> {
        match self.node(id)? {
            Node::Integer { text } => {
                order::position(text, items.len(), self.tree.span(id)).map(Some)
            }
            Node::Column { path } => match path.as_slice() {
                [name] => {
                    Ok(items.iter().position(|item| identifier::same(&item.name, &name.text)))
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

/// The scope for an ORDER BY expression.
fn order_scope<'s>(stage: &'s Stage, aliases: &'s [Alias]) -> Scope<'s> {
    let rows = Scope::rows(&stage.source);
    Scope { aliases, aliases_first: true, aggregates: true, windows: true, ..rows }
}

/// Whether the only sort key is the designated timestamp, ascending.
fn is_time_order(keys: &[SortKey], timestamp: Option<&Expr>) -> bool {
    match (keys, timestamp) {
        ([key], Some(timestamp)) => !key.descending && is_column(&key.expr, timestamp),
        _ => false,
    }
}
