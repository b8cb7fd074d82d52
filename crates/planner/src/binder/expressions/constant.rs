//! Values known at bind time.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{ColumnarValue, Expr};
use datafusion::physical_expr::create_physical_expr;
use tidemark_ast::NodeId;
use tidemark_types::EngineResult;

use crate::binder::Binder;
use crate::binder::state::scope::Scope;

/// Evaluates an expression without columns.
pub(crate) fn evaluate(expr: &Expr) -> Result<ScalarValue> {
    let physical = create_physical_expr(
        expr,
        &DFSchema::empty(),
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    match physical.evaluate(&row)? {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
    }
}

/// Evaluates an expression without columns. The result has `rows` rows.
pub(crate) fn evaluate_rows(expr: &Expr, rows: usize) -> Result<ArrayRef> {
    let physical = create_physical_expr(
        expr,
        &DFSchema::empty(),
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    physical.evaluate(&batch)?.into_array(rows)
}

/// The value if it is an integer.
pub(crate) fn as_i64(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int8(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int64(value)
        | ScalarValue::TimestampMillisecond(value, _)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::TimestampNanosecond(value, _) => *value,
        _ => None,
    }
}

/// The value if it is a string.
pub(crate) fn as_text(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8View(text) | ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) => {
            text.as_deref()
        }
        ScalarValue::Dictionary(_, inner) => as_text(inner),
        _ => None,
    }
}

impl Binder<'_> {
    /// The value of an expression without columns, if known at bind time.
    pub(crate) fn constant(&mut self, id: NodeId) -> EngineResult<Option<ScalarValue>> {
        Ok(self.expression(id, &Scope::empty())?.constant)
    }
}
