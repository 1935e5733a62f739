//! Block I/O of disks, with an owner for every byte: makes rows of requests, page_runs and files of
//! what the BPF program of kernel/block sends.
//!
//! Each room uses only those before it: program (the BPF program and its memory) -> records
//! (decodes what it sends) -> files (names and kinds) -> classify (a page run's block type) ->
//! surroundings (queries to the machine: mounts, tables on a device) -> causes (which call is
//! served, and why) -> requests (joins bios to requests) -> assembly (makes tables of all that) ->
//! control (runs everything) -> live_trace (a trace of a running machine, from begin to end).

mod assembly;
mod causes;
mod classify;
mod control;
mod files;
pub mod live_trace;
mod program;
mod records;
mod requests;
mod surroundings;

pub use assembly::{Capture, FinishedRows};
pub use control::Tracer;
pub use files::file_kind::FileKinds;
pub use files::{FileKey, Files};
