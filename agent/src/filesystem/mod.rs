//! Filesystems on the device: runs their own mkfs and checkers, mounts them, reads back their real
//! settings.
//!
//! tool -> make, check; mount

pub mod check;
pub mod make;
pub mod mount;
mod tool;

use std::path::PathBuf;

use crate::record::Filesystem;

/// What can go wrong with a filesystem.
#[derive(Debug, thiserror::Error)]
pub enum FilesystemError {
    #[error("cannot start {program}: {source}; the image lacks it")]
    Start { program: String, source: std::io::Error },
    #[error("{program} {arguments} failed ({status}): {output}")]
    Make { program: String, arguments: String, status: std::process::ExitStatus, output: String },
    #[error("{kind} has no journal that could be on another device")]
    NoJournalDevice { kind: Filesystem },
    #[error("cannot mount {device} on {directory} as {kind} with options '{options}': {source}")]
    Mount {
        device: PathBuf,
        directory: PathBuf,
        kind: Filesystem,
        options: String,
        source: rustix::io::Errno,
    },
    #[error("cannot sync or unmount {directory}: {source}")]
    Finish { directory: PathBuf, source: std::io::Error },
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
}
