//! Functions that control the engine while a statement produces rows: `cancel_query(id)`,
//! `pause_job(kind, name)`, `resume_job(kind, name)`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tidemark_planner::Action;

use crate::jobs::Jobs;
use crate::runtime::registry::QueryRegistry;

/// The engine objects that the functions control.
#[derive(Debug)]
pub(crate) struct Actors {
    pub(crate) registry: Arc<QueryRegistry>,
    pub(crate) jobs: Arc<Jobs>,
}

/// A function that performs an action and returns whether the action's target existed.
#[derive(Debug)]
struct ActionFunction {
    actors: Actors,
    action: Action,
    signature: Signature,
}

/// Creates the function for an action. `cancel_query` takes the query id, a LONG; the other
/// functions take no arguments.
pub(crate) fn action_function(actors: Actors, action: Action) -> ScalarUDF {
    let signature = match action {
        Action::CancelQuery { .. } => Signature::exact(vec![DataType::Int64], Volatility::Volatile),
        Action::SwitchJob { .. } => Signature::nullary(Volatility::Volatile),
    };
    ScalarUDF::from(ActionFunction { actors, action, signature })
}

impl PartialEq for ActionFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.actors.registry, &other.actors.registry) && self.action == other.action
    }
}

impl Eq for ActionFunction {}

impl Hash for ActionFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.actors.registry).hash(state);
        self.action.hash(state);
    }
}

impl ScalarUDFImpl for ActionFunction {
    fn name(&self) -> &'static str {
        match &self.action {
            Action::CancelQuery { .. } => "cancel_query",
            Action::SwitchJob { is_paused: true, .. } => "pause_job",
            Action::SwitchJob { is_paused: false, .. } => "resume_job",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &self.action {
            Action::CancelQuery { of } => {
                let ids = ColumnarValue::values_to_arrays(&args.args)?;
                let ids = ids[0].as_primitive::<Int64Type>();
                let cancel = |id: Option<i64>| {
                    let id = id.and_then(|id| u64::try_from(id).ok());
                    Some(id.is_some_and(|id| self.actors.registry.cancel(id, of.as_deref())))
                };
                let cancelled: BooleanArray = ids.iter().map(cancel).collect();
                Ok(ColumnarValue::Array(Arc::new(cancelled)))
            }
            Action::SwitchJob { kind, name, is_paused } => {
                let is_there = self.actors.jobs.pause(kind, name, *is_paused);
                Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(is_there))))
            }
        }
    }
}
