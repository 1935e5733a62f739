//! Stops the whole machine at one exact instruction, through QEMU's pvpanic device: QEMU is told
//! to pause on it (`-action panic=pause`), so that the host finds a still guest, whenever it looks.
//! See docs/specs/pvpanic.txt in QEMU's source.

use super::ports::Ports;
use std::io;

const PVPANIC_PORT: u16 = 0x505;
const PANICKED: u8 = 1;

/// Stops here. Returns when, and if, the host continues the machine.
pub fn stop() -> io::Result<()> {
    Ports::acquire(PVPANIC_PORT, 1)?.write_u8(0, PANICKED);
    Ok(())
}
