//! Errors of SQLite: what failed, whose fault it is, and what a device, a filesystem or this build
//! lacks.

use std::env::temp_dir;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::ptr;

use rusqlite::ffi;
use rustix::fs::statvfs;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::vfs::Vfs;
use crate::errors::WrongUse;

/// A failure, with the file that it is about.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    #[error("SQLite, {step} on {path}: {source}")]
    Step { step: String, path: PathBuf, source: rusqlite::Error },
    #[error("{path} {sql} copied {copied} of {frames} frames, with nobody reading")]
    FramesLeft { path: PathBuf, sql: String, copied: i64, frames: i64 },
    #[error("reading the WAL of {path}: {source}")]
    Wal { path: PathBuf, source: std::io::Error },
    #[error("giving or taking a second name of {path}: {source}")]
    SecondName { path: PathBuf, source: std::io::Error },
    #[error("{path} fails SQLite's integrity_check: {report}")]
    Integrity { path: PathBuf, report: String },
    #[error("{path} has other rows with vfs = {vfs} than without it")]
    Readers { path: PathBuf, vfs: Vfs },
    /// The case asks for what SQLite refuses.
    #[error("{0}")]
    WrongUse(#[source] WrongUse),
}

/// The codes by which SQLite answers of itself or of the machine, and not of the file
/// (sqlite.org/rescode.html).
const SQLITE_CODES: [i32; 10] = [
    ffi::SQLITE_NOMEM,
    ffi::SQLITE_BUSY,
    ffi::SQLITE_LOCKED,
    ffi::SQLITE_INTERRUPT,
    ffi::SQLITE_PROTOCOL,
    ffi::SQLITE_PERM,
    ffi::SQLITE_AUTH,
    ffi::SQLITE_MISUSE,
    ffi::SQLITE_NOLFS,
    ffi::SQLITE_INTERNAL,
];

/// Return whether an answer of SQLite, by its extended code, is this machine's: where the code says
/// so, or where it may be either's and the machine `lacks` what the call needed. All else is of the
/// file or of its filesystem: SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_IOERR where a sector cannot be
/// read, SQLITE_ERROR where a table is gone, SQLITE_READONLY on a filesystem that has given up,
/// SQLITE_FULL on one that finds no free space, SQLITE_TOOBIG where a row claims another length.
fn is_of_machine(extended_code: i32, lacks: impl Fn(Lack) -> bool) -> bool {
    let primary = extended_code & 0xff;
    match primary {
        _ if extended_code == ffi::SQLITE_IOERR_NOMEM => true,
        // ext4 and F2FS refuse a mapping, too, once they have given up.
        _ if extended_code == ffi::SQLITE_IOERR_SHMMAP => lacks(Lack::Mapping),
        ffi::SQLITE_CANTOPEN => lacks(Lack::Descriptor),
        ffi::SQLITE_FULL => lacks(Lack::Space),
        _ => SQLITE_CODES.contains(&primary),
    }
}

impl SqliteError {
    /// Return whether the filesystem was full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Step { source, .. }
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull))
    }

    /// Return whether SQLite took the file for no database, or for one that it may not read.
    pub fn is_no_database(&self) -> bool {
        matches!(self, Self::Step { source, .. }
            if source.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase))
    }

    /// Return the name of a failure to read a database back, in a word or two.
    pub fn failure_name(&self) -> &'static str {
        let Self::Step { path, source, .. } = self else { return "corruption" };
        match source.sqlite_error().map(|found| found.extended_code & 0xff) {
            Some(ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_TOOBIG) => "corruption",
            // The filesystem answers so; of checksums of Btrfs that do not fit, too.
            Some(ffi::SQLITE_IOERR) => "input or output error",
            Some(ffi::SQLITE_CANTOPEN) if !path.exists() => "missing file",
            // The filesystem refuses it, or its WAL: F2FS where a torn write left a name alone.
            Some(ffi::SQLITE_CANTOPEN) => "file that cannot be opened",
            Some(ffi::SQLITE_READONLY) => "read-only filesystem",
            // Of NILFS2, too, where a cut took the block that counts its free segments.
            Some(ffi::SQLITE_FULL) => "full filesystem",
            // What was there before the first transaction is gone, such as a table.
            Some(ffi::SQLITE_ERROR) => "missing table or column",
            _ => "unexpected failure",
        }
    }

    /// Return whether the failure is this machine's, as memory ran out, and says nothing of what
    /// the file holds.
    pub fn is_of_this_machine(&self) -> bool {
        let Self::Step { source, .. } = self else { return false };
        // Without a code, it is a value of another type than was written.
        source
            .sqlite_error()
            .is_some_and(|found| is_of_machine(found.extended_code, Lack::is_there))
    }
}

/// Makes an error of a failed step.
pub fn step_error<'a>(
    step: &'a str,
    path: &'a Path,
) -> impl Fn(rusqlite::Error) -> SqliteError + 'a {
    move |source| SqliteError::Step { step: step.into(), path: path.into(), source }
}

/// As SQLite maps of a WAL's index (sqlite.org/walformat.html, 2.1).
const MAPPING_BYTES: usize = 32 << 10;

/// The things that a call of SQLite needs of the machine, beside memory, of which SQLite itself
/// tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    Descriptor,
    Mapping,
    /// The room for temporary files: in a guest, its own root, and not the disk whose power was
    /// cut.
    Space,
}

impl Lack {
    #[cfg(test)]
    pub const ALL: [Self; 3] = [Self::Descriptor, Self::Mapping, Self::Space];

    /// Return whether the machine lacks it now.
    pub fn is_there(self) -> bool {
        match self {
            Self::Descriptor => File::open("/dev/null").is_err(),
            Self::Mapping => !can_map(),
            // ramfs and others have no limit, and say 0 of 0.
            Self::Space => {
                statvfs(temp_dir()).is_ok_and(|room| room.f_blocks > 0 && room.f_bavail == 0)
            }
        }
    }
}

fn can_map() -> bool {
    // SAFETY: new memory is mapped where the kernel chooses, and nothing refers to it.
    let mapped = unsafe {
        mmap_anonymous(ptr::null_mut(), MAPPING_BYTES, ProtFlags::READ, MapFlags::PRIVATE)
    };
    // SAFETY: it was mapped above, at this length, and is not used.
    mapped.is_ok_and(|at| unsafe { munmap(at, MAPPING_BYTES) }.is_ok())
}

#[cfg(test)]
mod tests {
    use std::io::Error;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;

    fn error(extended_code: i32, path: &str) -> SqliteError {
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None);
        step_error("open", Path::new(path))(source)
    }

    #[test]
    fn an_error_of_a_state_is_the_machines_where_a_lack_is_shown() {
        let (always, never): (&[_], &[_]) = (&Lack::ALL, &[]);
        for (code, of_machine_with) in [
            (ffi::SQLITE_NOMEM, None),
            (ffi::SQLITE_IOERR_NOMEM, None),
            (ffi::SQLITE_BUSY_RECOVERY, None),
            (ffi::SQLITE_PROTOCOL, None),
            (ffi::SQLITE_MISUSE, None),
            (ffi::SQLITE_FULL, Some(&[Lack::Space][..])),
            (ffi::SQLITE_CANTOPEN, Some(&[Lack::Descriptor])),
            (ffi::SQLITE_CANTOPEN_ISDIR, Some(&[Lack::Descriptor])),
            (ffi::SQLITE_IOERR_SHMMAP, Some(&[Lack::Mapping])),
            (ffi::SQLITE_IOERR_SHMSIZE, Some(never)),
            (ffi::SQLITE_IOERR_READ, Some(never)),
            (ffi::SQLITE_IOERR_WRITE, Some(never)),
            (ffi::SQLITE_IOERR_FSYNC, Some(never)),
            (ffi::SQLITE_IOERR_CORRUPTFS, Some(never)),
            (ffi::SQLITE_READONLY, Some(never)),
            (ffi::SQLITE_READONLY_ROLLBACK, Some(never)),
            (ffi::SQLITE_CORRUPT, Some(never)),
            (ffi::SQLITE_NOTADB, Some(never)),
            (ffi::SQLITE_TOOBIG, Some(never)),
            (ffi::SQLITE_ERROR, Some(never)),
        ] {
            for lack in Lack::ALL {
                let expected = of_machine_with.unwrap_or(always).contains(&lack);
                assert_eq!(is_of_machine(code, |asked| asked == lack), expected, "{code} {lack:?}");
            }
            assert_eq!(is_of_machine(code, |_| false), of_machine_with.is_none(), "{code}");
        }
    }

    #[test]
    fn a_machine_that_lacks_nothing_leaves_the_verdict_to_the_state() {
        assert!(error(ffi::SQLITE_NOMEM, "/").is_of_this_machine());
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_CANTOPEN, ffi::SQLITE_IOERR_SHMMAP] {
            assert!(!error(code, "/").is_of_this_machine(), "{code}");
        }
    }

    #[test]
    fn errors_other_than_corruption_are_not_called_so() {
        for (code, name) in [
            (ffi::SQLITE_CORRUPT_INDEX, "corruption"),
            (ffi::SQLITE_NOTADB, "corruption"),
            (ffi::SQLITE_IOERR_READ, "input or output error"),
            (ffi::SQLITE_TOOBIG, "corruption"),
            (ffi::SQLITE_READONLY_ROLLBACK, "read-only filesystem"),
            (ffi::SQLITE_FULL, "full filesystem"),
            (ffi::SQLITE_ERROR, "missing table or column"),
            (ffi::SQLITE_MISMATCH, "unexpected failure"),
        ] {
            assert_eq!(error(code, "/").failure_name(), name, "{code}");
        }
        assert_eq!(error(ffi::SQLITE_CANTOPEN, "/no such file").failure_name(), "missing file");
        assert_eq!(error(ffi::SQLITE_CANTOPEN, "/").failure_name(), "file that cannot be opened");
    }

    #[test]
    fn a_full_disk_is_told_from_another_failure() {
        assert!(error(ffi::SQLITE_FULL, "/").is_disk_full());
        assert!(!error(ffi::SQLITE_IOERR_READ, "/").is_disk_full());
    }

    /// Return whether it is there in a process that may have nothing of a resource.
    fn is_there_without(resource: Resource, lack: Lack) -> bool {
        let mut command = Command::new("/bin/true");
        let tried = move || {
            setrlimit(resource, Rlimit { current: Some(0), maximum: Some(0) })?;
            if lack.is_there() { Err(Error::from_raw_os_error(libc::EXDEV)) } else { Ok(()) }
        };
        // SAFETY: between fork and exec it makes system calls alone, and allocates nothing.
        let ended = unsafe { command.pre_exec(tried) }.status();
        ended.is_err_and(|error| error.raw_os_error() == Some(libc::EXDEV))
    }

    #[test]
    fn a_machine_in_order_lacks_nothing() {
        for lack in Lack::ALL {
            assert!(!lack.is_there(), "{lack:?}");
        }
    }

    #[test]
    fn a_resource_below_its_limit_is_no_lack() {
        assert!(is_there_without(Resource::Nofile, Lack::Descriptor));
        assert!(is_there_without(Resource::As, Lack::Mapping));
        assert!(!is_there_without(Resource::Core, Lack::Descriptor));
        assert!(!is_there_without(Resource::Core, Lack::Mapping));
    }
}
