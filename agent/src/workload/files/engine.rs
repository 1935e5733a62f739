//! How an operation on a file reaches the kernel: by a system call, or by way of an io_uring, one
//! operation at a time. With polling the kernel asks the device for the completion instead of
//! waiting for its interrupt (io_uring_setup(2), IORING_SETUP_IOPOLL).

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode, squeue};
use rustix::io::ReadWriteFlags;

use crate::device::sysfs;
use crate::record::words;
use crate::workload::error::WorkloadError;

words! {
    /// How an operation reaches the kernel.
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
    /// Of a case's engine.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or does not let us have one.
    pub fn new(engine: Engine) -> Result<Self, WorkloadError> {
        let refused = |error: io::Error| {
            WorkloadError::refused(format!(
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
            WorkloadError::refused(format!(
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

/// Whether the disk under a file polls, as its queue/io_poll says; true where nothing says so.
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
/// What the entry points to must live until this returns, and be the kernel's alone.
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

#[cfg(test)]
mod tests {
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
    fn what_cannot_be_polled_is_refused_in_the_kernels_words() {
        let path = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let mut way = Way::new(Engine::IoUringPolled).unwrap();
        let refusal = way.refuse_unpolled(path.as_file(), &mut [0; 512]).unwrap_err();
        assert!(refusal.is_wrong_use());
        assert!(refusal.to_string().contains("cannot poll"), "{refusal}");
        Way::new(Engine::Calls).unwrap().refuse_unpolled(path.as_file(), &mut [0; 512]).unwrap();
    }
}
