//! `faults [--stride N] [--seed S] [--only K]`: fails every N-th file system call, in every commit
//! mode and with every error. N defaults to 1. `--only K` fails only call K.
//!
//! Prints the seed, the number of runs, each failure with the arguments that reproduce it, and `N
//! passed, N failed`. The exit code is 1 on any failure.

#![allow(clippy::print_stdout, reason = "command-line tools print to standard output")]

use std::process::ExitCode;

use tidemark_testkit::command::Command;
use tidemark_testkit::faults::run;

fn main() -> ExitCode {
    let command = Command::start("faults");
    // A panic counts as a failure of that run; the failure report includes the panic message.
    std::panic::set_hook(Box::new(|_| ()));
    let stride = command.number("--stride").unwrap_or(1);
    let report = run(command.seed, stride, command.number("--only"));
    println!("{} calls in the script, 3 modes, 7 errors, transient and persistent", report.calls);
    command.finish(report.passed, &report.failures)
}
