//! The one directory that a live workload writes in: made new inside the directory that the user
//! named, held open from then on, and removed with all that is in it through that descriptor, so
//! that no symbolic link and no renaming leads the removal elsewhere. A workload is refused where
//! the filesystem, which other programs use too, has no room for it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::errors::WrongUse;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Space;

/// The beginning of the name of every such directory, also before it is locked.
const PREFIX: &str = "joj-bench-";
const STARTING: &str = "joj-starting-";

/// A directory of our own.
pub struct PrivateDirectory {
    parent: OwnedFd,
    name: String,
    directory: OwnedFd,
    path: PathBuf,
}

impl PrivateDirectory {
    /// Makes it in `parent`, for nobody else to read or write.
    ///
    /// # Errors
    /// If `parent` is no directory, or none may be made in it.
    pub fn create(parent: &Path) -> anyhow::Result<Self> {
        Self::create_observed(parent, || {})
    }

    /// As `create`; `made` is called when the directory is there, and not locked yet.
    fn create_observed(parent: &Path, made: impl FnOnce()) -> anyhow::Result<Self> {
        let wrong =
            |why: &str| WrongUse(format!("{}: {why}; name another directory", parent.display()));
        let path = parent.canonicalize().map_err(|error| wrong(&error.to_string()))?;
        let parent_file = rustix::fs::open(&path, directory_flags(), Mode::empty())
            .map_err(|errno| wrong(&io::Error::from(errno).to_string()))?;
        let random = random()?;
        let (starting, name) =
            (format!("{STARTING}{random:016x}"), format!("{PREFIX}{random:016x}"));
        rustix::fs::mkdirat(&parent_file, &starting, Mode::RWXU).map_err(|errno| {
            anyhow::Error::from(io::Error::from(errno)).context(format!(
                "{}: no directory can be made in it; name another directory",
                parent.display()
            ))
        })?;
        made();
        let path = path.join(&name);
        let opened = rustix::fs::openat(&parent_file, &starting, directory_flags(), Mode::empty());
        let directory = opened.with_context(|| format!("cannot open {}", path.display()))?;
        // Held for as long as this process or its child lives: see `leftovers`, which must not
        // meet its name before, as it would take it for a leftover and hold the lock itself.
        rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("cannot lock {}", path.display()))?;
        rustix::fs::renameat(&parent_file, &starting, &parent_file, &name)
            .with_context(|| format!("cannot name {}", path.display()))?;
        let directory = Self { parent: parent_file, name, directory, path };
        anyhow::ensure!(
            directory.is_still_there(),
            "{} was replaced as soon as it was made: somebody else writes there",
            directory.path.display()
        );
        Ok(directory)
    }

    /// Return its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it and all that is in it.
    ///
    /// # Errors
    /// With the directory and how to remove it by hand.
    pub fn remove(&self) -> anyhow::Result<()> {
        let path = self.path.display();
        empty(self.directory.as_fd())
            .with_context(|| format!("cannot empty {path}; remove it with: rm -r {path}"))?;
        anyhow::ensure!(
            self.is_still_there(),
            "{path} was renamed or replaced by somebody else: it was emptied and not removed"
        );
        rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR)
            .with_context(|| format!("cannot remove {path}; remove it with: rm -r {path}"))
    }

    /// Return whether its name still leads to it.
    fn is_still_there(&self) -> bool {
        let name_stat = rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let directory_stat = rustix::fs::fstat(&self.directory);
        let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        matches!((name_stat, directory_stat), (Ok(one), Ok(other))
            if identity(one) == identity(other))
    }

    /// Directories of killed runs beside this one, sorted: those that nobody holds locked.
    ///
    /// # Errors
    /// If the directory cannot be listed.
    pub fn leftovers(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for name in names(self.parent.as_fd())? {
            let text = name.to_string_lossy();
            if !text.starts_with(PREFIX) || text == self.name {
                continue;
            }
            let opened =
                rustix::fs::openat(&self.parent, name.as_c_str(), directory_flags(), Mode::empty());
            // Another user's cannot be opened, and is none of ours to speak of.
            let Ok(directory) = opened else { continue };
            if rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
                found.push(self.path.with_file_name(&*text));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Writes everything dirty of its filesystem back and waits for it (syncfs(2)).
    ///
    /// # Errors
    /// If the filesystem failed to write.
    pub fn sync(&self) -> anyhow::Result<()> {
        rustix::fs::syncfs(&self.directory)
            .with_context(|| format!("syncing the filesystem of {}", self.path.display()))
    }

    /// Hands every file in it, and in directories in it, to `visit`, opened for reading.
    ///
    /// # Errors
    /// If one cannot be opened, and of `visit`.
    pub fn visit_files(&self, mut visit: impl FnMut(&File) -> io::Result<()>) -> io::Result<()> {
        visit_files(self.directory.as_fd(), &mut visit)
    }
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn random() -> anyhow::Result<u64> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty()).context("getrandom")?;
    Ok(u64::from_le_bytes(bytes))
}

/// The names in a directory, but for itself and its parent.
fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

/// As `PrivateDirectory::visit_files`: one file at a time is open, and each directory above it.
fn visit_files(
    directory: BorrowedFd<'_>,
    visit: &mut dyn FnMut(&File) -> io::Result<()>,
) -> io::Result<()> {
    for name in names(directory)? {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(directory, name.as_c_str(), flags, Mode::empty()) {
            // A symbolic link, which has no pages.
            Err(Errno::LOOP) => continue,
            opened => File::from(opened?),
        };
        let metadata = file.metadata()?;
        if metadata.is_file() {
            visit(&file)?;
        } else if metadata.is_dir() {
            visit_files(file.as_fd(), visit)?;
        }
    }
    Ok(())
}

/// Removes all that is in a directory.
fn empty(directory: BorrowedFd<'_>) -> io::Result<()> {
    for name in names(directory)? {
        match rustix::fs::unlinkat(directory, name.as_c_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            // Linux says EISDIR, POSIX EPERM (unlink(2)).
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = directory_flags();
        let inner = rustix::fs::openat(directory, name.as_c_str(), flags, Mode::empty())?;
        empty(inner.as_fd())?;
        rustix::fs::unlinkat(directory, name.as_c_str(), AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

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
pub fn explain_full_disk(error: anyhow::Error, directory: &Path) -> anyhow::Error {
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
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn it_is_private_and_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let directory = PrivateDirectory::create(parent.path()).unwrap();
        let path = directory.path().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/b/c"), "text").unwrap();
        directory.remove().unwrap();
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn no_link_leads_the_removal_elsewhere() {
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("precious"), "text").unwrap();
        let parent = tempfile::tempdir().unwrap();
        let directory = PrivateDirectory::create(parent.path()).unwrap();
        symlink(elsewhere.path(), directory.path().join("link")).unwrap();
        directory.remove().unwrap();
        assert!(elsewhere.path().join("precious").exists());

        // The directory's own name now leads elsewhere.
        let directory = PrivateDirectory::create(parent.path()).unwrap();
        std::fs::rename(directory.path(), parent.path().join("moved")).unwrap();
        symlink(elsewhere.path(), directory.path()).unwrap();
        assert!(directory.remove().unwrap_err().to_string().contains("replaced by somebody"));
        assert!(elsewhere.path().join("precious").exists());
    }

    #[test]
    fn a_path_that_cannot_hold_the_directory_is_named() {
        for (path, reason) in [("/nowhere/at/all", "No such file"), ("/proc/self/stat", "Not a")] {
            let error = PrivateDirectory::create(Path::new(path)).err().unwrap();
            assert!(error.is::<WrongUse>());
            let text = error.to_string();
            assert!(text.contains(path) && text.contains(reason), "{text}");
        }
        // One that may not be written is this machine's matter, not a wrong word.
        let error = PrivateDirectory::create(Path::new("/sys")).err().unwrap();
        assert!(!error.is::<WrongUse>());
        assert!(error.to_string().contains("/sys: no directory can be made in it"), "{error}");
    }

    #[test]
    fn one_that_is_being_made_is_no_leftover() {
        let parent = tempfile::tempdir().unwrap();
        let other = PrivateDirectory::create(parent.path()).unwrap();
        let ours = PrivateDirectory::create_observed(parent.path(), || {
            assert_eq!(other.leftovers().unwrap(), [] as [PathBuf; 0]);
        });
        ours.unwrap().remove().unwrap();
    }

    #[test]
    fn a_leftover_is_told_from_one_in_use() {
        let parent = tempfile::tempdir().unwrap();
        let ours = PrivateDirectory::create(parent.path()).unwrap();
        let in_use = PrivateDirectory::create(parent.path()).unwrap();
        let killed = PrivateDirectory::create(parent.path()).unwrap();
        let left = killed.path().to_owned();
        drop(killed);
        assert_eq!(ours.leftovers().unwrap(), [left]);
        drop(in_use);
        assert_eq!(ours.leftovers().unwrap().len(), 2);
    }

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
            text(&explain_full_disk(error.into(), Path::new("/mnt/private")))
        };
        assert!(error(libc::ENOSPC).starts_with("the filesystem of /mnt became full"));
        assert!(error(libc::EDQUOT).contains("became full"));
        assert_eq!(error(libc::EIO), "pwrite data: Input/output error (os error 5)");
    }
}
