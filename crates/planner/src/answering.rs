//! Cache of materialized views that can answer queries over their base tables, so views need not be
//! read and bound for each query. The cache holds no rows.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::logical_expr::expr::AggregateFunction;
use tidemark_catalog::{IncrementalView, RecordKind};
use tidemark_operators::BucketSpec;
use tidemark_storage::{RecordsVersion, Snapshot, TableId};

/// A database's cached views; empty initially.
#[derive(Debug, Default)]
pub struct AnsweringViews(Mutex<Option<Arc<ViewsOfBases>>>);

/// Candidate views by base table.
#[derive(Debug)]
pub(crate) struct ViewsOfBases {
    version: RecordsVersion,
    of_base: HashMap<TableId, Vec<AnsweringView>>,
}

/// A view that can answer queries, because it contains all rows of its own query.
#[derive(Debug)]
pub(crate) struct AnsweringView {
    pub(crate) view: IncrementalView,
    bound: Mutex<Option<Bound>>,
}

/// Schema versions of the base table and of the view's table, and the view's bound query.
type Bound = ((u64, u64), Option<Arc<Shown>>);

/// A view's aggregation and, for each of its outputs, the column in the view's table.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) spec: BucketSpec,
    /// Time buckets in which the view is refreshed.
    pub(crate) buckets: BucketSpec,
    /// Key columns of the base table, mapped to their column indices in the view.
    pub(crate) keys: BTreeMap<String, usize>,
    pub(crate) aggregates: Vec<(AggregateFunction, usize)>,
}

impl AnsweringViews {
    /// Returns the views as of a snapshot. The list is rebuilt whenever a view is created, altered
    /// or dropped.
    pub(crate) fn of(&self, snapshot: &Snapshot) -> Arc<ViewsOfBases> {
        let kind = RecordKind::MaterializedView.name();
        let version = snapshot.records_version(kind);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.version == version) {
            return Arc::clone(known);
        }
        let mut of_base: HashMap<TableId, Vec<AnsweringView>> = HashMap::new();
        for view in IncrementalView::all(snapshot) {
            let is_all = view.limit_hours_or_months == 0 && view.expire.is_none();
            if is_all && view.live.is_none() {
                let views = of_base.entry(view.base).or_default();
                views.push(AnsweringView { view, bound: Mutex::default() });
            }
        }
        let views = Arc::new(ViewsOfBases { version, of_base });
        *known = Some(Arc::clone(&views));
        views
    }
}

impl ViewsOfBases {
    /// True if no view can answer queries.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_base.is_empty()
    }

    /// Returns the views over a base table.
    pub(crate) fn over(&self, base: TableId) -> &[AnsweringView] {
        self.of_base.get(&base).map_or(&[], Vec::as_slice)
    }
}

impl AnsweringView {
    /// Returns the view's bound query. It is bound again after a schema change to the base table or
    /// the view's table. `None` if the view cannot answer queries.
    pub(crate) fn shown(
        &self,
        versions: (u64, u64),
        bind: impl FnOnce(&IncrementalView) -> Option<Shown>,
    ) -> Option<Arc<Shown>> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, shown)) = bound.as_ref().filter(|(known, _)| *known == versions) {
            return shown.clone();
        }
        let shown = bind(&self.view).map(Arc::new);
        *bound = Some((versions, shown.clone()));
        shown
    }
}
