//! Logical plan size and its limits: planning time and memory grow with the number of nodes, and
//! stack use with the depth.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use tidemark_types::bounded::grown;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::rules::decorrelate::subquery::{captured, subquery_of};
use tidemark_operators::LogicalNode;

/// Maximum number of operators and expressions in a plan. Sub-queries, common table expressions and
/// views count once per use.
pub const MAX_PLAN_NODES: usize = 150_000;
/// Maximum nesting depth of operators and expressions.
pub const MAX_PLAN_DEPTH: usize = 3_000;

/// Maximum sum of the depths of all expression nodes. Rules request a node's type repeatedly, and
/// each request visits all nodes below it.
const MAX_NESTING: usize = 4_000_000;
/// Maximum number of ORDER BY keys; planning time grows with the cube of this number.
const MAX_SORT_KEYS: usize = 300;
/// Maximum number of GROUP BY or LATEST ON keys.
const MAX_GROUP_KEYS: usize = 1_000;
/// Maximum number of columns in DISTINCT, UNION, EXCEPT and INTERSECT.
const MAX_DISTINCT_COLUMNS: usize = 2_000;
/// Maximum number of join keys.
const MAX_JOIN_KEYS: usize = 1_000;
/// Maximum number of scalar sub-queries. Each becomes a join that widens the rows of the next join.
const MAX_SCALAR_QUERIES: usize = 100;
/// Maximum number of window functions computed together on rows in time order.
const MAX_TIME_WINDOWS: usize = 1_000;
/// Maximum number of window functions computed one after another because they sort by different
/// keys.
const MAX_WINDOWS: usize = 100;
/// Maximum number of columns in a list, multiplied by the number of input columns in which they are
/// looked up. Allows `SELECT *` on the widest table, and a PIVOT with the maximum number of values.
const MAX_LOOKUPS: usize = 30_000_000;

/// A plan with more nodes than this is built on a separate stack.
const FEW_NODES: usize = 400;
const SHALLOW: usize = 60;

/// The measured size of a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanSize {
    /// Number of operators and expressions.
    pub nodes: usize,
    /// Nesting depth.
    pub depth: usize,
    nesting: usize,
    windows: usize,
    scalar_queries: usize,
}

impl PlanSize {
    /// Measures a plan; fails if it exceeds the limits.
    pub fn of(plan: &LogicalPlan) -> EngineResult<Self> {
        let mut size = Self::default();
        size.plan(plan, 1)?;
        Ok(size)
    }

    /// Measures an expression; fails if it exceeds the limits.
    pub fn of_expr(expr: &Expr) -> EngineResult<Self> {
        let mut size = Self::default();
        size.expr(expr, 1, 1)?;
        Ok(size)
    }

    /// Whether recursing through the plan may need more stack than a thread has.
    pub fn is_large(&self) -> bool {
        self.nodes > FEW_NODES || self.depth > SHALLOW
    }

    fn enter(&mut self, depth: usize) -> EngineResult<()> {
        self.nodes += 1;
        self.depth = self.depth.max(depth);
        if self.nodes > MAX_PLAN_NODES {
            return Err(too_many_nodes());
        }
        if depth > MAX_PLAN_DEPTH {
            return Err(too_complex(&format!("deep [max={MAX_PLAN_DEPTH} levels]")));
        }
        Ok(())
    }

    fn plan(&mut self, plan: &LogicalPlan, depth: usize) -> EngineResult<()> {
        self.enter(depth)?;
        self.keys(plan)?;
        grown(|| {
            let mut failed = None;
            let mut count = |expr: &Expr| {
                failed = self.expr(expr, depth + 1, 1).err();
                Ok(next(failed.is_none()))
            };
            plan.apply_expressions(&mut count).map_err(|error| internal(&error))?;
            failed.map_or(Ok(()), Err)?;
            plan.inputs().into_iter().try_for_each(|input| self.plan(input, depth + 1))
        })
    }

    /// Rejects lists that are too long for their operator.
    fn keys(&mut self, plan: &LogicalPlan) -> EngineResult<()> {
        match plan {
            LogicalPlan::Sort(sort) if sort.expr.len() > MAX_SORT_KEYS => {
                refuse("ORDER BY keys", sort.expr.len(), MAX_SORT_KEYS)
            }
            LogicalPlan::Aggregate(node) if node.group_expr.len() > MAX_GROUP_KEYS => {
                refuse("GROUP BY keys", node.group_expr.len(), MAX_GROUP_KEYS)
            }
            LogicalPlan::Projection(list) => {
                check_lookups(list.expr.len(), list.input.schema().fields().len())
            }
            LogicalPlan::Join(join) if join.on.len() > MAX_JOIN_KEYS => {
                refuse("join keys", join.on.len(), MAX_JOIN_KEYS)
            }
            LogicalPlan::Extension(_) => match LogicalNode::of_plan(plan) {
                Some(LogicalNode::Windows(node)) => check_time_windows(node.functions().len()),
                _ => Ok(()),
            },
            LogicalPlan::Distinct(Distinct::All(input))
                if input.schema().fields().len() > MAX_DISTINCT_COLUMNS =>
            {
                let count = input.schema().fields().len();
                refuse("DISTINCT columns", count, MAX_DISTINCT_COLUMNS)
            }
            LogicalPlan::Window(node) => {
                self.windows += 1;
                check_windows(self.windows)?;
                node.window_expr.iter().try_for_each(|expr| {
                    let Expr::WindowFunction(function) = expr.clone().unalias() else {
                        return Ok(());
                    };
                    let params = &function.params;
                    let (partition, order) = (params.partition_by.len(), params.order_by.len());
                    if partition > MAX_SORT_KEYS || order > MAX_SORT_KEYS {
                        return refuse("window keys", partition.max(order), MAX_SORT_KEYS);
                    }
                    Ok(())
                })
            }
            _ => Ok(()),
        }
    }

    fn expr(&mut self, expr: &Expr, depth: usize, level: usize) -> EngineResult<()> {
        self.enter(depth)?;
        self.nesting += level;
        if self.nesting > MAX_NESTING {
            return Err(too_complex("deep [max=4000000 levels in total across all expressions]"));
        }
        if matches!(expr, Expr::Column(_) | Expr::Literal(..)) {
            return Ok(());
        }
        grown(|| {
            if let Expr::ScalarSubquery(_) = expr {
                self.scalar_queries += 1;
                if self.scalar_queries > MAX_SCALAR_QUERIES {
                    let what = "scalar sub-queries";
                    return refuse(what, self.scalar_queries, MAX_SCALAR_QUERIES);
                }
            }
            if let Some(subquery) = subquery_of(expr) {
                self.plan(&subquery.subquery, depth + 1)?;
            }
            let read = captured(expr).into_iter().flatten();
            read.into_iter().try_for_each(|read| self.expr(read, depth + 1, level + 1))?;
            let mut failed = None;
            expr.apply_children(|child| {
                failed = self.expr(child, depth + 1, level + 1).err();
                Ok(next(failed.is_none()))
            })
            .map_err(|error| internal(&error))?;
            failed.map_or(Ok(()), Err)
        })
    }
}

/// Rejects too many consecutive window functions before their plan is built.
pub fn check_windows(count: usize) -> EngineResult<()> {
    if count > MAX_WINDOWS { refuse("window functions", count, MAX_WINDOWS) } else { Ok(()) }
}

/// Fails if too many window functions would be computed together on rows in time order.
pub fn check_time_windows(count: usize) -> EngineResult<()> {
    if count > MAX_TIME_WINDOWS {
        return refuse("window functions", count, MAX_TIME_WINDOWS);
    }
    Ok(())
}

/// Rejects a LATEST ON with too many keys.
pub fn check_latest_keys(count: usize) -> EngineResult<()> {
    if count > MAX_GROUP_KEYS {
        return refuse("LATEST ON keys", count, MAX_GROUP_KEYS);
    }
    Ok(())
}

/// Fails if `count` expressions over `among` input columns would require too many lookups.
pub fn check_lookups(count: usize, among: usize) -> EngineResult<()> {
    if count.saturating_mul(among) <= MAX_LOOKUPS {
        return Ok(());
    }
    let message = format!("too many columns [{count} of {among} selected]");
    let error = EngineError::new(ErrorCode::StatementTooComplex, message);
    Err(error.with_hint("list the required columns instead of *"))
}

fn refuse(what: &str, count: usize, max: usize) -> EngineResult<()> {
    let message = format!("too many {what} [count={count}, max={max}]");
    Err(EngineError::new(ErrorCode::StatementTooComplex, message))
}

fn next(goes_on: bool) -> TreeNodeRecursion {
    if goes_on { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop }
}

fn internal(error: &DataFusionError) -> EngineError {
    EngineError::internal(error.to_string())
}

/// The error for a plan with more than [`MAX_PLAN_NODES`] nodes.
pub fn too_many_nodes() -> EngineError {
    too_complex(&format!("large [max={MAX_PLAN_NODES} operators and expressions]"))
}

fn too_complex(how: &str) -> EngineError {
    let message = format!("the plan of the statement is too {how}");
    EngineError::new(ErrorCode::StatementTooComplex, message).with_hint(
        "common table expressions, views and column aliases count each time they are used",
    )
}

/// Fails if planning has grown a plan beyond the limits.
pub(crate) fn check(plan: &LogicalPlan) -> Result<PlanSize> {
    PlanSize::of(plan).map_err(|error| DataFusionError::External(Box::new(error)))
}
