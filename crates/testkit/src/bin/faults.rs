//! `faults [--stride N] [--seed S] [--only K]`: every N-th call of the file system fails, in
//! every commit mode, with every error; N is 1 unless given. `--only K` fails call K alone.
//!
//! Prints the seed, what was tried, each failure and how to make it again, and
//! `N passed, N failed`. Exit code 1 when something failed.

#![allow(clippy::print_stdout, reason = "a command-line tool prints")]

use std::process::ExitCode;

use tidemark_testkit::command::Command;
use tidemark_testkit::faults::run;

fn main() -> ExitCode {
    let command = Command::start("faults");
    // A panic is a failure of its run, reported there.
    std::panic::set_hook(Box::new(|_| ()));
    let stride = command.number("--stride").unwrap_or(1);
    let report = run(command.seed, stride, command.number("--only"));
    println!("calls of the script: {}, 3 modes, 7 errors, once and lasting", report.calls);
    command.finish(report.passed, &report.failures)
}
