//! Messages written by hand, what becomes of them, and many that are spoilt.

mod cases;
mod columns;
mod fuzz;
mod harness;
