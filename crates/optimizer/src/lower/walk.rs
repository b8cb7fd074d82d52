//! The state of the walk over a plan, and the lowering of expressions.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use tidemark_operators::Lowering;

use super::other_scans::OtherScans;
use super::plain::is_foldable;

/// The walk over a plan; each sub-query has a separate walk.
pub(super) struct Walk<'a> {
    pub(super) session: &'a dyn Session,
    pub(super) lowering: Lowering<'a>,
    pub(super) scans: &'a OtherScans,
}

impl Walk<'_> {
    /// Folds an expression's constant parts.
    pub(super) fn folded(&self, expr: &Expr, schema: &DFSchemaRef) -> Result<Expr> {
        if !is_foldable(expr) {
            return Ok(expr.clone());
        }
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(schema))
            .with_config_options(Arc::clone(self.session.config().options()))
            .with_current_time()
            .build();
        ExprSimplifier::new(context).simplify(expr.clone())
    }

    /// Lowers a node's expressions to expressions of its operator.
    pub(super) fn exprs<'e>(
        &self,
        exprs: impl IntoIterator<Item = &'e Expr>,
        schema: &DFSchemaRef,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        exprs.into_iter().map(|expr| self.lowering.expr(expr, schema)).collect()
    }

    pub(super) fn workers(&self) -> usize {
        self.session.config().target_partitions()
    }

    pub(super) fn context(&self) -> &PhysicalPlanningContext {
        self.lowering.context
    }
}
