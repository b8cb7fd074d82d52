//! The reader beside a plain one, and bytes that clients were seen to send.

mod cases;
mod casts;
mod fuzz;
mod harness;
