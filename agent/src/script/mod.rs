//! Recorded system calls. Reads scripts. Produces the calls of each thread of a script in order,
//! with files instead of paths and descriptors, and the contents that the files need before the
//! first call.
//!
//! call -> mobigen; step, mapped_paths -> contents -> resolve -> workload/replay

pub mod call;
mod contents;
mod mapped_paths;
pub mod mobigen;
pub mod resolve;
pub mod step;
