//! Long constants. A literal among the outputs of an operator becomes a column of as many copies as
//! the batch has rows; one of a megabyte fills the memory. Here it becomes a column of views that
//! share one text.

use std::sync::Arc;

use arrow_array::{Array, UInt32Array};
use arrow_schema::DataType;
use datafusion::arrow::compute::take;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use tidemark_types::account;

use crate::error::engine_error;

/// Bytes from which on a constant is long.
const LONG_BYTES: usize = 1024;

/// Makes long literals shared ones; the last of the rules, since others know literals.
#[derive(Debug)]
pub struct ShareLiterals;

impl OptimizerRule for ShareLiterals {
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
            has_long |= has_long_literal(expr)?;
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

/// Whether an expression has a long literal somewhere.
pub(crate) fn has_long_literal(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(matches!(expr, Expr::Literal(value, _) if is_long(value))))
}

/// The expression with its long literals shared. Those that are arguments stay: functions read a
/// constant as one value.
pub(crate) fn shared(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_down(|expr| match expr {
        Expr::Literal(value, _) if is_long(&value) => {
            let literal = SharedLiteral::new(value);
            let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::from(literal)), Vec::new());
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        Expr::ScalarFunction(call) => {
            let argument = |argument: Expr| match argument {
                literal @ Expr::Literal(..) => Ok(literal),
                other => shared(other).map(|changed| changed.data),
            };
            let args = call.args.into_iter().map(argument).collect::<Result<_>>()?;
            let call = Expr::ScalarFunction(ScalarFunction { args, ..call });
            Ok(Transformed::new(call, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// A constant as a function of nothing.
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
        let one = self.value.to_array()?;
        if *one.data_type() != DataType::Utf8View {
            let bytes = one.get_array_memory_size().saturating_mul(args.number_rows);
            account::room(bytes).map_err(engine_error)?;
        }
        let rows = UInt32Array::from_value(0, args.number_rows);
        Ok(ColumnarValue::Array(take(one.as_ref(), &rows, None)?))
    }
}
