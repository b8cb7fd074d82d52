//! `cancel_query(id)`: stops a running query while its rows are made.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::registry::QueryRegistry;

/// True where there was such a query.
#[derive(Debug)]
struct CancelQuery {
    registry: Arc<QueryRegistry>,
    /// Whose queries; `None`: those of every user.
    of: Option<String>,
    signature: Signature,
}

pub(crate) fn cancel_query(registry: &Arc<QueryRegistry>, of: Option<&str>) -> ScalarUDF {
    let signature = Signature::exact(vec![DataType::Int64], Volatility::Volatile);
    let of = of.map(str::to_owned);
    ScalarUDF::from(CancelQuery { registry: Arc::clone(registry), of, signature })
}

impl PartialEq for CancelQuery {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.registry, &other.registry) && self.of == other.of
    }
}

impl Eq for CancelQuery {}

impl Hash for CancelQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.registry).hash(state);
    }
}

impl ScalarUDFImpl for CancelQuery {
    fn name(&self) -> &'static str {
        "cancel_query"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ids = ColumnarValue::values_to_arrays(&args.args)?;
        let ids = ids[0].as_primitive::<Int64Type>();
        let cancel = |id: Option<i64>| {
            let id = id.and_then(|id| u64::try_from(id).ok());
            Some(id.is_some_and(|id| self.registry.cancel(id, self.of.as_deref())))
        };
        let cancelled: BooleanArray = ids.iter().map(cancel).collect();
        Ok(ColumnarValue::Array(Arc::new(cancelled)))
    }
}
