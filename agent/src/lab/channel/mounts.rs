//! Makes what every program expects to find: /proc, /sys, /dev, and the list of mounts. The root
//! itself is a tmpfs.

use anyhow::Context;
use rustix::mount::{MountFlags, mount};
use std::os::unix::fs::symlink;

/// Where each kernel filesystem goes. The folders are in the initramfs.
const MOUNTS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];

/// The list of mounts under its old name, without which mkfs.nilfs2 makes no filesystem.
const MOUNT_LIST: &str = "/etc/mtab";

/// Mounts all of them, and makes the list.
///
/// # Errors
/// With the place that could not be mounted or made.
pub fn mount_all() -> anyhow::Result<()> {
    for (filesystem, place) in MOUNTS {
        mount(filesystem, place, filesystem, MountFlags::empty(), None)
            .with_context(|| format!("cannot mount {filesystem} on {place}"))?;
    }
    std::fs::create_dir_all("/etc").context("/etc")?;
    symlink("/proc/self/mounts", MOUNT_LIST).context(MOUNT_LIST)
}
