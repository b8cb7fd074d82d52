//! Calls with side effects on the engine: they cancel a query, or pause and resume background jobs.

use datafusion::logical_expr::Expr;
use tidemark_ast::{CallNode, Span};
use tidemark_border::Permission;
use tidemark_catalog::{IncrementalView, ViewForm};
use tidemark_functions::CastMode;
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::Action;
use crate::access::Access;
use crate::binder::expressions::constant;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds `cancel_query(id)`.
    pub(crate) fn cancel_call(
        &mut self,
        call: &CallNode,
        arguments: Vec<Typed>,
    ) -> EngineResult<Typed> {
        let at = call.name.span;
        let Ok([id]) = <[Typed; 1]>::try_from(arguments) else {
            let message = "wrong number of arguments for function `cancel_query`; expected: 1";
            return Err(error::at(ErrorCode::InvalidValue, message, at));
        };
        let id = self.cast(id, SqlType::Long, CastMode::Implicit, at)?;
        let of = self.context.only_queries_of().map(str::to_owned);
        self.action(Action::CancelQuery { of }, vec![id.expr], at)
    }

    /// Binds `pause_job(kind)`, `pause_job('refresh', view)`, and the same forms of `resume_job`.
    pub(crate) fn job_call(
        &mut self,
        call: &CallNode,
        is_paused: bool,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let mut texts = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            // A single letter is a CHAR.
            let value = self.expression(*argument, scope)?;
            let at = self.tree.span(*argument);
            let value = self.cast(value, SqlType::Varchar, CastMode::Implicit, at)?.constant;
            texts.push(value.as_ref().and_then(constant::as_text).map(str::to_owned));
        }
        let texts: Option<Vec<String>> = texts.into_iter().collect();
        let (kind, name) = match texts.as_deref() {
            Some([kind]) => (kind.clone(), String::new()),
            Some([kind, name]) => (kind.clone(), name.clone()),
            _ => {
                let message = format!(
                    "{}(kind [, name]) requires one or two constant strings, as shown by jobs()",
                    call.name.text
                );
                return Err(error::at(ErrorCode::InvalidValue, message, call.name.span));
            }
        };
        if name.is_empty() {
            self.accesses.note(Access::new("", Permission::SystemAdmin));
        } else {
            let permission = self.switch_permission(&kind, &name, is_paused);
            self.accesses.note(Access::new(&name, permission));
        }
        let action = Action::SwitchJob { kind, name, is_paused };
        self.action(action, Vec::new(), call.name.span)
    }

    /// The permission to pause or resume a table's job. It is the permission that a permanent
    /// change of the same kind requires.
    fn switch_permission(&self, kind: &str, name: &str, is_paused: bool) -> Permission {
        let table = self.snapshot.table(name);
        let form =
            table.and_then(|table| IncrementalView::form_of(self.snapshot, table.schema().id));
        match kind {
            "policy" if is_paused => Permission::DisableStoragePolicy,
            "policy" => Permission::EnableStoragePolicy,
            _ if form == Some(ViewForm::Live) => Permission::ResumeWal,
            _ => Permission::AlterMaterializedView,
        }
    }

    fn action(&self, action: Action, arguments: Vec<Expr>, at: Span) -> EngineResult<Typed> {
        let function = self.context.external().and_then(|external| external.action(action));
        let function = function.ok_or_else(|| {
            error::at(ErrorCode::NotSupported, "this function cannot be called here", at)
        })?;
        Ok(Typed::computed(function.call(arguments), SqlType::Boolean))
    }
}
