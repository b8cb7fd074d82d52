//! Limits on binding: a short statement can produce a large plan, because expressions, variables,
//! CTEs and views are expanded at each reference.

use datafusion::logical_expr::Expr;
use tidemark_ast::Span;
use tidemark_optimizer::{MAX_PLAN_NODES, PlanSize, too_many_nodes};
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::error;
use crate::binder::state::typed::Typed;

/// Maximum number of expressions and queries bound in a statement, including constants.
const MAX_STEPS: usize = 1_000_000;
/// Number of steps between cancellation checks.
const STEPS_BETWEEN_CHECKS: usize = 64;
/// Maximum number of sources in a statement. CTEs and views are bound again at each reference, so a
/// few short CTEs, each referencing the previous one twice, could read millions of tables.
const MAX_SOURCES: usize = 1_000;

/// Work done so far to bind a statement, including its views.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    steps: usize,
    /// Number of expression nodes created.
    nodes: usize,
    /// The current expression's nesting depth.
    nesting: usize,
    /// Number of tables, views and sub-queries.
    pub(crate) sources: usize,
}

impl Work {
    /// Counts a binding step.
    pub(crate) fn count_step(&mut self, at: Span) -> EngineResult<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            check_stop()?;
        }
        if self.steps > MAX_STEPS {
            let message = format!("the statement has too many expressions [max={MAX_STEPS}]");
            return Err(error::at(ErrorCode::StatementTooComplex, message, at));
        }
        Ok(())
    }

    /// Counts sources; `at` is the reference's position.
    pub(crate) fn count_sources(&mut self, more: usize, at: Span) -> EngineResult<()> {
        self.sources += more;
        if self.sources > MAX_SOURCES {
            let message = format!(
                "too many tables and sub-queries in a statement [limit={MAX_SOURCES}]: common \
                 table expressions and views count each time they are used"
            );
            return Err(error::at(ErrorCode::StatementTooComplex, message, at));
        }
        Ok(())
    }

    /// Counts columns that `*` adds to a select list; `at` is its position.
    pub(crate) fn count_columns(&mut self, more: usize, at: Span) -> EngineResult<()> {
        check_stop()?;
        self.nodes += more;
        if self.nodes > MAX_PLAN_NODES {
            return Err(too_many_nodes().at_if_missing(error::span(at)));
        }
        Ok(())
    }

    /// Marks the start of an expression, which may be nested.
    pub(crate) fn begin_expression(&mut self) {
        self.nesting += 1;
    }

    /// Marks the end of an expression, whether or not binding succeeded.
    pub(crate) fn end_expression(&mut self) {
        self.nesting -= 1;
    }

    /// Counts a bound expression's nodes.
    pub(crate) fn count_nodes(&mut self, expr: &Expr, at: Span) -> EngineResult<()> {
        let located = |failure: EngineError| failure.at_if_missing(error::span(at));
        let nodes = PlanSize::of_expr(expr).map_err(located)?.nodes;
        if self.nesting == 0 {
            self.nodes += nodes;
            if self.nodes > MAX_PLAN_NODES {
                return Err(located(too_many_nodes()));
            }
        }
        Ok(())
    }
}

/// Rejects an expression that would be copied too many times.
pub(crate) fn must_repeat(value: &Typed, times: usize, at: Span) -> EngineResult<()> {
    let nodes = PlanSize::of_expr(&value.expr)?.nodes;
    if nodes.saturating_mul(times) > MAX_PLAN_NODES {
        return Err(too_many_nodes().at_if_missing(error::span(at)));
    }
    Ok(())
}
