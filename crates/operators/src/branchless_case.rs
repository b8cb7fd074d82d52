//! Evaluates CASE without branching if both values are cheap to compute and cannot fail. It
//! computes both values for all rows and selects one. `DataFusion` instead splits the rows,
//! computes each value for its own rows, and merges the results.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, SchemaRef};
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::{CaseExpr, Column, Literal, lit};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use tidemark_kernels::{Native, choose};

/// Numeric operations that compile to a single instruction and cannot fail for any operands.
const OPERATIONS: [&str; 4] = ["add", "subtract", "multiply", "negate"];

/// Returns the expression with each eligible CASE replaced by a selection.
pub(crate) fn at_once(
    expr: Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Result<Arc<dyn PhysicalExpr>> {
    let changed = |expr: Arc<dyn PhysicalExpr>| {
        let choice = choice(&expr, schema)?;
        Ok(choice.map_or_else(|| Transformed::no(expr), Transformed::yes))
    };
    expr.transform_up(changed).data()
}

fn choice(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let Some(case) = expr.downcast_ref::<CaseExpr>() else { return Ok(None) };
    let ([(condition, then)], None) = (case.when_then_expr(), case.expr()) else {
        return Ok(None);
    };
    let data_type = case.data_type(schema)?;
    let otherwise = match case.else_expr() {
        Some(otherwise) => Arc::clone(otherwise),
        None => lit(ScalarValue::try_new_null(&data_type)?),
    };
    for value in [then, &otherwise] {
        if value.data_type(schema)? != data_type || !is_cheap(value, schema)? {
            return Ok(None);
        }
    }
    let function = ScalarUDF::from(Choice::new(data_type.clone()));
    let arguments = vec![Arc::clone(condition), Arc::clone(then), otherwise];
    let field = Arc::new(Field::new("choose", data_type, true));
    let config = Arc::new(ConfigOptions::default());
    let call = ScalarFunctionExpr::new("choose", Arc::new(function), arguments, field, config);
    Ok(Some(Arc::new(call)))
}

/// Whether an expression is numeric, cheap to compute, and unable to fail.
fn is_cheap(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<bool> {
    if !is_number(&expr.data_type(schema)?) {
        return Ok(false);
    }
    if expr.is::<Column>() || expr.is::<Literal>() {
        return Ok(true);
    }
    let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return Ok(false) };
    if !OPERATIONS.contains(&call.name()) {
        return Ok(false);
    }
    for argument in call.args() {
        if !is_cheap(argument, schema)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_number(data_type: &DataType) -> bool {
    let is_float = matches!(data_type, DataType::Float32 | DataType::Float64);
    data_type.is_signed_integer() || is_float
}

/// `choose(condition, then, otherwise)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Choice {
    returns: DataType,
    signature: Signature,
}

impl Choice {
    fn new(returns: DataType) -> Self {
        Self { returns, signature: Signature::any(3, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Choice {
    fn name(&self) -> &'static str {
        "choose"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let [condition, then, otherwise] = args.args.as_slice() else {
            return internal_err!("expected a condition and two values");
        };
        let condition = condition.to_array(rows)?;
        let Some(condition) = condition.as_boolean_opt() else {
            return internal_err!("unexpected condition of type {}", condition.data_type());
        };
        let (then, otherwise) = (then.to_array(rows)?, otherwise.to_array(rows)?);
        chosen(condition, &then, &otherwise).map(ColumnarValue::Array)
    }
}

/// Returns the values of `then` where the condition is true and the values of `otherwise`
/// elsewhere.
fn chosen(condition: &BooleanArray, then: &ArrayRef, otherwise: &ArrayRef) -> Result<ArrayRef> {
    let definite = (condition.null_count() > 0).then(|| prep_null_mask_filter(condition));
    let mask = definite.as_ref().unwrap_or(condition).values();
    macro_rules! by_type {
        ($($pattern:ident => $arrow:ty),*) => {
            match then.data_type() {
                $(DataType::$pattern => Ok(Arc::new(numbers::<$arrow>(mask, then, otherwise))),)*
                other => internal_err!("unexpected value of type {other}"),
            }
        };
    }
    by_type!(
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        Float32 => Float32Type, Float64 => Float64Type
    )
}

fn numbers<P>(mask: &BooleanBuffer, then: &ArrayRef, otherwise: &ArrayRef) -> PrimitiveArray<P>
where
    P: ArrowPrimitiveType<Native: Native>,
{
    let (then, otherwise) = (then.as_primitive::<P>(), otherwise.as_primitive::<P>());
    let nulls = match (then.nulls(), otherwise.nulls()) {
        (None, None) => None,
        (then, otherwise) => {
            let unset = !mask;
            let of = |side: &BooleanBuffer, nulls: Option<&NullBuffer>| match nulls {
                Some(nulls) => side & nulls.inner(),
                None => side.clone(),
            };
            Some(NullBuffer::new(&of(mask, then) | &of(&unset, otherwise)))
        }
    };
    let bits: Vec<u64> = mask.bit_chunks().iter_padded().collect();
    let values = choose(&bits, then.values(), otherwise.values());
    PrimitiveArray::new(values.into(), nulls.filter(|nulls| nulls.null_count() > 0))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, RecordBatch};
    use arrow_schema::Schema;
    use datafusion::physical_expr::expressions::{case, col};

    use super::*;

    #[test]
    fn vectorised_choice_matches_a_case_expression() {
        let field = |name, data_type| Field::new(name, data_type, true);
        let schema = Arc::new(Schema::new(vec![
            field("c", DataType::Boolean),
            field("a", DataType::Float64),
            field("b", DataType::Float64),
        ]));
        let mut seed = 17_u64;
        let mut random = move |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % bound
        };
        for round in 0..60 {
            let rows = random(300) as usize;
            let nulls = round % 2 == 0;
            let mut some = |of: u64| -> Vec<Option<u64>> {
                (0..rows).map(|_| (!nulls || random(5) > 0).then(|| random(of))).collect()
            };
            let flags: BooleanArray = some(2).iter().map(|v| v.map(|v| v == 1)).collect();
            let doubles = |values: Vec<Option<u64>>| -> Float64Array {
                values.iter().map(|v| v.map(|v| v as f64)).collect()
            };
            let (a, b) = (doubles(some(100)), doubles(some(100)));
            let columns: Vec<ArrayRef> = vec![Arc::new(flags), Arc::new(a), Arc::new(b)];
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
            let of = |name: &str| col(name, &schema).unwrap();
            for otherwise in [of("b"), lit(7.0), lit(ScalarValue::Float64(None))] {
                let plain = case(None, vec![(of("c"), of("a"))], Some(otherwise)).unwrap();
                let ours = at_once(Arc::clone(&plain), &schema).unwrap();
                assert!(ours.is::<ScalarFunctionExpr>());
                let value = |expr: &Arc<dyn PhysicalExpr>| {
                    expr.evaluate(&batch).unwrap().into_array(rows).unwrap()
                };
                assert_eq!(&value(&ours), &value(&plain), "round {round}");
            }
        }
    }

    #[test]
    fn case_over_strings_is_not_vectorised() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("c", DataType::Boolean, true),
            Field::new("t", DataType::Utf8, true),
        ]));
        let of = |name: &str| col(name, &schema).unwrap();
        let texts = case(None, vec![(of("c"), of("t"))], Some(lit("x"))).unwrap();
        assert!(at_once(texts, &schema).unwrap().is::<CaseExpr>());
    }
}
