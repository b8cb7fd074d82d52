//! Development only: the crash harness, and the kernels whose instructions are counted.
//!
//! [`crash`] runs the real storage on a simulated disk, cuts the power at any operation, rebuilds
//! every kind of disk that may be left, and compares what recovery finds with what was
//! acknowledged. [`damage`] spoils one file of a root instead, and looks at what is isolated.

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
