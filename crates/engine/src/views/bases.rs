//! What was touched of the bases of views, read once for all views of a base.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tidemark_storage::{Change, Snapshot, TableId, Touched};

use crate::runtime::metrics::Metrics;

/// What was touched of each base, as it was read last.
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
    /// Nothing yet.
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self { known: Mutex::default(), metrics: Arc::clone(metrics) }
    }

    /// What was touched of a base; `None` where it is not watched. It is read where its record is
    /// another one than the last time.
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

    /// Forgets all others.
    pub(super) fn keep(&self, bases: &HashSet<TableId>) {
        self.known.lock().retain(|base, _| bases.contains(base));
    }
}

/// The change that lets a base forget what was touched up to a transaction, and be watched from
/// now on; `None` where it is, and has nothing to forget: its record stays what it is.
pub(super) fn watch(base: TableId, known: Option<&Touched>, through: u64) -> Option<Change> {
    let forgets = |touched: &Touched| touched.stretches.iter().any(|one| one.lsn <= through);
    known.is_none_or(forgets).then_some(Change::Watch { table: base, through })
}
