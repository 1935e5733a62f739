//! Recorded system calls, as scripts and as recordings. Reads them; produces the plan of a replay:
//! each thread's calls in order, with files of the replay instead of paths and descriptors, what
//! each of them waits for, and the files that must be there before the first.
//!
//! plan -> order; call -> mobigen; step, mapped_paths -> contents -> resolve -> from_script;
//! recorded; read

pub mod call;
mod contents;
mod from_script;
mod mapped_paths;
pub mod mobigen;
mod order;
pub mod plan;
pub mod read;
pub mod recorded;
pub mod resolve;
pub mod step;
