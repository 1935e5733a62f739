//! Block I/O of disks, with an owner for every byte: makes rows of requests, page_runs and files of
//! what the BPF program of kernel/block sends.
//!
//! Each room uses only those before it: program (the BPF program and its memory) -> records
//! (decodes what it sends) -> files (names and kinds) -> classify (a page run's block type) ->
//! surroundings (queries to the machine: mounts, tables on a device) -> causes (which call is
//! served, and why) -> requests (joins bios to requests) -> assembly (makes tables of all that) ->
//! control (runs everything).

mod assembly;
mod causes;
mod classify;
mod control;
mod files;
mod program;
mod records;
mod requests;
mod surroundings;

#[cfg(test)]
pub use assembly::Total;
pub use assembly::{Capture, FinishedRows, Totals};
pub use control::Tracer;
pub use files::file_kind::FileKinds;
pub use files::{FileKey, Files};
#[cfg(test)]
pub use records::RequestRecord;
pub use requests::completions::{Completions, Direction, Span};
pub use requests::gaps::Gaps;
