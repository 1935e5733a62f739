//! Disks made of other disks: device mapper, md and their kin. Reads /sys/block; tells whether a
//! disk can be traced for itself, what it is made of, and what is made of it.
//!
//! Such a disk has no requests: its driver sends the bios on to the disks below. It is traced by
//! its bios, from block_bio_queue to block_bio_complete; a driver that sends on the very bio, not a
//! clone, takes the second event away (blk_update_request() clears BIO_TRACE_COMPLETION), and
//! cannot be traced so.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use anyhow::{Context, ensure};

use super::disk::{Disk, wait_for_node};
use crate::errors::WrongUse;
use crate::record::Stack;

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

    /// Return whether the kernel tells when its bios end.
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

    /// Return what a user must know of its tables; None where it is a disk of its own.
    pub fn note(&self) -> Option<String> {
        let Self { name, .. } = self;
        let (below, above) = (self.below().join(", "), self.above().join(", "));
        if self.takes_bios() {
            let parts = if below.is_empty() { String::new() } else { format!("made of {below}; ") };
            return Some(format!(
                "{name}: {parts}a driver without requests, so that each bio counts as one, and a \
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

// Devices made of disks, for the self-test: device mapper by dmsetup(8), md by its files in /sys
// (Documentation/admin-guide/md.rst), without a superblock, so that nothing but the filesystem is
// on them; and a partition, of which the kernel alone is told (ioctl BLKPG,
// include/uapi/linux/blkpg.h). Nothing is taken down: the guest ends with its case.

const MAPPED: &str = "joj";
const ARRAY: &str = "md127";

/// 64 KiB, in sectors.
const CHUNK_SECTORS: u64 = 128;
/// Sectors of dm-linear's first stretch: small, so that both disks are written.
const FIRST_SECTORS: u64 = 64 << 11;
/// The sector of its disk at which the stack begins, so that no address is the same above and
/// below.
const FIRST_BEGIN: u64 = 8192;

impl Stack {
    /// Return the number of disks that it needs.
    pub fn disks(self) -> usize {
        if matches!(self, Self::DmCrypt | Self::DmMultipath) { 1 } else { 2 }
    }

    /// Makes the device of these disks, their names in the kernel; gives its node.
    ///
    /// # Errors
    /// If a tool or a module is not in the image, or the kernel refuses.
    pub fn build(self, disks: &[String]) -> anyhow::Result<PathBuf> {
        ensure!(disks.len() == self.disks(), "{self} is made of {} disks", self.disks());
        match self {
            Self::MdRaid0 => array("raid0", disks),
            Self::MdRaid1 => array("raid1", disks),
            Self::DmOnMd => {
                array("raid1", disks)?;
                map(&format!("0 {} linear /dev/{ARRAY} 0\n", sectors_of(ARRAY)?))
            }
            _ => map(&self.table(disks)?),
        }
    }

    /// The table of device mapper (Documentation/admin-guide/device-mapper/).
    fn table(self, disks: &[String]) -> anyhow::Result<String> {
        let sizes =
            disks.iter().map(|disk| sectors_of(disk)).collect::<anyhow::Result<Vec<_>>>()?;
        let whole = sizes[0];
        let node = |index: usize| format!("/dev/{}", disks[index]);
        Ok(match self {
            Self::DmStripe => {
                let sectors = whole / CHUNK_SECTORS * CHUNK_SECTORS * 2;
                let (first, second) = (node(0), node(1));
                format!("0 {sectors} striped 2 {CHUNK_SECTORS} {first} 0 {second} 0\n")
            }
            Self::DmCrypt => {
                let key = "5a".repeat(64);
                format!("0 {whole} crypt aes-xts-plain64 {key} 0 {} 0\n", node(0))
            }
            // One path of one group. Without queue_mode it would have requests.
            Self::DmMultipath => {
                let path = format!("service-time 0 1 1 {} 1", node(0));
                format!("0 {whole} multipath 2 queue_mode bio 0 1 1 {path}\n")
            }
            _ => format!(
                "0 {FIRST_SECTORS} linear {} {FIRST_BEGIN}\n{FIRST_SECTORS} {} linear {} 0\n",
                node(0),
                sizes[1],
                node(1)
            ),
        })
    }
}

fn sectors_of(disk: &str) -> anyhow::Result<u64> {
    let path = format!("/sys/block/{disk}/size");
    let text = fs::read_to_string(&path).context(path)?;
    text.trim().parse().with_context(|| format!("the size of {disk}: {text}"))
}

/// There is no udev in the guest to make the node or to be waited for.
fn map(table: &str) -> anyhow::Result<PathBuf> {
    let mut dmsetup = Command::new("/sbin/dmsetup")
        .args(["create", MAPPED, "--noudevsync", "--noudevrules"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("/sbin/dmsetup")?;
    dmsetup.stdin.take().expect("it is piped").write_all(table.as_bytes())?;
    let done = dmsetup.wait_with_output()?;
    let message = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "dmsetup create, {table}: {message}");
    // The first: nothing else uses device mapper in the guest.
    Ok(PathBuf::from("/dev/dm-0"))
}

fn array(level: &str, disks: &[String]) -> anyhow::Result<PathBuf> {
    let set = |path: &str, value: &str| {
        fs::write(path, value).with_context(|| format!("writing {value} to {path}"))
    };
    set("/sys/module/md_mod/parameters/new_array", ARRAY)?;
    let folder = format!("/sys/block/{ARRAY}/md");
    let kibibytes = (sectors_of(&disks[0])? / CHUNK_SECTORS * CHUNK_SECTORS / 2).to_string();
    set(&format!("{folder}/metadata_version"), "none")?;
    set(&format!("{folder}/level"), level)?;
    set(&format!("{folder}/raid_disks"), &disks.len().to_string())?;
    if level == "raid0" {
        set(&format!("{folder}/chunk_size"), &(CHUNK_SECTORS * 512).to_string())?;
    }
    for (slot, disk) in disks.iter().enumerate() {
        let number = fs::read_to_string(format!("/sys/block/{disk}/dev")).context(disk.clone())?;
        set(&format!("{folder}/new_dev"), number.trim())?;
        set(&format!("{folder}/dev-{disk}/size"), &kibibytes)?;
        set(&format!("{folder}/dev-{disk}/slot"), &slot.to_string())?;
    }
    set(&format!("{folder}/component_size"), &kibibytes)?;
    // The disks are equal: they are empty.
    set(&format!("{folder}/resync_start"), "none")?;
    set(&format!("{folder}/array_state"), "active")?;
    Ok(Path::new("/dev").join(ARRAY))
}

const BLKPG: libc::c_ulong = 0x1269;
const ADD_PARTITION: i32 = 1;
const SECTOR_BYTES: i64 = 512;
/// The bytes at which partitions usually begin, which are also left free behind this one.
const MARGIN_BYTES: i64 = 1 << 20;

#[repr(C)]
struct Partition {
    start_bytes: i64,
    length_bytes: i64,
    number: i32,
    device_name: [u8; 64],
    volume_name: [u8; 64],
}

#[repr(C)]
struct PartitionCommand {
    operation: i32,
    flags: i32,
    length: i32,
    data: *mut Partition,
}

/// Makes partition 1 of nearly the whole disk; gives its node, and its first sector on the disk.
///
/// # Errors
/// If the kernel refuses it, or its node does not appear.
pub fn make_partition(disk: &Disk) -> anyhow::Result<(PathBuf, i64)> {
    let path = disk.folder().join("size");
    let sectors = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let disk_bytes = sectors.trim().parse::<i64>().context("the disk's size")? * SECTOR_BYTES;
    let mut partition = Partition {
        start_bytes: MARGIN_BYTES,
        length_bytes: disk_bytes - 2 * MARGIN_BYTES,
        number: 1,
        device_name: [0; 64],
        volume_name: [0; 64],
    };
    let mut argument = PartitionCommand {
        operation: ADD_PARTITION,
        flags: 0,
        length: size_of::<Partition>() as i32,
        data: &raw mut partition,
    };
    let file = File::open(disk.node()).with_context(|| disk.node().display().to_string())?;
    // SAFETY: both structures are laid out as the kernel's and outlive the call.
    if unsafe { libc::ioctl(file.as_raw_fd(), BLKPG, &raw mut argument) } != 0 {
        let place = disk.node().display();
        return Err(io::Error::last_os_error()).with_context(|| format!("a partition on {place}"));
    }
    let node = PathBuf::from(format!("/dev/{}", partition_name(disk.name(), 1)));
    wait_for_node(&node)?;
    Ok((node, MARGIN_BYTES / SECTOR_BYTES))
}

/// A name that ends in a digit has a `p` before the number (block/partitions/core.c).
fn partition_name(disk: &str, number: u32) -> String {
    let separator = if disk.ends_with(|sign: char| sign.is_ascii_digit()) { "p" } else { "" };
    format!("{disk}{separator}{number}")
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
    fn a_device_below_or_above_others_has_a_note() {
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

    #[test]
    fn partitions_are_named_as_the_kernel_does() {
        let named = ["nvme0n1", "mmcblk0", "sda"].map(|disk| partition_name(disk, 1));
        assert_eq!(named, ["nvme0n1p1", "mmcblk0p1", "sda1"]);
    }
}
