//! The place where something runs: the mount and the disk under a directory, from statx(2), the
//! mount table and sysfs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use serde_json::{Value, json};

use super::mounts::{self, MOUNTINFO, Mount};
use super::{counters, sysfs};

/// Settings of the disk's queue (Documentation/ABI/stable/sysfs-block).
const QUEUE: [&str; 7] = [
    "write_cache",
    "fua",
    "scheduler",
    "nr_requests",
    "max_sectors_kb",
    "logical_block_size",
    "rotational",
];

/// Mount and disk under a directory; either may be unknown, as under a network filesystem.
pub struct Location {
    mount: Option<Mount>,
    /// The disk's folder in /sys.
    disk: Option<PathBuf>,
    /// The unit in which the filesystem gives room to files.
    block_bytes: Option<u64>,
}

impl Location {
    /// Find the mount and disk of an existing directory.
    ///
    /// # Errors
    /// If the kernel does not tell how it is mounted.
    pub fn find(directory: &Path) -> anyhow::Result<Self> {
        let wanted = StatxFlags::from_bits_retain(libc::STATX_MNT_ID);
        let found = rustix::fs::statx(CWD, directory, AtFlags::empty(), wanted)
            .with_context(|| format!("statx of {}", directory.display()))?;
        let mounts = mounts::read().context(MOUNTINFO)?;
        let mount = mounts.into_iter().find(|mount| mount.id == found.stx_mnt_id);
        let device = mount.as_ref().and_then(|mount| device_of(mount, directory));
        Ok(Self {
            mount,
            disk: device.and_then(|device| sysfs::disk_folder(device).ok()),
            block_bytes: rustix::fs::statvfs(directory).ok().map(|it| it.f_frsize),
        })
    }

    /// The disk's name, as `vda`.
    pub fn disk_name(&self) -> Option<String> {
        self.disk.as_ref()?.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// Return what the manifest's configuration says of mount and disk; null is what is not known.
    pub fn configuration(&self) -> Value {
        let setting = |name: &str| {
            let disk = self.disk.as_ref()?;
            Some(fs::read_to_string(disk.join(name)).ok()?.trim().to_owned())
        };
        let queue: BTreeMap<&str, Option<String>> =
            QUEUE.into_iter().map(|name| (name, setting(&format!("queue/{name}")))).collect();
        json!({
            "filesystem": self.mount.as_ref().map(|mount| &mount.kind),
            "mount": self.mount.as_ref().map(Mount::line),
            "block_bytes": self.block_bytes,
            "driver_options": self.mount.as_ref().and_then(driver_options),
            "disk": self.disk_name(),
            "disk_model": setting("device/model"),
            "queue": self.disk.is_some().then_some(queue),
        })
    }

    /// Return what the disk counted, of everybody's requests; nothing where there is no disk.
    pub fn statistics(&self) -> BTreeMap<String, i64> {
        let counted = self.disk.as_ref().and_then(|disk| counters::read_iostats(disk).ok());
        counted.unwrap_or_default()
    }
}

/// The options that a driver says to be in force beside those of the mount table, as ext4 does in
/// /proc/fs (Documentation/filesystems/ext4/): a line each.
fn driver_options(mount: &Mount) -> Option<Vec<String>> {
    let device = sysfs::device_name(mount.filesystem).ok()?;
    let text =
        fs::read_to_string(Path::new("/proc/fs").join(&mount.kind).join(device).join("options"));
    Some(text.ok()?.lines().map(str::to_owned).collect())
}

/// The block device under a mount. Where the filesystem's own number is none of a device, as with
/// Btrfs, that of the mount's source.
fn device_of(mount: &Mount, directory: &Path) -> Option<u32> {
    let of_filesystem = sysfs::device_number(fs::metadata(directory).ok()?.dev());
    if sysfs::device_folder(of_filesystem).exists() {
        return Some(of_filesystem);
    }
    let source = Path::new(&mount.source);
    let metadata = source.is_absolute().then(|| fs::metadata(source).ok()).flatten()?;
    Some(sysfs::device_number(metadata.rdev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_mount_and_no_disk() {
        let location = Location::find(Path::new("/dev/shm")).unwrap();
        let configuration = location.configuration();
        assert_eq!(configuration["filesystem"], "tmpfs");
        assert_eq!(configuration["block_bytes"], crate::process::page_bytes());
        assert_eq!(location.disk_name(), None);
        assert_eq!(location.statistics(), BTreeMap::new());
    }
}
