//! What windows hold after the last row, kept until later rows follow: a view that grows at its end
//! does not read again what it has shown.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::state_memory::{StateMemory, StateShare};

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
#[derive(Clone)]
pub struct KeptWindows {
    state: Arc<Mutex<State>>,
}

struct State {
    /// Of each node, from the top down; none while rows pass.
    nodes: Vec<Option<Box<dyn Held>>>,
    /// The last instant whose rows passed, and how many there were.
    last: Option<(i64, u64)>,
    /// Rows at and after this instant go on from here: the last one that was read, whether rows of
    /// it passed or were filtered, and none before the first that all was read for.
    end: i64,
    /// What it takes of the memory for states.
    share: StateShare,
    /// What all of it took when the rows had passed, but for marks.
    settled: usize,
    /// Earlier states, in the order of time: the further back, the fewer.
    marks: Vec<Mark>,
    /// None is kept of before this instant.
    marked_from: i64,
}

impl State {
    /// Lets marks go that are close to others, seen from the last row.
    fn thin(&mut self, rows: u64) {
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
    }

    /// Takes memory for `more` bytes beside what there is; the oldest marks make room.
    fn make_room(&mut self, more: usize) -> bool {
        loop {
            let marks: usize = self.marks.iter().map(Mark::bytes).sum();
            if self.share.try_resize(self.settled.saturating_add(marks).saturating_add(more)) {
                return true;
            }
            if self.marks.is_empty() {
                return false;
            }
            self.marks.remove(0);
        }
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
    pub fn marking(first: i64, memory: &Arc<StateMemory>) -> Self {
        let state = State {
            nodes: Vec::new(),
            last: None,
            end: first,
            share: memory.share(),
            settled: 0,
            marks: Vec::new(),
            marked_from: first,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Places for the states of so many nodes.
    pub(crate) fn slots(&self, count: usize) -> impl Iterator<Item = Slot> {
        self.lock().nodes.resize_with(count, || None);
        let of = self.clone();
        (0..count).map(move |number| Slot { of: of.clone(), number, is_first: number + 1 == count })
    }

    /// Whether it holds what later rows need, where rows up to `last_time` were read. Ask when all
    /// rows have passed.
    pub fn settle(&self, last_time: i64) -> bool {
        let mut state = self.lock();
        // It does not go back: how many rows of an earlier instant passed is not known any more.
        state.end = state.end.max(last_time);
        let end = state.end;
        state.last = state.last.filter(|(time, _)| *time == end);
        let mut bytes = 0;
        for node in &mut state.nodes {
            let Some(held) = node else { return false };
            bytes += held.settle();
        }
        state.marks.retain(|mark| mark.nodes.iter().all(Option::is_some));
        let rows = state.marks.last().map_or(0, |mark| mark.rows);
        state.thin(rows);
        state.settled = bytes;
        state.make_room(0)
    }

    /// Goes back to a state that no row at or after `first` is in; the instant that rows are to be
    /// read from then. `None` where none is known.
    pub fn rewind(&self, first: i64) -> Option<i64> {
        let mut state = self.lock();
        let State { nodes, last, end, marks, .. } = &mut *state;
        marks.truncate(marks.partition_point(|mark| mark.time <= first));
        let mark = marks.last()?;
        for (node, copied) in nodes.iter_mut().zip(&mark.nodes) {
            node.as_mut()?.rewind(copied.as_ref()?.state.as_ref());
        }
        (*last, *end) = (mark.last, mark.time);
        Some(mark.time)
    }

    /// The instant from which on rows that have not passed go on from here.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.lock().end
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
        self.lock().share.bytes()
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

    /// Begins a mark: the first node's state, before the first row at an instant. It is copied when
    /// there is room for it.
    pub(crate) fn begin_mark(
        &self,
        (time, rows): (i64, u64),
        last: Option<(i64, u64)>,
        bytes: usize,
        copy: impl FnOnce() -> Box<dyn Any + Send>,
    ) {
        let mut state = self.of.lock();
        state.thin(rows);
        if !state.make_room(bytes) {
            return;
        }
        let mut nodes: Vec<_> = state.nodes.iter().map(|_| None).collect();
        nodes[self.number] = Some(Copied { state: copy(), bytes });
        state.marks.push(Mark { time, rows, last, nodes });
    }

    /// Adds the state of a node that rows pass later to the mark of an instant, which goes where
    /// there is no room for it.
    pub(crate) fn complete_mark(
        &self,
        time: i64,
        bytes: usize,
        copy: impl FnOnce() -> Box<dyn Any + Send>,
    ) {
        let mut state = self.of.lock();
        let has_room = state.make_room(bytes);
        let Some(place) = state.marks.iter().position(|mark| mark.time == time) else { return };
        if !has_room {
            state.marks.remove(place);
        } else if let Some(node) = state.marks[place].nodes.get_mut(self.number) {
            *node = Some(Copied { state: copy(), bytes });
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers(u64);

    impl Held for Numbers {
        fn settle(&mut self) -> usize {
            10
        }

        fn rewind(&mut self, copy: &(dyn Any + Send)) {
            self.0 = *copy.downcast_ref().unwrap();
        }
    }

    /// A hundred rows at as many instants, each marked: 10 bytes.
    fn pass(kept: &KeptWindows) -> usize {
        let slot = kept.slots(1).next().unwrap();
        let mut copies = 0;
        for time in 0..100 {
            slot.begin_mark((time, time as u64), None, 10, || {
                copies += 1;
                Box::new(time as u64)
            });
        }
        slot.note(Some((99, 1)));
        slot.leave(Numbers(99));
        copies
    }

    #[test]
    fn states_are_copied_where_there_is_room_and_the_oldest_go_first() {
        let memory = StateMemory::new(60);
        let kept = KeptWindows::marking(0, &memory);
        pass(&kept);
        assert!(kept.settle(99));
        assert!((2..=5).contains(&kept.marks()));
        assert_eq!((kept.bytes(), memory.used()), (10 + 10 * kept.marks(), kept.bytes()));
        let mut rest = memory.share();
        assert!(rest.try_resize(60 - memory.used()));
        // Others find no room, and what does not keep its state has no marks.
        let other = KeptWindows::marking(0, &memory);
        assert_eq!(pass(&other), 0, "nothing is copied without room");
        assert!(!other.settle(99));
        assert_eq!((other.marks(), other.bytes(), memory.used()), (0, 0, 60));
        let from = kept.rewind(98).unwrap();
        assert!((90..=98).contains(&from));
        let held = kept.slots(1).next().unwrap().take::<Numbers>().unwrap();
        assert_eq!(held.0, from as u64);
        drop((kept, rest));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn the_end_goes_back_with_the_state_alone() {
        let kept = KeptWindows::marking(0, &StateMemory::new(1 << 20));
        pass(&kept);
        // Behind the last row that passed there is one that was filtered.
        assert!(kept.settle(120));
        let slot = kept.slots(1).next().unwrap();
        assert_eq!((kept.end(), slot.passed()), (120, None));
        // It went: rows of an earlier instant did pass, and are not to pass again.
        assert!(kept.settle(99));
        assert_eq!((kept.end(), slot.passed()), (120, None));
        slot.note(Some((130, 2)));
        assert!(kept.settle(130));
        assert_eq!((kept.end(), slot.passed()), (130, Some((130, 2))));
        let from = kept.rewind(98).unwrap();
        slot.note(Some((from, 1)));
        assert!(kept.settle(from));
        assert_eq!((kept.end(), slot.passed()), (from, Some((from, 1))));
        // Of what lies before the place that it went back to it does not know enough.
        let from = kept.rewind(50).unwrap();
        slot.note(Some((20, 1)));
        assert!(kept.settle(20));
        assert_eq!((kept.end(), slot.passed()), (from, None));
        let other = KeptWindows::marking(60, &StateMemory::new(1 << 20));
        pass(&other);
        assert!(other.settle(20));
        assert_eq!(other.end(), 60);
    }

    #[test]
    fn with_room_for_all_there_are_the_fewer_marks_the_further_back() {
        let memory = StateMemory::new(1 << 20);
        let kept = KeptWindows::marking(0, &memory);
        assert_eq!(pass(&kept), 100);
        assert!(kept.settle(99));
        assert!((8..30).contains(&kept.marks()), "{}", kept.marks());
        assert_eq!(kept.rewind(0), Some(0));
        assert_eq!(kept.marks(), 1);
    }
}
