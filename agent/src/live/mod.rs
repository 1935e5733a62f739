//! Workloads on this machine: in a private directory, in real time, without a guest or a tracer,
//! and without root but for raw NAND.
//!
//! nand; directory (nothing is left behind) -> run -> the tables

pub mod directory;
pub mod nand;
pub mod run;
