//! Why a BPF program cannot be used, in words that say what can be done.

use std::ffi::c_int;
use std::io;

use super::ring::CHUNK_BYTES;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    #[error("cannot {step} the BPF program: {source}; {remedy}")]
    Step { step: &'static str, source: io::Error, remedy: &'static str },
    #[error("the ring cannot have {0} bytes: a power of two from {CHUNK_BYTES} on is needed")]
    RingSize(u32),
}

impl BpfError {
    /// What the system said of a step.
    pub fn new(step: &'static str, source: io::Error) -> Self {
        let remedy = match source.kind() {
            io::ErrorKind::PermissionDenied => "run as root (CAP_BPF and CAP_PERFMON are needed)",
            io::ErrorKind::NotFound => "the kernel needs BTF: /sys/kernel/btf/vmlinux",
            _ => "libbpf's messages above say what the kernel refused",
        };
        BpfError::Step { step, source, remedy }
    }

    /// By errno, as libbpf leaves it where it returns a null pointer.
    pub fn last(step: &'static str) -> Self {
        Self::new(step, io::Error::last_os_error())
    }
}

/// What libbpf returns: 0 or more, or a negative error number.
pub fn check(step: &'static str, result: c_int) -> Result<(), BpfError> {
    if result >= 0 {
        return Ok(());
    }
    Err(BpfError::new(step, io::Error::from_raw_os_error(-result)))
}
