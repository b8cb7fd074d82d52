//! How one job fares: when it may begin, how it ended, and how long it waits then.

use std::time::{Duration, Instant};

use tidemark_types::EngineError;

use super::{JobReport, JobState};
use crate::runtime::registry::now_micros;

/// A job that failed is tried again after a second, then after twice as long each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_mins(5);

/// What is known of a job while the database is open.
#[derive(Debug, Default)]
pub(crate) struct JobProgress {
    /// Since when it runs.
    running_since: Option<Instant>,
    /// Not before then.
    rest_until: Option<Instant>,
    /// When it will have rested as long as it owes.
    owes_until: Option<Instant>,
    failures: u32,
    last_error: Option<String>,
    last_began_micros: Option<i64>,
    last_took: Duration,
    total: Duration,
    runs: u64,
    /// Whether a client paused it.
    pub(crate) is_paused: bool,
}

impl JobProgress {
    /// Whether it neither runs nor rests.
    pub(crate) fn may_begin(&mut self) -> bool {
        self.rest_until = self.rest_until.filter(|until| *until > Instant::now());
        !self.is_paused && self.running_since.is_none() && self.rest_until.is_none()
    }

    /// Whether it waited for a time that has come.
    pub(crate) fn has_rested(&self) -> bool {
        self.rest_until.is_some_and(|until| until <= Instant::now())
    }

    /// It waits so long, from now.
    pub(crate) fn rest(&mut self, time: Duration) {
        self.rest_until = Some(Instant::now() + time);
    }

    /// It owes so long a rest, beside what it owes already. As long as all of that is no more than
    /// `credit` it may begin at once, otherwise when it is.
    pub(crate) fn owe(&mut self, rest: Duration, credit: Duration) {
        let now = Instant::now();
        let until = self.owes_until.map_or(now, |until| until.max(now)) + rest;
        self.owes_until = Some(until);
        self.rest(until.saturating_duration_since(now).saturating_sub(credit));
    }

    /// It waits no longer, not even for what failed: what it needs is another one now.
    pub(crate) fn wake(&mut self) {
        self.rest_until = None;
    }

    pub(crate) fn begin(&mut self) {
        self.running_since = Some(Instant::now());
        self.last_began_micros = Some(now_micros());
    }

    /// For how long it has been running.
    pub(crate) fn running_for(&self) -> Option<Duration> {
        self.running_since.map(|since| since.elapsed())
    }

    /// It ended, however; answers how long it took.
    pub(crate) fn end(&mut self) -> Duration {
        let took = self.running_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.last_took = took;
        self.total += took;
        self.runs += 1;
        took
    }

    /// It did well.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.last_error = None;
    }

    /// It failed, and waits the longer the more often it did.
    pub(crate) fn failed(&mut self, error: EngineError) {
        let wait = FIRST_RETRY * 2_u32.saturating_pow(self.failures.min(16));
        self.failures += 1;
        self.last_error = Some(error.message);
        self.rest(wait.min(LAST_RETRY));
    }

    /// Why it failed, where it did not do well since.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// What `jobs()` tells of it.
    pub(crate) fn report(&self, kind: &'static str, name: String) -> JobReport {
        let rests = self.rest_until.and_then(|at| at.checked_duration_since(Instant::now()));
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
    fn short_runs_follow_each_other_until_they_owe_too_much() {
        let (rest, credit) = (Duration::from_secs(400), Duration::from_secs(1_000));
        let mut job = JobProgress::default();
        for _ in 0..2 {
            job.owe(rest, credit);
            assert!(job.may_begin());
        }
        for owed in [200, 600] {
            job.owe(rest, credit);
            let wait = job.rest_until.unwrap() - Instant::now();
            assert!(!job.may_begin() && wait > Duration::from_secs(owed - 60));
            assert!(wait <= Duration::from_secs(owed));
        }
        job.owes_until = Some(Instant::now());
        job.owe(rest, credit);
        assert!(job.may_begin(), "what was owed is forgotten when it has rested");
    }

    #[test]
    fn it_waits_longer_each_time_it_fails() {
        let mut job = JobProgress::default();
        for times in [1, 2, 4, 8] {
            assert!(job.may_begin());
            job.begin();
            assert!(!job.may_begin());
            job.end();
            job.failed(EngineError::internal("no"));
            assert!(!job.may_begin());
            let wait = job.rest_until.take().unwrap() - Instant::now();
            assert!(wait > FIRST_RETRY * times / 2 && wait <= FIRST_RETRY * times);
        }
        assert_eq!(job.report("refresh", String::new()).state, JobState::Failing);
        job.rest(Duration::from_mins(1));
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
