//! Workloads on this machine: in a private directory, in real time, without a guest, a tracer or
//! root.
//!
//! directory, supervise (nothing is left behind) -> run -> place, observation -> the tables

pub mod directory;
mod observation;
mod place;
pub mod run;
mod space;
pub mod supervise;
