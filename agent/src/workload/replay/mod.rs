//! Replays recorded system calls in a directory of our own, at their recorded times or as fast as
//! it can: reads a recording, plans the steps of each thread, makes them, and tells after a power
//! cut whether what the calls had synced is there.
//!
//! plan: lanes of steps -> recording: makes the plan of a recording's tables
//! memory, schedule -> stage: makes the steps; notes: how they went; sqlite_commits: those of the
//! recorded program; durability -> promises -> replay_remains: what must be there after a power cut
//! prepared: the replay as a workload

mod durability;
mod memory;
mod notes;
mod plan;
mod prepared;
mod promises;
mod recording;
mod replay_remains;
mod schedule;
mod sqlite_commits;
mod stage;

pub use prepared::KIND;
