//! SQLite as every room of the agent drives it: which call syncs, whether F2FS writes atomically,
//! where random numbers come from, and what happens while a database is locked.
//!
//! error, which all use
//! vfs: what SQLite asks of the operating system; sync_call: the call behind its syncs
//! pragmas -> databases (with wal) -> options; contents: what a closed one holds, and
//! whether an app can go on with it

pub mod contents;
pub mod databases;
pub mod error;
pub mod options;
pub mod pragmas;
pub mod sync_call;
pub mod vfs;
pub mod wal;
