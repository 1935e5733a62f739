//! Mounts what every program expects to find: /proc, /sys, /dev. The root itself is a tmpfs.

use anyhow::Context;
use rustix::mount::{MountFlags, mount};

/// Where each kernel filesystem goes. The folders are in the initramfs.
const MOUNTS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];

pub fn mount_all() -> anyhow::Result<()> {
    for (filesystem, place) in MOUNTS {
        mount(filesystem, place, filesystem, MountFlags::empty(), None)
            .with_context(|| format!("cannot mount {filesystem} on {place}"))?;
    }
    Ok(())
}
