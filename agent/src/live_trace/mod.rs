//! A live trace of a running machine, from begin to end.
//!
//! Each file uses only those before it: trace_end (what ends it), pace (when it reads and writes,
//! and its memory), output (the tables), writers (of files), open_files, commits (of programs),
//! disk_witness (what the disks say themselves), summary (what is printed), session (all together).

mod commits;
mod disk_witness;
mod open_files;
mod output;
mod pace;
mod session;
mod summary;
mod trace_end;
mod writers;

pub use disk_witness::Lives;
pub use session::LiveTrace;
pub use trace_end::{End, TraceEnd};
