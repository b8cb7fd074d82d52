//! Compares the reader with a simple reference parser, and replays bytes captured from clients.

mod cases;
mod casts;
mod fuzz;
mod harness;
