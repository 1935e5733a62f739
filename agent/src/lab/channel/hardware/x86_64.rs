//! The machine `microvm`: I/O ports, and the timers that have to stand while the guest stops
//! itself.
//!
//! A process that holds ports pays for their bitmap at each context switch (ioperm(2)), and the
//! measured part shall not: a range of ports is given back when its value is dropped.
//!
//! The stopping instruction is exact, but the clock would not be: for a moment QEMU sees a machine
//! that runs and has only stopped CPUs, takes it for idle and, depending on which of its threads is
//! faster, moves the clock to the next timer's deadline (icount_start_warp_timer() in
//! softmmu/icount.c). With no timer there is no deadline, and the clock stays.

use std::arch::asm;
use std::io;

use anyhow::Context;

use crate::lab::channel::physical::PhysicalMapping;

/// QEMU's device for files of the host: a selector register (two bytes, little-endian) and a data
/// register (one byte).
pub struct PortFwCfg {
    ports: Ports,
}

impl PortFwCfg {
    const PORT: u16 = 0x510;
    const DATA: u16 = 1;

    /// Asks for the device's ports.
    ///
    /// # Errors
    /// If the kernel refuses them.
    pub fn open() -> io::Result<Self> {
        Ok(Self { ports: Ports::acquire(Self::PORT, 2)? })
    }

    /// Chooses the item that is read next, from its first byte on.
    pub fn select(&self, key: u16) {
        self.ports.write_u16(0, key);
    }

    /// Reads the next bytes of the chosen item.
    pub fn read(&self, bytes: &mut [u8]) {
        self.ports.read_bytes(Self::DATA, bytes);
    }
}

/// Stops the machine, by the port of QEMU's pvpanic device.
pub struct PortSwitch {
    ports: Ports,
    /// Halted until the value is dropped.
    _tick: Option<HaltedTick>,
}

impl PortSwitch {
    const PORT: u16 = 0x505;
    const PANICKED: u8 = 1;

    /// For a stop that is not the last: the scheduler's tick stands still until the value is
    /// dropped.
    ///
    /// # Errors
    /// If the ports or the timer are out of reach.
    pub fn with_halted_tick() -> anyhow::Result<Self> {
        let ports = Self::ports()?;
        let tick = HaltedTick::new();
        let tick = tick.context("cannot halt the local APIC's timer through /dev/mem")?;
        Ok(Self { ports, _tick: Some(tick) })
    }

    /// For the last stop.
    ///
    /// # Errors
    /// If the ports are out of reach.
    pub fn for_good() -> anyhow::Result<Self> {
        Ok(Self { ports: Self::ports()?, _tick: None })
    }

    /// Stops; returns when, and if, the host continues the machine.
    ///
    /// # Errors
    /// None: the port is ours.
    pub fn stop(&mut self) -> io::Result<()> {
        self.ports.write_u8(0, Self::PANICKED);
        Ok(())
    }

    fn ports() -> anyhow::Result<Ports> {
        Ports::acquire(Self::PORT, 1).context("no right to the pvpanic port")
    }
}

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

/// The local APIC's registers, and its timer's initial and current counts among them
/// (Intel SDM volume 3A, table "Local APIC Register Address Map").
const LOCAL_APIC: u64 = 0xfee0_0000;
const LOCAL_APIC_BYTES: usize = 4096;
const INITIAL_COUNT: usize = 0x380;
const CURRENT_COUNT: usize = 0x390;

/// The MC146818 clock: index and data ports, and the divider bits of register A.
const RTC_PORT: u16 = 0x70;
const RTC_REGISTER_A: u8 = 0x0a;
const RTC_DIVIDERS_IN_RESET: u8 = 0x60;

/// The scheduler's tick, on the timer of the local APIC, halted for as long as the value lives.
pub struct HaltedTick {
    apic: PhysicalMapping,
    remaining: u32,
}

impl HaltedTick {
    /// A count of zero halts the timer.
    ///
    /// # Errors
    /// If the registers cannot be mapped.
    pub fn new() -> io::Result<Self> {
        let apic = PhysicalMapping::new(LOCAL_APIC, LOCAL_APIC_BYTES)?;
        let remaining = apic.read_register(CURRENT_COUNT);
        apic.write_register(INITIAL_COUNT, 0_u32);
        Ok(Self { apic, remaining })
    }
}

impl Drop for HaltedTick {
    /// A one-shot timer goes on with the count it had left; one that ran out fires at once.
    fn drop(&mut self) {
        self.apic.write_register(INITIAL_COUNT, self.remaining.max(1));
    }
}

/// Halts the battery-backed clock for good: the kernel has read it at boot, and needs it no more.
/// QEMU keeps a timer for its next alarm otherwise.
///
/// # Errors
/// If the kernel refuses the ports.
pub fn halt_rtc() -> io::Result<()> {
    let ports = Ports::acquire(RTC_PORT, 2)?;
    ports.write_u8(0, RTC_REGISTER_A);
    let dividers = ports.read_u8(1);
    ports.write_u8(1, dividers | RTC_DIVIDERS_IN_RESET);
    Ok(())
}
