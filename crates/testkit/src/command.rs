//! Command-line handling shared by the harnesses: named numbers, a seed and the closing line.

#![allow(clippy::print_stdout, reason = "command-line tools print to standard output")]

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A harness's arguments and start time.
#[derive(Debug)]
pub struct Command {
    arguments: Vec<String>,
    start: Instant,
    /// Seed for all randomness.
    pub seed: u64,
}

impl Command {
    /// Reads the process arguments and prints the seed, which comes from `--seed` or from the
    /// clock.
    #[must_use]
    pub fn start(name: &str) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs());
        let mut command = Self { arguments, start: Instant::now(), seed: now };
        command.seed = command.number("--seed").unwrap_or(now);
        println!("{name}: seed {}", command.seed);
        command
    }

    /// Returns the number that follows the argument `name`.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        let at = self.arguments.iter().position(|argument| argument == name)?;
        self.arguments.get(at + 1)?.parse().ok()
    }

    /// Whether the argument `name` is present.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument == name)
    }

    /// Prints the first failures, the elapsed time and the closing line. A run without attempts
    /// counts as failed.
    #[must_use]
    pub fn finish(&self, passed: u64, failures: &[String]) -> ExitCode {
        for failure in failures.iter().take(20) {
            println!("{failure}");
        }
        println!("time: {:.1} s", self.start.elapsed().as_secs_f64());
        println!("{passed} passed, {} failed", failures.len());
        let good = failures.is_empty() && passed > 0;
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
