//! Tells damage from failures of the machine that looks for it: reads an error met after a power
//! cut; says whether it tells nothing of what the cut left, as memory ran out or a file could not
//! be opened for want of descriptors.

use std::io::ErrorKind;

use rusqlite::ffi;
use rustix::io::Errno;

use crate::filesystem::FilesystemError;
use crate::workload::WorkloadError;

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

/// What mount(2) answers of the machine, and not of what is on the device: ENOENT, say, may be of a
/// tree of Btrfs.
const OF_MOUNTING: [Errno; 4] = [Errno::NOMEM, Errno::BUSY, Errno::PERM, Errno::MFILE];

/// Whether a filesystem could not be mounted for a reason that is not on its device.
pub fn mounting(error: &FilesystemError) -> bool {
    match error {
        FilesystemError::Mount { source, .. } => OF_MOUNTING.contains(source),
        _ => true,
    }
}

/// Whether files or databases could not be looked at.
pub fn looking(error: &WorkloadError) -> bool {
    match error {
        WorkloadError::Sqlite { path, source, .. } => match source.sqlite_error() {
            Some(found) => {
                let primary = found.extended_code & 0xff;
                // A database that is not there any more is damage, one that is is the machine's.
                let cannot_open = primary == ffi::SQLITE_CANTOPEN && path.exists();
                OF_SQLITE.contains(&primary)
                    || NO_MEMORY.contains(&found.extended_code)
                    || cannot_open
            }
            // A value of another type than was written.
            None => false,
        },
        WorkloadError::File { source, .. } => matches!(
            source.kind(),
            ErrorKind::OutOfMemory | ErrorKind::Interrupted | ErrorKind::PermissionDenied
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn sqlite(extended_code: i32, path: &str) -> WorkloadError {
        let found = rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None);
        WorkloadError::Sqlite { step: "open".into(), path: PathBuf::from(path), source: found }
    }

    #[test]
    fn damage_is_told_from_want_of_memory_and_files_that_cannot_be_opened() {
        for code in [ffi::SQLITE_NOMEM, ffi::SQLITE_IOERR_NOMEM, ffi::SQLITE_BUSY] {
            assert!(looking(&sqlite(code, "/")), "{code}");
        }
        for code in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB, ffi::SQLITE_IOERR_READ] {
            assert!(!looking(&sqlite(code, "/")), "{code}");
        }
        assert!(looking(&sqlite(ffi::SQLITE_CANTOPEN, "/")));
        assert!(!looking(&sqlite(ffi::SQLITE_CANTOPEN, "/no such file")));
        let file = |kind: ErrorKind| WorkloadError::File {
            step: "read".into(),
            path: PathBuf::new(),
            source: kind.into(),
        };
        assert!(looking(&file(ErrorKind::OutOfMemory)));
        assert!(!looking(&file(ErrorKind::NotFound)));
    }

    #[test]
    fn a_filesystem_that_is_gone_is_told_from_a_mount_without_memory() {
        let mount = |source| FilesystemError::Mount {
            device: PathBuf::new(),
            directory: PathBuf::new(),
            kind: crate::record::Filesystem::Ext4,
            options: String::new(),
            source,
        };
        assert!(mounting(&mount(Errno::NOMEM)));
        for source in [Errno::INVAL, Errno::IO, Errno::UCLEAN, Errno::NOENT] {
            assert!(!mounting(&mount(source)), "{source}");
        }
    }
}
