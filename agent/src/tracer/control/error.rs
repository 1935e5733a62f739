//! Why a disk cannot be traced.

use crate::bpf::{BpfError, SymbolsError};
use crate::tracer::program::AttributionError;
use crate::tracer::records::decode::DecodeError;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error(transparent)]
    Attribution(#[from] AttributionError),
    #[error(transparent)]
    Symbols(#[from] SymbolsError),
    #[error("the BPF program sent a damaged record: {0}")]
    Decode(#[from] DecodeError),
    #[error("{path}: {source}; is /sys mounted, and {path} the number of a disk?")]
    Disk { path: String, source: std::io::Error },
}
