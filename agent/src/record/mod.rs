//! What is asked of the agent, as JSON from the engineer's machine: jobs of a guest, live cases,
//! their fields, and the words these may have.

mod background;
mod case;
pub mod file;
mod filesystem;
mod job;
mod live_case;
pub mod replay;
pub mod sqlite;
mod stack;
mod words;

pub use background::Background;
#[cfg(test)]
pub(crate) use case::tests::small_case;
pub use case::{Case, Completion, DeviceModel, WorkloadSettings};
pub use file::{
    Access, Engine, FileMetadataSettings, FileReadSettings, FileWorkload, FileWriteSettings,
    MetadataOperation, ReadMode, SyncMode,
};
pub use filesystem::Filesystem;
pub use job::{Job, PowerCuts, SelfTest};
pub use live_case::LiveCase;
pub use replay::{ReplaySettings, ReplayWorkload};
pub use sqlite::{SqliteSettings, SqliteWorkload, Switch};
pub use stack::Stack;
pub(crate) use words::words;
