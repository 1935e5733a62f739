//! Mounts a filesystem, syncs it, and reads back how it is really mounted. By mount(2) alone:
//! mount.nilfs2(8) would also start NILFS2's cleaner, a daemon that is not in the guest.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use super::{Filesystem, FilesystemError};

/// A mounted filesystem; unmounted when dropped.
#[derive(Debug)]
pub struct MountedFilesystem {
    directory: PathBuf,
}

impl MountedFilesystem {
    /// Mounts `device` on `directory`, which is made. `options` are as for mount(8) -o. Where
    /// the superblock does not name the device of its `journal`, an option does.
    ///
    /// # Errors
    /// With device, directory, options and the kernel's reason.
    pub fn new(
        kind: Filesystem,
        device: &Path,
        journal: Option<&Path>,
        directory: &Path,
        options: &str,
    ) -> Result<Self, FilesystemError> {
        let (flags, mut data) = split_options(options);
        let option = kind.0.mkfs.and_then(|mkfs| mkfs.journal).map_or("", |it| it.mount_option);
        if let (false, Some(journal)) = (option.is_empty(), journal) {
            let comma = if data.is_empty() { "" } else { "," };
            data = format!("{data}{comma}{option}{}", journal.display());
        }
        if !directory.is_dir() {
            std::fs::create_dir_all(directory).map_err(|source| FilesystemError::Finish {
                directory: directory.into(),
                source,
            })?;
        }
        let failed = |source| FilesystemError::Mount {
            device: device.into(),
            directory: directory.into(),
            kind,
            options: options.into(),
            source,
        };
        let data = CString::new(data).map_err(|_| failed(Errno::INVAL))?;
        rustix::mount::mount(device, directory, kind.word(), flags, data.as_c_str())
            .map_err(failed)?;
        Ok(Self { directory: directory.into() })
    }

    /// Return the directory that it is mounted on.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The filesystem's number (s_dev), as the kernel has it.
    ///
    /// # Errors
    /// If it is gone.
    pub fn number(&self) -> Result<u32, FilesystemError> {
        let failed = |source| FilesystemError::Finish { directory: self.directory.clone(), source };
        let metadata = std::fs::metadata(&self.directory).map_err(failed)?;
        let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        Ok(major << 20 | minor)
    }

    /// Writes everything dirty back and waits for it (syncfs(2)).
    ///
    /// # Errors
    /// With the directory, if the filesystem failed to write.
    pub fn sync(&self) -> Result<(), FilesystemError> {
        let failed = |source| FilesystemError::Finish { directory: self.directory.clone(), source };
        let root = File::open(&self.directory).map_err(failed)?;
        rustix::fs::syncfs(&root).map_err(|errno| failed(errno.into()))
    }

    /// Unmounts it now, and not only when nobody uses it any more.
    ///
    /// # Errors
    /// If somebody does, or the filesystem failed to write.
    pub fn unmount(self) -> Result<(), FilesystemError> {
        let directory = self.directory.clone();
        rustix::mount::unmount(&directory, UnmountFlags::empty())
            .map_err(|errno| FilesystemError::Finish { directory, source: errno.into() })?;
        std::mem::forget(self);
        Ok(())
    }

    /// The line of /proc/mounts: the options the kernel settled on.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn line(&self) -> Result<String, FilesystemError> {
        let path = PathBuf::from("/proc/mounts");
        let mounts = std::fs::read_to_string(&path)
            .map_err(|source| FilesystemError::Read { path, source })?;
        let directory = self.directory.to_string_lossy();
        let line = mounts.lines().rfind(|line| line.split(' ').nth(1) == Some(&*directory));
        Ok(line.unwrap_or_default().into())
    }
}

/// Empties the page cache and the caches of inodes and names of what is clean
/// (Documentation/admin-guide/sysctl/vm.rst, drop_caches).
///
/// # Errors
/// If there is no right to.
pub fn drop_caches() -> Result<(), FilesystemError> {
    let path = PathBuf::from("/proc/sys/vm/drop_caches");
    std::fs::write(&path, "3").map_err(|source| FilesystemError::Write { path, source })
}

impl Drop for MountedFilesystem {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the results were taken before.
        let _ = rustix::mount::unmount(&self.directory, UnmountFlags::DETACH);
    }
}

/// Splits mount(8)'s comma list into mount(2)'s flags and the filesystem's own data.
fn split_options(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option {
            "noatime" => flags |= MountFlags::NOATIME,
            "nodiratime" => flags |= MountFlags::NODIRATIME,
            "relatime" => flags |= MountFlags::RELATIME,
            "sync" => flags |= MountFlags::SYNCHRONOUS,
            "dirsync" => flags |= MountFlags::DIRSYNC,
            "lazytime" => flags |= MountFlags::LAZYTIME,
            "ro" => flags |= MountFlags::RDONLY,
            other => data.push(other),
        }
    }
    (flags, data.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_data_are_told_apart() {
        let (flags, data) = split_options("noatime,data=journal,lazytime,commit=30");
        assert_eq!(flags, MountFlags::NOATIME | MountFlags::LAZYTIME);
        assert_eq!(data, "data=journal,commit=30");
        assert_eq!(split_options(""), (MountFlags::empty(), String::new()));
    }

    #[test]
    fn options_that_cannot_be_handed_over_are_refused_and_not_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let options = "noatime,data=journal\0";
        let mounted = MountedFilesystem::new(
            Filesystem::from_word("ext4").unwrap(),
            Path::new("/dev/null"),
            None,
            directory.path(),
            options,
        );
        assert!(mounted.unwrap_err().to_string().contains("data=journal"));
    }
}
