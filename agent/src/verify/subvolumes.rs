//! Subvolumes of Btrfs and a snapshot (btrfs-subvolume(8)): a file and its copy have the number and
//! the generation of their inodes in common.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::Context;

use super::log::{KnownFile, Log};
use super::side_writes::LeftOut;

const PAGE: usize = 4096;

/// _IOW(0x94, 14 and 1, struct btrfs_ioctl_vol_args), include/uapi/linux/btrfs.h.
const SUBVOL_CREATE: libc::c_ulong = 0x5000_940e;
const SNAP_CREATE: libc::c_ulong = 0x5000_9401;

/// struct btrfs_ioctl_vol_args.
#[repr(C)]
struct VolumeArguments {
    descriptor: i64,
    name: [u8; 4088],
}

/// The filesystem has subvolumes.
pub fn are_there(directory: &Path) -> anyhow::Result<bool> {
    Ok(rustix::fs::statfs(directory)?.f_type == libc::BTRFS_SUPER_MAGIC)
}

/// A file in a subvolume, and the same in a snapshot of it: both are written by turns.
pub fn snapshots(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOut> {
    let folder = File::open(directory)?;
    ask(&folder, SUBVOL_CREATE, 0, c"original").context("a subvolume")?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let path = |name: &str| directory.join(name).join("file");
    let file = options.clone().create_new(true).open(path("original"))?;
    let number = log.known.len() as u32;
    let mut original = KnownFile::new(number, "/original/file", file)?;
    original.write(0, 8 * PAGE)?;
    original.sync()?;
    let source = File::open(directory.join("original"))?;
    ask(&folder, SNAP_CREATE, source.as_raw_fd().into(), c"copy").context("a snapshot")?;
    let mut copy = KnownFile::new(number + 1, "/copy/file", options.open(path("copy"))?)?;
    for round in 0..2 {
        copy.write((round + 1) * PAGE as u64, 3 * PAGE)?;
        copy.sync()?;
        original.write((2 * round + 3) * PAGE as u64, 2 * PAGE)?;
        original.sync()?;
    }
    log.known.extend([original, copy]);
    Ok(None)
}

fn ask(folder: &File, what: libc::c_ulong, source: i64, name: &CStr) -> std::io::Result<()> {
    let mut arguments = VolumeArguments { descriptor: source, name: [0; 4088] };
    arguments.name[..name.count_bytes()].copy_from_slice(name.to_bytes());
    // SAFETY: both calls read a struct btrfs_ioctl_vol_args, whose name ends with NUL.
    match unsafe { libc::ioctl(folder.as_raw_fd(), what, &raw const arguments) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
