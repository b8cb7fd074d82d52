//! Lowers logical nodes and their expressions to physical operators.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue, plan_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;

use crate::bounded::{has_long_constant, shared};
use crate::branchless_case::at_once;
use crate::operator::Input;
use crate::sample_by::fallback::MAX_DENSE_SYMBOLS;
use crate::sample_by::groups::{KeyPlan, is_number};
use crate::sample_by::plan::AggregatePlan;
use crate::sample_by::slots::{DenseNumbers, Digit, fits};
use crate::scan::bounds::integer_bounds;
use crate::symbols::{dictionary, origin};

/// A logical node that can be lowered to an operator.
pub trait Lower {
    /// Creates the node's operator for these inputs.
    fn lower(&self, inputs: &Inputs<'_>, lowering: &Lowering<'_>)
    -> Result<Arc<dyn ExecutionPlan>>;

    /// Timestamps by which the node's inputs must be sorted, beginning with the first input. Empty
    /// if any order is accepted.
    fn times(&self) -> Vec<&Expr>;
}

/// The inputs of a node.
pub struct Inputs<'a> {
    pub logical: &'a [&'a LogicalPlan],
    pub physical: &'a [Arc<dyn ExecutionPlan>],
}

impl Inputs<'_> {
    /// Returns an input and the schema that expressions use to name its columns.
    pub fn get(&self, number: usize) -> Result<(&DFSchemaRef, Arc<dyn ExecutionPlan>)> {
        let input = self.logical.get(number).zip(self.physical.get(number));
        let Some((logical, physical)) = input else {
            return plan_err!("a node lacks input {number}");
        };
        Ok((logical.schema(), Arc::clone(physical)))
    }
}

/// Returns the schema of the operator for a node.
pub(crate) fn schema_of(node: &impl UserDefinedLogicalNodeCore) -> SchemaRef {
    Arc::new(node.schema().as_arrow().clone())
}

/// Context for lowering expressions.
pub struct Lowering<'a> {
    pub session: &'a dyn Session,
    pub context: &'a PhysicalPlanningContext,
}

impl Lowering<'_> {
    pub fn expr(&self, expr: &Expr, schema: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
        let props = self.session.execution_props();
        if has_long_constant(expr)? {
            return create_physical_expr(&shared(expr.clone())?.data, schema, props, self.context);
        }
        create_physical_expr(expr, schema, props, self.context)
    }

    /// Lowers an aggregate whose argument columns may come from anywhere.
    pub(crate) fn aggregate_over(
        &self,
        expr: &Expr,
        logical: &DFSchema,
        schema: &SchemaRef,
    ) -> Result<AggregatePlan> {
        let props = self.session.execution_props();
        let own = if has_long_constant(expr)? { Some(shared(expr.clone())?.data) } else { None };
        let expr = own.as_ref().unwrap_or(expr);
        let lowered =
            LoweredAggregateBuilder::new(expr, logical, schema, props, self.context).build()?;
        let arguments = match &lowered.filter {
            None => counted_rows(&lowered.aggregate),
            Some(_) => lowered.aggregate.expressions(),
        };
        let arguments = arguments.into_iter().map(|argument| at_once(argument, schema));
        let arguments = arguments.collect::<Result<_>>()?;
        let (function, filter) = (lowered.aggregate, lowered.filter);
        Ok(AggregatePlan { function, arguments, filter, symbols: None })
    }

    /// Lowers an aggregate whose arguments are columns of this input.
    pub(crate) fn aggregate(
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
            // Strings in one dictionary are distinct if and only if their keys are.
            lowered.arguments = vec![symbol];
        }
        lowered.symbols = symbols_of(input, &lowered);
        Ok(lowered)
    }
}

/// Returns the arguments of an aggregate without a FILTER. `count(1)` counts rows, so it needs no
/// arguments.
pub(crate) fn counted_rows(aggregate: &AggregateFunctionExpr) -> Vec<Arc<dyn PhysicalExpr>> {
    let mut arguments = aggregate.expressions();
    if aggregate.fun().name() == "count" && !aggregate.is_distinct() {
        arguments.retain(|argument| {
            argument.downcast_ref::<Literal>().is_none_or(|literal| literal.value().is_null())
        });
    }
    arguments
}

/// Returns the number of symbols an aggregate may encounter, if its argument is a symbol from a
/// single table column.
pub(crate) fn symbols_of(
    input: &Arc<dyn ExecutionPlan>,
    aggregate: &AggregatePlan,
) -> Option<usize> {
    let symbols = dictionary(input, aggregate.arguments.first()?)?;
    Some(symbols.len())
}

/// Returns the symbol column beneath a cast to string, if its table has few symbols.
fn text_of_symbol(
    input: &Arc<dyn ExecutionPlan>,
    argument: &Arc<dyn PhysicalExpr>,
) -> Option<Arc<dyn PhysicalExpr>> {
    let symbol = symbol_of_text(argument, &input.schema())?;
    let few = dictionary(input, &symbol)?.len() <= MAX_DENSE_SYMBOLS;
    few.then_some(symbol)
}

/// Returns the symbol beneath a cast to string.
pub(crate) fn symbol_of_text(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Option<Arc<dyn PhysicalExpr>> {
    let cast = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [symbol] = cast.args() else { return None };
    let is_cast = cast.name() == "cast_value" && *cast.return_type() == DataType::Utf8View;
    let is_symbol = matches!(symbol.data_type(schema), Ok(DataType::Dictionary(_, _)));
    (is_cast && is_symbol).then(|| Arc::clone(symbol))
}

/// Chooses how these keys assign rows to groups.
pub(crate) fn key_plan(
    input: &Arc<dyn ExecutionPlan>,
    keys: &[Arc<dyn PhysicalExpr>],
) -> Result<KeyPlan> {
    if keys.is_empty() {
        return Ok(KeyPlan::None);
    }
    // Table data is examined only if every key could have few values.
    let may_have_few = |key| dictionary(input, key).is_some() || may_be_dense(input, key);
    if keys.iter().all(may_have_few) {
        let digits = keys.iter().map_while(|key| digit(input, key).transpose());
        let digits = digits.collect::<Result<Vec<_>>>()?;
        if digits.len() == keys.len() && fits(&digits) {
            return Ok(KeyPlan::Slots(digits));
        }
    }
    hashed_keys(input, keys)
}

/// Returns a key as a digit of the slot index, if the key is known to have few values.
fn digit(input: &Input, key: &Arc<dyn PhysicalExpr>) -> Result<Option<Digit>> {
    if let Some(dictionary) = dictionary(input, key) {
        return Ok(Some(Digit::Symbol(dictionary)));
    }
    let data_type = key.data_type(&input.schema())?;
    let bounds = match (&data_type, origin(input, key)) {
        (DataType::Boolean, _) => Some((0, 1)),
        (_, Some((scan, output))) => {
            let max = scan.row_count().max(DenseNumbers::FEW) as u64;
            integer_bounds(scan, output, max.min(DenseNumbers::MAX_DISTANCE))?
        }
        _ => range_of(key),
    };
    let numbers = bounds.and_then(|bounds| DenseNumbers::between(&data_type, bounds));
    Ok(numbers.map(Digit::Number))
}

/// Whether the values of a key may be integers in a small range.
fn may_be_dense(input: &Input, key: &Arc<dyn PhysicalExpr>) -> bool {
    match key.data_type(&input.schema()) {
        Ok(DataType::Boolean) => true,
        Ok(
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::UInt16,
        ) => origin(input, key).is_some() || range_of(key).is_some(),
        _ => false,
    }
}

/// Returns the minimum and maximum result of a function, whatever its arguments.
fn range_of(key: &Arc<dyn PhysicalExpr>) -> Option<(i64, i64)> {
    let call = key.downcast_ref::<ScalarFunctionExpr>()?;
    let any = call.args().iter().map(|_| Interval::make_unbounded(&DataType::Int64));
    let any = any.collect::<Result<Vec<_>>>().ok()?;
    let range = call.fun().evaluate_bounds(&any.iter().collect::<Vec<_>>()).ok()?;
    let number = |number: &ScalarValue| match number.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(number)) => number,
        _ => None,
    };
    number(range.lower()).zip(number(range.upper()))
}

/// Adapts the group lookup for a query without buckets.
pub(crate) fn unbucketed(plan: KeyPlan) -> KeyPlan {
    match plan {
        KeyPlan::Hashed(types) => match types.as_slice() {
            [number] if is_number(number) => KeyPlan::Number(number.clone()),
            _ => KeyPlan::Values(types),
        },
        plan => plan,
    }
}

/// Groups by the values of these keys, without relying on symbol dictionaries.
pub(crate) fn hashed_keys(
    input: &Arc<dyn ExecutionPlan>,
    keys: &[Arc<dyn PhysicalExpr>],
) -> Result<KeyPlan> {
    let types = keys.iter().map(|key| key.data_type(&input.schema()));
    Ok(KeyPlan::Hashed(types.collect::<Result<_>>()?))
}
