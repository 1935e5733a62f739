//! Loads a BPF program and reads the records that it sends by the ring of kernel/bpf. What the
//! records and the program's own memory mean is its user's matter. Only this room uses libbpf.
//!
//! Each file uses only those before it: symbols (addresses of kernel functions), source (what a
//! ring does for its reader), ring, kernel_ring (the kernel's own, where it is older), drain (bytes
//! read from the ring), error, object (what libbpf opens), map (a hash map), program (all of it).

mod drain;
mod error;
mod kernel_ring;
mod map;
mod object;
#[cfg(test)]
pub mod older;
mod program;
mod ring;
mod source;
mod symbols;

pub use error::BpfError;
pub use program::{LoadPlan, Objects, Program};
pub use symbols::{RDONLY_CAST, Symbols, SymbolsError};
