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
    /// Goes back to what it was when this was copied of it.
    fn rewind(&mut self, copy: &(dyn Any + Send));
}

/// A copy of what one node held.
pub(crate) struct Copied {
    pub(crate) state: Box<dyn Any + Send>,
    pub(crate) bytes: usize,
}

/// What all nodes held before the first row at an instant: rows that come late go on from there.
struct Mark {
    time: i64,
    /// How many rows had passed.
    rows: u64,
    /// The last instant that had passed, and how many rows of it.
    last: Option<(i64, u64)>,
    /// Of each node, as rows come to it.
    nodes: Vec<Option<Copied>>,
}

impl Mark {
    fn bytes(&self) -> usize {
        self.nodes.iter().flatten().map(|copied| copied.bytes).sum()
    }
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
    /// Earlier states, in the order of time: the further back, the fewer.
    marks: Vec<Mark>,
    /// None is kept of before this instant.
    marked_from: i64,
}

impl State {
    /// Lets marks go that are close to others, seen from the last row; and as many of the oldest
    /// as take more than `most` bytes.
    fn thin(&mut self, rows: u64, most: usize) {
        let marks = &mut self.marks;
        let mut index = 1;
        while index + 1 < marks.len() {
            let gap = marks[index + 1].rows - marks[index - 1].rows;
            if gap <= rows.saturating_sub(marks[index + 1].rows) {
                marks.remove(index);
            } else {
                index += 1;
            }
        }
        let mut bytes: usize = marks.iter().map(Mark::bytes).sum();
        let too_many = marks.iter().take_while(|mark| {
            let is_over = bytes > most;
            bytes -= if is_over { mark.bytes() } else { 0 };
            is_over
        });
        let too_many = too_many.count();
        marks.drain(..too_many);
    }
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

    /// One that keeps earlier states as well, of instants from `first` on.
    #[must_use]
    pub fn marking(first: i64) -> Self {
        let kept = Self::default();
        kept.lock().marked_from = first;
        kept
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
        state.marks.retain(|mark| mark.nodes.iter().all(Option::is_some));
        let rows = state.marks.last().map_or(0, |mark| mark.rows);
        state.thin(rows, MOST_BYTES.saturating_sub(bytes));
        state.bytes = bytes + state.marks.iter().map(Mark::bytes).sum::<usize>();
        bytes <= MOST_BYTES
    }

    /// Goes back to a state that no row at or after `first` is in; the instant that rows are to be
    /// read from then. `None` where none is known.
    pub fn rewind(&self, first: i64) -> Option<i64> {
        let mut state = self.lock();
        let State { nodes, last, marks, .. } = &mut *state;
        marks.truncate(marks.partition_point(|mark| mark.time <= first));
        let mark = marks.last()?;
        for (node, copied) in nodes.iter_mut().zip(&mark.nodes) {
            node.as_mut()?.rewind(copied.as_ref()?.state.as_ref());
        }
        *last = mark.last;
        Some(mark.time)
    }

    /// Forgets earlier states.
    pub fn forget_marks(&self) {
        self.lock().marks.clear();
    }

    /// How many earlier states there are.
    #[must_use]
    pub fn marks(&self) -> usize {
        self.lock().marks.len()
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

    /// The instant of the next mark that this node has not left its state for.
    pub(crate) fn next_mark(&self) -> Option<i64> {
        let state = self.of.lock();
        let mut marks = state.marks.iter();
        let lacks = |mark: &&Mark| mark.nodes.get(self.number).is_some_and(Option::is_none);
        marks.find(lacks).map(|mark| mark.time)
    }

    /// The first instant that marks are kept of.
    pub(crate) fn marked_from(&self) -> i64 {
        self.of.lock().marked_from
    }

    /// Begins a mark: the first node's state, before the first row at an instant.
    pub(crate) fn begin_mark(&self, time: i64, rows: u64, last: Option<(i64, u64)>, of: Copied) {
        let mut state = self.of.lock();
        let mut nodes: Vec<_> = state.nodes.iter().map(|_| None).collect();
        nodes[self.number] = Some(of);
        state.marks.push(Mark { time, rows, last, nodes });
        state.thin(rows, MOST_BYTES / 2);
    }

    /// Adds the state of a node that rows pass later to the marks up to an instant.
    pub(crate) fn complete_mark(&self, time: i64, of: Copied) {
        let mut state = self.of.lock();
        let mark = state.marks.iter_mut().find(|mark| mark.time == time);
        if let Some(node) = mark.and_then(|mark| mark.nodes.get_mut(self.number)) {
            *node = Some(of);
        }
    }

    /// Whether the node is the first that rows pass.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
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
