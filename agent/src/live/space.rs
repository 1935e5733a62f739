//! Whether there is room for a workload on a filesystem that other programs use too. Checks for the
//! least that it will write before anything is written; if it becomes full later, reports that.

use std::path::Path;

use anyhow::Context;

use crate::workload::error::WorkloadError;
use crate::workload::kind::Space;

/// Refuses a filesystem that has less free than is needed, to a user without privileges.
///
/// # Errors
/// With what is needed and what there is.
pub fn refuse_unless_free(directory: &Path, needed: Space) -> anyhow::Result<()> {
    let room = rustix::fs::statvfs(directory)
        .with_context(|| format!("statvfs of {}", directory.display()))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    anyhow::ensure!(
        needed.bytes <= free,
        "not enough room: the workload takes at least {} bytes, and the filesystem of {} has \
         {free} free; make room, ask for less, or name another directory",
        needed.bytes,
        directory.display()
    );
    // Btrfs and others make inodes as they go, and say 0 of 0.
    anyhow::ensure!(
        room.f_files == 0 || needed.files <= room.f_favail,
        "not enough room: the workload makes {} files, and the filesystem of {} has {} inodes \
         free; ask for less, or name another directory",
        needed.files,
        directory.display(),
        room.f_favail
    );
    Ok(())
}

/// Adds to an error that the filesystem was full what can be done about it.
pub fn explain(error: anyhow::Error, directory: &Path) -> anyhow::Error {
    // A write that is cut short gives no error at all (write(2)): then what is left tells.
    let room = rustix::fs::statvfs(directory);
    let none_left = room.is_ok_and(|room| room.f_blocks > 0 && room.f_bavail == 0);
    let is_full = error.downcast_ref().is_some_and(WorkloadError::is_disk_full);
    if !is_full && !none_left {
        return error;
    }
    let parent = directory.parent().unwrap_or(directory).display();
    error.context(format!(
        "the filesystem of {parent} became full while the workload ran, and what it wrote is \
         removed; make room, ask for less, or name another directory"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::text;

    #[test]
    fn room_is_asked_for_before_anything_is_written() {
        let refuse = |bytes, files| {
            let refused = refuse_unless_free(Path::new("/dev/shm"), Space { bytes, files });
            refused.err().map(|error| error.to_string())
        };
        assert_eq!(refuse(1 << 16, 1), None);
        assert!(refuse(1 << 60, 1).unwrap().contains("at least 1152921504606846976 bytes"));
        assert!(refuse(0, 1 << 60).unwrap().contains("inodes"));
    }

    #[test]
    fn a_full_disk_is_told_as_that_and_another_error_is_left_alone() {
        let error = |code| {
            let source = std::io::Error::from_raw_os_error(code);
            let error = WorkloadError::File { step: "pwrite".into(), path: "data".into(), source };
            text(&explain(error.into(), Path::new("/mnt/private")))
        };
        assert!(error(libc::ENOSPC).starts_with("the filesystem of /mnt became full"));
        assert!(error(libc::EDQUOT).contains("became full"));
        assert_eq!(error(libc::EIO), "pwrite data: Input/output error (os error 5)");
    }
}
