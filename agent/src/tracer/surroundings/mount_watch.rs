//! Tells when something was mounted or unmounted, without reading the mount table.

use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::device::mounts::MOUNTINFO;

/// Watches the mounts of a process.
pub struct MountWatch {
    file: fs::File,
}

impl MountWatch {
    /// Watches from now on; None where the system does not report changes.
    pub fn new() -> Option<Self> {
        Self::of(MOUNTINFO)
    }

    /// The same by another thread's table.
    pub(super) fn of(table: &str) -> Option<Self> {
        Some(MountWatch { file: fs::File::open(table).ok()? })
    }

    /// Since the last time that this was asked (proc_pid_mounts(5)).
    pub fn is_changed(&self) -> bool {
        let mut sets = [PollFd::new(&self.file, PollFlags::PRI)];
        poll(&mut sets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}
