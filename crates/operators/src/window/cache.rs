//! Window function state after the last row, cached until more rows arrive. If a view's base table
//! grows only at its end, the view does not have to read its earlier rows again.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::state_memory::{StateMemory, StateReservation};

/// State of one node.
pub(crate) trait CachedState: Any + Send {
    /// Releases data that is no longer needed. Returns the approximate size of the remaining state
    /// in bytes.
    fn settle(&mut self) -> usize;
    /// Restores the state that `copy` was made from.
    fn rewind(&mut self, copy: &(dyn Any + Send));
}

/// A copy of a node's state.
pub(crate) struct Copied {
    pub(crate) state: Box<dyn Any + Send>,
    pub(crate) bytes: usize,
}

/// The state of all nodes before the first row at a timestamp. Late rows resume from it.
struct Mark {
    time: i64,
    /// Number of rows processed.
    rows: u64,
    /// The latest processed timestamp, and the number of rows processed with that timestamp.
    last: Option<(i64, u64)>,
    /// Each node's state, filled in as rows reach the node.
    nodes: Vec<Option<Copied>>,
}

impl Mark {
    fn bytes(&self) -> usize {
        self.nodes.iter().flatten().map(|copied| copied.bytes).sum()
    }
}

/// Cached state of all window nodes in a plan.
#[derive(Clone)]
pub struct WindowCache {
    state: Arc<Mutex<State>>,
}

struct State {
    /// State of each node, from the top down; `None` during an execution.
    nodes: Vec<Option<Box<dyn CachedState>>>,
    /// The latest processed timestamp, and the number of rows processed with that timestamp.
    last: Option<(i64, u64)>,
    /// Rows at or after this timestamp resume from this state. The timestamp is the latest one that
    /// was read, even if its rows were filtered out. It is never earlier than the first timestamp
    /// from which all rows were read.
    end: i64,
    /// Memory reserved for this state.
    memory: StateReservation,
    /// Size of the state in bytes after the last execution, excluding marks.
    settled: usize,
    /// Earlier states in time order. The older they are, the more sparsely they are stored.
    marks: Vec<Mark>,
    /// Marks before this timestamp are not stored.
    marked_from: i64,
}

impl State {
    /// Removes marks that are close together relative to their distance from the last row.
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

    /// Reserves `more` bytes on top of the current state. If there is not enough memory, removes
    /// the oldest marks.
    fn try_reserve(&mut self, more: usize) -> bool {
        loop {
            let marks: usize = self.marks.iter().map(Mark::bytes).sum();
            if self.memory.try_resize(self.settled.saturating_add(marks).saturating_add(more)) {
                return true;
            }
            if self.marks.is_empty() {
                return false;
            }
            self.marks.remove(0);
        }
    }
}

impl fmt::Debug for WindowCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptWindows({} bytes)", self.bytes())
    }
}

impl WindowCache {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a cache that also stores earlier states for timestamps at or after `first`.
    #[must_use]
    pub fn marking(first: i64, memory: &Arc<StateMemory>) -> Self {
        let state = State {
            nodes: Vec::new(),
            last: None,
            end: first,
            memory: memory.reservation(),
            settled: 0,
            marks: Vec::new(),
            marked_from: first,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Creates slots for the states of `count` nodes.
    pub(crate) fn slots(&self, count: usize) -> impl Iterator<Item = Slot> {
        self.lock().nodes.resize_with(count, || None);
        let of = self.clone();
        (0..count).map(move |number| Slot { of: of.clone(), number, is_first: number + 1 == count })
    }

    /// Completes the state after an execution that has read all rows up to `last_time`. Returns
    /// whether later rows can be processed from this state. Must be called after all rows have been
    /// processed.
    pub fn settle(&self, last_time: i64) -> bool {
        let mut state = self.lock();
        // `end` never decreases, because the number of rows processed at an earlier timestamp is no
        // longer known.
        state.end = state.end.max(last_time);
        let end = state.end;
        state.last = state.last.filter(|(time, _)| *time == end);
        let mut bytes = 0;
        for node in &mut state.nodes {
            let Some(cached) = node else { return false };
            bytes += cached.settle();
        }
        state.marks.retain(|mark| mark.nodes.iter().all(Option::is_some));
        let rows = state.marks.last().map_or(0, |mark| mark.rows);
        state.thin(rows);
        state.settled = bytes;
        state.try_reserve(0)
    }

    /// Restores a state from before the first row at or after `first`. Returns the timestamp from
    /// which rows must be read, or `None` if there is no such state.
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

    /// The timestamp at and after which new rows resume from this state.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.lock().end
    }

    /// Removes all earlier states.
    pub fn forget_marks(&self) {
        self.lock().marks.clear();
    }

    /// Number of earlier states.
    #[must_use]
    pub fn marks(&self) -> usize {
        self.lock().marks.len()
    }

    /// Records that the rows at the latest timestamp were removed. Rows that now have this
    /// timestamp are new.
    pub fn forget_last(&self) {
        self.lock().last = None;
    }

    /// Approximate memory used, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().memory.bytes()
    }
}

/// Storage for one node's state.
#[derive(Clone)]
pub(crate) struct Slot {
    of: WindowCache,
    number: usize,
    /// Whether the node is the first to receive the rows.
    is_first: bool,
}

impl Slot {
    /// Removes and returns the node's state so that the node can resume from it.
    pub(crate) fn take<T: CachedState>(&self) -> Option<Box<T>> {
        let state: Box<dyn Any> = self.of.lock().nodes.get_mut(self.number)?.take()?;
        state.downcast().ok()
    }

    /// Stores the node's state for later rows.
    pub(crate) fn store(&self, state: impl CachedState) {
        if let Some(slot) = self.of.lock().nodes.get_mut(self.number) {
            *slot = Some(Box::new(state));
        }
    }

    /// For the first node, the latest timestamp and the number of rows processed with it.
    pub(crate) fn passed(&self) -> Option<(i64, u64)> {
        self.of.lock().last.filter(|_| self.is_first)
    }

    /// Returns the timestamp of the next mark that does not have this node's state yet.
    pub(crate) fn next_mark(&self) -> Option<i64> {
        let state = self.of.lock();
        let mut marks = state.marks.iter();
        let lacks = |mark: &&Mark| mark.nodes.get(self.number).is_some_and(Option::is_none);
        marks.find(lacks).map(|mark| mark.time)
    }

    /// First timestamp for which marks are stored.
    pub(crate) fn marked_from(&self) -> i64 {
        self.of.lock().marked_from
    }

    /// Begins a mark before the first row at a timestamp, with the first node's state. The state is
    /// copied only if enough memory is available.
    pub(crate) fn begin_mark(
        &self,
        (time, rows): (i64, u64),
        last: Option<(i64, u64)>,
        bytes: usize,
        copy: impl FnOnce() -> Box<dyn Any + Send>,
    ) {
        let mut state = self.of.lock();
        state.thin(rows);
        if !state.try_reserve(bytes) {
            return;
        }
        let mut nodes: Vec<_> = state.nodes.iter().map(|_| None).collect();
        nodes[self.number] = Some(Copied { state: copy(), bytes });
        state.marks.push(Mark { time, rows, last, nodes });
    }

    /// Adds a later node's state to the mark at a timestamp. If there is not enough memory, the
    /// mark is removed.
    pub(crate) fn complete_mark(
        &self,
        time: i64,
        bytes: usize,
        copy: impl FnOnce() -> Box<dyn Any + Send>,
    ) {
        let mut state = self.of.lock();
        let has_room = state.try_reserve(bytes);
        let Some(slot) = state.marks.iter().position(|mark| mark.time == time) else { return };
        if !has_room {
            state.marks.remove(slot);
        } else if let Some(node) = state.marks[slot].nodes.get_mut(self.number) {
            *node = Some(Copied { state: copy(), bytes });
        }
    }

    /// Whether the node is the first to receive the rows.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Records the latest processed timestamp.
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

    impl CachedState for Numbers {
        fn settle(&mut self) -> usize {
            10
        }

        fn rewind(&mut self, copy: &(dyn Any + Send)) {
            self.0 = *copy.downcast_ref().unwrap();
        }
    }

    /// Processes a hundred rows with distinct timestamps, each with a 10-byte mark.
    fn pass(cache: &WindowCache) -> usize {
        let slot = cache.slots(1).next().unwrap();
        let mut copies = 0;
        for time in 0..100 {
            slot.begin_mark((time, time as u64), None, 10, || {
                copies += 1;
                Box::new(time as u64)
            });
        }
        slot.note(Some((99, 1)));
        slot.store(Numbers(99));
        copies
    }

    #[test]
    fn stored_states_stay_within_the_memory_limit_and_the_oldest_are_evicted() {
        let memory = StateMemory::new(60);
        let cache = WindowCache::marking(0, &memory);
        pass(&cache);
        assert!(cache.settle(99));
        assert!((2..=5).contains(&cache.marks()));
        assert_eq!((cache.bytes(), memory.used()), (10 + 10 * cache.marks(), cache.bytes()));
        let mut rest = memory.reservation();
        assert!(rest.try_resize(60 - memory.used()));
        // A second cache cannot reserve memory, so it has no stored state and therefore no marks.
        let other = WindowCache::marking(0, &memory);
        assert_eq!(pass(&other), 0, "nothing is copied without memory");
        assert!(!other.settle(99));
        assert_eq!((other.marks(), other.bytes(), memory.used()), (0, 0, 60));
        let from = cache.rewind(98).unwrap();
        assert!((90..=98).contains(&from));
        let state = cache.slots(1).next().unwrap().take::<Numbers>().unwrap();
        assert_eq!(state.0, from as u64);
        drop((cache, rest));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn the_end_of_processed_rows_decreases_only_on_rewind() {
        let cache = WindowCache::marking(0, &StateMemory::new(1 << 20));
        pass(&cache);
        // The last processed row is followed by a row that was filtered out.
        assert!(cache.settle(120));
        let slot = cache.slots(1).next().unwrap();
        assert_eq!((cache.end(), slot.passed()), (120, None));
        // That row was removed. Rows at an earlier timestamp have been processed and must not be
        // processed again.
        assert!(cache.settle(99));
        assert_eq!((cache.end(), slot.passed()), (120, None));
        slot.note(Some((130, 2)));
        assert!(cache.settle(130));
        assert_eq!((cache.end(), slot.passed()), (130, Some((130, 2))));
        let from = cache.rewind(98).unwrap();
        slot.note(Some((from, 1)));
        assert!(cache.settle(from));
        assert_eq!((cache.end(), slot.passed()), (from, Some((from, 1))));
        // It is not known how many rows were processed at timestamps before the restored timestamp.
        let from = cache.rewind(50).unwrap();
        slot.note(Some((20, 1)));
        assert!(cache.settle(20));
        assert_eq!((cache.end(), slot.passed()), (from, None));
        let other = WindowCache::marking(60, &StateMemory::new(1 << 20));
        pass(&other);
        assert!(other.settle(20));
        assert_eq!(other.end(), 60);
    }

    #[test]
    fn older_states_are_stored_more_sparsely() {
        let memory = StateMemory::new(1 << 20);
        let cache = WindowCache::marking(0, &memory);
        assert_eq!(pass(&cache), 100);
        assert!(cache.settle(99));
        assert!((8..30).contains(&cache.marks()), "{}", cache.marks());
        assert_eq!(cache.rewind(0), Some(0));
        assert_eq!(cache.marks(), 1);
    }
}
