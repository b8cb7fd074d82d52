//! `crash-sim [--states N] [--seed S] [--one]`: crash states through the real storage.
//!
//! Prints the seed, what was tried, each failure with the seed that makes it again (`--seed S
//! --one`), and `N passed, N failed`. Exit code 1 when a state failed.

#![allow(clippy::print_stdout, reason = "a command-line tool prints")]

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tidemark_testkit::crash::{Report, run, run_one};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs());
    let seed = value("--seed").unwrap_or(now);
    let states = value("--states").unwrap_or(20_000);
    println!("crash-sim: seed {seed}");
    let start = Instant::now();
    let report = if arguments.iter().any(|argument| argument == "--one") {
        let mut report = Report::default();
        run_one(seed, None, &mut report);
        report
    } else {
        run(seed, states, None, false)
    };
    for failure in report.failures.iter().take(20) {
        println!("{failure}");
    }
    let [synced, flushed, unsynced] = report.modes;
    println!("workloads: {synced} sync, {flushed} async, {unsynced} nosync");
    println!(
        "states: {}, of which {} after a crash during recovery, {} after a kill and a power loss",
        report.states(),
        report.double_crashes,
        report.kills
    );
    println!("time: {:.1} s", start.elapsed().as_secs_f64());
    println!("{} passed, {} failed", report.passed, report.failures.len());
    if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
