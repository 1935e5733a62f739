//! What a trace asks the machine it runs on, in addition to the kernel's records: mounts, the
//! meaning of its own paths, targets of symbolic links, tables on a device. The functions are in a
//! struct, so that tests can trace a machine that does not exist.

mod follow;
mod mount_watch;

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};

use super::classify::layout::Layout;
use super::records::Root;
use crate::device::mounts::{self, Mount};
use crate::device::sysfs;
pub use follow::LinkTarget;
use follow::{follow, follow_within};
pub use mount_watch::MountWatch;

/// The questions.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// Layout of the filesystem on a device.
    pub read_layout: fn(u32) -> Layout,
    /// The mount table; empty where it cannot be read.
    pub read_mounts: fn() -> Vec<Mount>,
    /// What absolute paths mean to this process.
    pub own_root: fn() -> Root,
    /// Where a folder is without symbolic links.
    pub follow: fn(&str) -> LinkTarget,
    /// The same of a folder below a mount point, on that filesystem alone; may read its disk.
    pub follow_within: fn(&str, &str) -> LinkTarget,
    /// The whole disk that a device is, or is a partition of.
    pub disk_of: fn(u32) -> u32,
}

impl Surroundings {
    /// This machine's answers.
    pub fn here() -> Self {
        Surroundings { read_layout, read_mounts, own_root, follow, follow_within, disk_of }
    }

    /// Nothing is mounted, and every device is a whole disk.
    #[cfg(test)]
    pub fn nothing() -> Self {
        Surroundings {
            read_layout: |_| Layout::default(),
            read_mounts: Vec::new,
            own_root: Root::default,
            follow: |_| LinkTarget::Unknown,
            follow_within: |_, _| LinkTarget::Unknown,
            disk_of: |device| device,
        }
    }
}

/// Subtypes of metadata are all it is for: a device that cannot be read, because it is gone, has
/// none.
fn read_layout(device: u32) -> Layout {
    let open = |device| fs::File::open(format!("/dev/{}", sysfs::device_name(device).ok()?)).ok();
    open(device).and_then(|file| Layout::read(&file).ok()).unwrap_or_default()
}

fn read_mounts() -> Vec<Mount> {
    mounts::read().unwrap_or_default()
}

fn disk_of(device: u32) -> u32 {
    sysfs::disk_number(device).unwrap_or(device)
}

/// All zero, which no process has, where the system does not report it.
fn own_root() -> Root {
    let (flags, mask) = (AtFlags::empty(), StatxFlags::INO | StatxFlags::MNT_ID);
    let namespace = fs::metadata("/proc/self/ns/mnt").map(|file| file.ino() as u32);
    let (Ok(root), Ok(namespace)) = (rustix::fs::statx(CWD, "/", flags, mask), namespace) else {
        return Root::default();
    };
    let of_mount = root.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    Root { namespace, mount: root.stx_mnt_id as u32, inode: root.stx_ino, of_mount }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_root_and_disks_are_told() {
        let root = own_root();
        assert!(root.namespace > 0 && root.inode > 0 && root.mount > 0, "{root:?}");
        assert_eq!(disk_of(u32::MAX), u32::MAX);
    }
}
