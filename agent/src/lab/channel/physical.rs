//! Maps physical memory through /dev/mem: the region reserved for results, and device registers.
//! Neither is "System RAM", so CONFIG_STRICT_DEVMEM allows it; registers that a kernel driver
//! claims need `iomem=relaxed` on the kernel command line (CONFIG_IO_STRICT_DEVMEM).

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;

/// A range of physical memory, mapped for as long as the value lives.
pub struct PhysicalMapping {
    start: *mut u8,
    length_bytes: usize,
}

impl PhysicalMapping {
    /// Maps `length_bytes` from the page-aligned physical `address`.
    ///
    /// # Errors
    /// If /dev/mem is missing, or the kernel protects the range.
    pub fn new(address: u64, length_bytes: usize) -> io::Result<Self> {
        let memory = File::options().read(true).write(true).open("/dev/mem")?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing of ours.
        // Callers map what no other code of this process uses: reserved memory, or registers.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                length_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &memory,
                address,
            )?
        };
        Ok(Self { start: start.cast(), length_bytes })
    }

    /// The mapped memory. For plain memory only: device registers must be accessed by width.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `length_bytes` long and lives as long as `self`, and
        // `&mut self` makes this the only reference to it.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length_bytes) }
    }

    /// Reads a 32-bit device register at a byte offset.
    pub fn read_register(&self, offset: usize) -> u32 {
        // SAFETY: `register` checked bounds and alignment.
        unsafe { self.register(offset).read_volatile() }
    }

    /// Writes a 32-bit device register at a byte offset.
    pub fn write_register(&mut self, offset: usize, value: u32) {
        // SAFETY: `register` checked bounds and alignment.
        unsafe { self.register(offset).write_volatile(value) };
    }

    fn register(&self, offset: usize) -> *mut u32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length_bytes, "no such register");
        self.start.wrapping_add(offset).cast()
    }
}

impl Drop for PhysicalMapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those that `new` mapped; no reference outlives `self`.
        // A failure would leave the mapping in place, which harms nobody.
        let _ = unsafe { munmap(self.start.cast(), self.length_bytes) };
    }
}
