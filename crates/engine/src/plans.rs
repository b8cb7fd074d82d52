//! What a statement keeps from one execution to the next: its binding, then its plan, or its rows
//! where it has few and reads no file for them.
//!
//! All are true for the snapshot they were made from. A kept plan pins that snapshot's files, so
//! the first statement that sees a newer snapshot drops every older plan, of all statements.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use parking_lot::Mutex;
use tidemark_operators::{Rows, Test};
use tidemark_optimizer::PlanSession;
use tidemark_planner::{BoundQuery, Conditions, Restriction};
use tidemark_storage::{Storage, TimeRange};
use tidemark_types::{EngineResult, Field};
use tokio::runtime::Handle;

use crate::cached_results::{CachedBytes, CachedResults};
use crate::execution::source::BatchSource;
use crate::named_test::NamedTest;
use tidemark_operators::from_datafusion;

/// How often plans for older snapshots are looked for.
const FORGET_EVERY: Duration = Duration::from_millis(500);
/// Bytes of rows that are kept, at most.
const MOST_BYTES: usize = 16 * 1024;

/// A query that needs no more planning.
#[derive(Debug, Clone)]
pub(crate) struct PlannedQuery {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) columns: Vec<Field>,
    pub(crate) timestamp: Option<usize>,
}

impl PlannedQuery {
    /// A copy to be executed. Operators hang what one execution builds (the rows of a join, spilled
    /// files) on their plan's nodes, so what is kept is never executed itself: it would hold them
    /// for as long as it is kept.
    pub(crate) fn to_execute(&self) -> EngineResult<Self> {
        let plan = reset_plan_states(Arc::clone(&self.plan)).map_err(from_datafusion)?;
        Ok(Self { plan, ..self.clone() })
    }

    /// Its rows, unless they take more memory than the plan is likely to.
    pub(crate) async fn few_rows(
        &self,
        context: &Arc<TaskContext>,
    ) -> EngineResult<Option<KeptRows>> {
        let mut source = BatchSource::start(&self.to_execute()?.plan, context)?;
        let mut batches = Vec::new();
        while let Some(batch) = source.next().await? {
            batches.push(batch);
        }
        let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        let Self { columns, timestamp, .. } = self.clone();
        Ok((bytes <= MOST_BYTES).then_some(KeptRows { batches, columns, timestamp }))
    }
}

/// The rows of a query that reads none of a table: `SELECT 1`.
#[derive(Debug)]
pub(crate) struct KeptRows {
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) columns: Vec<Field>,
    pub(crate) timestamp: Option<usize>,
}

/// What only has to be run.
#[derive(Debug, Clone)]
pub(crate) enum ReadyQuery {
    Plan(PlannedQuery),
    Rows(Arc<KeptRows>),
}

/// A plan for one value of each parameter that serves other values too: all of them are in the
/// conditions of its WHERE.
#[derive(Debug)]
pub(crate) struct ConditionalPlan {
    pub(crate) conditions: Conditions,
    pub(crate) query: PlannedQuery,
    pub(crate) results: CachedResults,
    pub(crate) named: NamedTest,
}

impl ConditionalPlan {
    pub(crate) fn new(conditions: Conditions, query: PlannedQuery, all: &CachedBytes) -> Self {
        let (results, named) = (CachedResults::new(all), NamedTest::default());
        Self { conditions, query, results, named }
    }

    /// The plan for other rows; `None` where it has to be planned.
    pub(crate) fn reading(
        &self,
        session: &PlanSession,
        Restriction { ranges, predicate }: &Restriction,
    ) -> EngineResult<Option<PlannedQuery>> {
        self.testing(session, ranges, predicate.as_ref().map(Test::Named))
    }

    /// The same by a test that may be lowered already.
    pub(crate) fn testing(
        &self,
        session: &PlanSession,
        ranges: &[TimeRange],
        predicate: Option<Test<'_>>,
    ) -> EngineResult<Option<PlannedQuery>> {
        let rows = Rows { known: self.conditions.ranges(), ranges, predicate };
        let plan = session.reading(&self.query.plan, rows).map_err(from_datafusion)?;
        Ok(plan.map(|plan| PlannedQuery { plan, ..self.query.clone() }))
    }
}

/// A plan without parameters.
#[derive(Debug)]
pub(crate) struct RepeatedPlan {
    pub(crate) query: PlannedQuery,
    pub(crate) results: CachedResults,
}

/// What is kept.
#[derive(Debug, Clone)]
pub(crate) enum Kept {
    Bound(Box<BoundQuery>),
    Rows(Arc<KeptRows>),
    Repeated(Arc<RepeatedPlan>),
    /// For values of parameters that come with each execution.
    Conditional(Arc<ConditionalPlan>),
}

/// A statement's place for what it keeps.
#[derive(Debug, Default)]
pub(crate) struct PlanSlot {
    kept: Mutex<Option<(u64, Kept)>>,
}

impl PlanSlot {
    /// Whether the rows are kept for this epoch.
    pub(crate) fn has_rows(&self, epoch: u64) -> bool {
        let kept = self.kept.lock();
        matches!(
            kept.as_ref(),
            Some((kept_for, Kept::Rows(_))) if *kept_for == epoch
        )
    }

    /// The plan kept for this epoch that waits for the values of parameters.
    pub(crate) fn conditional(&self, epoch: u64) -> Option<Arc<ConditionalPlan>> {
        match self.kept.lock().as_ref() {
            Some((kept_for, Kept::Conditional(plan))) if *kept_for == epoch => {
                Some(Arc::clone(plan))
            }
            _ => None,
        }
    }

    /// What was kept for this epoch.
    pub(crate) fn get(&self, epoch: u64) -> Option<Kept> {
        let kept = self.kept.lock().clone();
        kept.filter(|(kept_for, _)| *kept_for == epoch).map(|(_, kept)| kept)
    }
}

/// All places that keep something.
#[derive(Debug, Default)]
pub(crate) struct KeptPlans {
    /// The newest epoch any statement has seen.
    epoch: AtomicU64,
    slots: Mutex<Vec<Weak<PlanSlot>>>,
    /// What the results cached with all plans take.
    pub(crate) cached: CachedBytes,
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

/// No plans yet; those that will be kept are let go of in time.
pub(crate) fn kept(runtime: &Handle, storage: &Arc<Storage>) -> Arc<KeptPlans> {
    let plans = Arc::<KeptPlans>::default();
    runtime.spawn(forget_old(Arc::downgrade(&plans), Arc::downgrade(storage)));
    plans
}

/// Lets go of plans for older snapshots where no statement comes that would: they keep files of
/// what was dropped. Ends with the database.
async fn forget_old(plans: Weak<KeptPlans>, storage: Weak<Storage>) {
    let mut times = tokio::time::interval(FORGET_EVERY);
    loop {
        times.tick().await;
        let (Some(plans), Some(storage)) = (plans.upgrade(), storage.upgrade()) else { return };
        plans.advance(storage.snapshot().epoch());
    }
}

/// Whether a function in it is made for one execution: random values, sequences.
pub(crate) fn is_volatile(plan: &LogicalPlan) -> EngineResult<bool> {
    any_expression(plan, Expr::is_volatile)
}

/// Whether a number of the rows, or a parameter, decides how long a text or an array is that the
/// plan computes.
pub(crate) fn is_as_long_as_said(plan: &LogicalPlan) -> EngineResult<bool> {
    let is_long = |expr: &Expr| Ok(tidemark_functions::is_as_long_as_said(expr));
    any_expression(plan, |expr| expr.exists(is_long).unwrap_or(true))
}

fn any_expression(plan: &LogicalPlan, is_wanted: impl Fn(&Expr) -> bool) -> EngineResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.expressions().iter().any(&is_wanted);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .map_err(from_datafusion)?;
    Ok(found)
}
