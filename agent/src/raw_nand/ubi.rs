//! UBI on the one raw NAND of a guest: attaches it, formats it, and makes one volume of all of it.
//! The kernel makes UBIFS on the empty volume at the first mount.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::ubi_device::UbiDevice;
use crate::device::disk::Disk;

/// The NAND as MTD has it.
pub const MTD: &str = "/dev/mtd0";

/// What UBIFS is mounted from: the volume that is made.
pub const VOLUME: &str = "/dev/ubi0_0";

const DEVICE: UbiDevice = UbiDevice(0);

/// UBI erases an empty NAND in the background: it has done so when nothing has been asked of the
/// NAND for so many looks.
const QUIET_LOOKS: u32 = 5;
const LOOK: Duration = Duration::from_millis(20);
const MOST_LOOKS: u32 = 1 << 20;

/// Attaches UBI to the NAND, formats it, and makes the volume.
///
/// # Errors
/// If a module is not in the image, or the kernel refuses.
pub fn make_volume(nand: &Disk) -> anyhow::Result<()> {
    attach()?;
    wait_until_quiet(nand)?;
    DEVICE.make_volume()?;
    wait_until_quiet(nand)
}

/// Attaches UBI to what is on the NAND.
///
/// # Errors
/// If the kernel refuses, as what is there is damaged beyond use.
pub fn attach() -> anyhow::Result<()> {
    UbiDevice::attach(0, DEVICE.0).map(drop)
}

/// Detaches UBI, if it is attached. Nothing of the volume is in use.
///
/// # Errors
/// If the kernel refuses.
pub fn detach() -> anyhow::Result<()> {
    if DEVICE.is_attached() { DEVICE.detach() } else { Ok(()) }
}

/// Why UBI can only be read from now on, if that is so.
pub fn read_only_reason(nand: &Disk) -> Option<String> {
    if DEVICE.number("ro_mode").ok()? == 0 {
        return None;
    }
    let bad = nand.statistics().ok()?.get("bad_blocks").copied()?;
    let spare = DEVICE.number("reserved_for_bad").ok()?;
    Some(format!(
        "UBI lets raw NAND only be read from now on: {bad} of its blocks are bad, and {spare} are \
         left to take the place of others"
    ))
}

/// Bytes of a block of what MTD has as `node`.
///
/// # Errors
/// If it has nothing of that name.
pub fn block_bytes(node: &Path) -> anyhow::Result<u64> {
    let name = node.file_name().unwrap_or_default();
    let path = Path::new("/sys/class/mtd").join(name).join("erasesize");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.trim().parse().with_context(|| format!("{}: {text}", path.display()))
}

/// Waits until UBI's thread has nothing to do.
///
/// # Errors
/// If it never comes to rest.
pub fn wait_until_quiet(nand: &Disk) -> anyhow::Result<()> {
    let (mut before, mut quiet) = (nand.statistics()?, 0);
    for _ in 0..MOST_LOOKS {
        thread::sleep(LOOK);
        let now = nand.statistics()?;
        quiet = if now == before && now.get("in_flight") == Some(&0) { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS {
            return Ok(());
        }
        before = now;
    }
    anyhow::bail!("UBI never came to rest on {}", nand.name())
}
