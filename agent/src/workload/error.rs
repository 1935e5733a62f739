//! Errors of a workload, and whose fault each is.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::errors::WrongUse;
use crate::sqlite::error::SqliteError;

/// A failure of a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error(transparent)]
    Sqlite(#[from] SqliteError),
    #[error("{step} {path}: {source}")]
    File { step: String, path: PathBuf, source: std::io::Error },
    #[error("{path} {what}")]
    Contents { path: PathBuf, what: String },
    /// The user's check could not be run.
    #[error("running the check: {0}")]
    Check(String),
    /// The case asks for something impossible.
    #[error("{0}")]
    WrongUse(#[source] WrongUse),
}

impl WorkloadError {
    /// The case asks for something impossible: says what, and the remedy.
    pub fn refusal(what: impl Into<String>) -> Self {
        Self::WrongUse(WrongUse(what.into()))
    }

    /// Return whether the filesystem was full, or the user's quota used up.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.is_disk_full(),
            Self::File { source, .. } => {
                matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
            }
            _ => false,
        }
    }

    /// Return what a failure to read back what was left is, in a word or two.
    pub fn kind_words(&self) -> &'static str {
        match self {
            Self::Sqlite(error) => error.failure_name(),
            Self::File { .. } if self.is_disk_full() => "full filesystem",
            Self::File { source, .. } => match source.kind() {
                ErrorKind::NotFound => "missing file",
                ErrorKind::ReadOnlyFilesystem => "read-only filesystem",
                _ => "input or output error",
            },
            Self::Contents { .. } => "wrong contents",
            Self::Check(_) | Self::WrongUse(_) => "unexpected failure",
        }
    }

    /// Return whether the failure is this machine's, and says nothing of what the files hold. A
    /// judge has every right (capabilities(7)): permission that is denied is of what is on the
    /// disk, such as a file's flags.
    pub fn is_of_this_machine(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.is_of_this_machine(),
            Self::File { source, .. } => {
                let no_descriptor =
                    matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
                let kinds = [ErrorKind::OutOfMemory, ErrorKind::Interrupted];
                no_descriptor || kinds.contains(&source.kind())
            }
            Self::Check(_) => true,
            _ => false,
        }
    }
}

/// Makes an error of a failed step on a file.
pub fn step_error<'a, E: Into<std::io::Error>>(
    step: &'a str,
    path: &'a Path,
) -> impl Fn(E) -> WorkloadError + 'a {
    move |source| WorkloadError::File {
        step: step.into(),
        path: path.into(),
        source: source.into(),
    }
}

#[cfg(test)]
impl WorkloadError {
    /// Return whether the case asks for something impossible.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Self::WrongUse(_) | Self::Sqlite(SqliteError::WrongUse(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(source: impl Into<std::io::Error>) -> WorkloadError {
        step_error("read", Path::new("data"))(source.into())
    }

    #[test]
    fn damage_is_told_from_want_of_memory_or_descriptors() {
        assert!(error(ErrorKind::OutOfMemory).is_of_this_machine());
        assert!(!error(ErrorKind::NotFound).is_of_this_machine());
        let of = |code| error(std::io::Error::from_raw_os_error(code));
        assert!(of(libc::EMFILE).is_of_this_machine() && of(libc::ENFILE).is_of_this_machine());
        for code in [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EPERM] {
            assert!(!of(code).is_of_this_machine(), "{code}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_back_is_named_by_the_reason() {
        let of = |code| error(std::io::Error::from_raw_os_error(code)).kind_words();
        assert_eq!(of(libc::ENOSPC), "full filesystem");
        assert_eq!(of(libc::EROFS), "read-only filesystem");
        assert_eq!(of(libc::ENOENT), "missing file");
        assert_eq!(of(libc::EIO), "input or output error");
    }

    #[test]
    fn a_full_disk_is_told_from_another_failure() {
        let of = |code| error(std::io::Error::from_raw_os_error(code));
        assert!(of(libc::ENOSPC).is_disk_full() && of(libc::EDQUOT).is_disk_full());
        assert!(!of(libc::EIO).is_disk_full());
    }
}
