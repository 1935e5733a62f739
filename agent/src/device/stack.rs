//! Devices made of disks, for the self-test: device mapper by dmsetup(8), md by its files in /sys
//! (Documentation/admin-guide/md.rst), without a superblock, so that nothing but the filesystem is
//! on them; and a partition, of which the kernel alone is told (ioctl BLKPG,
//! include/uapi/linux/blkpg.h). Nothing is taken down: the guest ends with its case.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::disk::{Disk, wait_for_node};
use crate::record::Stack;

const MAPPED: &str = "joj";
const ARRAY: &str = "md127";

/// 64 KiB, in sectors.
const CHUNK_SECTORS: u64 = 128;
/// Of dm-linear's first stretch: small, so that both disks are written.
const FIRST_SECTORS: u64 = 64 << 11;
/// Where it begins on its disk, so that no address is the same above and below.
const FIRST_BEGIN: u64 = 8192;

impl Stack {
    /// How many disks it needs.
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
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "dmsetup create, {table}: {said}");
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
/// Where partitions usually begin, and what is left free behind this one.
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

    #[test]
    fn partitions_are_named_as_the_kernel_does() {
        let named = ["nvme0n1", "mmcblk0", "sda"].map(|disk| partition_name(disk, 1));
        assert_eq!(named, ["nvme0n1p1", "mmcblk0p1", "sda1"]);
    }
}
