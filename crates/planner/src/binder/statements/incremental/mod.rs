//! Materialized and live views: both kinds are defined, bound, created and changed in the same way.
//! [`ViewShape`] describes the query properties that a kind of view needs. The engine executes a
//! refresh and gets its rows from [`rows`].

mod alter;
pub(crate) mod buckets;
pub(crate) mod create;
pub(crate) mod followers;
pub(crate) mod misfit;
pub(crate) mod policy;
pub(crate) mod reach;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use tidemark_ast::Tree;
use tidemark_catalog::{IncrementalView, ViewSource};
use tidemark_storage::{Snapshot, TableId, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::BindContext;
use crate::binder::Binder;
use crate::binder::clauses::query::Clauses;

/// The query properties that one kind of view needs to keep its rows current.
pub trait ViewShape: Sized {
    /// Derives the shape of a query over a base table. The error states why the query cannot define
    /// a view.
    fn of(plan: &LogicalPlan, base: TableId, tree: &Tree) -> EngineResult<Self>;

    /// Whether a query column, with its current type, still fits the column in the view's table.
    fn fits(now: SqlType, then: SqlType) -> bool;
}

/// The rows of a view's query.
#[derive(Debug, Clone)]
pub struct IncrementalRows<S> {
    /// Plan for all rows, with the column types and order of the view's table.
    pub plan: LogicalPlan,
    /// How changes to the base affect the rows.
    pub shape: S,
    /// The base table that the plan reads.
    pub base: Arc<TableSnapshot>,
    /// The objects that the query references.
    pub sources: BTreeMap<u32, ViewSource>,
}

/// Binds a view's query. With `by_names`, names are resolved as for a new view, because objects may
/// have been dropped and created again.
pub(crate) fn rows<S: ViewShape>(
    view: &IncrementalView,
    snapshot: &Arc<Snapshot>,
    context: &BindContext,
    by_names: bool,
) -> EngineResult<IncrementalRows<S>> {
    let tree = tree_of(view)?;
    let table = snapshot.table_by_id(view.table);
    let table = table.ok_or_else(|| EngineError::internal("the view's table does not exist"))?;
    let mut binder = Binder::new(&tree, snapshot, context, &Clauses);
    binder.beneath_view = true;
    let sources = if by_names { binder.sources_of(&tree) } else { view.sources.clone() };
    refuse_cycle(view, &sources, snapshot)?;
    binder.view_sources = Some(Arc::new(sources.clone()));
    let found = binder.query(tree.root)?;
    let base =
        if by_names { snapshot.table(&view.base_name) } else { snapshot.table_by_id(view.base) };
    let base = base.ok_or_else(|| {
        let message = format!("base table does not exist [table={}]", view.base_name);
        EngineError::new(ErrorCode::TableNotFound, message)
    })?;
    let shape = S::of(&found.plan, base.schema().id, &tree)?;
    let schema = table.schema();
    let mut pairs = found.columns.iter().zip(&schema.columns);
    let fits = found.columns.len() == schema.columns.len()
        && pairs.all(|(now, then)| S::fits(now.sql_type, then.sql_type));
    if !fits {
        let message = "the query's columns do not match the view's columns";
        return Err(EngineError::new(ErrorCode::TypeMismatch, message));
    }
    let plan = binder.conformed_source(found, schema)?;
    Ok(IncrementalRows { plan, shape, base, sources })
}

/// The syntax tree of a view's query.
fn tree_of(view: &IncrementalView) -> EngineResult<Tree> {
    serde_json::from_str(&view.tree).map_err(|_| {
        EngineError::new(ErrorCode::NotSupported, "the view was created by a different version")
    })
}

/// The type in which the view stores one of its query's columns.
fn stored(sql_type: SqlType) -> SqlType {
    if sql_type == SqlType::Null { SqlType::String } else { sql_type }
}

/// Rejects a query that reads the view's own rows through other materialized views, because each
/// refresh would then trigger another one endlessly.
fn refuse_cycle(
    view: &IncrementalView,
    sources: &BTreeMap<u32, ViewSource>,
    snapshot: &Snapshot,
) -> EngineResult<()> {
    let tables = |sources: &BTreeMap<u32, ViewSource>| -> Vec<TableId> {
        let id = |source: &ViewSource| match source {
            ViewSource::Table { id, .. } => Some(*id),
            ViewSource::View { .. } => None,
        };
        sources.values().filter_map(id).collect()
    };
    let mut waiting = tables(sources);
    let mut seen = BTreeSet::new();
    while let Some(table) = waiting.pop() {
        if table == view.table {
            let name = snapshot.table_by_id(table).map(|table| table.schema().name.clone());
            let name = name.unwrap_or_default();
            let message = format!("circular dependency detected [view={name}]");
            return Err(EngineError::new(ErrorCode::NotSupported, message));
        }
        if seen.insert(table)
            && let Some(next) = IncrementalView::of(snapshot, table)
        {
            waiting.extend(tables(&next.sources));
        }
    }
    Ok(())
}
