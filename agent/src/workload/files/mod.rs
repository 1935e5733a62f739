//! What the workloads of plain files share: the stream of records, the file that holds them, how an
//! operation reaches the kernel, and the threads that run it.
//!
//! stream -> settings; left -> survived -> data_file; aligned_buffer, open_file, engine; threads

pub mod aligned_buffer;
pub mod data_file;
pub mod engine;
pub mod left;
pub mod open_file;
pub mod settings;
pub mod stream;
mod survived;
pub mod threads;
#[cfg(test)]
pub mod watched;
