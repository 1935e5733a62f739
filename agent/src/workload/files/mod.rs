//! What the workloads of plain files share: the stream of records, the file that holds them, how an
//! operation reaches the kernel, and the threads that run it.
//!
//! stream -> settings; left -> survived -> data_file; aligned_buffer, open_file, engine; threads

pub mod engine;
pub mod remains;
pub mod stream;
pub mod threads;
#[cfg(test)]
pub mod watched;
