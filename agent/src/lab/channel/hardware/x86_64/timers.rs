//! Halts the timers of the virtual machine while the guest stops itself.
//!
//! The stopping instruction is exact, but the clock would not be: for a moment QEMU sees a machine
//! that runs and has only stopped CPUs, takes it for idle and, depending on which of its threads
//! is faster, moves the clock to the next timer's deadline (icount_start_warp_timer() in
//! softmmu/icount.c). With no timer there is no deadline, and the clock stays.

use super::super::super::physical::PhysicalMapping;
use super::ports::Ports;
use std::io;

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
