//! Disks made of other disks: device mapper, md and their kin. Reads /sys/block; tells whether a
//! disk can be traced for itself, what it is made of, and what is made of it.
//!
//! Such a disk has no requests: its driver sends the bios on to the disks below. It is traced by
//! its bios, from block_bio_queue to block_bio_complete; a driver that sends on the very bio, not a
//! clone, takes the second event away (blk_update_request() clears BIO_TRACE_COMPLETION), and
//! cannot be traced so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::errors::WrongUse;

const BLOCK: &str = "/sys/block";

/// A whole disk, by its name in /sys/block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    folder: PathBuf,
    pub name: String,
}

impl Layer {
    /// The disk of this folder in /sys.
    pub fn new(folder: &Path) -> Self {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { folder: folder.to_owned(), name }
    }

    /// The driver takes bios and makes no requests of them: there are no queues for those.
    pub fn takes_bios(&self) -> bool {
        !self.folder.join("mq").exists()
    }

    /// The disks that it is made of, or partitions of disks.
    pub fn below(&self) -> Vec<String> {
        names_in(&self.folder.join("slaves"))
    }

    /// The disks that are made of it, or of a partition of it.
    pub fn above(&self) -> Vec<String> {
        let partitions = names_in(&self.folder).into_iter().map(|name| self.folder.join(name));
        let partitions = partitions.filter(|place| place.join("partition").exists());
        let places = std::iter::once(self.folder.clone()).chain(partitions);
        let found: BTreeSet<String> =
            places.flat_map(|place| names_in(&place.join("holders"))).collect();
        found.into_iter().collect()
    }

    /// Whole disks below, however far.
    pub fn all_below(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut waiting = self.below();
        while let Some(name) = waiting.pop() {
            let Ok(mut place) = fs::canonicalize(Path::new("/sys/class/block").join(&name)) else {
                continue;
            };
            if place.join("partition").exists() {
                place.pop();
            }
            let layer = Self::new(&place);
            if found.insert(layer.name.clone()) {
                waiting.extend(layer.below());
            }
        }
        found
    }

    /// Whether the kernel tells when its bios end.
    ///
    /// # Errors
    /// If it does not, with what can be done.
    pub fn check(&self) -> anyhow::Result<()> {
        let name = &self.name;
        if self.folder.join("dm").exists() && !self.takes_bios() {
            // Its flushes are told of neither when they are asked for nor when they are complete.
            let message = format!(
                "{name}: device mapper's multipath with requests, which is not followed; give its \
                 table the feature queue_mode bio"
            );
            return Err(WrongUse(message).into());
        }
        if !self.takes_bios() {
            return Ok(());
        }
        let refused = |why: &str| Err(WrongUse(format!("{name}: {why}")).into());
        let text = |path: &str| fs::read_to_string(self.folder.join(path)).unwrap_or_default();
        // drivers/md/raid0.c and md-linear.c send the bio itself on, unless it is counted.
        match text("md/level").trim() {
            "linear" => refused(
                "an md array of the level linear, of whose bios the kernel does not tell the end; \
                 trace the disks that it is made of",
            ),
            "raid0" if text("queue/iostats").trim() == "0" => refused(&format!(
                "without statistics the kernel does not tell the end of its bios; \
                 echo 1 > {BLOCK}/{name}/queue/iostats"
            )),
            // drivers/nvme/host/multipath.c, nvme_ns_head_submit_bio().
            "" if name.starts_with("nvme") => refused(
                "a disk of NVMe's own multipath, of whose bios the kernel does not tell the end; \
                 load nvme_core with multipath=N",
            ),
            _ => Ok(()),
        }
    }

    /// What a user must know of its tables; None where it is a disk of its own.
    pub fn note(&self) -> Option<String> {
        let Self { name, .. } = self;
        let (below, above) = (self.below().join(", "), self.above().join(", "));
        if self.takes_bios() {
            let made = if below.is_empty() { String::new() } else { format!("made of {below}; ") };
            return Some(format!(
                "{name}: {made}a driver without requests, so that each bio counts as one, and a \
                 flush before or after a write is a flag of it; what the driver makes of them is \
                 not traced"
            ));
        }
        (!above.is_empty()).then(|| {
            format!(
                "{name}: {above} is made of it, and what comes that way is of type unknown; \
                 trace {above} to know whose it is"
            )
        })
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// No two of the disks are layers of one stack: every byte would be there twice.
///
/// # Errors
/// If two are.
pub fn check_apart(layers: &[Layer]) -> anyhow::Result<()> {
    for layer in layers {
        let below = layer.all_below();
        if let Some(other) = layers.iter().find(|other| below.contains(&other.name)) {
            let Layer { name, .. } = layer;
            let message = format!(
                "{name} is made of {}: every byte would be there twice; name one of them",
                other.name
            );
            return Err(WrongUse(message).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(folder: &Path, files: &[(&str, &str)]) -> Layer {
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Layer::new(folder)
    }

    #[test]
    fn a_disk_of_its_own_needs_no_note() {
        let folder = tempfile::tempdir().unwrap();
        let disk = layer(folder.path(), &[("mq/0/nr_tags", "64"), ("sda1/partition", "1")]);
        assert!(disk.note().is_none() && disk.check().is_ok());
    }

    #[test]
    fn what_carries_others_and_what_is_made_of_others_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("mq/0/nr_tags", ""), ("sda1/partition", "1"), ("sda1/holders/dm-0", "")];
        let note = layer(folder.path(), &files).note().unwrap();
        assert!(note.contains("dm-0 is made of it"), "{note}");
        let folder = tempfile::tempdir().unwrap();
        let mapped = layer(folder.path(), &[("slaves/sda1", ""), ("slaves/sdb", "")]);
        let note = mapped.note().unwrap();
        assert!(note.contains("made of sda1, sdb") && mapped.check().is_ok(), "{note}");
    }

    #[test]
    fn a_driver_that_sends_the_bio_itself_on_is_refused() {
        let refused = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            layer(folder.path(), files).check().is_err()
        };
        assert!(refused(&[("md/level", "linear\n")]));
        assert!(refused(&[("md/level", "raid0\n"), ("queue/iostats", "0\n")]));
        assert!(!refused(&[("md/level", "raid0\n"), ("queue/iostats", "1\n")]));
        assert!(refused(&[("dm/name", "mpatha\n"), ("mq/0/nr_tags", "")]));
        assert!(!refused(&[("dm/name", "root\n")]));
        assert!(!refused(&[("md/level", "raid1\n"), ("queue/iostats", "0\n")]));
        let folder = tempfile::tempdir().unwrap();
        let head = folder.path().join("nvme0n1");
        assert!(layer(&head, &[("size", "8")]).check().is_err());
        assert!(layer(&head, &[("mq/0/nr_tags", "")]).check().is_ok());
    }
}
