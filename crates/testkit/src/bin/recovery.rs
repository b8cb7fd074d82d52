//! `recovery [--mib N] [--partitions N]`: measures startup time when N MiB of log must be replayed,
//! and for a root with N partitions. It also checks that a damaged table does not affect other
//! tables.
//!
//! Prints the measurements and `N passed, N failed`. The exit code is 1 on any failure.

#![allow(clippy::print_stdout, reason = "command-line tools print to standard output")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tidemark_testkit::command::Command;
use tidemark_testkit::restart::{damaged_table, partitions, replay};
use tidemark_types::EngineResult;

/// Target: replay 1 GiB of log in 5 s.
const REPLAY_PER_GIB: Duration = Duration::from_secs(5);
/// Target: open a root with 10,000 partitions in 300 ms.
const OPEN_10_000: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let command = Command::start("recovery");
    let root = std::env::temp_dir().join(format!("tidemark-recovery-{}", std::process::id()));
    let outcome = measure(&command, &root);
    let _ = std::fs::remove_dir_all(&root);
    let (passed, failures) = outcome;
    command.finish(passed, &failures)
}

fn measure(command: &Command, root: &Path) -> (u64, Vec<String>) {
    let mib = command.number("--mib").unwrap_or(1_024);
    let count = command.number("--partitions").unwrap_or(10_000);
    let (mut passed, mut failures) = (0, Vec::new());
    let mut judge = |name: String, took: EngineResult<Duration>, limit: Duration| match took {
        Ok(took) if took <= limit => {
            println!("{name}: {took:.0?} of {limit:.0?}");
            passed += 1;
        }
        Ok(took) => failures.push(format!("{name}: {took:.0?}, {limit:.0?} allowed")),
        Err(error) => failures.push(format!("{name}: {}", error.message)),
    };
    let limit = REPLAY_PER_GIB.mul_f64(mib as f64 / 1_024.0).max(Duration::from_millis(500));
    judge(format!("{mib} MiB of log"), replay(&root.join("log"), mib << 20), limit);
    let limit = OPEN_10_000.mul_f64((count as f64 / 10_000.0).max(0.5));
    let took = partitions(&root.join("wide"), count as usize);
    judge(format!("{count} partitions"), took, limit);
    match damaged_table(&root.join("damaged")) {
        Ok(tried) => {
            println!("{tried} injected damages to one table");
            passed += tried;
        }
        Err(error) => failures.push(format!("a damaged table: {}", error.message)),
    }
    (passed, failures)
}
