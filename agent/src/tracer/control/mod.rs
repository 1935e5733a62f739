//! Runs a tracing: steers the BPF program, and turns its records into tables.

mod error;
mod modules;
mod tracer;
mod unseen;

pub use tracer::Tracer;
