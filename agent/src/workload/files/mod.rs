//! What the workloads of plain files share: the stream of records, the file that holds them, how an
//! operation reaches the kernel, and the threads that run it.
//!
//! stream; engine: how an operation reaches the kernel; watched: runs for tests
//! remains: what a power cut left of the file; threads

pub mod engine;
pub mod remains;
pub mod stream;
pub mod threads;
#[cfg(test)]
pub mod watched;
