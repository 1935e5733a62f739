//! Makes one partition on a disk by telling the kernel of it alone (ioctl BLKPG, include/uapi/
//! linux/blkpg.h): to the block layer it is a partition like any other, and no table is written.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use anyhow::Context;

use super::disk::{Disk, wait_for_node};

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
struct Argument {
    operation: i32,
    flags: i32,
    length: i32,
    data: *mut Partition,
}

/// Makes partition 1 of nearly the whole disk; gives its node, and its first sector on the disk.
///
/// # Errors
/// If the kernel refuses it, or its node does not appear.
pub fn make(disk: &Disk) -> anyhow::Result<(PathBuf, i64)> {
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
    let mut argument = Argument {
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
