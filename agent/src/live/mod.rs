//! Workloads on this machine: in a private directory, in real time, without a guest or a tracer,
//! and without root but for raw NAND.
//!
//! nand; directory, supervise (nothing is left behind) -> run -> location, progress -> the tables

pub mod directory;
mod location;
pub mod nand;
mod progress;
pub mod run;
mod space;
pub mod supervise;
