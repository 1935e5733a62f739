//! Work beside writing to files: names without data of their own, memory that is swapped out to a
//! file, and space given back. Their contents are no stamps, so they go to the record.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::Path;

use anyhow::Context;
use io_uring::{IoUring, opcode, types};
use rustix::fs::IFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::sectors::SectorVersions;

/// The reason why a step was left out; None where it was done.
pub type LeftOutReason = Option<String>;

const PAGE: usize = 4096;
const SWAP_PAGES: usize = 1024;
const SWAPPED_BYTES: usize = 2 << 20;
const TRIMMED_BYTES: usize = 128 << 10;
const TRIMMED_FILES: usize = 8;

/// _IOWR('X', 121, struct fstrim_range), include/uapi/linux/fs.h.
const FITRIM: libc::c_ulong = 0xc018_5879;

/// A folder, a hard link, and symbolic links: one fits in an inode, the other does not.
pub fn link(directory: &Path, recorded: &mut SectorVersions) -> anyhow::Result<LeftOutReason> {
    let folder = directory.join("folder");
    fs::create_dir(&folder)?;
    fs::hard_link(directory.join("buffered"), folder.join("hard"))?;
    symlink("hard", folder.join("short"))?;
    recorded.write("/folder/short", 0, b"hard");
    let target = "long/".repeat(160);
    symlink(&target, folder.join("long"))?;
    recorded.write("/folder/long", 0, target.as_bytes());
    File::open(&folder)?.sync_all()?;
    File::open(directory)?.sync_all()?;
    Ok(None)
}

/// A file gets another name through io_uring, where the kernel lets us, and is not met again.
pub fn rename_through_io_uring(
    directory: &Path,
    recorded: &mut SectorVersions,
) -> anyhow::Result<LeftOutReason> {
    let mut ring = match IoUring::new(1) {
        Ok(ring) => ring,
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            return Ok(Some(format!("io_uring: {error}")));
        }
        Err(error) => return Err(error).context("io_uring"),
    };
    let bytes: Vec<u8> = (0..2 * PAGE).map(|at| (at / 13) as u8 | 1).collect();
    let file = File::create_new(directory.join("before-ring"))?;
    file.write_all_at(&bytes, 0)?;
    recorded.write("/after-ring", 0, &bytes);
    file.sync_all()?;
    let folder = File::open(directory)?;
    let here = types::Fd(folder.as_raw_fd());
    let (old, new) = (c"before-ring", c"after-ring");
    let request = opcode::RenameAt::new(here, old.as_ptr(), here, new.as_ptr()).build();
    // SAFETY: the names are static, and the folder is open until the request is complete.
    unsafe { ring.submission().push(&request) }.context("a ring without room for one")?;
    ring.submit_and_wait(1)?;
    let result = ring.completion().next().context("io_uring gave no completion")?.result();
    if result < 0 {
        return Err(std::io::Error::from_raw_os_error(-result)).context("renaming by io_uring");
    }
    folder.sync_all()?;
    Ok(None)
}

/// Memory is swapped out to a file, where the filesystem lets one be used for that. Only in a
/// guest: elsewhere another's memory could be swapped out to it.
pub fn swap_out(directory: &Path, recorded: &mut SectorVersions) -> anyhow::Result<LeftOutReason> {
    if std::process::id() != 1 {
        return Ok(Some("not on a machine of others, whose memory it would take".to_owned()));
    }
    let path = directory.join("swap");
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    // Btrfs swaps to files that it never copies on write; others do not know the flag.
    let _ = rustix::fs::ioctl_setflags(&file, IFlags::NOCOW);
    file.write_all_at(&vec![0; SWAP_PAGES * PAGE], 0)?;
    let header = swap_header();
    file.write_all_at(&header, 0)?;
    recorded.write("/swap", 0, &header);
    file.sync_all()?;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a C string; the file is ours.
    if unsafe { libc::swapon(name.as_ptr(), 0) } != 0 {
        let error = std::io::Error::last_os_error();
        // NILFS2 has no address that stays.
        let is_refused = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP));
        let reason = || Some(format!("swapon: {error}"));
        return if is_refused { Ok(reason()) } else { Err(error).context("swapon") };
    }
    let pushed = push_out();
    // SAFETY: as above.
    let off = unsafe { libc::swapoff(name.as_ptr()) };
    let error = std::io::Error::last_os_error();
    pushed.context("paging out")?;
    if off == 0 { Ok(None) } else { Err(error).context("swapoff") }
}

/// union swap_header (include/linux/swap.h) of version 1, as mkswap(8) writes it.
fn swap_header() -> Vec<u8> {
    let mut header = vec![0; PAGE];
    header[1024..1028].copy_from_slice(&1_u32.to_le_bytes());
    header[1028..1032].copy_from_slice(&(SWAP_PAGES as u32 - 1).to_le_bytes());
    header[PAGE - 10..].copy_from_slice(b"SWAPSPACE2");
    header
}

fn push_out() -> rustix::io::Result<()> {
    // SAFETY: a mapping of our own, used as one slice of its length and unmapped after that.
    unsafe {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        let none = std::ptr::null_mut();
        let address = mmap_anonymous(none, SWAPPED_BYTES, flags, MapFlags::PRIVATE)?;
        let memory = std::slice::from_raw_parts_mut(address.cast::<u8>(), SWAPPED_BYTES);
        memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 7 + at / PAGE) as u8 | 1);
        let result = madvise(address, SWAPPED_BYTES, Advice::LinuxPageOut);
        munmap(address, SWAPPED_BYTES)?;
        result
    }
}

/// Files are deleted, every other one of them, and what is free is discarded (fstrim(8)) where the
/// disk can.
pub fn trim(directory: &Path, recorded: &mut SectorVersions) -> anyhow::Result<LeftOutReason> {
    let bytes: Vec<u8> = (0..TRIMMED_BYTES).map(|at| (at / 512) as u8 | 1).collect();
    let name = |number: usize| format!("trimmed-{number}");
    for number in 0..TRIMMED_FILES {
        let file = File::create_new(directory.join(name(number)))?;
        file.write_all_at(&bytes, 0)?;
        recorded.write(&format!("/{}", name(number)), 0, &bytes);
        file.sync_all()?;
    }
    for number in (0..TRIMMED_FILES).step_by(2) {
        fs::remove_file(directory.join(name(number)))?;
    }
    let folder = File::open(directory)?;
    rustix::fs::syncfs(&folder)?;
    let mut range = [0, u64::MAX, 0];
    // SAFETY: struct fstrim_range is three u64: start, length, shortest.
    if unsafe { libc::ioctl(folder.as_raw_fd(), FITRIM, range.as_mut_ptr()) } != 0 {
        let error = std::io::Error::last_os_error();
        // UBIFS does not know the call.
        if !matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY)) {
            return Err(error).context("FITRIM");
        }
        return Ok(Some(format!("FITRIM: {error}")));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_left_out_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorded = SectorVersions::default();
        let left_out = swap_out(folder.path(), &mut recorded).unwrap();
        assert!(left_out.unwrap().starts_with("not on a machine of others"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
