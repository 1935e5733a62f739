//! Maps physical memory through /dev/mem: the region reserved for results, and device registers.
//! Neither is "System RAM", so CONFIG_STRICT_DEVMEM allows it; registers that a kernel driver
//! claims need `iomem=relaxed` on the kernel command line (CONFIG_IO_STRICT_DEVMEM).
//!
//! On arm64 all of it is mapped as a device's memory (phys_mem_access_prot() in
//! arch/arm64/mm/mmu.c): stores to it must be aligned, whatever QEMU of today lets pass.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::cell::Cell;
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

    /// The mapped memory, as cells: some of it may be mapped a second time, so that no reference is
    /// the only one. For plain memory only: device registers must be accessed by width.
    pub fn cells(&self) -> &[Cell<u8>] {
        // SAFETY: the mapping is `length_bytes` long and lives as long as `self`. A cell has the
        // layout of what it holds, and may be written through any reference to it; no other
        // thread has one.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length_bytes) }
    }

    /// Reads a device register, as wide as `T`, at a byte offset.
    pub fn read_register<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: `register` checked bounds and alignment; `T` is one of the plain integers.
        unsafe { self.register::<T>(offset).read_volatile() }
    }

    /// Writes a device register, as wide as `T`, at a byte offset.
    pub fn write_register<T: Copy>(&self, offset: usize, value: T) {
        // SAFETY: `register` checked bounds and alignment; a register is no plain memory, of which
        // somebody could hold a reference.
        unsafe { self.register::<T>(offset).write_volatile(value) };
    }

    fn register<T>(&self, offset: usize) -> *mut T {
        let bytes = size_of::<T>();
        assert!(
            offset.is_multiple_of(bytes) && offset + bytes <= self.length_bytes,
            "no such register"
        );
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
