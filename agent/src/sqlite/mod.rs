//! SQLite as every room of the agent drives it: which call syncs, whether F2FS writes atomically,
//! where random numbers come from, and what happens while a database is locked.
//!
//! system_calls -> batch_atomic_write, written; files; sound, contents; commit_time
//! lacks -> error, which all use
//! words -> pragmas -> databases (with wal) -> options, allocate

pub mod allocate;
pub mod batch_atomic_write;
pub mod busy;
pub mod commit_time;
pub mod contents;
pub mod databases;
pub mod error;
pub mod files;
mod lacks;
pub mod options;
pub mod pragmas;
pub mod randomness;
pub mod sound;
pub mod sync_call;
mod system_calls;
pub mod wal;
pub mod words;
pub mod written;
