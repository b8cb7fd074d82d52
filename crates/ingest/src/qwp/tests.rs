//! Hand-written messages with their results, including many malformed messages.

mod cases;
mod columns;
mod fuzz;
mod harness;
