//! The walk: an exhaustive match over the logical nodes. Tidemark's nodes are matched by
//! [`LogicalNode::over_all_columns`]; a node that reads only some columns has a match arm here.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    EmptyRelation, Expr, Extension, FetchType, Limit, LogicalPlan, Projection, RecursiveQuery,
    SkipType, Union, UserDefinedLogicalNodeCore, Values,
};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExpr;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::union::UnionExec;
use tidemark_operators::{
    FillNode, Inputs, LastRowsNode, LatestOnNode, LogicalNode, Lower, Lowering, SampleByNode,
    check_stop, plan_fill, plan_last_rows, plan_latest_on, plan_sample_by,
};
use tidemark_types::bounded::grown;

use super::inputs::in_scan_order;
use super::other_scans::OtherScans;
use super::planned::{
    Order, Plan, Planned, Requirements, columns_of, mark_columns, narrowed, projected,
};
use super::subqueries::Subqueries;
use super::walk::Walk;

/// Lowers a logical plan and its sub-queries to a physical plan.
pub(crate) fn lowered(
    logical: &LogicalPlan,
    session: &dyn Session,
    scans: &OtherScans,
) -> Result<Plan> {
    let subqueries = Subqueries::of(logical, |plan| lowered(plan, session, scans))?;
    let lowering = Lowering { session, context: subqueries.context() };
    let walk = Walk { session, lowering, scans };
    let planned = walk.node(logical, &Requirements::all(logical))?;
    Ok(subqueries.before(in_scan_order(planned.plan)))
}

impl Walk<'_> {
    pub(super) fn node(&self, node: &LogicalPlan, requirements: &Requirements) -> Result<Planned> {
        check_stop()?;
        grown(|| match node {
            LogicalPlan::TableScan(scan) => self.scan(scan, &[], requirements),
            LogicalPlan::EmptyRelation(relation) => empty(relation, requirements),
            LogicalPlan::Values(values) => self.values(values, requirements),
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.node(&alias.input, requirements)?;
                let has_all = input.schema.fields().len() == alias.schema.fields().len();
                let schema = if has_all {
                    Arc::clone(&alias.schema)
                } else {
                    narrowed(&alias.schema, &requirements.columns)?
                };
                Ok(Planned { schema, ..input })
            }
            LogicalPlan::Filter(filter) => self.filter(filter, requirements),
            LogicalPlan::Projection(projection) => self.projection(projection, requirements),
            LogicalPlan::Limit(limit) => self.limit(limit, requirements),
            LogicalPlan::Sort(sort) => self.sort(sort, requirements, None),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, requirements),
            LogicalPlan::Window(window) => self.window(window, requirements),
            LogicalPlan::Join(join) => self.join(join, requirements),
            LogicalPlan::Union(union) => self.union(union, requirements),
            LogicalPlan::RecursiveQuery(query) => self.recursive(query, requirements),
            LogicalPlan::Extension(extension) => self.own(extension, requirements),
            LogicalPlan::Distinct(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Unnest(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::DescribeTable(_) => plan_err!("no operator for {}", node.display()),
        })
    }

    /// Lowers a Tidemark node.
    fn own(&self, extension: &Extension, requirements: &Requirements) -> Result<Planned> {
        let Some(node) = LogicalNode::of(extension.node.as_ref()) else {
            return plan_err!("no operator for {}", extension.node.name());
        };
        if let Some(node) = node.over_all_columns() {
            return self.over_inputs(extension, node, requirements);
        }
        match &node {
            LogicalNode::LatestOn(node) => self.latest_on(node, requirements),
            LogicalNode::LastRows(node) => self.last_rows(node, requirements),
            LogicalNode::SampleBy(node) => self.sample_by(node, requirements),
            LogicalNode::Fill(node) => self.fill(node, requirements),
            LogicalNode::OrderedJoin(node) => {
                let keeps_join_order = requirements.is_read_in_order;
                let below = Requirements { keeps_join_order, ..requirements.clone() };
                self.node(node.join(), &below)
            }
            _ => plan_err!("no operator for {}", extension.node.name()),
        }
    }

    /// Lowers a Tidemark node that reads all columns of its inputs.
    fn over_inputs(
        &self,
        extension: &Extension,
        node: &dyn Lower,
        requirements: &Requirements,
    ) -> Result<Planned> {
        let (logical, times) = (extension.node.inputs(), node.times());
        let mut physical = Vec::with_capacity(logical.len());
        for (at, input) in logical.iter().enumerate() {
            let mut below = Requirements::all(input);
            if let Some(timestamp) = times.get(at) {
                below = below.by_time(timestamp, input.schema());
            }
            below.is_read_in_order = at == 0 && requirements.is_read_in_order;
            physical.push(self.node(input, &below)?.plan);
        }
        let inputs = Inputs { logical: &logical, physical: &physical };
        let plan = node.lower(&inputs, &self.lowering)?;
        let plan = self.with_inputs_above(&physical, &plan)?;
        Planned { plan, schema: Arc::clone(extension.node.schema()) }.narrowed(requirements)
    }

    fn values(&self, values: &Values, requirements: &Requirements) -> Result<Planned> {
        let row = |row: &Vec<Expr>| {
            row.iter().map(|expr| self.lowering.expr(expr, &values.schema)).collect()
        };
        let rows = values.values.iter().map(row).collect::<Result<Vec<_>>>()?;
        let schema = Arc::clone(&values.schema);
        let plan = MemorySourceConfig::try_new_as_values(Arc::clone(schema.inner()), rows)?;
        Planned { plan, schema }.narrowed(requirements)
    }

    fn projection(&self, projection: &Projection, requirements: &Requirements) -> Result<Planned> {
        let exprs = projection.expr.iter().zip(&requirements.columns);
        let exprs: Vec<&Expr> =
            exprs.filter(|(_, is_required)| **is_required).map(|(expr, _)| expr).collect();
        let columns = columns_of(exprs.iter().copied(), projection.input.schema())?;
        let order = match requirements.order {
            Order::ByTime(at) => position_below(projection, at).map_or(Order::Any, Order::ByTime),
            other => other,
        };
        let input = self.node(
            &projection.input,
            &Requirements { order, accepts_extra_columns: true, ..requirements.of(columns) },
        )?;
        let schema = narrowed(&projection.schema, &requirements.columns)?;
        let mut outputs = Vec::with_capacity(exprs.len());
        for (at, expr) in exprs.into_iter().enumerate() {
            let expr = self.folded(expr, &input.schema)?;
            let alias = schema.field(at).name().clone();
            let expr = self.lowering.expr(&expr, &input.schema)?;
            outputs.push(ProjectionExpr { expr, alias });
        }
        let plan = projected(outputs, input.plan, &schema)?;
        Ok(Planned { plan, schema })
    }

    fn limit(&self, limit: &Limit, requirements: &Requirements) -> Result<Planned> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return plan_err!("the limit is not constant");
        };
        let below = Requirements { in_two_steps: false, ..requirements.clone() };
        if skip == 0 && fetch.is_none() {
            // The limit is a fence. It is dropped, because conditions no longer move at this stage.
            return self.node(&limit.input, &below);
        }
        let rows = fetch.map(|fetch| fetch.saturating_add(skip));
        let above = requirements.rows.map(|rows| rows.saturating_add(skip));
        let rows = [above, rows].into_iter().flatten().min();
        let below = Requirements { rows, order: Order::AsItIs, is_read_in_order: true, ..below };
        if let LogicalPlan::Sort(sort) = limit.input.as_ref() {
            return self.sort(sort, &below, Some((skip, fetch)));
        }
        let input = self.node(&limit.input, &below)?;
        Ok(Planned { plan: self.limited(input.plan, rows, (skip, fetch))?, ..input })
    }

    /// Adds a row limit; `rows` is the number of rows that suffice from each partition.
    pub(super) fn limited(
        &self,
        input: Plan,
        rows: Option<usize>,
        (skip, fetch): (usize, Option<usize>),
    ) -> Result<Plan> {
        let input = match rows.filter(|_| input.output_partitioning().partition_count() > 1) {
            Some(rows) => Arc::new(LocalLimitExec::new(input, rows)),
            None => input,
        };
        let limit: Plan = Arc::new(GlobalLimitExec::new(input, skip, fetch));
        self.with_inputs(&limit)
    }

    fn union(&self, union: &Union, requirements: &Requirements) -> Result<Planned> {
        let below = requirements.of(requirements.columns.clone());
        let inputs = union.inputs.iter().map(|input| Ok(self.node(input, &below)?.plan));
        let plan = UnionExec::try_new(inputs.collect::<Result<_>>()?)?;
        Ok(Planned { plan, schema: narrowed(&union.schema, &requirements.columns)? })
    }

    fn recursive(&self, query: &RecursiveQuery, requirements: &Requirements) -> Result<Planned> {
        let term = |term| self.node(term, &Requirements::all(term)).map(|term| term.plan);
        let schema = Arc::clone(&query.schema);
        let plan = RecursiveQueryExec::try_new(
            query.name.clone(),
            Arc::clone(schema.inner()),
            term(&query.static_term)?,
            term(&query.recursive_term)?,
            query.is_distinct,
        )?;
        let plan: Plan = Arc::new(plan);
        Planned { plan: self.with_inputs(&plan)?, schema }.narrowed(requirements)
    }

    fn latest_on(&self, node: &LatestOnNode, requirements: &Requirements) -> Result<Planned> {
        let (mut columns, input) = (requirements.columns.clone(), node.input());
        for expr in std::iter::once(node.timestamp()).chain(node.keys()) {
            mark_columns(expr, input.schema(), &mut columns)?;
        }
        let below = Requirements::columns(columns.clone()).in_any_order();
        let input = self.node(input, &below.by_time(node.timestamp(), input.schema()))?;
        let known = [Arc::clone(&input.plan)];
        let plan = plan_latest_on(node, &input.schema, input.plan, &self.lowering)?;
        let plan = self.with_inputs_above(&known, &plan)?;
        Planned { plan, schema: input.schema }.narrowed_to(requirements, &columns)
    }

    fn last_rows(&self, node: &LastRowsNode, requirements: &Requirements) -> Result<Planned> {
        let input =
            self.node(node.input(), &Requirements::columns(requirements.columns.clone()))?;
        let known = [Arc::clone(&input.plan)];
        let plan = self.with_inputs_above(&known, &plan_last_rows(node, input.plan)?)?;
        Ok(Planned { plan, ..input })
    }

    fn sample_by(&self, node: &SampleByNode, requirements: &Requirements) -> Result<Planned> {
        let bucket = node.bucket().map(|bucket| &bucket.timestamp);
        let exprs = bucket.into_iter().chain(node.keys()).chain(node.aggregates());
        let schema = node.input().schema();
        let below = Requirements {
            accepts_extra_columns: true,
            ..Requirements::columns(columns_of(exprs, schema)?)
        };
        let below = match node.bucket() {
            Some(bucket) => below.in_any_order().by_time(&bucket.timestamp, schema),
            None if node.reads_order() => below,
            None => below.in_any_order(),
        };
        let input = self.node(node.input(), &below)?;
        let known = [Arc::clone(&input.plan)];
        let plan = plan_sample_by(node, &input.schema, input.plan, &self.lowering)?;
        let plan = self.with_inputs_above(&known, &plan)?;
        Planned { plan, schema: Arc::clone(node.schema()) }.narrowed(requirements)
    }

    fn fill(&self, node: &FillNode, requirements: &Requirements) -> Result<Planned> {
        let input = self.node(node.input(), &Requirements::all(node.input()))?;
        let plan = self.with_inputs(&plan_fill(node, input.plan))?;
        Planned { plan, schema: Arc::clone(node.schema()) }.narrowed(requirements)
    }
}

/// Returns the input position of the column that a projection outputs at position `at`.
fn position_below(projection: &Projection, at: usize) -> Option<usize> {
    let mut expr = &projection.expr[at];
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    projection.input.schema().maybe_index_of_column(expr.try_as_col()?)
}

fn empty(relation: &EmptyRelation, requirements: &Requirements) -> Result<Planned> {
    let schema = narrowed(&relation.schema, &requirements.columns)?;
    let arrow = Arc::clone(schema.inner());
    let plan: Plan = if relation.produce_one_row {
        Arc::new(PlaceholderRowExec::new(arrow))
    } else {
        Arc::new(EmptyExec::new(arrow))
    };
    Ok(Planned { plan, schema })
}
