//! Bounds of binding: a short text may stand for a large plan, since names given to expressions,
//! variables, common tables and views are written out wherever they are used.

use datafusion::logical_expr::Expr;
use tidemark_ast::Span;
use tidemark_optimizer::{MAX_PLAN_NODES, PlanSize, too_many_nodes};
use tidemark_types::bounded::check_stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::error;
use crate::binder::state::typed::Typed;

/// Expressions and queries bound for one statement, at most, constants among them.
const MAX_STEPS: usize = 1_000_000;
/// Steps between two looks at whether the statement was stopped.
const STEPS_BETWEEN_CHECKS: usize = 64;
/// Sources of one statement. A common table or a view is bound anew wherever it is named, so that
/// a few lines that name each other twice would read millions of tables.
const MAX_SOURCES: usize = 1_000;

/// What a statement's binding took so far, with that of its views.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    steps: usize,
    /// Nodes of the expressions made.
    nodes: usize,
    /// Expressions around the one that is being bound.
    nesting: usize,
    /// Tables, views and sub-queries.
    pub(crate) sources: usize,
}

impl Work {
    /// Counts something that is bound.
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

    /// Counts sources; `at` is where they are named.
    pub(crate) fn count_sources(&mut self, more: usize, at: Span) -> EngineResult<()> {
        self.sources += more;
        if self.sources > MAX_SOURCES {
            let message = format!(
                "too many tables and sub-queries in a statement [limit={MAX_SOURCES}]: common \
                 tables and views count once for each use"
            );
            return Err(error::at(ErrorCode::StatementTooComplex, message, at));
        }
        Ok(())
    }

    /// Counts columns that a select list takes over; `at` is where that is written.
    pub(crate) fn count_columns(&mut self, more: usize, at: Span) -> EngineResult<()> {
        check_stop()?;
        self.nodes += more;
        if self.nodes > MAX_PLAN_NODES {
            return Err(too_many_nodes().at_if_missing(error::span(at)));
        }
        Ok(())
    }

    /// An expression is being bound, with others around it or in it.
    pub(crate) fn begin_expression(&mut self) {
        self.nesting += 1;
    }

    /// It was bound, or failed.
    pub(crate) fn end_expression(&mut self) {
        self.nesting -= 1;
    }

    /// Counts the nodes of an expression that was bound.
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

/// Refuses to write an expression so many times.
pub(crate) fn must_repeat(value: &Typed, times: usize, at: Span) -> EngineResult<()> {
    let nodes = PlanSize::of_expr(&value.expr)?.nodes;
    if nodes.saturating_mul(times) > MAX_PLAN_NODES {
        return Err(too_many_nodes().at_if_missing(error::span(at)));
    }
    Ok(())
}
