//! Materialized views that may answer queries over their bases, as they are kept from one statement
//! to the next: read and bound once, not for each query. Nothing here holds rows of a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::logical_expr::expr::AggregateFunction;
use tidemark_catalog::{IncrementalView, RecordKind};
use tidemark_operators::BucketSpec;
use tidemark_storage::{RecordsVersion, Snapshot, TableId};

/// The views of a database that may answer queries; empty at first.
#[derive(Debug, Default)]
pub struct AnsweringViews(Mutex<Option<Arc<ViewsOfBases>>>);

/// The views that may answer, by their bases.
#[derive(Debug)]
pub(crate) struct ViewsOfBases {
    version: RecordsVersion,
    of_base: HashMap<TableId, Vec<AnsweringView>>,
}

/// A view that shows all of its query's rows.
#[derive(Debug)]
pub(crate) struct AnsweringView {
    pub(crate) view: IncrementalView,
    bound: Mutex<Option<Bound>>,
}

/// Versions of the definitions of its base and of its table, and what a view shows with them.
type Bound = ((u64, u64), Option<Arc<Shown>>);

/// A view's aggregation, and which column of its table each of its outputs is.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) spec: BucketSpec,
    /// How its refreshes cut time.
    pub(crate) buckets: BucketSpec,
    /// Columns of the base, and of the view.
    pub(crate) keys: BTreeMap<String, usize>,
    pub(crate) aggregates: Vec<(AggregateFunction, usize)>,
}

impl AnsweringViews {
    /// Those of a snapshot: read again where a view was made, altered or dropped.
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
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_base.is_empty()
    }

    /// The views over a base.
    pub(crate) fn over(&self, base: TableId) -> &[AnsweringView] {
        self.of_base.get(&base).map_or(&[], Vec::as_slice)
    }
}

impl AnsweringView {
    /// What the view shows, bound where it was not yet with these versions of its base's and its
    /// own definition. `None` where it answers nothing.
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
