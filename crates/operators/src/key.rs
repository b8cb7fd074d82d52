//! Key expressions. If equal values of an expression may differ in their bits, the expression is
//! wrapped in a function that normalizes them ([`tidemark_types::key`]).

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use tidemark_types::key::{has_equal_forms, key_values};

static KEY: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(KeyValue::default())));

/// Wraps an expression as a key; `None` if it does not need wrapping.
pub fn as_key(expr: &Expr, data_type: &DataType) -> Option<Expr> {
    let needs_key = has_equal_forms(data_type) && !is_key(expr);
    needs_key.then(|| KEY.call(vec![expr.clone()]))
}

fn is_key(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().is::<KeyValue>(),
        Expr::Alias(alias) => is_key(&alias.expr),
        _ => false,
    }
}

/// Returns the argument of a key expression, or the expression itself if it is not wrapped.
pub(crate) fn of_key(expr: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return expr };
    match call.args() {
        [argument] if call.fun().inner().is::<KeyValue>() => argument,
        _ => expr,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeyValue {
    signature: Signature,
}

impl Default for KeyValue {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for KeyValue {
    fn name(&self) -> &'static str {
        "key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [only] = types else { return internal_err!("expected one key value") };
        Ok(only.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [only] = args.arg_fields else { return internal_err!("expected one key value") };
        Ok(Arc::clone(only))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(key_values(values))),
            [ColumnarValue::Scalar(value)] => {
                let key = key_values(&value.to_array()?);
                let key = ScalarValue::try_from_array(&key, 0)?;
                Ok(ColumnarValue::Scalar(key))
            }
            _ => internal_err!("expected one key value"),
        }
    }
}
