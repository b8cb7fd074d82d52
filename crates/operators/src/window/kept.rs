//! What windows hold after the last row, kept until later rows follow: a view that grows at its end
//! does not read again what it has shown.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is held that takes more is not kept.
const MOST_BYTES: usize = 256 << 20;

/// What one node holds.
pub(crate) trait Held: Any + Send {
    /// Lets go of what is not needed any more; answers how many bytes the rest takes, about.
    fn settle(&mut self) -> usize;
}

/// The state of all windows of a plan.
#[derive(Clone, Default)]
pub struct KeptWindows {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Of each node, from the top down; none while rows pass.
    nodes: Vec<Option<Box<dyn Held>>>,
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

    /// Places for the states of so many nodes.
    pub(crate) fn slots(&self, count: usize) -> impl Iterator<Item = Slot> {
        self.lock().nodes.resize_with(count, || None);
        let of = self.clone();
        (0..count).map(move |number| Slot { of: of.clone(), number, is_first: number + 1 == count })
    }

    /// Whether it holds what rows after `last_time` need, the last instant of which rows were read.
    /// Ask when all rows have passed.
    pub fn settle(&self, last_time: i64) -> bool {
        let mut state = self.lock();
        if state.last.is_none_or(|(time, _)| time != last_time) {
            state.last = None;
        }
        let mut bytes = 0;
        for node in &mut state.nodes {
            let Some(held) = node else { return false };
            bytes += held.settle();
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
    pub(crate) fn take<T: Held>(&self) -> Option<Box<T>> {
        let held: Box<dyn Any> = self.of.lock().nodes.get_mut(self.number)?.take()?;
        held.downcast().ok()
    }

    /// Leaves it for later rows.
    pub(crate) fn leave(&self, held: impl Held) {
        if let Some(place) = self.of.lock().nodes.get_mut(self.number) {
            *place = Some(Box::new(held));
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
