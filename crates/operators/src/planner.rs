//! From our logical nodes to physical operators.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::arrow::compute::cast;
use datafusion::catalog::Session;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::aggregate::LoweredAggregateBuilder;
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use tidemark_types::SqlType;

use crate::bounded::{has_long_literal, shared};
use crate::bucket::Alignment;
use crate::fill::node::FillNode;
use crate::fill::plan::FillPlan;
use crate::filter_scan::merged;
use crate::join_planner::{plan_asof, plan_horizon, plan_splice, plan_window};
use crate::latest_on::node::LatestOnNode;
use crate::latest_on::plan::{KeyKind, LatestOnPlan};
use crate::logical::LogicalNode;
use crate::operator::OperatorExec;
use crate::order::{TimeConcat, in_time_order, reversed};
use crate::plan_node::scan;
use crate::sample_by::fallback::MOST_DENSE_SYMBOLS;
use crate::sample_by::groups::KeyPlan;
use crate::sample_by::node::SampleByNode;
use crate::sample_by::plan::{AggregatePlan, BucketPlan, SampleByPlan};
use crate::scan::kind::Scan;
use crate::sorted_input::keep_sorted;
use crate::stoppable::check_stop;
use crate::symbols::{dictionary, nullable_origin, origin};
use crate::unnest::exec::UnnestPlan;
use crate::unnest::node::UnnestNode;
use crate::window::exec::{FunctionPlan, PartitionPlan, WindowPlan};
use crate::window::node::WindowNode;
use crate::window::spec::Spec;

/// Plans the nodes of this crate.
#[derive(Debug, Default)]
pub struct TidemarkExtensionPlanner;

/// The inputs of a join.
pub(crate) struct Inputs<'a> {
    pub(crate) logical: &'a [&'a LogicalPlan],
    pub(crate) physical: &'a [Arc<dyn ExecutionPlan>],
}

/// What lowering an expression needs.
pub(crate) struct Lowering<'a> {
    pub(crate) session: &'a dyn Session,
    pub(crate) context: &'a PhysicalPlanningContext,
}

impl Lowering<'_> {
    pub(crate) fn expr(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        let props = self.session.execution_props();
        if has_long_literal(expr)? {
            return create_physical_expr(&shared(expr.clone())?.data, schema, props, self.context);
        }
        create_physical_expr(expr, schema, props, self.context)
    }

    /// An aggregate over columns of any origin.
    pub(crate) fn aggregate_over(
        &self,
        expr: &Expr,
        logical: &DFSchema,
        schema: &SchemaRef,
    ) -> Result<AggregatePlan> {
        let props = self.session.execution_props();
        let own = if has_long_literal(expr)? { Some(shared(expr.clone())?.data) } else { None };
        let expr = own.as_ref().unwrap_or(expr);
        let lowered =
            LoweredAggregateBuilder::new(expr, logical, schema, props, self.context).build()?;
        let mut arguments = lowered.aggregate.expressions();
        if lowered.aggregate.fun().name() == "count"
            && lowered.filter.is_none()
            && !lowered.aggregate.is_distinct()
        {
            // `count(1)` counts rows; there is nothing to evaluate.
            arguments.retain(|argument| {
                argument.downcast_ref::<Literal>().is_none_or(|literal| literal.value().is_null())
            });
        }
        let (function, filter) = (lowered.aggregate, lowered.filter);
        Ok(AggregatePlan { function, arguments, filter, symbols: None })
    }

    fn aggregate(
        &self,
        expr: &Expr,
        schema: &DFSchema,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<AggregatePlan> {
        let mut lowered = self.aggregate_over(expr, schema, &input.schema())?;
        if lowered.function.fun().name() == "count"
            && lowered.function.is_distinct()
            && lowered.filter.is_none()
            && let [argument] = lowered.arguments.as_slice()
            && let Some(symbol) = text_of_symbol(input, argument)
        {
            // Texts of one dictionary are distinct where keys are.
            lowered.arguments = vec![symbol];
        }
        let symbol = lowered.arguments.first().and_then(|argument| dictionary(input, argument));
        lowered.symbols = symbol.map(|symbols| symbols.len());
        Ok(lowered)
    }
}

#[async_trait]
impl ExtensionPlanner for TidemarkExtensionPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        check_stop()?;
        let lowering = Lowering { session, context };
        let Some(node) = LogicalNode::of(node) else { return Ok(None) };
        let (Some(&logical), Some(input)) = (logical_inputs.first(), physical_inputs.first())
        else {
            return Ok(None);
        };
        let input = Arc::clone(input);
        let inputs = Inputs { logical: logical_inputs, physical: physical_inputs };
        let plan = match node {
            LogicalNode::SampleBy(node) => plan_sample_by(node, logical.schema(), input, &lowering),
            LogicalNode::Fill(node) => plan_fill(node, input),
            LogicalNode::LatestOn(node) => plan_latest_on(node, logical, input, &lowering),
            LogicalNode::Windows(node) => plan_windows(node, logical, input, &lowering),
            LogicalNode::Unnest(node) => plan_unnest(node, logical, input, &lowering),
            LogicalNode::Asof(node) => plan_asof(node, &inputs, &lowering),
            LogicalNode::Splice(node) => plan_splice(node, &inputs, &lowering),
            LogicalNode::WindowJoin(node) => plan_window(node, &inputs, &lowering),
            LogicalNode::Horizon(node) => plan_horizon(node, &inputs, &lowering),
        };
        plan.map(Some)
    }
}

fn plan_unnest(
    node: &UnnestNode,
    logical: &LogicalPlan,
    input: Arc<dyn ExecutionPlan>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    use datafusion::logical_expr::UserDefinedLogicalNodeCore;
    let arguments = node.arguments().iter();
    let arguments = arguments.map(|argument| lowering.expr(argument, logical.schema()));
    let plan = UnnestPlan {
        arguments: arguments.collect::<Result<_>>()?,
        items: node.items().to_vec(),
        kept: node.kept().to_vec(),
        keeps_empty: node.keeps_empty(),
        schema: Arc::new(UserDefinedLogicalNodeCore::schema(node).as_arrow().clone()),
    };
    let schema = Arc::clone(&plan.schema);
    Ok(OperatorExec::plan(plan, vec![input], &schema))
}

/// The symbol column behind a cast to text, where it comes from a table with few symbols.
fn text_of_symbol(
    input: &Arc<dyn ExecutionPlan>,
    argument: &Arc<dyn PhysicalExpr>,
) -> Option<Arc<dyn PhysicalExpr>> {
    let cast = argument.downcast_ref::<ScalarFunctionExpr>()?;
    let [symbol] = cast.args() else { return None };
    let is_cast = cast.name() == "cast_value" && *cast.return_type() == DataType::Utf8View;
    let few = dictionary(input, symbol)?.len() <= MOST_DENSE_SYMBOLS;
    (is_cast && few).then(|| Arc::clone(symbol))
}

/// `schema`: what the expressions call the input's columns.
pub(crate) fn plan_sample_by(
    node: &SampleByNode,
    schema: &DFSchema,
    mut input: Arc<dyn ExecutionPlan>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut bucket_plan = None;
    if let Some(bucket) = node.bucket() {
        let timestamp = lowering.expr(&bucket.timestamp, schema)?;
        input = in_time_order(input, &timestamp)?;
        let first_row_decides = bucket.spec.alignment == Alignment::FirstObservation;
        if first_row_decides && input.output_partitioning().partition_count() > 1 {
            // Only one worker can know the first row before it cuts.
            input = TimeConcat::plan(input);
        }
        bucket_plan = Some(BucketPlan { timestamp, spec: bucket.spec });
    } else if node.aggregates().iter().any(depends_on_order) {
        input = keep_sorted(input)?;
    }
    let keys: Vec<_> =
        node.keys().iter().map(|key| lowering.expr(key, schema)).collect::<Result<_>>()?;
    let aggregates = node
        .aggregates()
        .iter()
        .map(|aggregate| lowering.aggregate(aggregate, schema, &input))
        .collect::<Result<Vec<_>>>()?;
    let key_plan = key_plan(&input, &keys)?;
    let plan = SampleByPlan {
        bucket: bucket_plan,
        keys,
        key_plan,
        aggregates,
        input_schema: input.schema(),
        output_schema: Arc::new(node.schema().as_arrow().clone()),
    };
    if let Some(known) = from_statistics(&plan, &input)? {
        return Ok(known);
    }
    let schema = Arc::clone(&plan.output_schema);
    Ok(OperatorExec::plan(plan, vec![input], &schema))
}

/// Whether an aggregate answers something else when its rows come in another order.
fn depends_on_order(aggregate: &Expr) -> bool {
    match aggregate {
        Expr::Alias(alias) => depends_on_order(&alias.expr),
        Expr::AggregateFunction(call) => !call.func.order_sensitivity().is_insensitive(),
        _ => false,
    }
}

/// `count()`, and `min` and `max` of the designated timestamp, of a whole scan: known without
/// reading a row.
fn from_statistics(
    plan: &SampleByPlan,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let scan = scan(input).and_then(Scan::unfiltered).filter(|_| plan.is_global());
    let Some(scan) = scan else { return Ok(None) };
    let value = |aggregate: &AggregatePlan| -> Option<ArrayRef> {
        if aggregate.filter.is_some() || aggregate.function.is_distinct() {
            return None;
        }
        let name = aggregate.function.fun().name();
        let Some(argument) = aggregate.arguments.first() else {
            let rows = Int64Array::from(vec![scan.row_count() as i64]);
            return (name == "count").then(|| Arc::new(rows) as ArrayRef);
        };
        let (_, output) = origin(input, argument)?;
        let (min, max) = scan.time_bounds(output)?;
        let bound = match name {
            "min" => min,
            "max" => max,
            _ => return None,
        };
        let bound = Int64Array::from(vec![bound]);
        let wanted = aggregate.function.field().data_type().clone();
        cast(&bound, &wanted).ok()
    };
    let columns: Option<Vec<ArrayRef>> = plan.aggregates.iter().map(value).collect();
    let Some(columns) = columns.filter(|columns| !columns.is_empty()) else { return Ok(None) };
    let schema = Arc::clone(&plan.output_schema);
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    Ok(Some(MemorySourceConfig::try_new_from_batches(schema, vec![batch])?))
}

pub(crate) fn plan_fill(
    node: &FillNode,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    use datafusion::logical_expr::UserDefinedLogicalNodeCore;
    let plan = FillPlan {
        timestamp: node.timestamp(),
        keys: node.keys().to_vec(),
        values: node.values().to_vec(),
        spec: *node.spec(),
        range: node.range(),
    };
    let schema = Arc::new(UserDefinedLogicalNodeCore::schema(node).as_arrow().clone());
    Ok(OperatorExec::plan(plan, vec![input], &schema))
}

fn plan_latest_on(
    node: &LatestOnNode,
    logical: &LogicalPlan,
    input: Arc<dyn ExecutionPlan>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = logical.schema();
    let timestamp = lowering.expr(node.timestamp(), schema)?;
    let keys: Vec<_> =
        node.keys().iter().map(|key| lowering.expr(key, schema)).collect::<Result<_>>()?;
    let symbol = match keys.as_slice() {
        [key] => symbol_kind(&input, key),
        _ => None,
    };
    let kind = if let Some(kind) = symbol {
        kind
    } else {
        let types = keys.iter().map(|key| key.data_type(&input.schema()));
        KeyKind::Hashed(types.collect::<Result<_>>()?)
    };
    let by_time = origin(&input, &timestamp)
        .is_some_and(|(scan, output)| scan.is_timestamp(output) && !scan.is_backward());
    let schema = input.schema();
    let mut plan = LatestOnPlan { timestamp, keys, kind, newest_first: false };
    let scan = scan(&input).map(|_| Arc::clone(&input)).or_else(|| merged(&input));
    if by_time && let Some(scan) = scan {
        return Ok(OperatorExec::plan(plan, vec![scan], &schema));
    }
    if by_time && let Some(backward) = reversed(&input, None)? {
        plan.newest_first = true;
        return Ok(OperatorExec::plan(plan, vec![TimeConcat::plan(backward)], &schema));
    }
    let mut input = in_time_order(input, &plan.timestamp)?;
    if input.output_partitioning().partition_count() > 1 {
        input = TimeConcat::plan(input);
    }
    Ok(OperatorExec::plan(plan, vec![input], &schema))
}

fn plan_windows(
    node: &WindowNode,
    logical: &LogicalPlan,
    mut input: Arc<dyn ExecutionPlan>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    use datafusion::logical_expr::UserDefinedLogicalNodeCore;
    let schema = logical.schema();
    let timestamp = node.timestamp().map(|timestamp| lowering.expr(timestamp, schema));
    let timestamp = timestamp.transpose()?;
    let mut nanos_per_tick = 1;
    if let Some(timestamp) = &timestamp {
        input = in_time_order(input, timestamp)?;
        if timestamp.data_type(&input.schema())? == SqlType::Timestamp.arrow_type() {
            nanos_per_tick = 1_000;
        }
    }
    if input.output_partitioning().partition_count() > 1 {
        input = TimeConcat::plan(input);
    }
    let mut partitions: Vec<(Vec<Expr>, PartitionPlan)> = Vec::new();
    let mut functions = Vec::with_capacity(node.functions().len());
    for function in node.functions() {
        let Some((spec, call)) = Spec::of(function, node.timestamp(), schema) else {
            return plan_err!("'{function}' needs rows in another order");
        };
        let by = call.params.partition_by;
        let known = partitions.iter().position(|(keys, _)| *keys == by);
        let partition = if let Some(known) = known {
            known
        } else {
            let keys = by.iter().map(|key| lowering.expr(key, schema));
            let keys: Vec<_> = keys.collect::<Result<_>>()?;
            let plan = key_plan(&input, &keys)?;
            partitions.push((by, PartitionPlan { keys, plan }));
            partitions.len() - 1
        };
        let argument = call.params.args.first().map(|argument| lowering.expr(argument, schema));
        functions.push(FunctionPlan { spec, argument: argument.transpose()?, partition });
    }
    let plan = WindowPlan {
        timestamp,
        partitions: partitions.into_iter().map(|(_, plan)| plan).collect(),
        functions,
        schema: Arc::new(UserDefinedLogicalNodeCore::schema(node).as_arrow().clone()),
        nanos_per_tick,
    };
    let schema = Arc::clone(&plan.schema);
    Ok(OperatorExec::plan(plan, vec![input], &schema))
}

/// How rows find the groups of these keys.
fn key_plan(input: &Arc<dyn ExecutionPlan>, keys: &[Arc<dyn PhysicalExpr>]) -> Result<KeyPlan> {
    let dictionaries: Option<Vec<_>> = keys.iter().map(|key| dictionary(input, key)).collect();
    Ok(match dictionaries {
        _ if keys.is_empty() => KeyPlan::None,
        Some(dictionaries) if KeyPlan::fits(&dictionaries) => KeyPlan::Symbols(dictionaries),
        _ => {
            let types = keys.iter().map(|key| key.data_type(&input.schema()));
            KeyPlan::Hashed(types.collect::<Result<_>>()?)
        }
    })
}

fn symbol_kind(input: &Arc<dyn ExecutionPlan>, key: &Arc<dyn PhysicalExpr>) -> Option<KeyKind> {
    let ((scan, output), nullable) = nullable_origin(input, key)?;
    let symbols = scan.symbols(output)?.len();
    Some(KeyKind::Symbol { symbols, nullable })
}
