//! What a statement keeps from one execution to the next: its binding, then its plan.
//!
//! Both are true for the snapshot they were made from. A kept plan pins that snapshot's files,
//! so the first one who sees a newer snapshot lets go of every older plan, whoever keeps it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use parking_lot::Mutex;
use tidemark_planner::BoundQuery;
use tidemark_types::{EngineResult, Field};

use crate::errors::from_datafusion;

/// A query that needs no more planning.
#[derive(Debug, Clone)]
pub(crate) struct PlannedQuery {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) columns: Vec<Field>,
    pub(crate) timestamp: Option<usize>,
    /// See [`tidemark_operators::is_immediate`].
    pub(crate) immediate: bool,
}

/// What is kept.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    Bound(Box<BoundQuery>),
    Planned(PlannedQuery),
}

/// A statement's place for what it keeps.
#[derive(Debug, Default)]
pub(crate) struct PlanSlot {
    kept: Mutex<Option<(u64, Kept)>>,
}

impl PlanSlot {
    /// Whether what is kept for this epoch runs in no time.
    pub(crate) fn is_immediate(&self, epoch: u64) -> bool {
        let kept = self.kept.lock();
        kept.as_ref().is_some_and(|(kept_for, kept)| {
            *kept_for == epoch && matches!(kept, Kept::Planned(query) if query.immediate)
        })
    }

    /// What was kept for this epoch, ready for one more execution.
    pub(crate) fn get(&self, epoch: u64) -> EngineResult<Option<Kept>> {
        let kept = self.kept.lock().clone();
        match kept.filter(|(kept_for, _)| *kept_for == epoch) {
            Some((_, Kept::Planned(query))) => {
                let plan = reset_plan_states(query.plan).map_err(from_datafusion)?;
                Ok(Some(Kept::Planned(PlannedQuery { plan, ..query })))
            }
            other => Ok(other.map(|(_, kept)| kept)),
        }
    }
}

/// All places that keep something.
#[derive(Debug, Default)]
pub(crate) struct KeptPlans {
    /// The newest epoch anybody has seen.
    epoch: AtomicU64,
    slots: Mutex<Vec<Weak<PlanSlot>>>,
}

impl KeptPlans {
    /// Lets go of what was kept for older snapshots.
    pub(crate) fn advance(&self, epoch: u64) {
        if self.epoch.fetch_max(epoch, Ordering::AcqRel) >= epoch {
            return;
        }
        let stale = std::mem::take(&mut *self.slots.lock());
        for slot in stale.iter().filter_map(Weak::upgrade) {
            let older = slot.kept.lock().take_if(|(kept_for, _)| *kept_for < epoch);
            drop(older);
        }
    }

    /// Keeps it, unless a newer snapshot is about already.
    pub(crate) fn keep(&self, slot: &Arc<PlanSlot>, epoch: u64, what: Kept) {
        let mut slots = self.slots.lock();
        if self.epoch.load(Ordering::Acquire) > epoch {
            return;
        }
        let before = slot.kept.lock().replace((epoch, what));
        // Known already when something was kept for the same epoch.
        if before.is_none_or(|(kept_for, _)| kept_for < epoch) {
            slots.push(Arc::downgrade(slot));
        }
    }
}

/// Whether a function in it is made for one execution: random values, sequences.
pub(crate) fn is_volatile(plan: &LogicalPlan) -> EngineResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.expressions().iter().any(datafusion::logical_expr::Expr::is_volatile);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .map_err(from_datafusion)?;
    Ok(found)
}
