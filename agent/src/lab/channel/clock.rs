//! The clock of this guest, which the lab names on the kernel command line (`joj.clock`), and the
//! stop of the whole machine at one exact instruction, through QEMU's pvpanic device: QEMU pauses
//! on it (`-action panic=pause`), so that the host always finds a stopped guest. See
//! docs/specs/pvpanic.txt in QEMU's source.

use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail, ensure};

use super::hardware::Switch;

const FIELD: &str = "joj.clock=";

/// Says what the kernel reads its clock from (Documentation/ABI/testing/sysfs-devices-system-
/// clocksource).
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The TSC by its first calibration, which a busy host disturbs; the kernel compares it with other
/// timers for a second, and then calls it tsc (tsc_refine_calibration_work() in
/// arch/x86/kernel/tsc.c).
const UNREFINED: &str = "tsc-early";
const LOOKS: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// Says what times in this guest mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Instructions executed, idle time skipped: a result is a function of image and case. The
    /// guest stops for its snapshot, and every case starts from there.
    Virtual,
    /// The clock on the wall, slowed and disturbed by the emulation. The guest boots with its case.
    Wall,
}

impl Clock {
    /// This guest's.
    ///
    /// # Errors
    /// If the command line names a clock that there is not.
    pub fn here() -> anyhow::Result<Self> {
        Self::from_line(&fs::read_to_string("/proc/cmdline").context("/proc/cmdline")?)
    }

    fn from_line(line: &str) -> anyhow::Result<Self> {
        match line.split_ascii_whitespace().find_map(|word| word.strip_prefix(FIELD)) {
            None => Ok(Self::Virtual),
            Some("wall") => Ok(Self::Wall),
            Some(other) => bail!("{FIELD}{other} on the kernel command line: no such clock"),
        }
    }

    /// Waits until the kernel knows how fast its clock runs; a virtual one's speed is given.
    ///
    /// # Errors
    /// If it never finds out.
    pub fn settle(self) -> anyhow::Result<()> {
        if self == Self::Virtual {
            return Ok(());
        }
        for _ in 0..LOOKS {
            if clock_source()? != UNREFINED {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        bail!("the kernel could not calibrate its clock: is this machine that busy?")
    }

    /// Its name in the manifest.
    pub fn word(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Wall => "guest-wall",
        }
    }
}

/// Return what the kernel reads its clock from, such as tsc.
///
/// # Errors
/// If /sys is not mounted.
pub fn clock_source() -> anyhow::Result<String> {
    Ok(fs::read_to_string(SOURCE).context(SOURCE)?.trim().to_owned())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_which() {
        let of = |line| Clock::from_line(line).ok();
        assert_eq!(of("quiet joj.handout=0x1:0x2\n"), Some(Clock::Virtual));
        assert_eq!(of("quiet joj.clock=wall panic=-1\n"), Some(Clock::Wall));
        assert_eq!(of("joj.clock=sun"), None);
    }
}
