//! Numbers that columns of SERIAL and IDENTITY give the rows of one execution.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidemark_border::DrawnNumber;

/// The numbers of each sequence, in the order in which they were drawn.
#[derive(Debug, Clone, Default)]
pub struct Drawn(Arc<Mutex<Vec<Run>>>);

/// Numbers of one sequence that follow each other.
#[derive(Debug)]
struct Run {
    sequence: String,
    /// The last number that any session drew.
    last: Arc<AtomicI64>,
    /// The number before the first.
    before: i64,
    end: i64,
}

impl Drawn {
    /// A sequence gave `count` numbers, the last of them `end`.
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

    /// Nothing has these numbers: the statement was not run. Those behind which others were drawn
    /// already leave a gap.
    pub fn give_back(&self) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Run { last, before, end, .. } in runs.drain(..) {
            let _ = last.compare_exchange(end, before, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// What was drawn, for the session.
    #[must_use]
    pub fn list(&self) -> Vec<DrawnNumber> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number =
            |run: &Run| DrawnNumber { sequence: run.sequence.clone(), value: run.end.to_string() };
        runs.iter().map(number).collect()
    }
}
