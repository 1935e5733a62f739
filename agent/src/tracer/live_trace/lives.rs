//! Whether the traced disks are still those that they were at the begin.

use std::collections::BTreeMap;

use crate::device::{disks, sysfs};

/// What tells each disk from another of the same number; None of one that has no size.
pub struct Lives(BTreeMap<u32, Option<String>>);

impl Lives {
    /// Of these disks, as of now.
    pub fn of(disks: &[u32]) -> Self {
        Lives(disks.iter().map(|&disk| (disk, disks::life(disk))).collect())
    }

    /// A reason for each disk that is another one now.
    pub fn changes(&self) -> Vec<String> {
        let changed = self.0.iter().filter(|(disk, life)| disks::life(**disk) != **life);
        let reason = |(disk, life): (&u32, &Option<String>)| {
            let what = if life.is_some() { "went away or became another" } else { "had no size" };
            format!("disk {} {what} while it was traced", sysfs::number_text(*disk))
        };
        changed.map(reason).collect()
    }
}
