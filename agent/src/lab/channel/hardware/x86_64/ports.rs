//! x86 I/O ports from user space: asks the kernel for a range of them, then reads and writes.
//! The range is given back when the value is dropped: a process that holds ports pays for their
//! bitmap at each context switch (ioperm(2)), and the measured part shall not.

use std::arch::asm;
use std::io;

/// The right to use the ports `first .. first + count`.
pub struct Ports {
    first: u16,
    count: u16,
}

impl Ports {
    /// Asks the kernel for the ports; it takes CAP_SYS_RAWIO.
    ///
    /// # Errors
    /// If the kernel refuses them.
    pub fn acquire(first: u16, count: u16) -> io::Result<Self> {
        set_permission(first, count, true)?;
        Ok(Self { first, count })
    }

    /// Reads bytes from the port `first + offset`, one after another, until the slice is full.
    pub fn read_bytes(&self, offset: u16, bytes: &mut [u8]) {
        let port = self.port(offset, 1);
        // SAFETY: the kernel granted this port in `acquire`; the direction flag is clear (System V
        // ABI), and `rep insb` stores rcx bytes from rdi on, which are those of the slice.
        unsafe {
            asm!(
                "rep insb",
                in("dx") port,
                inout("rcx") bytes.len() => _,
                inout("rdi") bytes.as_mut_ptr() => _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// Reads one byte from the port `first + offset`.
    pub fn read_u8(&self, offset: u16) -> u8 {
        let port = self.port(offset, 1);
        let value: u8;
        // SAFETY: the kernel granted this port in `acquire`; `in` touches no memory of ours.
        unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, nomem)) };
        value
    }

    /// Writes one byte to the port `first + offset`.
    pub fn write_u8(&self, offset: u16, value: u8) {
        let port = self.port(offset, 1);
        // SAFETY: the kernel granted this port in `acquire`. Not `nomem`: the device may stop the
        // machine and let others look at its memory, so all stores must come before.
        unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack)) };
    }

    /// Writes two bytes, low byte first, to the port `first + offset`.
    pub fn write_u16(&self, offset: u16, value: u16) {
        let port = self.port(offset, 2);
        // SAFETY: the kernel granted both ports in `acquire`.
        unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack)) };
    }

    fn port(&self, offset: u16, width: u16) -> u16 {
        assert!(offset + width <= self.count, "port offset {offset} is outside the range");
        self.first + offset
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // Giving up a right that we hold cannot fail.
        let _ = set_permission(self.first, self.count, false);
    }
}

fn set_permission(first: u16, count: u16, on: bool) -> io::Result<()> {
    // SAFETY: ioperm takes three integers and changes only this thread's port bitmap.
    match unsafe { libc::ioperm(first.into(), count.into(), on.into()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
