//! A damaged file must affect no more than necessary.

use tidemark_testkit::damage::run;

#[test]
fn random_damage_is_repaired_or_affects_only_one_table() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let states = std::env::var("STATES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_500);
    let report = run(seed, states);
    for failure in report.failures.iter().take(20) {
        println!("{failure}");
    }
    println!(
        "{} passed, {} failed; {} repaired, {} with a damaged table",
        report.passed,
        report.failures.len(),
        report.repaired,
        report.isolated
    );
    assert!(report.failures.is_empty());
    assert!(report.repaired * 20 > report.passed, "too few roots were repaired");
    assert!(report.isolated * 20 > report.passed, "too few roots had a damaged table");
}
