//! Loads a BPF program and reads the records that it sends by the ring of kernel/bpf. What the
//! records and the program's own memory mean is its user's matter. Only this room uses libbpf.
//!
//! Each file uses only those before it: symbols (addresses of kernel functions), ring (and the
//! thread that empties it), kernel_ring (the kernel's own, where it is older), object (what libbpf
//! opens, and its maps), program (all of it).

mod kernel_ring;
mod object;
mod program;
mod ring;
mod symbols;

pub use object::BpfError;
pub use program::{LoadPlan, Objects, Program};
pub use ring::split_records;
pub use symbols::{PREEMPTIBLE, RDONLY_CAST, Symbols, SymbolsError};
