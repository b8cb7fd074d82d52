//! The storage keeps its promises through crashes, and the harness is not blind.

use tidemark_testkit::crash::{MUTANTS, run};

fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

#[test]
fn no_state_breaks_a_promise() {
    let report = run(seed(), 2_000, None, false);
    for failure in &report.failures {
        println!("{failure}");
    }
    assert!(report.failures.is_empty());
    assert!(report.double_crashes * 10 >= report.states());
    assert!(report.modes.iter().all(|count| *count > 0));
}

#[test]
fn every_planted_fault_is_seen() {
    let mut unseen = Vec::new();
    for mutant in MUTANTS {
        let report = run(seed(), 5_000, Some(mutant), true);
        println!("{mutant:?}: {} states", report.states());
        if report.failures.is_empty() {
            unseen.push(mutant);
        }
    }
    assert!(unseen.is_empty(), "not seen: {unseen:?}");
}
