//! The requirements of the node above, and the lowered node that satisfies them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use tidemark_operators::PlanNode;

use crate::rules::decorrelate::subquery::subquery_of;

pub(super) type Plan = Arc<dyn ExecutionPlan>;

/// An operator, and the names by which expressions above refer to its columns. Its order,
/// partitions and row estimate are stored only in its properties (`ExecutionPlan::properties`), so
/// they cannot contradict each other.
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) schema: DFSchemaRef,
}

/// Requirements of the node above.
#[derive(Clone)]
pub(super) struct Requirements {
    /// Whether each column is needed, by position.
    pub(super) columns: Vec<bool>,
    /// Number of leading rows that suffice; `None` for all rows.
    pub(super) rows: Option<usize>,
    /// The row order that matters to the node above.
    pub(super) order: Order,
    /// Whether the node above reads the rows in the order in which they arrive.
    pub(super) is_read_in_order: bool,
    /// Whether a right join below must preserve its right side's order.
    pub(super) keeps_join_order: bool,
    /// Whether a GROUP BY keeps its two phases, because the node above decides how to lower it.
    pub(super) in_two_steps: bool,
    /// Whether the node above refers to columns by name, so additional columns are harmless.
    pub(super) accepts_extra_columns: bool,
}

/// The row order that matters to the node above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The order does not matter.
    Any,
    /// The existing order must be preserved.
    AsItIs,
    /// Ascending by the column at this position; the node above sorts rows in any other order.
    ByTime(usize),
}

impl Requirements {
    /// Requires all columns and rows of a plan, in their order.
    pub(super) fn all(plan: &LogicalPlan) -> Self {
        Self::columns(vec![true; plan.schema().fields().len()])
    }

    /// Requires all rows of some columns, in their order.
    pub(super) fn columns(columns: Vec<bool>) -> Self {
        Self {
            columns,
            rows: None,
            order: Order::AsItIs,
            is_read_in_order: true,
            keeps_join_order: false,
            in_two_steps: false,
            accepts_extra_columns: false,
        }
    }

    /// Returns the same requirements for rows in any order.
    pub(super) fn in_any_order(self) -> Self {
        Self { order: Order::Any, is_read_in_order: false, keeps_join_order: false, ..self }
    }

    /// Returns the same requirements for rows in ascending timestamp order.
    pub(super) fn by_time(self, timestamp: &Expr, schema: &DFSchema) -> Self {
        let Expr::Column(column) = timestamp else { return self };
        let position = schema.maybe_index_of_column(column);
        Self { order: position.map_or(Order::AsItIs, Order::ByTime), ..self }
    }

    /// Returns whether each column marked in `columns` is needed.
    pub(super) fn among(&self, columns: &[bool]) -> Vec<bool> {
        let had = columns.iter().zip(&self.columns).filter(|(has, _)| **has);
        had.map(|(_, is_required)| *is_required).collect()
    }

    /// Returns the same requirements for different columns.
    pub(super) fn of(&self, columns: Vec<bool>) -> Self {
        Self { columns, in_two_steps: false, accepts_extra_columns: false, ..self.clone() }
    }
}

impl Planned {
    /// Removes the unneeded columns of an operator that has `columns`.
    pub(super) fn narrowed_to(self, requirements: &Requirements, columns: &[bool]) -> Result<Self> {
        if columns == requirements.columns {
            return Ok(self);
        }
        let retained = requirements.among(columns);
        let schema = narrowed(&self.schema, &retained)?;
        let outputs = (0..retained.len()).filter(|&at| retained[at]).map(|at| {
            let alias = self.plan.schema().field(at).name().clone();
            ProjectionExpr { expr: Arc::new(Column::new(&alias, at)), alias }
        });
        let plan = projected(outputs.collect(), self.plan, &schema)?;
        Ok(Self { plan, schema })
    }

    /// Like [`Self::narrowed_to`], for an operator that has all columns of its node.
    pub(super) fn narrowed(self, requirements: &Requirements) -> Result<Self> {
        if requirements.accepts_extra_columns {
            return Ok(self);
        }
        let all = vec![true; requirements.columns.len()];
        self.narrowed_to(requirements, &all)
    }
}

/// Builds a projection. It is merged with a projection below if the lower projection only selects
/// columns, or if the upper projection selects each computed column of the lower one at most once.
pub(super) fn projected(
    mut outputs: Vec<ProjectionExpr>,
    mut input: Plan,
    schema: &DFSchema,
) -> Result<Plan> {
    if let PlanNode::Projection(below) = PlanNode::of(input.as_ref()) {
        let picks = below.expr().iter().all(|own| own.expr.is::<Column>());
        if picks || selects_each_once(&outputs, below.expr()) {
            for own in &mut outputs {
                own.expr = over(&own.expr, below.expr())?;
            }
            input = Arc::clone(below.input());
        }
    }
    let is_same = outputs.len() == input.schema().fields().len();
    if is_same && outputs.iter().enumerate().all(|(at, own)| is_column(&own.expr, at, &own.alias)) {
        return Ok(input);
    }
    let output = schema.as_arrow();
    Ok(Arc::new(ProjectionExec::try_new_with_schema_metadata(outputs, input, output)?))
}

/// Whether the outputs only select columns from the projection below, each computed column at most
/// once.
fn selects_each_once(outputs: &[ProjectionExpr], below: &[ProjectionExpr]) -> bool {
    let mut selected = vec![false; below.len()];
    outputs.iter().all(|own| {
        let Some(at) = own.expr.downcast_ref::<Column>().map(Column::index) else { return false };
        let again = std::mem::replace(&mut selected[at], true);
        !again || below[at].expr.is::<Column>()
    })
}

/// Replaces the columns in an expression with the expressions that compute them.
pub(super) fn over(
    expr: &Arc<dyn PhysicalExpr>,
    below: &[ProjectionExpr],
) -> Result<Arc<dyn PhysicalExpr>> {
    let replaced = |expr: Arc<dyn PhysicalExpr>| {
        Ok(match expr.downcast_ref::<Column>().and_then(|column| below.get(column.index())) {
            Some(computed) => {
                let computed = Arc::clone(&computed.expr);
                Transformed::new(computed, true, TreeNodeRecursion::Jump)
            }
            None => Transformed::no(expr),
        })
    };
    Arc::clone(expr).transform_down(replaced).data()
}

/// Whether an expression is the column at this position, under its own name.
fn is_column(expr: &Arc<dyn PhysicalExpr>, at: usize, name: &str) -> bool {
    expr.downcast_ref::<Column>()
        .is_some_and(|column| column.index() == at && column.name() == name)
}

/// Returns the schema with only some of its columns.
pub(super) fn narrowed(schema: &DFSchemaRef, columns: &[bool]) -> Result<DFSchemaRef> {
    if columns.iter().all(|&column| column) {
        return Ok(Arc::clone(schema));
    }
    let fields = schema.iter().zip(columns).filter(|(_, is_required)| **is_required);
    let fields = fields.map(|((qualifier, field), _)| (qualifier.cloned(), Arc::clone(field)));
    let metadata = schema.metadata().clone();
    DFSchema::new_with_metadata(fields.collect(), metadata).map(Arc::new)
}

/// Returns the input columns that a list of expressions reads.
pub(super) fn columns_of<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Result<Vec<bool>> {
    let mut columns = vec![false; schema.fields().len()];
    exprs.into_iter().try_for_each(|expr| mark_columns(expr, schema, &mut columns))?;
    Ok(columns)
}

/// Marks the columns that an expression reads; fails if one of them is not in this schema.
pub(super) fn mark_columns(expr: &Expr, schema: &DFSchema, into: &mut [bool]) -> Result<()> {
    let mut unknown = None;
    expr.exists(|expr| {
        if let Expr::Column(column) = expr {
            match schema.maybe_index_of_column(column) {
                Some(at) => into[at] = true,
                None => unknown = Some(column.clone()),
            }
        }
        Ok(unknown.is_some())
    })?;
    match unknown {
        Some(column) => plan_err!("the input has no column {column}"),
        None => Ok(()),
    }
}

/// Whether an expression reads only these columns, and contains no sub-query.
pub(super) fn is_over(expr: &Expr, schema: &DFSchema) -> bool {
    let outside = |expr: &Expr| match expr {
        Expr::Column(column) => schema.maybe_index_of_column(column).is_none(),
        other => subquery_of(other).is_some(),
    };
    !expr.exists(|expr| Ok(outside(expr))).unwrap_or(true)
}
