//! SQLite as every room of the agent drives it: which call syncs, whether F2FS writes atomically,
//! where random numbers come from, and what happens while a database is locked.
//!
//! system_calls -> batch_atomic_write, written; files; sound, contents; commit_time
//! lacks -> error, which all use
//! words -> pragmas -> databases (with wal) -> options, allocate

pub mod contents;
pub mod databases;
pub mod error;
pub mod options;
pub mod pragmas;
pub mod sync_call;
pub mod vfs;
pub mod wal;
