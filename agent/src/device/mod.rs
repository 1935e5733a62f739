//! The device under test and what the machine counts around it.

pub mod counters;

use std::path::PathBuf;

/// What can go wrong with a device or a counter.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
}
