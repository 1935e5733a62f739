//! Stops the whole machine at one exact instruction, through QEMU's pvpanic device: QEMU is told
//! to pause on it (`-action panic=pause`), so that the host finds a still guest, whenever it looks.
//! See docs/specs/pvpanic.txt in QEMU's source.
//!
//! The instruction is exact but the clock would not be: for a moment QEMU sees a machine that runs
//! and has only stopped CPUs, takes it for idle and, depending on which of its threads is faster,
//! moves the clock to the next timer's deadline (icount_start_warp_timer() in softmmu/icount.c).
//! So the only timer that runs, that of the local APIC, is halted around the stop.

use super::physical::Mapping;
use super::ports::Ports;
use std::io;

const PVPANIC_PORT: u16 = 0x505;
const PANICKED: u8 = 1;

/// The local APIC's registers, and its timer's initial and current counts among them
/// (Intel SDM volume 3A, table "Local APIC Register Address Map").
const LOCAL_APIC: u64 = 0xfee0_0000;
const LOCAL_APIC_BYTES: usize = 4096;
const INITIAL_COUNT: usize = 0x380;
const CURRENT_COUNT: usize = 0x390;

/// Stops here. Returns when, and if, the host continues the machine, at the same virtual time.
pub fn stop() -> io::Result<()> {
    let ports = Ports::acquire(PVPANIC_PORT, 1)?;
    let mut apic = Mapping::new(LOCAL_APIC, LOCAL_APIC_BYTES)?;
    let remaining = apic.read_register(CURRENT_COUNT);
    // Zero halts the timer; a one-shot timer goes on with the count it had left.
    apic.write_register(INITIAL_COUNT, 0);
    ports.write_u8(0, PANICKED);
    apic.write_register(INITIAL_COUNT, remaining.max(1));
    Ok(())
}
