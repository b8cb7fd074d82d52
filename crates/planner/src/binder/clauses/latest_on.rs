//! LATEST ON.

use std::sync::Arc;

use datafusion::logical_expr::{Extension, LogicalPlan};
use tidemark_ast::{LatestOn, Node};
use tidemark_operators::LatestOnNode;
use tidemark_optimizer::check_latest_keys;
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::state::relation::sort_by_time;
use crate::binder::state::scope::{Relation, Scope, TimeOrder};
use crate::binder::{Binder, error};

impl Binder<'_> {
    /// The last row for each key, in time order.
    pub(crate) fn latest_on(
        &mut self,
        mut source: Relation,
        latest_on: &LatestOn,
    ) -> EngineResult<Relation> {
        let LatestOn { timestamp, keys: latest_keys, span } = latest_on;
        let timestamp = match *timestamp {
            Some(id) => {
                let Node::Column { path } = self.node(id)? else {
                    return Err(error::at(
                        ErrorCode::TypeMismatch,
                        "not a TIMESTAMP",
                        self.tree.span(id),
                    ));
                };
                let index = source.resolve(path)?;
                if !source.columns[index].sql_type.is_timestamp() {
                    return Err(error::at(
                        ErrorCode::TypeMismatch,
                        "not a TIMESTAMP",
                        self.tree.span(id),
                    ));
                }
                index
            }
            None => source.timestamp.ok_or_else(|| {
                error::at(
                    ErrorCode::NotSupported,
                    "latest by query does not provide dedicated TIMESTAMP column",
                    *span,
                )
            })?,
        };
        check_latest_keys(latest_keys.len())?;
        let scope = Scope::rows(&source);
        let mut keys = Vec::with_capacity(latest_keys.len());
        for key in latest_keys {
            let typed = self.expression(*key, &scope)?;
            if typed.sql_type == SqlType::Binary {
                return Err(error::at(
                    ErrorCode::TypeMismatch,
                    "invalid column type: BINARY",
                    self.tree.span(*key),
                ));
            }
            keys.push(typed.expr);
        }
        let column = source.columns[timestamp].clone();
        column.origin.note();
        let mut plan = source.plan.clone();
        if source.timestamp != Some(timestamp) || source.order != TimeOrder::Ascending {
            plan = sort_by_time(plan, column.expr())?;
        }
        let node = LatestOnNode::try_new(plan, column.expr(), keys).map_err(error::plan)?;
        source.timestamp = Some(timestamp);
        source.order = TimeOrder::Ascending;
        Ok(source.with_plan(LogicalPlan::Extension(Extension { node: Arc::new(node) })))
    }
}
