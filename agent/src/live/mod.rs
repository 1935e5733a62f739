//! Workloads on this machine: in a private directory, in real time, without a guest, a tracer or
//! root.
//!
//! directory, supervise (nothing is left behind) -> run -> location, progress -> the tables

pub mod directory;
mod location;
mod progress;
pub mod run;
mod space;
pub mod supervise;
