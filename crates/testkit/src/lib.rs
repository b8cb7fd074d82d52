//! Test tools for development: the crash harness, and the kernels whose instructions are counted.
//!
//! [`crash`] runs the real storage on a simulated disk, cuts the power at any operation, and
//! rebuilds every disk state that may result. It compares the recovered state with the acknowledged
//! state. [`damage`] instead damages one file of a root, and checks that the damage affects only
//! one table.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bit_rot;
mod changes;
pub mod command;
mod copies;
pub mod crash;
pub mod damage;
pub mod faults;
mod faulty;
pub mod kernels;
mod model;
pub mod restart;
mod workload;
