//! The storage must keep its guarantees through crashes, and the harness must detect injected
//! faults.

use tidemark_testkit::crash::{MUTANTS, Report, run, run_one};

fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

#[test]
fn durability_guarantees_hold_in_every_crash_state() {
    let report = run(seed(), 2_000, None, false);
    for failure in &report.failures {
        println!("{failure}");
    }
    assert!(report.failures.is_empty());
    assert!(report.double_crashes * 10 >= report.states());
    assert!(report.modes.iter().all(|count| *count > 0));
}

/// A sync fails, and a later sync of the same file succeeds, possibly in the next process.
#[test]
fn writes_dropped_by_a_failed_sync_never_count_as_durable() {
    let mut report = Report::default();
    for seed in [794, 795, 1090, 1102, 1234] {
        run_one(seed, None, &mut report);
    }
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures, Vec::<String>::new());
}

#[test]
fn every_injected_fault_is_detected() {
    let mut unseen = Vec::new();
    for mutant in MUTANTS {
        let report = run(seed(), 5_000, Some(mutant), true);
        println!("{mutant:?}: {} states", report.states());
        if report.failures.is_empty() {
            unseen.push(mutant);
        }
    }
    assert!(unseen.is_empty(), "not detected: {unseen:?}");
}
