//! Block I/O of disks, with an owner for every byte: loads the BPF program of kernel/block,
//! collects its records, and makes the rows of requests, page_runs and files of them.
//!
//! tracer -> decode -> classify -> (files, causes, pieces -> requests -> drafts) -> capture

mod calls;
mod capture;
mod causes;
mod changes;
mod classify;
mod decode;
mod drafts;
mod fields;
mod file_kind;
mod files;
mod flush_askers;
#[cfg(test)]
mod flush_machine;
mod gaps;
mod glob;
mod kernel;
mod layout;
mod mounts;
mod names;
mod pieces;
mod program;
mod queued_bio;
mod record;
mod requests;
mod ring;
mod symbols;
mod sync_calls;
mod tracer;
mod uring_names;

pub use capture::{Capture, Finished};
pub use file_kind::FileKinds;
pub use files::Files;
pub use gaps::Gaps;
pub use tracer::Tracer;
