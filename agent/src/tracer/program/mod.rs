//! The BPF program of kernel/block: loads it, steers it by the memory it shares, and reads what it
//! counts.
//!
//! Each file uses only those before it: functions (of the kernel, that identify a bio), control
//! (the shared memory), attribution (the program).

mod attribution;
mod control;
pub mod functions;

pub use attribution::{Attribution, AttributionError};
pub use control::TracerState;
