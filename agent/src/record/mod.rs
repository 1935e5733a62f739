//! What is asked of the agent, as JSON from the engineer's machine: jobs of a guest, live cases,
//! their fields, and the words these may have.

mod background;
mod case;
mod job;
mod live_case;
mod stack;
mod switch;
mod words;
mod workload;

pub use crate::filesystem::Filesystem;
pub use background::Background;
pub use case::{Allocator, Case, Completion, DeviceModel};
pub use job::{Afterwards, Job, PowerCuts, SelfTest};
pub use live_case::{LiveCase, LiveSettings};
pub use stack::Stack;
pub use switch::Switch;
pub(crate) use words::words;
pub use workload::WorkloadFields;

#[cfg(test)]
pub(crate) use case::tests::small_case;
