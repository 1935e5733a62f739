//! Stops the whole machine at one exact instruction, through QEMU's pvpanic device. QEMU pauses on
//! it (`-action panic=pause`), so that the host always finds a stopped guest. See
//! docs/specs/pvpanic.txt in QEMU's source.

use super::hardware::Switch;
use anyhow::{Context, ensure};
use std::time::{Duration, Instant};

const REFUSED: &str = "the machine does not stop";

/// Mapping and unmapping take microseconds; a clock that QEMU moved, milliseconds at the least.
const MOST_VIRTUAL_TIME: Duration = Duration::from_millis(1);

/// Stops here for good, whatever the clock does meanwhile: the machine is not to be continued.
///
/// # Errors
/// If the device is out of reach.
pub fn end() -> anyhow::Result<()> {
    Switch::for_good()?.stop().context(REFUSED)
}

/// Stops here. Returns when, and if, the host continues the machine.
///
/// # Errors
/// If the virtual clock has moved meanwhile, because what follows would then depend on the host;
/// or if the device or the timer are out of reach.
pub fn stop() -> anyhow::Result<()> {
    let mut switch = Switch::with_halted_tick()?;
    let before = Instant::now();
    switch.stop().context(REFUSED)?;
    let passed = before.elapsed();
    drop(switch);
    ensure!(
        passed < MOST_VIRTUAL_TIME,
        "the virtual clock moved by {passed:?} while the guest was stopped"
    );
    Ok(())
}
