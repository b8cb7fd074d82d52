//! `kernel-counts`: runs two passes of each kernel, the second inside [`counted`], for the
//! instruction counter `scripts/kernel-counts.mjs`. Prints each entry's row count and name.

#![allow(clippy::print_stdout, reason = "command-line tools print to standard output")]

use std::hint::black_box;

use tidemark_testkit::kernels::entries;

fn main() {
    for mut entry in entries() {
        // The first pass performs one-time work, such as CPU feature detection.
        (entry.pass)();
        counted(&mut *entry.pass);
        println!("{}\t{}", entry.rows, entry.name);
    }
}

/// The instruction counter measures from the entry to the exit of this function.
#[inline(never)]
fn counted(pass: &mut dyn FnMut()) {
    pass();
    // Prevents a tail call, so that the function ends with its own return.
    black_box(());
}
