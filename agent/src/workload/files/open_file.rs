//! A file opened as the case asks: opens it with open(2)'s flags, makes sure that the kernel took
//! them, and lends the file itself as memory.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use crate::workload::error::{WorkloadError, failed};

/// The least that O_DIRECT transfers on a device of 512-byte logical blocks (open(2), NOTES).
const DIRECT_BYTES: u64 = 512;

/// O_DSYNC. That of rustix 1.1 on Linux is O_SYNC, which writes the file's times as well.
pub const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

/// Opens an existing file for reading, and writing if `write`, with more flags.
///
/// # Errors
/// If it cannot be opened, or the kernel does not show a flag that was asked for.
pub fn open(path: &Path, write: bool, flags: OFlags) -> Result<File, WorkloadError> {
    let step = format!("open with {}", names(flags));
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(failed(&step, path))?;
    let found = rustix::fs::fcntl_getfl(&file).map_err(failed("fcntl", path))?;
    if !found.contains(flags) {
        return Err(WorkloadError::refused(format!(
            "{}: opened with {} where {} was asked for",
            path.display(),
            names(found),
            names(flags)
        )));
    }
    Ok(file)
}

/// The words of the flags that decide how data reach the device.
pub fn names(flags: OFlags) -> String {
    let known = [(OFlags::SYNC, "O_SYNC"), (DSYNC, "O_DSYNC"), (OFlags::DIRECT, "O_DIRECT")];
    let mut names: Vec<&str> =
        known.into_iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| name).collect();
    // O_SYNC is O_DSYNC and a bit of its own.
    if names.contains(&"O_SYNC") {
        names.retain(|name| *name != "O_DSYNC");
    }
    if names.is_empty() { "no flags".into() } else { names.join("|") }
}

/// Refuses records that O_DIRECT cannot transfer.
///
/// # Errors
/// If the length is no multiple of a logical block.
pub fn refuse_unaligned(record_bytes: u64) -> Result<(), WorkloadError> {
    if record_bytes.is_multiple_of(DIRECT_BYTES) {
        return Ok(());
    }
    Err(WorkloadError::refused(format!(
        "O_DIRECT needs records of a multiple of {DIRECT_BYTES} bytes, not {record_bytes}"
    )))
}

/// A file as shared memory; unmapped when dropped.
pub struct MappedFile {
    address: *mut u8,
    length: usize,
}

impl MappedFile {
    /// Maps `length` bytes from the beginning, of which some may lie beyond the file's end.
    ///
    /// # Errors
    /// If mmap(2) fails.
    pub fn new(file: &File, length: usize, path: &Path) -> Result<Self, WorkloadError> {
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else refers to it.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        };
        Ok(Self { address: address.map_err(failed("mmap", path))?.cast(), length })
    }

    /// Stores `bytes` at an offset, which must lie within the file.
    ///
    /// # Panics
    /// If they do not lie within the mapping.
    pub fn store(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.length), "a store beyond the mapping");
        // SAFETY: the range was just checked to be in the mapping, which is ours alone and alive;
        // `bytes` cannot overlap it, as no slice of it is ever lent.
        unsafe { self.address.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Loads the bytes at an offset, which must lie within the file.
    ///
    /// # Panics
    /// If they do not lie within the mapping.
    pub fn load(&self, offset: usize, bytes: &mut [u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.length), "a load beyond the mapping");
        // SAFETY: the range was just checked to be in the mapping, which is ours alone and alive;
        // `bytes` cannot overlap it, as no slice of it is ever lent.
        unsafe { self.address.add(offset).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// msync(2) of all of it.
    ///
    /// # Errors
    /// If the kernel reports that pages could not be written.
    pub fn sync(&self, flags: MsyncFlags, path: &Path) -> Result<(), WorkloadError> {
        // SAFETY: address and length are those of the mapping, which is alive.
        let result = unsafe { rustix::mm::msync(self.address.cast(), self.length, flags) };
        result.map_err(failed("msync", path))
    }
}

// SAFETY: the mapping belongs to its one owner, whichever thread that is in; no slice is lent.
unsafe impl Send for MappedFile {}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping, and nobody uses it any more.
        let _ = unsafe { rustix::mm::munmap(self.address.cast(), self.length) };
    }
}

/// sync_file_range(2): starts the writing of all dirty pages and waits for it; no metadata, no
/// flush of the device.
///
/// # Errors
/// If a page could not be written.
pub fn sync_file_range(file: &File, path: &Path) -> Result<(), WorkloadError> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: a plain system call on a descriptor that we own; a length of 0 means up to the end.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    if result == 0 {
        return Ok(());
    }
    Err(failed("sync_file_range", path)(std::io::Error::last_os_error()))
}
