//! `crash-sim [--states N] [--seed S] [--one]`: runs the real storage through N crash states.
//! `crash-sim --planted [--states N] [--seed S]`: searches N states for each injected fault.
//!
//! Prints the seed, the number of states, each failure with the arguments that reproduce it
//! (`--seed S --one`), and `N passed, N failed`. The exit code is 1 on any failure.

#![allow(clippy::print_stdout, reason = "command-line tools print to standard output")]

use std::process::ExitCode;

use tidemark_testkit::command::Command;
use tidemark_testkit::crash::{EQUIVALENT, MUTANTS, Report, run, run_one};

fn main() -> ExitCode {
    let command = Command::start("crash-sim");
    if command.flag("--planted") { planted(&command) } else { states(&command) }
}

fn states(command: &Command) -> ExitCode {
    let report = if command.flag("--one") {
        let mut report = Report::default();
        run_one(command.seed, None, &mut report);
        report
    } else {
        run(command.seed, command.number("--states").unwrap_or(20_000), None, false)
    };
    let [synced, flushed, unsynced] = report.modes;
    println!("workloads: {synced} sync, {flushed} async, {unsynced} nosync");
    println!(
        "states: {}, of which {} after a crash during recovery, {} after a kill and a power loss, \
         {} restored from a copy; {} damaged partitions abandoned",
        report.states(),
        report.double_crashes,
        report.kills,
        report.restores,
        report.given_up
    );
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    command.finish(report.passed, &failures)
}

/// Reports a failure for each injected fault that no state reveals, because that fault remained
/// undetected.
fn planted(command: &Command) -> ExitCode {
    let states = command.number("--states").unwrap_or(5_000);
    let mut unseen = Vec::new();
    for mutant in MUTANTS {
        let report = run(command.seed, states, Some(mutant), true);
        match report.failures.first() {
            Some(failure) => println!("{mutant:?}: after {} states, {failure}", report.states()),
            None => unseen.push(format!("{mutant:?}: not detected in {} states", report.states())),
        }
    }
    for (mutant, reason) in EQUIVALENT {
        println!("{mutant:?}: not searched, {reason}");
    }
    command.finish((MUTANTS.len() - unseen.len()) as u64, &unseen)
}
