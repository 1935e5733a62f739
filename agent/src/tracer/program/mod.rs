//! The BPF program of kernel/block: loads it, steers it by the memory it shares, and reads what it
//! counts.
//!
//! Each file uses only those before it: functions (of the kernel, that identify a bio), linear_map
//! (where arm64 has its pages), control (the shared memory), attribution (the program).

mod attribution;
mod control;
pub mod functions;
mod linear_map;

pub use attribution::{Attribution, AttributionError};
