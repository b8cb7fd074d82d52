//! Sequence values that SERIAL and IDENTITY columns generate in one execution.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidemark_border::DrawnNumber;

/// The values of each sequence, in order of generation.
#[derive(Debug, Clone, Default)]
pub struct Drawn(Arc<Mutex<Vec<Run>>>);

/// Consecutive values of a sequence.
#[derive(Debug)]
struct Run {
    sequence: String,
    /// The last value generated in any session.
    last: Arc<AtomicI64>,
    /// The value before the first one.
    before: i64,
    end: i64,
}

impl Drawn {
    /// Records that a sequence generated `count` values, of which `end` is the last.
    pub(crate) fn note(&self, sequence: &str, last: &Arc<AtomicI64>, (count, end): (i64, i64)) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = runs.iter().position(|run| run.sequence == sequence);
        let known = known.map(|place| runs.remove(place)).map(|run| (run.before, run.end));
        let before = match known {
            Some((before, known)) if known == end - count => before,
            _ => end - count,
        };
        runs.push(Run { sequence: sequence.to_owned(), last: Arc::clone(last), before, end });
    }

    /// Releases the values of a statement that was not run. A value is not released if later values
    /// have already been generated; it then leaves a gap.
    pub fn give_back(&self) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Run { last, before, end, .. } in runs.drain(..) {
            let _ = last.compare_exchange(end, before, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// The values generated, for the session.
    #[must_use]
    pub fn list(&self) -> Vec<DrawnNumber> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number =
            |run: &Run| DrawnNumber { sequence: run.sequence.clone(), value: run.end.to_string() };
        runs.iter().map(number).collect()
    }
}
