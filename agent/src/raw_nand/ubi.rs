//! Attaches UBI to raw NAND, detaches it, and makes one volume of all of it, by the ioctls of
//! include/uapi/mtd/ubi-user.h. The kernel makes UBIFS on the empty volume at the first mount.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use crate::device::disk::Disk;

/// The NAND as MTD has it.
pub const MTD: &str = "/dev/mtd0";

const CONTROL: &str = "/dev/ubi_ctrl";

/// What UBIFS is mounted from: the volume that is made.
pub const VOLUME: &str = "/dev/ubi0_0";

/// _IOW('o', 64, struct ubi_attach_req) and _IOW('o', 0, struct ubi_mkvol_req).
const ATTACH: libc::c_ulong = 0x4018_6f40;
/// _IOW('o', 65, __s32): the number of the UBI device.
const DETACH: libc::c_ulong = 0x4004_6f41;
const MAKE_VOLUME: libc::c_ulong = 0x4098_6f00;
const DYNAMIC_VOLUME: i8 = 3;

const NAME: &[u8] = b"flash";

/// UBI erases an empty NAND in the background: it has done so when nothing has been asked of the
/// NAND for so many looks.
const QUIET_LOOKS: u32 = 5;
const LOOK: Duration = Duration::from_millis(20);
const MOST_LOOKS: u32 = 1 << 20;

/// struct ubi_attach_req.
#[repr(C)]
struct AttachRequest {
    ubi: i32,
    mtd: i32,
    header_offset: i32,
    most_bad_per_1024: i16,
    padding: [i8; 10],
}

/// struct ubi_mkvol_req.
#[repr(C, packed)]
struct VolumeRequest {
    volume: i32,
    alignment: i32,
    bytes: i64,
    kind: i8,
    flags: u8,
    name_length: i16,
    padding: [i8; 4],
    name: [u8; 128],
}

const _: () = assert!(size_of::<AttachRequest>() == 24 && size_of::<VolumeRequest>() == 152);

/// Attaches UBI to the NAND, formats it, and makes the volume; gives the volume's node.
///
/// # Errors
/// If a module is not in the image, or the kernel refuses.
pub fn make_volume(nand: &Disk) -> anyhow::Result<PathBuf> {
    attach()?;
    wait_until_quiet(nand)?;
    let mut volume = VolumeRequest {
        volume: 0,
        alignment: 1,
        bytes: number("avail_eraseblocks")? * number("eraseblock_size")?,
        kind: DYNAMIC_VOLUME,
        flags: 0,
        name_length: NAME.len() as i16,
        padding: [0; 4],
        name: [0; 128],
    };
    volume.name[..NAME.len()].copy_from_slice(NAME);
    request("/dev/ubi0", MAKE_VOLUME, (&raw mut volume).cast()).context("making the volume")?;
    wait_until_quiet(nand)?;
    Ok(PathBuf::from(VOLUME))
}

/// Attaches UBI to what is on the NAND.
///
/// # Errors
/// If the kernel refuses, as what is there is damaged beyond use.
pub fn attach() -> anyhow::Result<()> {
    let mut attach =
        AttachRequest { ubi: 0, mtd: 0, header_offset: 0, most_bad_per_1024: 0, padding: [0; 10] };
    request(CONTROL, ATTACH, (&raw mut attach).cast()).context("attaching UBI")
}

/// Detaches UBI, if it is attached. Nothing of the volume is in use.
///
/// # Errors
/// If the kernel refuses.
pub fn detach() -> anyhow::Result<()> {
    if !Path::new("/sys/class/ubi/ubi0").exists() {
        return Ok(());
    }
    let mut number = 0_i32;
    request(CONTROL, DETACH, (&raw mut number).cast()).context("detaching UBI")
}

/// Why UBI can only be read from now on, if that is so.
pub fn read_only_reason(nand: &Disk) -> Option<String> {
    if number("ro_mode").ok()? == 0 {
        return None;
    }
    let bad = nand.statistics().ok()?.get("bad_blocks").copied()?;
    let spare = number("reserved_for_bad").ok()?;
    Some(format!(
        "UBI lets raw NAND only be read from now on: {bad} of its blocks are bad, and {spare} are \
         left to take the place of others. A part that lasts has a \
         larger endurance_erases or capacity_bytes, or fewer factory_bad_blocks"
    ))
}

fn request(node: &str, number: libc::c_ulong, argument: *mut libc::c_void) -> anyhow::Result<()> {
    let file = open(node)?;
    // SAFETY: the argument is the struct that this ioctl takes, of its size, and lives on.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), number, argument) };
    if done < 0 {
        return Err(std::io::Error::last_os_error()).context(node.to_owned());
    }
    Ok(())
}

/// devtmpfs makes the node.
fn open(node: &str) -> anyhow::Result<File> {
    OpenOptions::new().read(true).write(true).open(node).with_context(|| node.to_owned())
}

fn number(name: &str) -> anyhow::Result<i64> {
    let path = Path::new("/sys/class/ubi/ubi0").join(name);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.trim().parse().with_context(|| format!("{}: {text}", path.display()))
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
