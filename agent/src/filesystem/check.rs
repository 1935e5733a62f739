//! Asks a filesystem's own checker whether it is sound, and changes nothing: after an unmount, so
//! that its journal has been replayed.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use super::FilesystemError;
use super::tool::{self, ToolEnd};
use crate::record::Filesystem;

/// What the checker said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    NotRun,
    /// Whoever gets the results checks what the disks hold.
    HandedOut,
    /// There is no checker of this filesystem.
    None,
    Clean,
    /// With the end of what it printed.
    Unclean(String),
}

impl fmt::Display for Checked {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotRun => "not run",
            Self::HandedOut => "handed out",
            Self::None => "none for this filesystem",
            Self::Clean => "clean",
            Self::Unclean(what) => what,
        })
    }
}

/// Whether states of this filesystem are checked.
pub fn word(kind: Filesystem) -> &'static str {
    if checker(kind).is_some() { "every state" } else { "none for this filesystem" }
}

/// A checker; the device comes after its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Checker {
    pub program: &'static str,
    pub arguments: &'static [&'static str],
    /// What the device of an external journal comes after.
    pub journal_option: &'static str,
    /// What tells it that a device is a file; empty where it sees that.
    pub file_option: &'static str,
}

/// That of a filesystem. NILFS2 and UBIFS have none.
pub fn checker(kind: Filesystem) -> Option<Checker> {
    let of =
        |program, arguments| Checker { program, arguments, journal_option: "-j", file_option: "" };
    match kind {
        Filesystem::Ext4 => Some(of("e2fsck", &["-f", "-n"])),
        Filesystem::Xfs => {
            Some(Checker { journal_option: "-l", file_option: "-f", ..of("xfs_repair", &["-n"]) })
        }
        Filesystem::Btrfs => Some(of("btrfs", &["check", "--readonly"])),
        Filesystem::F2fs => Some(of("fsck.f2fs", &["--dry-run"])),
        Filesystem::Nilfs2 | Filesystem::Ubifs => None,
    }
}

/// Checks the filesystem on a device, whose journal may be on another.
///
/// # Errors
/// If the checker is missing. One that dies of what it reads has not found it sound.
pub fn check(
    kind: Filesystem,
    device: &Path,
    journal: Option<&Path>,
) -> Result<Checked, FilesystemError> {
    let Some(Checker { program, arguments, journal_option, .. }) = checker(kind) else {
        return Ok(Checked::None);
    };
    let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    if let Some(journal) = journal {
        arguments.extend([OsStr::new(journal_option), journal.as_os_str()]);
    }
    arguments.push(device.as_os_str());
    let ToolEnd { status, printed } = tool::run(program, &arguments)?;
    if status.success() {
        return Ok(Checked::Clean);
    }
    Ok(Checked::Unclean(format!("{program} ({status}): {printed}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_filesystem_is_not_clean() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("device");
        std::fs::write(&device, vec![0; 1 << 20]).unwrap();
        let found = check(Filesystem::Ext4, &device, None).unwrap();
        assert!(
            matches!(found, Checked::Unclean(ref text) if text.contains("e2fsck")),
            "{found:?}"
        );
        assert_eq!(check(Filesystem::Nilfs2, &device, None).unwrap(), Checked::None);
    }
}
