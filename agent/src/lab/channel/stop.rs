//! Stops the whole machine at one exact instruction, through QEMU's pvpanic device. QEMU pauses on
//! it (`-action panic=pause`), so that the host always finds a stopped guest. See
//! docs/specs/pvpanic.txt in QEMU's source.

use super::ports::Ports;
use super::timers::HaltedTick;
use anyhow::{Context, ensure};
use std::time::{Duration, Instant};

const PVPANIC_PORT: u16 = 0x505;
const PANICKED: u8 = 1;

/// Mapping and unmapping take microseconds; a clock that QEMU moved, milliseconds at the least.
const MOST_VIRTUAL_TIME: Duration = Duration::from_millis(1);

/// Stops here for good, whatever the clock does meanwhile: the machine is not to be continued.
///
/// # Errors
/// If the ports are out of reach.
pub fn end() -> anyhow::Result<()> {
    let ports = Ports::acquire(PVPANIC_PORT, 1).context("no right to the pvpanic port")?;
    ports.write_u8(0, PANICKED);
    Ok(())
}

/// Stops here. Returns when, and if, the host continues the machine.
///
/// # Errors
/// If the virtual clock has moved meanwhile, because what follows would then depend on the host;
/// or if the ports or the timer are out of reach.
pub fn stop() -> anyhow::Result<()> {
    let ports = Ports::acquire(PVPANIC_PORT, 1).context("no right to the pvpanic port")?;
    let tick = HaltedTick::new().context("cannot halt the local APIC's timer through /dev/mem")?;
    let before = Instant::now();
    ports.write_u8(0, PANICKED);
    let passed = before.elapsed();
    drop(tick);
    ensure!(
        passed < MOST_VIRTUAL_TIME,
        "the virtual clock moved by {passed:?} while the guest was stopped"
    );
    Ok(())
}
