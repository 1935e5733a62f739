//! The ways in which a file workload's reads and writes reach the kernel: fields, the open file,
//! aligned memory, and plain calls or io_uring.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use rustix::fs::OFlags;
use rustix::io::ReadWriteFlags;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};
use serde::{Deserialize, Serialize};

use super::stream::{Access, Shape};
use crate::device::sysfs;
use crate::record::words;
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::threads::task::Plan;

words! {
    /// The way an operation reaches the kernel.
    Engine { Calls = "calls", IoUring = "io_uring", IoUringPolled = "io_uring_polled" }
}

/// Entries of a ring: one is in it at a time.
const ENTRIES: u32 = 2;

/// The way of one thread.
pub enum Way {
    Calls,
    Ring(Box<IoUring>),
    /// A ring that polls, which takes reads and writes alone (io_uring_setup(2)): the rest is done
    /// by calls.
    PolledRing(Box<IoUring>),
}

impl Way {
    /// Make a case's engine.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or does not let us have one.
    pub fn new(engine: Engine) -> Result<Self, WorkloadError> {
        let refused = |error: io::Error| {
            WorkloadError::refusal(format!(
                "engine {engine}: the kernel has no io_uring, or forbids it \
                 (/proc/sys/kernel/io_uring_disabled): {error}"
            ))
        };
        match engine {
            Engine::Calls => Ok(Self::Calls),
            Engine::IoUring => {
                IoUring::new(ENTRIES).map(|ring| Self::Ring(Box::new(ring))).map_err(refused)
            }
            Engine::IoUringPolled => {
                let ring = IoUring::builder().setup_iopoll().build(ENTRIES);
                ring.map(|ring| Self::PolledRing(Box::new(ring))).map_err(refused)
            }
        }
    }

    /// Refuses a file that the kernel cannot poll for: it answers to the first read.
    ///
    /// # Errors
    /// With the kernel's answer.
    pub fn refuse_unpolled(&mut self, file: &File, bytes: &mut [u8]) -> Result<(), WorkloadError> {
        if !matches!(self, Self::PolledRing(_)) {
            return Ok(());
        }
        // Linux 6.1 takes the request and waits for its interrupt after all, without a word
        // (submit_bio_noacct(), block/blk-core.c).
        let unpolled = || io::Error::other("the device has no queue for polling");
        let polls = if has_poll_queues(file) { Ok(()) } else { Err(unpolled()) };
        polls.and_then(|()| self.read(file, bytes, 0).map(drop)).map_err(|error| {
            WorkloadError::refusal(format!(
                "engine io_uring_polled: the kernel cannot poll for this file: {error}; it takes \
                 O_DIRECT and a device with queues for polling (of NVMe: nvme.poll_queues=1)"
            ))
        })
    }

    /// Writes at an offset; gives the bytes that were taken.
    ///
    /// # Errors
    /// As pwritev2(2).
    #[inline]
    pub fn write(
        &mut self,
        file: &File,
        bytes: &[u8],
        offset: u64,
        flags: ReadWriteFlags,
    ) -> io::Result<usize> {
        match self {
            Self::Calls if flags.is_empty() => file.write_at(bytes, offset),
            Self::Calls => Ok(rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, flags)?),
            Self::Ring(ring) | Self::PolledRing(ring) => {
                let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
                let entry = opcode::Write::new(Fd(file.as_raw_fd()), bytes.as_ptr(), length)
                    .offset(offset)
                    .rw_flags(flags.bits().cast_signed())
                    .build();
                // SAFETY: the entry's memory and descriptor outlive the call.
                unsafe { perform(ring, &entry) }
            }
        }
    }

    /// Reads at an offset; gives the bytes that were there.
    ///
    /// # Errors
    /// As pread(2).
    #[inline]
    pub fn read(&mut self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Calls => file.read_at(bytes, offset),
            Self::Ring(ring) | Self::PolledRing(ring) => {
                let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
                let entry = opcode::Read::new(Fd(file.as_raw_fd()), bytes.as_mut_ptr(), length)
                    .offset(offset)
                    .build();
                // SAFETY: the entry's memory and descriptor outlive the call.
                unsafe { perform(ring, &entry) }
            }
        }
    }

    /// Makes a file durable, or its data alone.
    ///
    /// # Errors
    /// As fsync(2) and fdatasync(2).
    pub fn sync(&mut self, file: &File, data_alone: bool) -> io::Result<()> {
        match self {
            Self::Ring(ring) => {
                let flags = if data_alone { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
                let entry = opcode::Fsync::new(Fd(file.as_raw_fd())).flags(flags).build();
                // SAFETY: the descriptor outlives the call; there is no memory.
                unsafe { perform(ring, &entry) }.map(drop)
            }
            Self::Calls | Self::PolledRing(_) if data_alone => file.sync_data(),
            Self::Calls | Self::PolledRing(_) => file.sync_all(),
        }
    }
}

/// Return whether the disk under a file polls, as its queue/io_poll says; true where nothing says
/// so.
fn has_poll_queues(file: &File) -> bool {
    let Ok(metadata) = file.metadata() else { return true };
    let device = sysfs::number_text(sysfs::device_number(metadata.dev()));
    let folder = Path::new("/sys/dev/block").join(device);
    let setting = |folder: &Path| std::fs::read_to_string(folder.join("queue/io_poll"));
    let found = setting(&folder).or_else(|_| setting(&folder.join("..")));
    found.map_or(true, |text| text.trim() != "0")
}

/// Hands one entry to the kernel and waits for its completion, whatever interrupts the wait: until
/// then the kernel may still use the entry's memory.
///
/// # Safety
/// The memory that the entry points to must live until this returns, and be the kernel's alone.
unsafe fn perform(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<usize> {
    // SAFETY: as this function asks for.
    unsafe { ring.submission().push(entry) }.map_err(io::Error::other)?;
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                // Was it taken, nobody could say when the kernel is done with the memory.
                assert!(!ring.submission().is_empty(), "io_uring_enter: {error}");
                return Err(error);
            }
        }
        if let Some(completion) = ring.completion().next() {
            let result = completion.result();
            return usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        }
    }
}

/// Alignment of memory and lengths that suits O_DIRECT on any filesystem of 4 KiB blocks.
const ALIGNMENT_BYTES: usize = 4096;

/// Memory of a length whose address suits O_DIRECT.
pub struct AlignedBuffer {
    memory: Vec<u8>,
    skipped: usize,
    length: usize,
}

impl AlignedBuffer {
    /// Make a buffer of zeros.
    pub fn new(length: usize) -> Self {
        let memory = vec![0; length + ALIGNMENT_BYTES];
        let skipped = memory.as_ptr().align_offset(ALIGNMENT_BYTES);
        Self { memory, skipped, length }
    }

    /// The memory, to read it.
    pub fn as_slice(&self) -> &[u8] {
        &self.memory[self.skipped..self.skipped + self.length]
    }

    /// The memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.skipped..self.skipped + self.length]
    }
}

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
        .map_err(step_error(&step, path))?;
    let found = rustix::fs::fcntl_getfl(&file).map_err(step_error("fcntl", path))?;
    if !found.contains(flags) {
        return Err(WorkloadError::refusal(format!(
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
    Err(WorkloadError::refusal(format!(
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
        Ok(Self { address: address.map_err(step_error("mmap", path))?.cast(), length })
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
        result.map_err(step_error("msync", path))
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
    Err(step_error("sync_file_range", path)(std::io::Error::last_os_error()))
}

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FileSettings {
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    pub threads: NonZeroU64,
    pub access: Access,
    pub overlap_percent: u64,
    pub record_bytes: u64,
    pub file_bytes: u64,
    pub engine: Engine,
}

impl FileSettings {
    /// Return what there is to do, over all threads.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }

    /// Return what a thread's stream of operations is made from.
    pub fn shape(&self, thread: u64, read_percent: u64) -> Shape {
        Shape {
            access: self.access,
            overlap_percent: self.overlap_percent,
            read_percent,
            record_bytes: self.record_bytes,
            file_bytes: self.file_bytes,
            operations: self.plan().share(thread, self.threads.get()).count(),
        }
    }

    /// The length of a record in memory.
    pub fn record_length(&self) -> usize {
        usize::try_from(self.record_bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A small case of random operations.
    pub fn file_settings() -> FileSettings {
        FileSettings {
            transactions: 7,
            duration_ms: 0,
            warmup_transactions: 2,
            threads: NonZeroU64::MIN,
            access: Access::Random,
            overlap_percent: 0,
            record_bytes: 4096,
            file_bytes: 16 * 4096,
            engine: Engine::Calls,
        }
    }
}

#[cfg(test)]
mod engine_tests {
    use super::*;

    const NO_FLAGS: ReadWriteFlags = ReadWriteFlags::empty();

    #[test]
    fn every_way_does_the_same() {
        for engine in [Engine::Calls, Engine::IoUring] {
            let path = tempfile::NamedTempFile::new().unwrap();
            let file = File::options().read(true).write(true).open(path.path()).unwrap();
            let mut way = Way::new(engine).unwrap();
            assert_eq!(way.write(&file, b"longer", 3, NO_FLAGS).unwrap(), 6);
            assert_eq!(way.write(&file, b"abc", 0, ReadWriteFlags::DSYNC).unwrap(), 3);
            way.sync(&file, true).unwrap();
            way.sync(&file, false).unwrap();
            let mut found = [0; 16];
            assert_eq!(way.read(&file, &mut found, 0).unwrap(), 9);
            assert_eq!(&found[..9], b"abclonger");
        }
    }

    #[test]
    fn every_way_tells_of_an_error_and_goes_on() {
        for engine in [Engine::Calls, Engine::IoUring] {
            let path = tempfile::NamedTempFile::new().unwrap();
            let read_only = File::open(path.path()).unwrap();
            let mut way = Way::new(engine).unwrap();
            let error = way.write(&read_only, b"abc", 0, NO_FLAGS).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF), "{engine}");
            let file = File::options().write(true).open(path.path()).unwrap();
            assert_eq!(way.write(&file, b"abc", 0, NO_FLAGS).unwrap(), 3);
        }
    }

    #[test]
    fn a_file_that_cannot_be_polled_is_refused_in_the_kernels_words() {
        let path = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let mut way = Way::new(Engine::IoUringPolled).unwrap();
        let refusal = way.refuse_unpolled(path.as_file(), &mut [0; 512]).unwrap_err();
        assert!(refusal.is_wrong_use());
        assert!(refusal.to_string().contains("cannot poll"), "{refusal}");
        Way::new(Engine::Calls).unwrap().refuse_unpolled(path.as_file(), &mut [0; 512]).unwrap();
    }
}
