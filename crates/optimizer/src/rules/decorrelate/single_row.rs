//! A scalar sub-query has at most one row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Column, DataFusionError, Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Filter, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tidemark_types::{EngineError, ErrorCode};

use super::domain::numbered;
use super::subquery::narrowed;
use tidemark_operators::LogicalNode;

/// Whether a plan has at most one row, regardless of the data.
pub(super) fn is_certain(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(node) => is_certain(&node.input),
        LogicalPlan::Filter(node) => is_certain(&node.input),
        LogicalPlan::Sort(node) => is_certain(&node.input),
        LogicalPlan::SubqueryAlias(node) => is_certain(&node.input),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Aggregate(node) => node.group_expr.is_empty(),
        LogicalPlan::Limit(_) => plan.max_rows().is_some_and(|rows| rows <= 1),
        LogicalPlan::Extension(_) => match LogicalNode::of_plan(plan) {
            Some(LogicalNode::SampleBy(node)) => node.bucket().is_none() && node.keys().is_empty(),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the value of a plan with at most one row. The value is null if there is no row, even if
/// the column itself is never null.
pub(super) fn or_null(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (qualifier, field) = plan.schema().qualified_field(0);
    if field.is_nullable() {
        return Ok(plan);
    }
    let name = field.name().clone();
    let column = Expr::Column(Column::new(qualifier.cloned(), &name));
    let value = ScalarUDF::from(MaybeNull::default()).call(vec![column]).alias(name);
    Projection::try_new(vec![value], Arc::new(plan)).map(LogicalPlan::Projection)
}

/// Returns the plan with a check that fails on a second row.
pub(super) fn checked(plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let (numbered, row) = numbered(plan, Vec::new(), Vec::new())?;
    let test = ScalarUDF::from(SingleRow::default()).call(vec![row]);
    narrowed(LogicalPlan::Filter(Filter::try_new(test, Arc::new(numbered))?), columns)
}

/// Returns its argument, but the planner treats the result as nullable. It is volatile: otherwise
/// it would be constant-folded, and the planner would again know that the value is never null.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MaybeNull {
    signature: Signature,
}

impl Default for MaybeNull {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for MaybeNull {
    fn name(&self) -> &'static str {
        "maybe_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [only] = types else { return internal_err!("expected one value") };
        Ok(only.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [only] = args.arg_fields else { return internal_err!("expected one value") };
        Ok(Arc::new(only.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.pop() else { return internal_err!("expected one value") };
        Ok(value)
    }
}

/// Returns true for row 1 and fails for any other row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleRow {
    signature: Signature,
}

impl Default for SingleRow {
    fn default() -> Self {
        Self { signature: Signature::exact(vec![DataType::UInt64], Volatility::Volatile) }
    }
}

impl ScalarUDFImpl for SingleRow {
    fn name(&self) -> &'static str {
        "single_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        for argument in args.args {
            let numbers = argument.into_array(rows)?;
            if numbers.as_primitive::<UInt64Type>().values().iter().any(|&row| row > 1) {
                let message = "more than one row returned by a sub-query used as a value";
                let failure = EngineError::new(ErrorCode::InvalidValue, message);
                return Err(DataFusionError::External(Box::new(failure)));
            }
        }
        let all: ArrayRef = Arc::new(BooleanArray::from(vec![true; rows]));
        Ok(ColumnarValue::Array(all))
    }
}
