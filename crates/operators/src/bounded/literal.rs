//! Shares long constants between rows. Without sharing, a literal in an operator's output would
//! become a column with one copy per row, and a one-megabyte literal would exhaust memory. A long
//! string becomes a column of views of a single copy. An array must be copied for each row, so the
//! available memory is checked first. The same applies to long arrays that planning leaves
//! unevaluated.

use std::sync::Arc;

use arrow_array::{Array, UInt32Array};
use arrow_schema::DataType;
use datafusion::arrow::compute::take;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use tidemark_types::{EngineError, account};

use crate::error::engine_error;

/// Size in bytes above which a constant counts as long.
const LONG_BYTES: usize = 1024;

/// Replaces long literals with shared constants. Runs last, because other rules look for literals.
#[derive(Debug)]
pub struct InternLiterals;

impl OptimizerRule for InternLiterals {
    fn name(&self) -> &'static str {
        "share_literals"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut has_long = false;
        plan.apply_expressions(|expr| {
            has_long |= has_long_constant(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !has_long {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(shared(expr)?.update_data(|expr| name.restore(expr)))
        })
    }
}

fn is_long(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Utf8View(text) | ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) => {
            text.as_ref().is_some_and(|text| text.len() > LONG_BYTES)
        }
        ScalarValue::Struct(cell) => cell.get_array_memory_size() > LONG_BYTES,
        ScalarValue::LargeBinary(bytes) => {
            bytes.as_ref().is_some_and(|bytes| bytes.len() > LONG_BYTES)
        }
        _ => false,
    }
}

/// Whether an expression contains a constant that is, or may be, long.
pub(crate) fn has_long_constant(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| {
        Ok(match expr {
            Expr::Literal(value, _) => is_long(value),
            Expr::ScalarFunction(call) => is_computed_array(call)?,
            _ => false,
        })
    })
}

/// Whether a call computes the same array for all rows.
fn is_computed_array(call: &ScalarFunction) -> Result<bool> {
    let is_shared = call.func.inner().downcast_ref::<SharedCall>().is_some();
    if is_shared || call.args.is_empty() {
        return Ok(false);
    }
    for arg in &call.args {
        let varies = arg.exists(|node| {
            let is_column = matches!(node, Expr::Column(_) | Expr::OuterReferenceColumn(..));
            Ok(is_column || node.is_volatile_node())
        })?;
        if varies {
            return Ok(false);
        }
    }
    let call = Expr::ScalarFunction(call.clone());
    let is_array = |returned| matches!(returned, DataType::Struct(_));
    Ok(!call.is_volatile_node() && call.get_type(&DFSchema::empty()).is_ok_and(is_array))
}

/// Returns the expression with its long constants shared. Function arguments are not changed,
/// because functions read a constant as a single value.
pub(crate) fn shared(expr: Expr) -> Result<Transformed<Expr>> {
    let changed = |func: ScalarUDF, args: Vec<Expr>| {
        let call = ScalarFunction::new_udf(Arc::new(func), args);
        Ok(Transformed::new(Expr::ScalarFunction(call), true, TreeNodeRecursion::Jump))
    };
    expr.transform_down(|expr| match expr {
        Expr::Literal(value, _) if is_long(&value) => {
            changed(SharedLiteral::new(value).into(), Vec::new())
        }
        Expr::ScalarFunction(call) if is_computed_array(&call)? => {
            let call = Expr::ScalarFunction(call);
            let returns = call.get_type(&DFSchema::empty())?;
            changed(SharedCall::new(returns).into(), vec![call])
        }
        Expr::ScalarFunction(call) => {
            let argument = |argument: Expr| match argument {
                literal @ Expr::Literal(..) => Ok(literal),
                Expr::ScalarFunction(call) if is_computed_array(&call)? => {
                    Ok(Expr::ScalarFunction(call))
                }
                other => shared(other).map(|changed| changed.data),
            };
            let args = call.args.into_iter().map(argument).collect::<Result<_>>()?;
            let call = Expr::ScalarFunction(ScalarFunction { args, ..call });
            Ok(Transformed::new(call, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// A constant, wrapped as a function without arguments.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SharedLiteral {
    value: ScalarValue,
    signature: Signature,
}

impl SharedLiteral {
    fn new(value: ScalarValue) -> Self {
        let signature = Signature::nullary(Volatility::Stable);
        Self { value, signature }
    }
}

impl ScalarUDFImpl for SharedLiteral {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.value.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        repeated(&self.value, args.number_rows)
    }
}

/// An array that is the same for all rows; its argument is the call that computes it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SharedCall {
    returns: DataType,
    signature: Signature,
}

impl SharedCall {
    fn new(returns: DataType) -> Self {
        Self { returns, signature: Signature::any(1, Volatility::Stable) }
    }
}

impl ScalarUDFImpl for SharedCall {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Scalar(value)] => repeated(value, args.number_rows),
            [ColumnarValue::Array(_)] => Ok(args.args[0].clone()),
            _ => Err(engine_error(EngineError::internal("expected one argument for a constant"))),
        }
    }
}

/// Returns a column that repeats one value. Fails if there is not enough memory.
fn repeated(value: &ScalarValue, rows: usize) -> Result<ColumnarValue> {
    let one = value.to_array()?;
    if *one.data_type() != DataType::Utf8View {
        let bytes = one.get_array_memory_size().saturating_mul(rows);
        account::check_allocation(bytes).map_err(engine_error)?;
    }
    let rows = UInt32Array::from_value(0, rows);
    Ok(ColumnarValue::Array(take(one.as_ref(), &rows, None)?))
}
