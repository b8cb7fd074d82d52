//! State passed between the clauses of a SELECT block: the rows, the select list, and the columns
//! that hold previously computed values.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, Window, ident};
use hashbrown::HashMap;
use tidemark_ast::NodeId;
use tidemark_operators::WindowNode;
use tidemark_optimizer::{captured, captured_mut, check_time_windows, check_windows, has_subquery};
use tidemark_types::EngineResult;

use crate::binder::state::list_rows::ListRows;
use crate::binder::state::relation;
use crate::binder::state::scope::{Alias, Relation, TimeOrder};
use crate::binder::{Typed, error};

/// One output column in a select list.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) value: Typed,
    /// The expression's node; `None` for a column that `*` adds.
    pub(crate) node: Option<NodeId>,
}

/// The rows of a block and its select list, before the list is computed.
pub(crate) struct Stage {
    /// The rows, for name resolution.
    pub(crate) source: Relation,
    /// The rows that the list reads.
    pub(crate) plan: LogicalPlan,
    /// The select list over `plan`.
    pub(crate) items: Vec<Item>,
    /// Maps expressions over `source` to expressions over `plan`.
    pub(crate) replaced: Replaced,
    /// The designated timestamp over `plan`.
    pub(crate) timestamp: Option<Expr>,
    /// The order of the rows by designated timestamp.
    pub(crate) order: TimeOrder,
    /// Values that the select list expands into rows; empty after the expansion.
    pub(crate) rows: ListRows,
}

/// Expressions that the input plan has already computed, mapped to the columns that hold their
/// values.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    columns: HashMap<Expr, Expr>,
}

impl Replaced {
    pub(crate) fn insert(&mut self, expr: Expr, column: Expr) {
        self.columns.insert(expr, column);
    }

    /// Replaces each subexpression that is already computed with the column that holds its value.
    pub(crate) fn apply(&self, expr: Expr) -> EngineResult<Expr> {
        if self.columns.is_empty() {
            return Ok(expr);
        }
        self.rewritten(expr).map_err(error::plan)
    }

    fn rewritten(&self, expr: Expr) -> datafusion::common::Result<Expr> {
        expr.transform_down(|mut node| {
            if let Some(column) = self.columns.get(&node) {
                return Ok(Transformed::new(column.clone(), true, TreeNodeRecursion::Jump));
            }
            let Some(captured) = captured_mut(&mut node) else { return Ok(Transformed::no(node)) };
            for read in captured {
                // Keep the alias, because the sub-query uses it to refer to the value.
                if let Expr::Alias(alias) = read {
                    let value = std::mem::take(alias.expr.as_mut());
                    *alias.expr = self.rewritten(value)?;
                }
            }
            Ok(Transformed::yes(node))
        })
        .map(|transformed| transformed.data)
    }
}

impl Stage {
    /// Expands the select list's values into rows.
    pub(crate) fn expand(&mut self) -> EngineResult<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows.arguments().is_empty() {
            return Ok(());
        }
        let rows = rows.mapped(|array| self.replaced.apply(array))?;
        self.plan = rows.over_plan(self.plan.clone())?;
        self.order = self.order.shuffled();
        Ok(())
    }

    /// Whether a window function in the select list or in `ordering` reads expanded elements.
    pub(crate) fn window_reads_elements(&self, ordering: &[Expr]) -> bool {
        let reads =
            |node: &Expr| Ok(matches!(node, Expr::WindowFunction(_)) && self.rows.are_read(node));
        let mut values = self.items.iter().map(|item| &item.value.expr).chain(ordering);
        values.any(|expr| expr.exists(reads).unwrap_or(false))
    }

    /// Computes window functions below the select list, including those in ORDER BY.
    pub(crate) fn plan_windows(&mut self, ordering: &[Expr]) -> EngineResult<()> {
        let mut windows = Exprs::default();
        let values = self.items.iter().map(|item| &item.value.expr).chain(ordering);
        for expr in values.chain(self.rows.arguments()) {
            let _ = expr.apply(|node| {
                if let Expr::WindowFunction(_) = node {
                    windows.push(node);
                    return Ok(TreeNodeRecursion::Jump);
                }
                Ok(TreeNodeRecursion::Continue)
            });
        }
        if windows.is_empty() {
            return Ok(());
        }
        // Functions over rows in time order are computed in a single pass.
        check_time_windows(windows.len())?;
        // Period numbers are computed first, because the windows are partitioned by them.
        let mut periods = Exprs::default();
        for window in windows.iter() {
            let Expr::WindowFunction(function) = window else { continue };
            let of_others = |key: &&Expr| matches!(key, Expr::WindowFunction(_));
            for key in function.params.partition_by.iter().filter(of_others) {
                periods.push(key);
            }
        }
        let mut numbered = Replaced::default();
        let named = periods.into_vec().into_iter().enumerate().map(|(number, period)| {
            let name = relation::fresh(&format!("p{number}"), &self.plan);
            numbered.insert(period.clone(), ident(&name));
            period.alias(name)
        });
        let named: Vec<Expr> = named.collect();
        self.add_windows(named)?;
        let mut named = Vec::with_capacity(windows.len());
        for (number, window) in windows.into_vec().into_iter().enumerate() {
            let name = relation::fresh(&format!("w{number}"), &self.plan);
            self.replaced.insert(window.clone(), ident(&name));
            named.push(numbered.apply(window)?.alias(name));
        }
        self.add_windows(named)?;
        for item in &mut self.items {
            let expr = std::mem::take(&mut item.value.expr);
            item.value.expr = self.replaced.apply(expr)?;
        }
        self.restore_time_order()
    }

    /// Adds window functions to the plan; each becomes a column named after its alias.
    fn add_windows(&mut self, named: Vec<Expr>) -> EngineResult<()> {
        let timestamp = self.ascending_time().cloned();
        let (in_order, others): (Vec<Expr>, Vec<Expr>) = named
            .into_iter()
            .partition(|window| WindowNode::supports(window, timestamp.as_ref(), &self.plan));
        if !in_order.is_empty() {
            let node = WindowNode::try_new(self.plan.clone(), timestamp, in_order);
            let node = Arc::new(node.map_err(error::plan)?);
            self.plan = LogicalPlan::Extension(Extension { node });
        }
        check_windows(others.len())?;
        for window in others {
            let plan =
                Window::try_new(vec![window], Arc::new(self.plan.clone())).map_err(error::plan)?;
            self.plan = LogicalPlan::Window(plan);
        }
        Ok(())
    }

    /// If rows must keep their order, computes the select list's sub-queries in a plan node below
    /// the list, because sub-queries become joins, which do not preserve the order.
    pub(crate) fn plan_subqueries(&mut self, ordered: bool) -> EngineResult<()> {
        let mut values: Vec<Expr> = Vec::new();
        for item in &self.items {
            let expr = &item.value.expr;
            if has_subquery(expr) && !values.contains(expr) {
                values.push(expr.clone());
            }
        }
        if values.is_empty() || !(ordered || self.ascending_time().is_some()) {
            return Ok(());
        }
        let columns = self.plan.schema().columns();
        let mut exprs: Vec<Expr> = columns.into_iter().map(Expr::Column).collect();
        for (number, value) in values.into_iter().enumerate() {
            let name = relation::fresh(&format!("q{number}"), &self.plan);
            exprs.push(value.clone().alias(&name));
            self.replaced.insert(value, ident(name));
        }
        self.plan = relation::project(self.plan.clone(), exprs)?;
        for item in &mut self.items {
            let expr = std::mem::take(&mut item.value.expr);
            item.value.expr = self.replaced.apply(expr)?;
        }
        self.restore_time_order()
    }

    /// Sorts by time again after window functions, because their PARTITION BY and ORDER BY may
    /// change the order. The optimizer removes the sort if it is redundant.
    pub(crate) fn restore_time_order(&mut self) -> EngineResult<()> {
        if let Some(time) = self.ascending_time() {
            self.plan = relation::sort_by_time(self.plan.clone(), time.clone())?;
        }
        Ok(())
    }

    /// The designated timestamp, if the rows are in ascending timestamp order.
    pub(crate) fn ascending_time(&self) -> Option<&Expr> {
        self.timestamp.as_ref().filter(|_| self.order == TimeOrder::Ascending)
    }
}

/// Distinct expressions in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Exprs {
    list: Vec<Expr>,
    known: HashMap<Expr, usize>,
}

impl Exprs {
    /// Adds an expression if it is new, and returns its index.
    pub(crate) fn push(&mut self, expr: &Expr) -> usize {
        *self.known.entry(expr.clone()).or_insert_with(|| {
            self.list.push(expr.clone());
            self.list.len() - 1
        })
    }

    pub(crate) fn into_vec(self) -> Vec<Expr> {
        self.list
    }
}

impl std::ops::Deref for Exprs {
    type Target = [Expr];

    fn deref(&self) -> &[Expr] {
        &self.list
    }
}

/// Collects the aggregates in an expression, in order of appearance.
pub(crate) fn collect_aggregates(expr: &Expr, into: &mut Exprs) {
    // The closure never fails.
    let _ = expr.apply(|node| {
        if let Expr::AggregateFunction(_) = node {
            into.push(node);
            return Ok(TreeNodeRecursion::Jump);
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// Collects the columns that an expression reads outside its aggregates.
pub(crate) fn collect_plain_columns(expr: &Expr, into: &mut Exprs) {
    let _ = expr.apply(|node| match node {
        Expr::AggregateFunction(_) => Ok(TreeNodeRecursion::Jump),
        Expr::Column(_) => {
            into.push(node);
            Ok(TreeNodeRecursion::Jump)
        }
        _ => {
            for read in captured(node).into_iter().flatten() {
                collect_plain_columns(read, into);
            }
            Ok(TreeNodeRecursion::Continue)
        }
    });
}

/// The select items' names, as later clauses see them.
pub(crate) fn aliases_of(items: &[Item]) -> Vec<Alias> {
    items.iter().map(|item| Alias { name: item.name.clone(), value: item.value.clone() }).collect()
}

/// Whether an expression is exactly this column.
pub(crate) fn is_column(expr: &Expr, column: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_column(&alias.expr, column),
        other => other == column,
    }
}
