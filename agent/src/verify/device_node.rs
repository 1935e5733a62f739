//! The disk's node beside the filesystem: what others read of it, and discard, past the filesystem.
//! Whatever is done to a node, later requests of the filesystem keep their askers.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::sectors::SectorVersions;
use super::side_writes::LeftOutReason;
use crate::device::mounts;

const READ_BYTES: usize = 16 << 10;
const DISCARDED_BYTES: usize = 1 << 20;

/// include/uapi/linux/fs.h
const BLKDISCARD: libc::c_ulong = 0x1277;
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;

/// FIEMAP_EXTENT_UNKNOWN, _DELALLOC, _ENCODED, _DATA_INLINE, _DATA_TAIL (linux/fiemap.h): of these
/// an extent's address is not where its bytes are.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x200 | 0x400;

/// The node is read through the page cache, and past it to memory of several kinds.
pub fn read(directory: &Path, recorded: &mut SectorVersions) -> anyhow::Result<LeftOutReason> {
    let Some(node) = node_of(directory)? else { return Ok(Some(NO_NODE.to_owned())) };
    let file = File::open(&node)?;
    file.read_exact_at(&mut [0; READ_BYTES], 0)?;
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&node)?;
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // Of its own, of a filesystem without a disk, and of the one that is traced.
    let shared = File::from(memfd_create("shared", MemfdFlags::CLOEXEC)?);
    let mapped = File::create_new(directory.join("mapped-for-node"))?;
    for memory in [None, Some(shared), Some(mapped)] {
        // SAFETY: a mapping of our own, used as one slice of its length and unmapped after that.
        let read = unsafe {
            let address = match &memory {
                None => mmap_anonymous(std::ptr::null_mut(), READ_BYTES, flags, MapFlags::PRIVATE)?,
                Some(file) => {
                    file.set_len(READ_BYTES as u64)?;
                    mmap(std::ptr::null_mut(), READ_BYTES, flags, MapFlags::SHARED, file, 0)?
                }
            };
            let bytes = std::slice::from_raw_parts_mut(address.cast::<u8>(), READ_BYTES);
            let read = direct.read_exact_at(bytes, 0);
            recorded.write("/mapped-for-node", 0, bytes);
            munmap(address, READ_BYTES)?;
            read
        };
        read.context("reading the disk's node")?;
    }
    Ok(None)
}

/// The bytes of a file are discarded on the node, and the file is deleted.
pub fn discard(directory: &Path, recorded: &mut SectorVersions) -> anyhow::Result<LeftOutReason> {
    let Some(node) = node_of(directory)? else { return Ok(Some(NO_NODE.to_owned())) };
    let path = directory.join("discarded");
    let bytes: Vec<u8> = (0..DISCARDED_BYTES).map(|at| (at / 513) as u8 | 1).collect();
    let file = File::create_new(&path)?;
    file.write_all_at(&bytes, 0)?;
    recorded.write("/discarded", 0, &bytes);
    file.sync_all()?;
    let Some((begin, length)) = place_of(&file)? else {
        return Ok(Some("where the file's bytes are is not known".to_owned()));
    };
    let device = OpenOptions::new().read(true).write(true).open(&node)?;
    let range = [begin, length];
    // SAFETY: two u64, begin and length.
    if unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) } != 0 {
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EOPNOTSUPP) {
            return Err(error).context("BLKDISCARD");
        }
        return Ok(Some(format!("BLKDISCARD: {error}")));
    }
    Ok(None)
}

pub(super) const NO_NODE: &str = "the filesystem is on no block device";

/// The node of the device that is mounted on a directory.
pub(super) fn node_of(directory: &Path) -> anyhow::Result<Option<PathBuf>> {
    let at = directory.canonicalize()?;
    let mounts = mounts::read().context("the mount table")?;
    let mount = mounts.into_iter().rev().find(|mount| Path::new(&mount.point) == at);
    let source = mount.map(|mount| PathBuf::from(mount.source)).unwrap_or_default();
    let is_node = std::fs::metadata(&source).is_ok_and(|file| file.file_type().is_block_device());
    Ok(is_node.then_some(source))
}

/// Return the place of a file's bytes on the device, begin and length, or of others that nobody
/// needs: the first MiB of a disk of Btrfs, beyond its superblock (BTRFS_DEVICE_RANGE_RESERVED).
fn place_of(file: &File) -> anyhow::Result<Option<(u64, u64)>> {
    if rustix::fs::fstatfs(file)?.f_type == libc::BTRFS_SUPER_MAGIC {
        return Ok(Some((512 << 10, 256 << 10)));
    }
    // struct fiemap (32 bytes: start, length, flags, mapped, count, reserved) and an extent (56
    // bytes: logical, physical, length, ..., flags at byte 40).
    let mut map = [0_u8; 32 + 56];
    map[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    map[24..28].copy_from_slice(&1_u32.to_le_bytes());
    // SAFETY: a struct fiemap with room for the one extent that it says it has room for.
    if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, map.as_mut_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error()).context("FIEMAP");
    }
    let word = |at: usize| u64::from_le_bytes(map[at..at + 8].try_into().expect("8 bytes"));
    // fm_flags is at byte 16, fm_mapped_extents at 20.
    let (mapped, flags) = (word(16) >> 32, word(32 + 40) as u32);
    Ok((mapped > 0 && flags & NO_PLACE == 0).then(|| (word(32 + 8), word(32 + 16))))
}
