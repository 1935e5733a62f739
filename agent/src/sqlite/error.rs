//! What can go wrong in SQLite, and whose fault it is: the case's, the machine's, or what is in the
//! file.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

use crate::errors::WrongUse;

/// A failure, with the file that it is about.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    #[error("SQLite, {step} on {path}: {source}")]
    Step { step: String, path: PathBuf, source: rusqlite::Error },
    #[error("{path} {sql} copied {copied} of {frames} frames, with nobody reading")]
    FramesLeft { path: PathBuf, sql: String, copied: i64, frames: i64 },
    #[error("{path} fails SQLite's integrity_check: {report}")]
    Integrity { path: PathBuf, report: String },
    /// The case asks for what SQLite refuses.
    #[error("{0}")]
    WrongUse(#[source] WrongUse),
}

/// What SQLite answers of itself or of the machine, and not of the file (sqlite.org/rescode.html).
/// All else is of the file: SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_IOERR where a sector cannot be
/// read, SQLITE_ERROR where a table is gone, SQLITE_READONLY on a filesystem that has given up.
const OF_SQLITE: [i32; 12] = [
    ffi::SQLITE_NOMEM,
    ffi::SQLITE_BUSY,
    ffi::SQLITE_LOCKED,
    ffi::SQLITE_INTERRUPT,
    ffi::SQLITE_FULL,
    ffi::SQLITE_PROTOCOL,
    ffi::SQLITE_PERM,
    ffi::SQLITE_AUTH,
    ffi::SQLITE_MISUSE,
    ffi::SQLITE_NOLFS,
    ffi::SQLITE_INTERNAL,
    ffi::SQLITE_TOOBIG,
];
const NO_MEMORY: [i32; 2] = [ffi::SQLITE_IOERR_NOMEM, ffi::SQLITE_IOERR_SHMMAP];

impl SqliteError {
    /// Whether the filesystem was full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Step { source, .. }
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull))
    }

    /// What a failure to read a database back is, in a word or two.
    pub fn named(&self) -> &'static str {
        let Self::Step { path, source, .. } = self else { return "corruption" };
        match source.sqlite_error().map(|found| found.extended_code & 0xff) {
            Some(ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) => "corruption",
            // The filesystem answers so; of checksums of Btrfs that do not fit, too.
            Some(ffi::SQLITE_IOERR) => "input or output error",
            Some(ffi::SQLITE_CANTOPEN) if !path.exists() => "missing file",
            // The filesystem refuses it, or its WAL: F2FS where a torn write left a name alone.
            Some(ffi::SQLITE_CANTOPEN) => "file that cannot be opened",
            Some(ffi::SQLITE_READONLY) => "read-only filesystem",
            // What was there before the first transaction is gone, such as a table.
            Some(ffi::SQLITE_ERROR) => "missing table or column",
            _ => "unexpected failure",
        }
    }

    /// Whether the failure is this machine's, as memory ran out, and says nothing of what the file
    /// holds.
    pub fn is_of_this_machine(&self) -> bool {
        let Self::Step { source, .. } = self else { return false };
        // Without a code, it is a value of another type than was written.
        source.sqlite_error().is_some_and(|found| {
            let primary = found.extended_code & 0xff;
            // Damage, but where this process has no descriptor or memory left to open any file.
            let cannot_open = primary == ffi::SQLITE_CANTOPEN && File::open("/dev/null").is_err();
            OF_SQLITE.contains(&primary) || NO_MEMORY.contains(&found.extended_code) || cannot_open
        })
    }
}

/// Makes an error of a failed step.
pub fn failed<'a>(step: &'a str, path: &'a Path) -> impl Fn(rusqlite::Error) -> SqliteError + 'a {
    move |source| SqliteError::Step { step: step.into(), path: path.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(extended_code: i32, path: &str) -> SqliteError {
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None);
        failed("open", Path::new(path))(source)
    }

    #[test]
    fn damage_is_told_from_want_of_memory() {
        for code in [ffi::SQLITE_NOMEM, ffi::SQLITE_IOERR_NOMEM, ffi::SQLITE_BUSY] {
            assert!(error(code, "/").is_of_this_machine(), "{code}");
        }
        for code in
            [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_IOERR_READ, ffi::SQLITE_CANTOPEN]
        {
            assert!(!error(code, "/").is_of_this_machine(), "{code}");
        }
    }

    #[test]
    fn what_is_no_corruption_is_not_called_so() {
        for (code, name) in [
            (ffi::SQLITE_CORRUPT_INDEX, "corruption"),
            (ffi::SQLITE_NOTADB, "corruption"),
            (ffi::SQLITE_IOERR_READ, "input or output error"),
            (ffi::SQLITE_READONLY_ROLLBACK, "read-only filesystem"),
            (ffi::SQLITE_ERROR, "missing table or column"),
            (ffi::SQLITE_MISMATCH, "unexpected failure"),
        ] {
            assert_eq!(error(code, "/").named(), name, "{code}");
        }
        assert_eq!(error(ffi::SQLITE_CANTOPEN, "/no such file").named(), "missing file");
        assert_eq!(error(ffi::SQLITE_CANTOPEN, "/").named(), "file that cannot be opened");
    }

    #[test]
    fn a_full_disk_is_told_from_another_failure() {
        assert!(error(ffi::SQLITE_FULL, "/").is_disk_full());
        assert!(!error(ffi::SQLITE_IOERR_READ, "/").is_disk_full());
    }
}
