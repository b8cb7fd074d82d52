//! Sequence values that SERIAL and IDENTITY columns generate in one execution.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidemark_border::SequenceValue;

/// Each sequence's values, in the order in which they were generated.
#[derive(Debug, Clone, Default)]
pub struct SequenceValues(Arc<Mutex<Vec<Run>>>);

/// Consecutive values from a sequence.
#[derive(Debug)]
struct Run {
    sequence: String,
    /// The last value generated in any session.
    last: Arc<AtomicI64>,
    /// The value before the first value of this run.
    before: i64,
    end: i64,
}

impl SequenceValues {
    /// Records that a sequence generated `count` values, the last of which is `end`.
    pub(crate) fn note(&self, sequence: &str, last: &Arc<AtomicI64>, (count, end): (i64, i64)) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = runs.iter().position(|run| run.sequence == sequence);
        let known = known.map(|position| runs.remove(position)).map(|run| (run.before, run.end));
        let before = match known {
            Some((before, known)) if known == end - count => before,
            _ => end - count,
        };
        runs.push(Run { sequence: sequence.to_owned(), last: Arc::clone(last), before, end });
    }

    /// Releases the values that were generated for a statement that did not run. If the sequence
    /// has generated further values since, the values are not released and leave a gap.
    pub fn release(&self) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Run { last, before, end, .. } in runs.drain(..) {
            let _ = last.compare_exchange(end, before, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// The generated values, which the session records.
    #[must_use]
    pub fn list(&self) -> Vec<SequenceValue> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = |run: &Run| SequenceValue {
            sequence: run.sequence.clone(),
            value: run.end.to_string(),
        };
        runs.iter().map(number).collect()
    }
}
