//! The faults that are planted beneath a program, and what it made of them: a sync during which the
//! disk refuses a write, and a filesystem with little room left.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs, syncfs};
use rustix::io::Errno;

use super::sync_watch::SyncFault;
use crate::device::flash;
use crate::workload::error::{WorkloadError, failed};

/// The file that takes the room; the program finds it in its directory.
const FILLER: &str = "joj-filler";

/// Attempts at what is left, as a filesystem takes of its room for the filler's own metadata.
const ATTEMPTS: u32 = 16;
/// So much less an attempt asks for where there was no room for what the filesystem said is free.
const RESERVE_BYTES: u64 = 64 << 10;

impl SyncFault {
    /// Reads the field: a site, and the number of the call there; none where it is empty.
    ///
    /// # Errors
    /// If it has no number, or no disk here can refuse a write.
    pub fn from_field(text: &str) -> Result<Option<Self>, WorkloadError> {
        if text.is_empty() {
            return Ok(None);
        }
        let wrong =
            |what| WorkloadError::refused(format!("the case: failed_sync = {text}: {what}"));
        let parts = text.rsplit_once(' ').and_then(|(site, number)| {
            Some((site, number.parse().ok().filter(|number: &u64| *number > 0)?))
        });
        let remedy = "name a sync site and the number of its call, such as 'fsync log 3'";
        let (site, number) = parts.ok_or_else(|| wrong(remedy))?;
        let disk = flash::first_disk();
        let disk =
            disk.ok_or_else(|| wrong("no disk here can refuse a write: it takes a modelled one"))?;
        Ok(Some(Self { site: site.to_owned(), number, disk }))
    }
}

/// Takes room until so many bytes are free for who has no privileges; gives how many are, which may
/// be some blocks more or less.
///
/// # Errors
/// If the filesystem allocates nothing in advance (fallocate(2)), or a step fails.
pub fn fill(directory: &Path, free_bytes: u64) -> Result<u64, WorkloadError> {
    let path = directory.join(FILLER);
    let file = File::create(&path).map_err(failed("create", &path))?;
    let free = || {
        syncfs(&file).map_err(failed("sync", &path))?;
        let stat = fstatvfs(&file).map_err(failed("statfs", &path))?;
        Ok::<u64, WorkloadError>(stat.f_bavail * stat.f_frsize)
    };
    let (mut length, mut reserve) = (0, 0);
    for _ in 0..ATTEMPTS {
        let now = free()?;
        let block = fstatvfs(&file).map_err(failed("statfs", &path))?.f_frsize;
        if now.abs_diff(free_bytes) <= block {
            break;
        }
        let wanted = (length + now).saturating_sub(free_bytes + reserve) / block * block;
        if wanted < length {
            rustix::fs::ftruncate(&file, wanted).map_err(failed("truncate", &path))?;
            length = wanted;
        } else if wanted > length {
            match fallocate(&file, FallocateFlags::empty(), length, wanted - length) {
                Ok(()) => length = wanted,
                Err(Errno::NOSPC) => reserve += RESERVE_BYTES,
                Err(error) => return Err(failed("fallocate", &path)(error)),
            }
        } else {
            break;
        }
    }
    free()
}

/// Gives the room back, where it is taken: a check that must write is not to fail for want of it.
///
/// # Errors
/// If it cannot be.
pub fn empty(directory: &Path) -> Result<(), WorkloadError> {
    let path = directory.join(FILLER);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_nobody_took_needs_not_be_given_back() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILLER), "").unwrap();
        empty(folder.path()).unwrap();
        assert!(!folder.path().join(FILLER).exists());
        empty(folder.path()).unwrap();
        std::fs::create_dir(folder.path().join(FILLER)).unwrap();
        assert!(empty(folder.path()).is_err());
    }

    #[test]
    fn a_fault_without_a_number_is_refused_with_the_remedy() {
        assert!(SyncFault::from_field("").unwrap().is_none());
        for text in ["fsync", "fsync log", "fsync log 0", "fsync log -1"] {
            let error = SyncFault::from_field(text).unwrap_err();
            assert!(error.is_wrong_use() && error.to_string().contains("fsync log 3"), "{error}");
        }
    }
}
