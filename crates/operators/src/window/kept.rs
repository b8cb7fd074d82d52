//! What windows hold after the last row, kept until later rows follow: a view that grows at its end
//! does not read again what it has shown.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Extension, LogicalPlan};

use super::exec::Progress;
use super::node::WindowNode;
use crate::logical::LogicalNode;

/// What is held that takes more is not kept.
const MOST_BYTES: usize = 256 << 20;

/// The state of all windows of a plan.
#[derive(Clone, Default)]
pub struct KeptWindows {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Of each node, from the top down; none while rows pass.
    nodes: Vec<Option<Progress>>,
    /// The last instant whose rows passed, and how many there were.
    last: Option<(i64, u64)>,
    bytes: usize,
}

impl fmt::Debug for KeptWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptWindows({} bytes)", self.bytes())
    }
}

impl KeptWindows {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same plan, whose windows go on from here and leave here what they hold in the end. Of
    /// the rows that it reads those of the last instant that passed before are left out.
    pub fn in_plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let mut count = 0;
        plan.apply(|node| {
            count +=
                usize::from(matches!(LogicalNode::of_plan(node), Some(LogicalNode::Windows(_))));
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.lock().nodes.resize_with(count, || None);
        let mut number = 0;
        let kept = plan.transform_down(|node| {
            let Some(LogicalNode::Windows(window)) = LogicalNode::of_plan(&node) else {
                return Ok(Transformed::no(node));
            };
            let slot = Slot { of: self.clone(), number, is_first: number + 1 == count };
            number += 1;
            let node: Arc<WindowNode> = Arc::new(window.clone().keeping(slot));
            Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
        })?;
        Ok(kept.data)
    }

    /// Whether it holds what rows after `last_time` need, the last instant of which rows were read.
    /// Ask when all rows have passed.
    pub fn settle(&self, last_time: i64) -> bool {
        let mut state = self.lock();
        if !state.last.is_some_and(|(time, _)| time == last_time) {
            state.last = None;
        }
        let mut bytes = 0;
        for node in &mut state.nodes {
            let Some(progress) = node else { return false };
            bytes += progress.settle();
        }
        state.bytes = bytes;
        bytes <= MOST_BYTES
    }

    /// The rows of the last instant are gone: what has it now is new.
    pub fn forget_last(&self) {
        self.lock().last = None;
    }

    /// What it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

/// The place of one node's state.
#[derive(Clone)]
pub(crate) struct Slot {
    of: KeptWindows,
    number: usize,
    /// Whether the node is the first that rows pass.
    is_first: bool,
}

impl Slot {
    /// What the node holds, to go on with.
    pub(crate) fn take(&self) -> Option<Progress> {
        self.of.lock().nodes.get_mut(self.number)?.take()
    }

    /// Leaves it for later rows.
    pub(crate) fn leave(&self, progress: Progress) {
        if let Some(place) = self.of.lock().nodes.get_mut(self.number) {
            *place = Some(progress);
        }
    }

    /// How many of the first rows of this instant passed before.
    pub(crate) fn passed(&self) -> Option<(i64, u64)> {
        self.of.lock().last.filter(|_| self.is_first)
    }

    /// Notes the last instant that passed.
    pub(crate) fn note(&self, last: Option<(i64, u64)>) {
        if self.is_first {
            self.of.lock().last = last;
        }
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.of.state, &other.of.state) && self.number == other.number
    }
}

impl Eq for Slot {}

impl Hash for Slot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", self.number)
    }
}
