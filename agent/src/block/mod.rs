//! Block I/O of disks, with an owner for every byte: loads the BPF program of kernel/block,
//! collects its records, and makes the rows of requests, page_runs and files of them.
//!
//! Each room builds on those before it: program (loads it, empties its ring) -> records (what it
//! sends) -> files (their names and kinds) -> classify (a page run's block type) -> surroundings
//! (what the machine is asked: mounts, tables on a device) -> causes (the call that is served, and
//! why) -> requests (bios joined to requests) -> totals (sums, of bios without records too).
//! capture brings them together, and tracer runs it all.

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
