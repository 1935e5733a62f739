//! Where a live workload runs: the mount and the disk under a directory. Reads statx(2), mountinfo
//! and sysfs; produces their description for the manifest, and the disk's own counters.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use serde_json::{Value, json};

use crate::device::{iostats, number};

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

/// One line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    point: String,
    options: String,
    filesystem: String,
    source: String,
    filesystem_options: String,
}

/// Mount and disk under a directory; either may be unknown, as under a network filesystem.
pub struct Place {
    mount: Option<Mount>,
    /// The disk's folder in /sys.
    disk: Option<PathBuf>,
}

impl Place {
    /// Of an existing directory.
    ///
    /// # Errors
    /// If the kernel does not tell how it is mounted.
    pub fn of(directory: &Path) -> anyhow::Result<Self> {
        let wanted = StatxFlags::from_bits_retain(libc::STATX_MNT_ID);
        let found = rustix::fs::statx(CWD, directory, AtFlags::empty(), wanted)
            .with_context(|| format!("statx of {}", directory.display()))?;
        let path = "/proc/self/mountinfo";
        let text = fs::read_to_string(path).context(path)?;
        let mount = mount_with(&text, found.stx_mnt_id);
        let device = mount.as_ref().and_then(|mount| device_of(mount, directory));
        Ok(Self { mount, disk: device.and_then(|device| disk_of(&device)) })
    }

    /// The disk's name, as `vda`.
    pub fn disk_name(&self) -> Option<String> {
        self.disk.as_ref()?.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// What the manifest's configuration says of mount and disk; null is what is not known.
    pub fn configuration(&self) -> Value {
        let setting = |name: &str| {
            let disk = self.disk.as_ref()?;
            Some(fs::read_to_string(disk.join(name)).ok()?.trim().to_owned())
        };
        let queue: BTreeMap<&str, Option<String>> =
            QUEUE.into_iter().map(|name| (name, setting(&format!("queue/{name}")))).collect();
        json!({
            "filesystem": self.mount.as_ref().map(|mount| &mount.filesystem),
            "mount": self.mount.as_ref().map(Mount::line),
            "disk": self.disk_name(),
            "disk_model": setting("device/model"),
            "queue": self.disk.is_some().then_some(queue),
        })
    }

    /// What the disk counted, of everybody's requests; nothing where there is no disk.
    pub fn statistics(&self) -> BTreeMap<String, i64> {
        let counted = self.disk.as_ref().and_then(|disk| iostats::read(disk).ok());
        counted.unwrap_or_default()
    }
}

impl Mount {
    /// As in /proc/mounts.
    fn line(&self) -> String {
        let Self { source, point, filesystem, options, filesystem_options } = self;
        format!("{source} {point} {filesystem} {options},{filesystem_options}")
    }
}

/// The line of mountinfo that has this mount ID.
fn mount_with(mountinfo: &str, id: u64) -> Option<Mount> {
    let line = mountinfo
        .lines()
        .find(|line| line.split(' ').next().and_then(|first| first.parse().ok()) == Some(id))?;
    // After the sixth field come any number of optional ones, closed by a dash.
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let mut after = after.split(' ');
    Some(Mount {
        point: (*before.get(4)?).into(),
        options: (*before.get(5)?).into(),
        filesystem: after.next()?.into(),
        source: after.next()?.into(),
        filesystem_options: after.next().unwrap_or_default().into(),
    })
}

/// MAJOR:MINOR of the block device under a mount. Where the filesystem's own number is none of a
/// device, as with Btrfs, that of the mount's source.
fn device_of(mount: &Mount, directory: &Path) -> Option<String> {
    let of_filesystem = number::text(number::of_node(fs::metadata(directory).ok()?.dev()));
    if Path::new("/sys/dev/block").join(&of_filesystem).exists() {
        return Some(of_filesystem);
    }
    let source = Path::new(&mount.source);
    let metadata = source.is_absolute().then(|| fs::metadata(source).ok()).flatten()?;
    Some(number::text(number::of_node(metadata.rdev())))
}

/// The folder in /sys of the whole disk of a device, which may be a partition: that has no queue.
fn disk_of(device: &str) -> Option<PathBuf> {
    let folder = fs::canonicalize(Path::new("/sys/dev/block").join(device)).ok()?;
    if folder.join("partition").exists() { folder.parent().map(Into::into) } else { Some(folder) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
        22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
        36 22 0:31 /sub /mnt rw,noatime master:1 propagate_from:2 - btrfs /dev/sdb1 rw,subvol=/s\n\
        40 22 0:40 / /dev/shm rw - tmpfs tmpfs rw\n";

    #[test]
    fn a_mount_is_found_by_its_number() {
        let mount = mount_with(MOUNTINFO, 36).unwrap();
        assert_eq!(mount.line(), "/dev/sdb1 /mnt btrfs rw,noatime,rw,subvol=/s");
        assert_eq!(mount_with(MOUNTINFO, 40).unwrap().filesystem, "tmpfs");
        assert_eq!(mount_with(MOUNTINFO, 4), None);
        assert_eq!(mount_with("36 22 0:31", 36), None);
    }

    #[test]
    fn memory_has_a_mount_and_no_disk() {
        let place = Place::of(Path::new("/dev/shm")).unwrap();
        assert_eq!(place.configuration()["filesystem"], "tmpfs");
        assert_eq!(place.disk_name(), None);
        assert_eq!(place.statistics(), BTreeMap::new());
    }
}
