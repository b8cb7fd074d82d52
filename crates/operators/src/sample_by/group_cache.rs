//! Cached groups of the bucket that is still open. If a view's base table only grows at its end,
//! each row is aggregated once, however long the view's buckets are.
//!
//! The cache contains the groups of all rows before a timestamp, the mark. The next execution reads
//! only rows at or after the mark and resumes from these groups.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{ArrayRef, DictionaryArray, Int32Array};
use datafusion::common::{DataFusionError, Result};
use tidemark_storage::SymbolDictionary;
use tidemark_types::{EngineError, ErrorCode};

use super::accumulator::Accumulate;
use super::groups::KeyPlan;
use super::slots::Digit;
use crate::error::engine_error;
use crate::state_memory::{StateMemory, StateReservation};

/// Some groups and their states, ordered by group number.
pub(crate) struct GroupStates {
    /// Bucket of each group.
    pub(crate) labels: Vec<i64>,
    /// The groups' symbols, by key. They remain valid because dictionaries only grow.
    pub(crate) keys: Vec<(Arc<SymbolDictionary>, Int32Array)>,
    pub(crate) counts: Vec<i64>,
    pub(crate) states: Vec<Box<dyn Accumulate>>,
}

impl GroupStates {
    /// Returns the keys as columns that use the current symbol dictionaries.
    pub(crate) fn key_columns(&self, plan: &KeyPlan) -> Result<Vec<ArrayRef>> {
        let now: &[Digit] = match plan {
            KeyPlan::None => &[],
            KeyPlan::Slots(digits) => digits,
            KeyPlan::Number(_) | KeyPlan::Hashed(_) | KeyPlan::Values(_) => return Err(outdated()),
        };
        if now.len() != self.keys.len() {
            return Err(outdated());
        }
        let column = |(now, (then, codes)): (&Digit, &(Arc<_>, Int32Array))| {
            let Digit::Symbol(now) = now else { return Err(outdated()) };
            if !now.extends(then) {
                return Err(outdated());
            }
            let column = DictionaryArray::try_new(codes.clone(), now.values())?;
            Ok(Arc::new(column) as ArrayRef)
        };
        now.iter().zip(&self.keys).map(column).collect()
    }
}

/// Returns the error for cached groups whose keys have changed; the refresh starts over.
fn outdated() -> DataFusionError {
    engine_error(EngineError::new(ErrorCode::Replan, "the keys of the cached groups changed"))
}

struct State {
    /// First timestamp not covered by the cached groups, which is the start of its bucket.
    mark: i64,
    from: i64,
    groups: Option<GroupStates>,
    /// Whether an execution has stored the groups.
    is_left: bool,
    memory: StateReservation,
}

/// Cached groups of a plan's aggregation.
#[derive(Clone)]
pub struct GroupCache {
    state: Arc<Mutex<State>>,
}

impl GroupCache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(memory: &Arc<StateMemory>) -> Self {
        let reservation = memory.reservation();
        let state = State {
            mark: i64::MIN,
            from: i64::MIN,
            groups: None,
            is_left: false,
            memory: reservation,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next execution cache the groups of rows before `mark`, but only for buckets that
    /// begin at or after `from`.
    pub fn mark_at(&self, mark: i64, from: i64) {
        let mut state = self.lock();
        (state.mark, state.from, state.is_left) = (mark, from, false);
    }

    /// Returns the first timestamp not covered by the cached groups, if an execution has stored
    /// them.
    #[must_use]
    pub fn marked(&self) -> Option<i64> {
        let state = self.lock();
        state.is_left.then_some(state.mark)
    }

    /// Approximate memory used, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().memory.bytes()
    }

    pub(crate) fn mark(&self) -> i64 {
        self.lock().mark
    }

    /// Removes and returns the groups to resume from.
    pub(crate) fn take(&self) -> Option<GroupStates> {
        self.lock().groups.take()
    }

    /// Stores the groups of buckets that are still open. They need `bytes` bytes and are copied
    /// only if that much memory is available.
    pub(crate) fn store(&self, bytes: usize, copy: impl FnOnce() -> Option<GroupStates>) {
        let mut state = self.lock();
        state.groups = None;
        state.is_left = false;
        if state.memory.try_resize(bytes) {
            state.groups = copy();
            state.is_left = state.groups.is_some();
        }
        if !state.is_left {
            state.memory.try_resize(0);
        }
    }

    /// First timestamp of the cached buckets.
    pub(crate) fn from(&self) -> i64 {
        self.lock().from
    }
}

impl PartialEq for GroupCache {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }
}

impl Eq for GroupCache {}

impl Hash for GroupCache {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.state).hash(state);
    }
}

impl fmt::Debug for GroupCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptGroups({} bytes)", self.bytes())
    }
}
