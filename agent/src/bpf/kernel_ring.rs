//! The user-space end of the kernel's own ring buffer (BPF_MAP_TYPE_RINGBUF), which programs write
//! to on kernels that ring.rs is not for (kernel/bpf/ring_before_5_17.bpf.h). Reads its memory;
//! produces the bytes of whole records. What lies where: kernel/bpf/ringbuf.c of Linux, and the end
//! of its Documentation/bpf/ringbuf.rst.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::bpf::ring::RecordSource;
use crate::process::page_bytes;

/// struct bpf_ringbuf_hdr: the length with two flags, and a number of the kernel's.
const HEADER_BYTES: usize = 8;

/// The record is being written (BPF_RINGBUF_BUSY_BIT), or was given up (BPF_RINGBUF_DISCARD_BIT).
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// The most bytes that are read before their room is given back.
const GIVE_BACK_BYTES: u64 = 1 << 18;

/// The reader; there must be one only.
pub struct KernelRing {
    /// A page that begins with the position of the reader.
    reader: NonNull<u8>,
    /// A page that begins with the position of the writers, and the ring twice, one after the
    /// other, so that each record lies in one piece. Read only.
    writers: NonNull<u8>,
    page_bytes: usize,
    /// A power of two.
    ring_bytes: usize,
}

impl KernelRing {
    /// Maps a ring of so many bytes.
    ///
    /// # Errors
    /// If the kernel refuses to map it.
    pub fn map(records: BorrowedFd<'_>, ring_bytes: u32) -> io::Result<Self> {
        let (page_bytes, ring_bytes) = (page_bytes(), ring_bytes as usize);
        let map = |bytes, protection, offset| {
            // SAFETY: a new mapping, at an address that the kernel chooses.
            let place =
                unsafe { mmap(null_mut(), bytes, protection, MapFlags::SHARED, records, offset)? };
            io::Result::Ok(NonNull::new(place.cast::<u8>()).expect("no mapping is at address 0"))
        };
        let reader = map(page_bytes, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let writers = map(page_bytes + 2 * ring_bytes, ProtFlags::READ, page_bytes as u64);
        let writers = writers.inspect_err(|_| {
            // SAFETY: mapped just now, and used by nobody.
            let _ = unsafe { munmap(reader.as_ptr().cast(), page_bytes) };
        })?;
        Ok(KernelRing { reader, writers, page_bytes, ring_bytes })
    }

    fn read_to(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped as long as we live, and begins with this position.
        unsafe { self.reader.cast().as_ref() }
    }

    fn written_to(&self) -> u64 {
        // SAFETY: as in `read_to`; only loads, as the page may not be written to.
        let position: &AtomicU64 = unsafe { self.writers.cast().as_ref() };
        position.load(Ordering::Acquire)
    }

    /// Return the address of a position.
    fn place(&self, position: u64) -> NonNull<u8> {
        let offset = (position & (self.ring_bytes as u64 - 1)) as usize;
        // SAFETY: within the first of the two copies of the ring.
        unsafe { self.writers.add(self.page_bytes + offset) }
    }
}

impl RecordSource for KernelRing {
    fn waiting_bytes(&self) -> usize {
        self.written_to().wrapping_sub(self.read_to().load(Ordering::Relaxed)) as usize
    }

    fn read(&mut self, into: &mut Vec<u8>, limit_bytes: usize) {
        let head = self.written_to();
        let mut tail = self.read_to().load(Ordering::Relaxed);
        let mut given_back = tail;
        while tail < head && into.len() < limit_bytes {
            let place = self.place(tail);
            // SAFETY: positions are multiples of 8, and a header is at each.
            let header: &AtomicU32 = unsafe { place.cast().as_ref() };
            let header = header.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let length = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                into.extend_from_slice(&(length as u32).to_le_bytes());
                // SAFETY: the record is whole, and no longer than the ring, which follows twice.
                into.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(place.as_ptr().add(HEADER_BYTES), length)
                });
            }
            tail += (HEADER_BYTES + length).next_multiple_of(8) as u64;
            if tail - given_back >= GIVE_BACK_BYTES {
                self.read_to().store(tail, Ordering::Release);
                given_back = tail;
            }
        }
        self.read_to().store(tail, Ordering::Release);
    }
}

// SAFETY: what it points to is mapped for the whole process, and it is the only one to read there.
unsafe impl Send for KernelRing {}

impl Drop for KernelRing {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and used by nobody else. They can only fail for a wrong address.
        unsafe {
            let _ = munmap(self.reader.as_ptr().cast(), self.page_bytes);
            let _ = munmap(self.writers.as_ptr().cast(), self.page_bytes + 2 * self.ring_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    const RING_BYTES: u64 = 1 << 16;

    /// The kernel's side, in a file that is mapped as the kernel's memory is.
    struct Writer {
        file: File,
        ring: KernelRing,
        head: u64,
    }

    impl Writer {
        fn new() -> Self {
            let file = tempfile::tempfile().expect("a file");
            file.set_len(2 * page_bytes() as u64 + 2 * RING_BYTES).expect("room");
            let ring = KernelRing::map(file.as_fd(), RING_BYTES as u32).expect("a mapping");
            Writer { file, ring, head: 0 }
        }

        /// Put bytes at a position; those beyond the end of the ring go to the copy that follows
        /// it, where they are read.
        fn put(&self, position: u64, bytes: &[u8]) {
            let place = 2 * page_bytes() as u64 + position % RING_BYTES;
            self.file.write_all_at(bytes, place).expect("a write");
        }

        /// A record with these flags; gives where its header is, or None where there is no room.
        fn add(&mut self, record: &[u8], flags: u32) -> Option<u64> {
            let whole_bytes = (HEADER_BYTES + record.len()).next_multiple_of(8) as u64;
            let tail = self.ring.read_to().load(Ordering::Relaxed);
            let place = self.head;
            if place + whole_bytes - tail > RING_BYTES {
                return None;
            }
            self.put(place, &(record.len() as u32 | flags).to_le_bytes());
            self.put(place + HEADER_BYTES as u64, record);
            self.head += whole_bytes;
            let page = page_bytes() as u64;
            self.file.write_all_at(&self.head.to_le_bytes(), page).expect("a write");
            Some(place)
        }

        fn read(&mut self) -> Vec<u8> {
            let mut bytes = Vec::new();
            self.ring.read(&mut bytes, usize::MAX);
            bytes
        }
    }

    #[test]
    fn a_record_that_is_being_written_holds_up_those_behind_it() {
        let mut writer = Writer::new();
        let first = writer.add(&[1; 12], BUSY).expect("room");
        writer.add(&[2; 8], 0).expect("room");
        assert!(writer.read().is_empty());
        assert_eq!(writer.ring.waiting_bytes(), 24 + 16);
        writer.put(first, &12u32.to_le_bytes());
        assert_eq!(writer.read(), [&[12, 0, 0, 0][..], &[1; 12], &[8, 0, 0, 0], &[2; 8]].concat());
        assert_eq!(writer.ring.waiting_bytes(), 0);
    }

    #[test]
    fn a_record_that_was_given_up_is_left_out() {
        let mut writer = Writer::new();
        writer.add(&[1; 16], DISCARDED).expect("room");
        writer.add(&[2; 1], 0).expect("room");
        assert_eq!(writer.read(), [1, 0, 0, 0, 2]);
    }

    #[test]
    fn records_come_out_in_order_through_many_rounds_of_the_ring() {
        let mut writer = Writer::new();
        let (mut sent, mut got) = (Vec::new(), Vec::new());
        for number in 0..200_u32 {
            let record = vec![number as u8; 1000 + (number as usize * 37) % 3000];
            if writer.add(&record, 0).is_none() {
                got.extend(writer.read());
                writer.add(&record, 0).expect("room after all was read");
            }
            sent.extend_from_slice(&(record.len() as u32).to_le_bytes());
            sent.extend(record);
        }
        got.extend(writer.read());
        assert!(writer.head > 4 * RING_BYTES);
        assert_eq!(got, sent);
    }
}
