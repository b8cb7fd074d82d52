//! Progress of one job: when it may start, how its last run ended, and how long it waits
//! afterwards.

use std::time::{Duration, Instant};

use tidemark_types::EngineError;

use super::{JobReport, JobState};
use crate::runtime::registry::now_micros;

/// Wait time after the first failure. Each consecutive failure doubles it.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_mins(5);

/// A job's state while the database is open.
#[derive(Debug, Default)]
pub(crate) struct JobProgress {
    /// Start time of the current run; `None` if the job is not running.
    running_since: Option<Instant>,
    /// Earliest next start.
    pause_until: Option<Instant>,
    /// When the job has finished the rest periods accumulated so far.
    owes_until: Option<Instant>,
    failures: u32,
    last_error: Option<String>,
    last_began_micros: Option<i64>,
    last_took: Duration,
    total: Duration,
    runs: u64,
    /// Whether a client paused the job.
    pub(crate) is_paused: bool,
}

impl JobProgress {
    /// Whether the job may start, that is, is neither running nor resting nor paused.
    pub(crate) fn may_begin(&mut self) -> bool {
        self.pause_until = self.pause_until.filter(|until| *until > Instant::now());
        !self.is_paused && self.running_since.is_none() && self.pause_until.is_none()
    }

    /// Whether the job has been resting and its rest period is now over.
    pub(crate) fn has_rested(&self) -> bool {
        self.pause_until.is_some_and(|until| until <= Instant::now())
    }

    /// Makes the job rest for the given duration.
    pub(crate) fn pause(&mut self, time: Duration) {
        self.pause_until = Some(Instant::now() + time);
    }

    /// Adds a rest period to the accumulated total. The job may start as soon as the remaining
    /// total is at most `credit`.
    pub(crate) fn add_pause(&mut self, rest: Duration, credit: Duration) {
        let now = Instant::now();
        let until = self.owes_until.map_or(now, |until| until.max(now)) + rest;
        self.owes_until = Some(until);
        self.pause(until.saturating_duration_since(now).saturating_sub(credit));
    }

    /// Ends the job's rest period because its input has changed. The wait after a failure ends as
    /// well.
    pub(crate) fn wake(&mut self) {
        self.pause_until = None;
    }

    pub(crate) fn begin(&mut self) {
        self.running_since = Some(Instant::now());
        self.last_began_micros = Some(now_micros());
    }

    /// Returns how long the current run has taken so far; `None` if the job is not running.
    pub(crate) fn running_for(&self) -> Option<Duration> {
        self.running_since.map(|since| since.elapsed())
    }

    /// Records the end of a successful or failed run; returns its duration.
    pub(crate) fn end(&mut self) -> Duration {
        let took = self.running_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.last_took = took;
        self.total += took;
        self.runs += 1;
        took
    }

    /// Records a success.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.last_error = None;
    }

    /// Records a failure. Each consecutive failure doubles the wait time.
    pub(crate) fn failed(&mut self, error: EngineError) {
        let wait = FIRST_RETRY * 2_u32.saturating_pow(self.failures.min(16));
        self.failures += 1;
        self.last_error = Some(error.message);
        self.pause(wait.min(LAST_RETRY));
    }

    /// Returns the last error, unless the job has since succeeded.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Returns the report for `jobs()`.
    pub(crate) fn report(&self, kind: &'static str, name: String) -> JobReport {
        let rests = self.pause_until.and_then(|at| at.checked_duration_since(Instant::now()));
        JobReport {
            kind,
            name,
            state: match self {
                Self { running_since: Some(_), .. } => JobState::Running,
                Self { is_paused: true, .. } => JobState::Paused,
                Self { failures: 1.., .. } => JobState::Failing,
                _ => JobState::Waiting,
            },
            last_error: self.last_error.clone(),
            last_began_micros: self.last_began_micros,
            last_took_micros: self.last_took.as_micros() as i64,
            total_micros: self.total.as_micros() as i64,
            next_micros: rests.map(|rests| now_micros() + rests.as_micros() as i64),
            runs: self.runs,
            failures: u64::from(self.failures),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_repeat_without_a_pause_until_the_credit_is_used_up() {
        let (rest, credit) = (Duration::from_secs(400), Duration::from_secs(1_000));
        let mut job = JobProgress::default();
        for _ in 0..2 {
            job.add_pause(rest, credit);
            assert!(job.may_begin());
        }
        for rewrites in [200, 600] {
            job.add_pause(rest, credit);
            let wait = job.pause_until.unwrap() - Instant::now();
            assert!(!job.may_begin() && wait > Duration::from_secs(rewrites - 60));
            assert!(wait <= Duration::from_secs(rewrites));
        }
        job.owes_until = Some(Instant::now());
        job.add_pause(rest, credit);
        assert!(job.may_begin(), "rest periods that are over no longer count");
    }

    #[test]
    fn each_failure_doubles_the_retry_delay() {
        let mut job = JobProgress::default();
        for times in [1, 2, 4, 8] {
            assert!(job.may_begin());
            job.begin();
            assert!(!job.may_begin());
            job.end();
            job.failed(EngineError::internal("no"));
            assert!(!job.may_begin());
            let wait = job.pause_until.take().unwrap() - Instant::now();
            assert!(wait > FIRST_RETRY * times / 2 && wait <= FIRST_RETRY * times);
        }
        assert_eq!(job.report("refresh", String::new()).state, JobState::Failing);
        job.pause(Duration::from_mins(1));
        assert!(!job.has_rested() && !job.may_begin());
        job.succeeded();
        job.wake();
        assert!(job.may_begin());
        job.is_paused = true;
        assert!(!job.may_begin());
        let report = job.report("refresh", String::new());
        assert_eq!((report.state, report.runs, report.failures), (JobState::Paused, 4, 0));
    }
}
