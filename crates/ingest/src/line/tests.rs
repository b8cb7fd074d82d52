//! Compares the reader with a simple one, and replays bytes captured from clients.

mod cases;
mod casts;
mod fuzz;
mod harness;
