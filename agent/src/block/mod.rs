//! Block I/O of disks, with an owner for every byte: loads the BPF program of kernel/block,
//! collects its records, and makes rows of requests, page_runs and files from them.
//!
//! Each room uses only those before it: program (loads the BPF program, empties its ring) ->
//! records (decodes what it sends) -> files (names and kinds) -> classify (a page run's block type)
//! -> surroundings (queries to the machine: mounts, tables on a device) -> causes (which call is
//! served, and why) -> requests (joins bios to requests) -> totals (sums, including bios without
//! records). capture combines them; tracer runs everything.

mod capture;
mod causes;
mod classify;
mod files;
mod program;
mod records;
mod requests;
mod surroundings;
mod totals;
mod tracer;

pub use capture::{Capture, Finished};
pub use files::Files;
pub use files::file_kind::FileKinds;
pub use requests::gaps::Gaps;
#[cfg(test)]
pub use totals::Total;
pub use totals::Totals;
pub use tracer::Tracer;
