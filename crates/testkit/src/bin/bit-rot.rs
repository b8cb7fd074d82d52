//! `bit-rot [--flips N] [--seed S]`: flips one bit at each of N random offsets in a closed root.
//! Each flip must either be detected or affect a byte that is never read. No query result may
//! change.
//!
//! Prints the seed, the number of flips, each failure, and `N passed, N failed`. The exit code is 1
//! on any failure.

#![allow(clippy::print_stdout, reason = "command-line tools print to standard output")]

use std::process::ExitCode;

use tidemark_testkit::bit_rot::run;
use tidemark_testkit::command::Command;

fn main() -> ExitCode {
    let command = Command::start("bit-rot");
    let flips = command.number("--flips").unwrap_or(5_000);
    // A panic counts as a failure of that flip; the failure report includes the panic message.
    std::panic::set_hook(Box::new(|_| ()));
    let report = match run(command.seed, flips) {
        Ok(report) => report,
        Err(error) => return command.finish(0, &[format!("cannot prepare the root: {error}")]),
    };
    println!("root of {} bytes, {} flips detected", report.bytes, report.detected);
    for (kind, count) in &report.dead {
        println!("{count} flips in bytes that are never read: {kind}");
    }
    let passed = report.detected + report.dead.values().sum::<u64>();
    command.finish(passed, &report.failures)
}
