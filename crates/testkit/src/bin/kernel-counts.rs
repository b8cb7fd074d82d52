//! `kernel-counts`: two passes of each kernel, the second inside of [`counted`], for a program
//! that counts instructions: `scripts/kernel-counts.mjs`. Prints each entry's rows and name.

#![allow(clippy::print_stdout, reason = "a command-line tool prints")]

use std::hint::black_box;

use tidemark_testkit::kernels::entries;

fn main() {
    for mut entry in entries() {
        // What happens only once, as the choice of instructions for this processor.
        (entry.pass)();
        counted(&mut *entry.pass);
        println!("{}\t{}", entry.rows, entry.name);
    }
}

/// Instructions are counted from its beginning to its end.
#[inline(never)]
fn counted(pass: &mut dyn FnMut()) {
    pass();
    // Nothing may follow by a jump instead of a call: the end of the function is its return.
    black_box(());
}
