//! Inner loops whose instructions are counted. Each loop processes the same rows in every run.
//!
//! Add a new kernel to the list of its family, in `loops.rs` or `texts.rs`.
//! `scripts/kernel-counts.mjs` runs all kernels and compares the counts.

mod entry;
mod loops;
mod texts;

pub use entry::Entry;

/// Returns all counted kernels in list order.
#[must_use]
pub fn entries() -> Vec<Entry> {
    let data = entry::Data::new();
    let mut entries = loops::entries(&data);
    entries.extend(texts::entries(&data));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_entry_runs_and_has_a_unique_name() {
        let mut entries = entries();
        for entry in &mut entries {
            (entry.pass)();
        }
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        assert!(names.len() > 30 && names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
    }
}
