//! Plans of one table, made in one walk: scan, filter, SAMPLE BY or GROUP BY, FILL, LATEST ON, the
//! order of time, projections, LIMIT from either end.
//!
//! Most statements of a time-series database are of this kind, and a prepared one with parameters
//! is planned for each execution. `DataFusion`'s rules come to the same plan in many walks, each of
//! which rebuilds parts of it. Whatever is more than this module knows (a join, another order, a
//! sub-query, columns of a group that no expression reads) is left to them.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    EmptyRelation, Expr, FetchType, Filter, Limit, LogicalPlan, Projection, SkipType, Sort,
    TableScan, UserDefinedLogicalNodeCore,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_coop::EnsureCooperative;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::conditions::all_of;
use crate::rules::bound::bounded;
use crate::rules::decorrelate::has_subquery;
use tidemark_operators::{
    FillNode, FilteredScan, LatestOnNode, LogicalNode, Lowering, SampleByNode, ScanParts,
    SliceScan, SnapshotTable, TimeConcat, follows_scan_order, origin, plan_fill, plan_last_rows,
    plan_latest_on, plan_sample_by, reversed,
};

/// An operator and what its columns are called by the expressions above it.
struct Planned {
    plan: Arc<dyn ExecutionPlan>,
    schema: DFSchemaRef,
}

/// What an operator's reader wants of it.
#[derive(Clone)]
struct Wanted {
    /// Which columns, by their place.
    columns: Vec<bool>,
    /// The first rows that are enough.
    rows: Option<usize>,
}

/// The physical plan, if the logical one is of the kind this module knows.
pub(crate) fn plan(
    logical: &LogicalPlan,
    session: &dyn Session,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let context = PhysicalPlanningContext::default();
    let planner = Planner { session, lowering: Lowering { session, context: &context } };
    let all = Wanted { columns: vec![true; logical.schema().fields().len()], rows: None };
    let Some(planned) = planner.node(logical, all)? else { return Ok(None) };
    let Some(plan) = with_inputs(&planned.plan)? else { return Ok(None) };
    let Some(plan) = distributed(plan, &Distribution::SinglePartition) else { return Ok(None) };
    let plan = EnsureCooperative::new().optimize(plan, session.config_options())?;
    bounded(plan).map(Some)
}

/// A condition over columns with these names, for a filter of `scan`; `None` where the scan would
/// read by a part of it, or it takes more than these columns.
pub(crate) fn condition(
    predicate: &Expr,
    names: &DFSchemaRef,
    scan: &SliceScan,
    session: &dyn Session,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let context = PhysicalPlanningContext::default();
    let planner = Planner { session, lowering: Lowering { session, context: &context } };
    if !mark_columns(predicate, names, &mut vec![false; names.fields().len()]) {
        return Ok(None);
    }
    let predicate = planner.folded(predicate, names)?;
    let parts = split_conjunction(&predicate);
    if parts.iter().any(|part| scan.time_range(part).is_some()) {
        return Ok(None);
    }
    let Some(predicate) = all_of(parts.into_iter().cloned()) else { return Ok(None) };
    planner.lowering.expr(&predicate, names).map(Some)
}

struct Planner<'a> {
    session: &'a dyn Session,
    lowering: Lowering<'a>,
}

impl Planner<'_> {
    fn node(&self, node: &LogicalPlan, wanted: Wanted) -> Result<Option<Planned>> {
        match node {
            LogicalPlan::TableScan(scan) => self.scan(scan, &[], &wanted, &scan.projected_schema),
            LogicalPlan::EmptyRelation(relation) => empty(relation, &wanted).map(Some),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(input) = self.node(&alias.input, wanted.clone())? else { return Ok(None) };
                let schema = narrowed(&alias.schema, &wanted.columns)?;
                Ok(Some(Planned { schema, ..input }))
            }
            LogicalPlan::Filter(filter) => self.filter(filter, &wanted),
            LogicalPlan::Projection(projection) => self.projection(projection, &wanted),
            LogicalPlan::Limit(limit) => self.limit(limit, wanted),
            LogicalPlan::Sort(sort) => self.sort(sort, &wanted),
            LogicalPlan::Extension(extension)
                if let Some(LogicalNode::LatestOn(node)) =
                    LogicalNode::of(extension.node.as_ref()) =>
            {
                self.latest_on(node, &wanted)
            }
            LogicalPlan::Extension(extension)
                if let Some(LogicalNode::LastRows(node)) =
                    LogicalNode::of(extension.node.as_ref()) =>
            {
                let Some(input) = self.node(node.input(), Wanted { rows: None, ..wanted })? else {
                    return Ok(None);
                };
                Ok(Some(Planned { plan: plan_last_rows(node, input.plan)?, ..input }))
            }
            LogicalPlan::Extension(extension) if wanted.columns.iter().all(|&column| column) => {
                match LogicalNode::of(extension.node.as_ref()) {
                    Some(LogicalNode::SampleBy(node)) => self.sample_by(node),
                    Some(LogicalNode::Fill(node)) => self.fill(node),
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// A scan with the filters above it; `schema` is what these call its columns.
    fn scan(
        &self,
        scan: &TableScan,
        filters: &[&Filter],
        wanted: &Wanted,
        schema: &DFSchemaRef,
    ) -> Result<Option<Planned>> {
        let Ok(provider) = source_as_provider(&scan.source) else { return Ok(None) };
        let Some(table) = provider.downcast_ref::<SnapshotTable>() else { return Ok(None) };
        let is_one = filters.len() + scan.filters.len() == 1;
        let filters = filters.iter().map(|filter| &filter.predicate);
        let (mut in_time, mut others) = (Vec::new(), Vec::new());
        for predicate in filters.chain(&scan.filters) {
            let predicate = self.folded(predicate, schema)?;
            for part in split_conjunction(&predicate) {
                match table.time_range(part) {
                    Some(range) => in_time.push(range),
                    None => others.push(part.clone()),
                }
            }
        }
        let mut read = wanted.columns.clone();
        for predicate in &others {
            if !mark_columns(predicate, schema, &mut read) {
                return Ok(None);
            }
        }
        let places: Vec<usize> = (0..read.len()).filter(|&place| read[place]).collect();
        let source = scan.projection.as_deref();
        let columns = places.iter().map(|&place| source.map_or(place, |of| of[place])).collect();
        let rows = wanted.rows.filter(|_| others.is_empty());
        let parts = ScanParts::of(self.session.config());
        let plan = table.plan(columns, &in_time, rows, parts)?;
        let schema_read = narrowed(schema, &read)?;
        let Some(predicate) = all_of(others) else {
            return Ok(Some(Planned { plan: plan.plan(), schema: schema_read }));
        };
        let predicate = self.lowering.expr(&predicate, &schema_read)?;
        let output = places.iter().enumerate().filter(|(_, place)| wanted.columns[**place]);
        let output = output.map(|(at, _)| at).collect();
        let plan = FilteredScan::new(plan, predicate, output, wanted.rows)?;
        let plan = if is_one { plan.named(schema_read) } else { plan };
        Ok(Some(Planned { plan: plan.plan(), schema: narrowed(schema, &wanted.columns)? }))
    }

    /// Filters straight above a scan.
    fn filter(&self, filter: &Filter, wanted: &Wanted) -> Result<Option<Planned>> {
        let mut filters = vec![filter];
        let mut input = filter.input.as_ref();
        loop {
            match input {
                LogicalPlan::Filter(filter) => {
                    filters.push(filter);
                    input = &filter.input;
                }
                LogicalPlan::TableScan(scan) => {
                    return self.scan(scan, &filters, wanted, &scan.projected_schema);
                }
                _ => return Ok(None),
            }
        }
    }

    fn projection(&self, projection: &Projection, wanted: &Wanted) -> Result<Option<Planned>> {
        let exprs = projection.expr.iter().zip(&wanted.columns);
        let exprs: Vec<&Expr> =
            exprs.filter(|(_, wanted)| **wanted).map(|(expr, _)| expr).collect();
        let Some(columns) = columns_of(exprs.iter().copied(), projection.input.schema()) else {
            return Ok(None);
        };
        let below = Wanted { columns, rows: wanted.rows };
        let Some(input) = self.node(&projection.input, below)? else { return Ok(None) };
        let schema = narrowed(&projection.schema, &wanted.columns)?;
        let mut outputs = Vec::with_capacity(exprs.len());
        let mut changes = exprs.len() != input.schema.fields().len();
        for (place, expr) in exprs.into_iter().enumerate() {
            let expr = self.folded(expr, &input.schema)?;
            let alias = schema.field(place).name().clone();
            changes |= !is_column_at(&expr, place, &alias, &input.schema);
            let expr = self.lowering.expr(&expr, &input.schema)?;
            outputs.push(ProjectionExpr { expr, alias });
        }
        if !changes {
            return Ok(Some(Planned { schema, ..input }));
        }
        let output = schema.as_arrow();
        let plan = ProjectionExec::try_new_with_schema_metadata(outputs, input.plan, output)?;
        Ok(Some(Planned { plan: Arc::new(plan), schema }))
    }

    fn limit(&self, limit: &Limit, mut wanted: Wanted) -> Result<Option<Planned>> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
        };
        let rows = fetch.map(|fetch| fetch.saturating_add(skip));
        wanted.rows = match (wanted.rows.map(|rows| rows.saturating_add(skip)), rows) {
            (Some(above), Some(own)) => Some(above.min(own)),
            (above, own) => above.or(own),
        };
        let most = wanted.rows;
        let Some(input) = self.node(&limit.input, wanted)? else { return Ok(None) };
        let plan = match most.filter(|_| input.plan.output_partitioning().partition_count() > 1) {
            Some(rows) => Arc::new(LocalLimitExec::new(input.plan, rows)),
            None => input.plan,
        };
        let plan = Arc::new(GlobalLimitExec::new(plan, skip, fetch));
        Ok(Some(Planned { plan, schema: input.schema }))
    }

    /// ORDER BY the designated timestamp.
    fn sort(&self, sort: &Sort, wanted: &Wanted) -> Result<Option<Planned>> {
        let ([key], schema) = (sort.expr.as_slice(), sort.input.schema()) else {
            return Ok(None);
        };
        let mut columns = wanted.columns.clone();
        if sort.fetch.is_some() || !mark_columns(&key.expr, schema, &mut columns) {
            return Ok(None);
        }
        let below = Wanted { columns: columns.clone(), rows: None };
        let Some(input) = self.node(&sort.input, below)? else { return Ok(None) };
        let timestamp = self.lowering.expr(&key.expr, &input.schema)?;
        let Some((scan, output)) = origin(&input.plan, &timestamp) else { return Ok(None) };
        if !scan.is_timestamp(output) {
            return Ok(None);
        }
        let plan = if scan.is_backward() == key.asc {
            reversed(&input.plan, wanted.rows)?
        } else {
            Some(Arc::clone(&input.plan))
        };
        let Some(plan) = plan else { return Ok(None) };
        let schema = narrowed(schema, &columns)?;
        exactly(Planned { plan, schema }, &columns, wanted).map(Some)
    }

    fn latest_on(&self, node: &LatestOnNode, wanted: &Wanted) -> Result<Option<Planned>> {
        let mut columns = wanted.columns.clone();
        let input = node.input();
        for expr in std::iter::once(node.timestamp()).chain(node.keys()) {
            if is_foldable(expr) || !mark_columns(expr, input.schema(), &mut columns) {
                return Ok(None);
            }
        }
        let below = Wanted { columns: columns.clone(), rows: None };
        let Some(input) = self.node(input, below)? else { return Ok(None) };
        let timestamp = self.lowering.expr(node.timestamp(), &input.schema)?;
        let ascends = origin(&input.plan, &timestamp).is_some_and(|(scan, _)| !scan.is_backward());
        if !ascends {
            return Ok(None);
        }
        let plan = plan_latest_on(node, &input.schema, input.plan, &self.lowering)?;
        exactly(Planned { plan, schema: input.schema }, &columns, wanted).map(Some)
    }

    fn sample_by(&self, node: &SampleByNode) -> Result<Option<Planned>> {
        let bucket = node.bucket().map(|bucket| &bucket.timestamp);
        let mut exprs = bucket.into_iter().chain(node.keys()).chain(node.aggregates());
        let Some(columns) = columns_of(exprs.clone(), node.input().schema()) else {
            return Ok(None);
        };
        if exprs.any(is_foldable) {
            return Ok(None);
        }
        let below = Wanted { columns, rows: None };
        let Some(input) = self.node(node.input(), below)? else { return Ok(None) };
        let plan = plan_sample_by(node, &input.schema, input.plan, &self.lowering)?;
        Ok(Some(Planned { plan, schema: Arc::clone(node.schema()) }))
    }

    fn fill(&self, node: &FillNode) -> Result<Option<Planned>> {
        let columns = vec![true; node.input().schema().fields().len()];
        let below = Wanted { columns, rows: None };
        let Some(input) = self.node(node.input(), below)? else { return Ok(None) };
        let plan = plan_fill(node, input.plan);
        Ok(Some(Planned { plan, schema: Arc::clone(node.schema()) }))
    }

    /// The expression with its constant parts computed.
    fn folded(&self, expr: &Expr, schema: &DFSchemaRef) -> Result<Expr> {
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
}

/// What has some columns more than are wanted, without them.
fn exactly(planned: Planned, columns: &[bool], wanted: &Wanted) -> Result<Planned> {
    if columns == wanted.columns {
        return Ok(planned);
    }
    let places = columns.iter().zip(&wanted.columns).filter(|(has, _)| **has);
    let wanted: Vec<bool> = places.map(|(_, wanted)| *wanted).collect();
    let schema = narrowed(&planned.schema, &wanted)?;
    let outputs = (0..wanted.len()).filter(|&place| wanted[place]).map(|place| {
        let alias = planned.schema.field(place).name().clone();
        ProjectionExpr { expr: Arc::new(Column::new(&alias, place)), alias }
    });
    let outputs: Vec<_> = outputs.collect();
    let output = schema.as_arrow();
    let plan = ProjectionExec::try_new_with_schema_metadata(outputs, planned.plan, output)?;
    Ok(Planned { plan: Arc::new(plan), schema })
}

fn empty(relation: &EmptyRelation, wanted: &Wanted) -> Result<Planned> {
    let schema = narrowed(&relation.schema, &wanted.columns)?;
    let arrow = Arc::clone(schema.inner());
    let plan: Arc<dyn ExecutionPlan> = if relation.produce_one_row {
        Arc::new(PlaceholderRowExec::new(arrow))
    } else {
        Arc::new(EmptyExec::new(arrow))
    };
    Ok(Planned { plan, schema })
}

/// The schema with some of its columns.
fn narrowed(schema: &DFSchemaRef, columns: &[bool]) -> Result<DFSchemaRef> {
    if columns.iter().all(|&column| column) {
        return Ok(Arc::clone(schema));
    }
    let fields = schema.iter().zip(columns).filter(|(_, wanted)| **wanted);
    let fields = fields.map(|((qualifier, field), _)| (qualifier.cloned(), Arc::clone(field)));
    let metadata = schema.metadata().clone();
    DFSchema::new_with_metadata(fields.collect(), metadata).map(Arc::new)
}

/// Which columns of its input a list of expressions reads; `None` if one of them holds a query.
fn columns_of<'e>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Option<Vec<bool>> {
    let mut columns = vec![false; schema.fields().len()];
    let mut exprs = exprs.into_iter();
    exprs.all(|expr| mark_columns(expr, schema, &mut columns)).then_some(columns)
}

/// Marks the columns that an expression reads; false if one of them is not its input's, or it
/// holds a query.
fn mark_columns(expr: &Expr, schema: &DFSchema, into: &mut [bool]) -> bool {
    let mut outside = |expr: &Expr| match expr {
        Expr::Column(column) => match schema.index_of_column(column) {
            Ok(place) => {
                into[place] = true;
                false
            }
            Err(_) => true,
        },
        _ => false,
    };
    !has_subquery(expr) && !expr.exists(|expr| Ok(outside(expr))).unwrap_or(true)
}

/// Whether a part of an expression is computed from literals alone.
fn is_foldable(expr: &Expr) -> bool {
    let computed = |expr: &Expr| {
        let (mut operands, mut literals) = (0, 0);
        let count = |operand: &Expr| {
            operands += 1;
            literals += usize::from(matches!(operand, Expr::Literal(..)));
            Ok(TreeNodeRecursion::Continue)
        };
        let named = matches!(expr, Expr::Alias(_) | Expr::AggregateFunction(_));
        let counted = named || expr.apply_children(count).is_ok();
        !named && counted && operands > 0 && operands == literals && !expr.is_volatile_node()
    };
    expr.exists(|expr| Ok(computed(expr))).unwrap_or(true)
}

/// Whether an expression passes on the column at this place, under the name it has.
fn is_column_at(expr: &Expr, place: usize, name: &str, schema: &DFSchema) -> bool {
    match expr {
        Expr::Column(column) => {
            let own = schema.fields().get(place).map(|field| field.name().as_str());
            own == Some(name) && schema.index_of_column(column).ok() == Some(place)
        }
        Expr::Alias(alias) => is_column_at(&alias.expr, place, name, schema),
        _ => false,
    }
}

/// The plan with inputs as its operators require them; `None` where that takes more than reading
/// partitions one after the other.
fn with_inputs(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let children = plan.children();
    if children.is_empty() {
        return Ok(Some(Arc::clone(plan)));
    }
    let distributions = plan.input_distribution_requirements().into_per_child();
    let orderings = plan.required_input_ordering();
    let mut inputs = Vec::with_capacity(children.len());
    for ((child, distribution), ordering) in children.iter().zip(distributions).zip(orderings) {
        let Some(input) = with_inputs(child)? else { return Ok(None) };
        let Some(input) = distributed(input, &distribution) else { return Ok(None) };
        if !is_ordered(&input, ordering)? {
            return Ok(None);
        }
        inputs.push(input);
    }
    if children.iter().zip(&inputs).all(|(child, input)| Arc::ptr_eq(child, input)) {
        return Ok(Some(Arc::clone(plan)));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(inputs, options).map(Some)
}

fn distributed(
    input: Arc<dyn ExecutionPlan>,
    wanted: &Distribution,
) -> Option<Arc<dyn ExecutionPlan>> {
    let is_one = input.output_partitioning().partition_count() == 1;
    match wanted {
        Distribution::UnspecifiedDistribution => Some(input),
        _ if is_one => Some(input),
        Distribution::SinglePartition if follows_scan_order(&input) => {
            Some(TimeConcat::plan(input))
        }
        _ => None,
    }
}

fn is_ordered(
    input: &Arc<dyn ExecutionPlan>,
    wanted: Option<OrderingRequirements>,
) -> Result<bool> {
    match wanted {
        Some(wanted) => {
            input.equivalence_properties().ordering_satisfy_requirement(wanted.into_single())
        }
        None => Ok(true),
    }
}
