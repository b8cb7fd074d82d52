//! Aggregates as window functions.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, Signature, WindowFunctionDefinition,
};

/// Converts the aggregate to a window function over frames.
pub(crate) fn over_frames(aggregate: Arc<AggregateUDF>) -> WindowFunctionDefinition {
    let aggregate = AggregateUDF::new_from_impl(FrameAggregate(aggregate));
    WindowFunctionDefinition::AggregateUDF(Arc::new(aggregate))
}

/// An aggregate that declares no ordering of its results.
///
/// `DataFusion` assumes that a count over a moving frame is ascending, so it removes an ORDER BY on
/// the count. It does the same for the maximum of descending values. This type uses the trait's
/// default, which declares no ordering.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FrameAggregate(Arc<AggregateUDF>);

impl AggregateUDFImpl for FrameAggregate {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.inner().return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.0.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.0.is_nullable()
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.0.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.0.state_fields(arguments)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.0.inner().create_sliding_accumulator(arguments)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_udf()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.0.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.0.supports_null_handling_clause()
    }
}
