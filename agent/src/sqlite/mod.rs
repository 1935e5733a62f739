//! How SQLite is driven by whichever room opens a database: which call syncs, whether F2FS writes
//! atomically, where random numbers come from, and what happens while a database is locked.

pub mod batch_atomic_write;
pub mod busy;
pub mod randomness;
pub mod sync_call;
