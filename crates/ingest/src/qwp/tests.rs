//! Hand-written messages and their results, and many malformed ones.

mod cases;
mod columns;
mod fuzz;
mod harness;
