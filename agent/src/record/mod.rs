//! What is asked of the agent, as JSON from the engineer's machine: jobs of a guest, live cases,
//! their fields, and the words these may have.

mod case;
mod job;
mod words;

pub use crate::filesystem::Filesystem;
#[cfg(test)]
pub(crate) use case::tests::small_case;
pub use case::{Allocator, Case, Completion, DeviceModel, LiveCase, LiveSettings, WorkloadFields};
pub use job::{Afterwards, Job, PowerCuts, SelfTest};
pub use words::Background;
pub(crate) use words::words;
pub use words::{Stack, Switch};
