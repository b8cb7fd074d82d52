//! Changed time ranges in base tables, read once for all views on the same base.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tidemark_storage::{Change, Snapshot, TableId, Touched};

use crate::runtime::metrics::Metrics;

/// The latest known changes to each base table.
#[derive(Debug)]
pub(super) struct Bases {
    known: Mutex<HashMap<TableId, Known>>,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct Known {
    record: Box<[u8]>,
    touched: Arc<Touched>,
}

impl Bases {
    /// Creates an empty cache.
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self { known: Mutex::default(), metrics: Arc::clone(metrics) }
    }

    /// Returns a base's changes; `None` if the base is not watched. Reads the changes again only if
    /// the base's record has changed.
    pub(super) fn touched(&self, snapshot: &Snapshot, base: TableId) -> Option<Arc<Touched>> {
        let record = snapshot.touched_record(base)?;
        let mut known = self.known.lock();
        if let Some(known) = known.get(&base)
            && *known.record == *record
        {
            return Some(Arc::clone(&known.touched));
        }
        let touched = Arc::new(snapshot.touched(base)?);
        self.metrics.view_base_reads.add(1);
        known.insert(base, Known { record: record.into(), touched: Arc::clone(&touched) });
        Some(touched)
    }

    /// Removes all bases that are not in `bases`.
    pub(super) fn retain(&self, bases: &HashSet<TableId>) {
        self.known.lock().retain(|base, _| bases.contains(base));
    }
}

/// Returns the change that starts watching a base and discards its changes up to transaction
/// `through`. Returns `None` if the base is already watched and has no changes to discard. The
/// base's record is then not rewritten.
pub(super) fn watch(base: TableId, known: Option<&Touched>, through: u64) -> Option<Change> {
    let forgets = |touched: &Touched| touched.ranges.iter().any(|one| one.lsn <= through);
    known.is_none_or(forgets).then_some(Change::Watch { table: base, through })
}
