//! What is to be recorded, and how.

use super::contents::Data;

/// What is recorded.
pub enum RecordedProgram<'a> {
    Command(&'a [String]),
    Process(i32),
}

/// How it is recorded.
#[derive(Debug, Clone, Copy)]
pub struct RecordingOptions {
    pub by: By,
    pub data: Data,
    /// Of the ring that the kernel's program fills.
    pub ring_bytes: u32,
}

/// How calls are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// By eBPF where that is allowed, else by ptrace
    Auto,
    Ebpf,
    Ptrace,
}
