//! UBI: attaches it to an MTD device, makes, empties and removes volumes, and detaches it, by the
//! ioctls of include/uapi/mtd/ubi-user.h. A guest has one raw NAND, and one volume of all of it;
//! the kernel makes UBIFS on the empty volume at the first mount.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use crate::device::disk::Disk;

const CONTROL: &str = "/dev/ubi_ctrl";
const CLASS: &str = "/sys/class/ubi";

/// _IOW('o', 64, struct ubi_attach_req), _IOW('o', 65, __s32): the number of the UBI device.
const ATTACH: libc::c_ulong = 0x4018_6f40;
const DETACH: libc::c_ulong = 0x4004_6f41;
/// _IOW('o', 0, struct ubi_mkvol_req), _IOW('o', 1, __s32): the number of the volume.
const MAKE_VOLUME: libc::c_ulong = 0x4098_6f00;
const REMOVE_VOLUME: libc::c_ulong = 0x4004_6f01;
/// _IOW('O', 0, __s64) of a volume: the bytes that it is to hold.
const UPDATE_VOLUME: libc::c_ulong = 0x4008_4f00;
const DYNAMIC_VOLUME: i8 = 3;
const NAME: &[u8] = b"flash";

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

/// By its number.
#[derive(Debug, Clone, Copy)]
pub struct UbiDevice(pub i32);

impl UbiDevice {
    /// The next number that is free, for `attach`.
    pub const ANY: i32 = -1;

    /// Attaches UBI to the MTD device of a number, as the UBI device of a number or `ANY`.
    ///
    /// # Errors
    /// If the kernel refuses, as what is there is damaged or not UBI's.
    pub fn attach(mtd: i32, number: i32) -> anyhow::Result<Self> {
        let mut attach = AttachRequest {
            ubi: number,
            mtd,
            header_offset: 0,
            most_bad_per_1024: 0,
            padding: [0; 10],
        };
        let control = Path::new(CONTROL);
        request(control, ATTACH, (&raw mut attach).cast()).context("attaching UBI")?;
        Ok(Self(attach.ubi))
    }

    /// Whether there is one of this number.
    pub fn is_attached(self) -> bool {
        self.folder().exists()
    }

    /// Nothing of its volumes is in use.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn detach(self) -> anyhow::Result<()> {
        let mut number = self.0;
        let control = Path::new(CONTROL);
        request(control, DETACH, (&raw mut number).cast()).context("detaching UBI")
    }

    /// Makes one volume of all that is free.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn make_volume(self) -> anyhow::Result<()> {
        let mut volume = VolumeRequest {
            volume: 0,
            alignment: 1,
            bytes: self.number("avail_eraseblocks")? * self.number("eraseblock_size")?,
            kind: DYNAMIC_VOLUME,
            flags: 0,
            name_length: NAME.len() as i16,
            padding: [0; 4],
            name: [0; 128],
        };
        volume.name[..NAME.len()].copy_from_slice(NAME);
        let made = request(&self.node(), MAKE_VOLUME, (&raw mut volume).cast());
        made.context("making the volume")
    }

    /// The volume's node.
    pub fn volume(self) -> PathBuf {
        format!("/dev/ubi{}_0", self.0).into()
    }

    /// Removes every volume, with what is in it; erase counters stay.
    ///
    /// # Errors
    /// If one is in use.
    pub fn remove_volumes(self) -> anyhow::Result<()> {
        let prefix = format!("ubi{}_", self.0);
        for entry in fs::read_dir(CLASS).context(CLASS)? {
            let name = entry.context(CLASS)?.file_name().to_string_lossy().into_owned();
            let Some(Ok(mut volume)) = name.strip_prefix(&prefix).map(str::parse::<i32>) else {
                continue;
            };
            let removed = request(&self.node(), REMOVE_VOLUME, (&raw mut volume).cast());
            removed.with_context(|| format!("removing the volume {name}"))?;
        }
        Ok(())
    }

    /// Empties the volume, and waits until everything that UBI has to erase is erased
    /// (`ubi_start_update()` in drivers/mtd/ubi/upd.c, with no bytes).
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn empty_volume(self) -> anyhow::Result<()> {
        let mut bytes = 0_i64;
        let emptied = request(&self.volume(), UPDATE_VOLUME, (&raw mut bytes).cast());
        emptied.context("emptying the volume")
    }

    /// A number that UBI tells of it in sysfs.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn number(self, name: &str) -> anyhow::Result<i64> {
        let path = self.folder().join(name);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        text.trim().parse().with_context(|| format!("{}: {text}", path.display()))
    }

    fn node(self) -> PathBuf {
        format!("/dev/ubi{}", self.0).into()
    }

    fn folder(self) -> PathBuf {
        Path::new(CLASS).join(format!("ubi{}", self.0))
    }
}

fn request(node: &Path, number: libc::c_ulong, argument: *mut libc::c_void) -> anyhow::Result<()> {
    // devtmpfs makes the node.
    let file = OpenOptions::new().read(true).write(true).open(node);
    let file = file.with_context(|| node.display().to_string())?;
    // SAFETY: the argument is what this ioctl takes, of its size, and lives on.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), number, argument) };
    if done < 0 {
        return Err(std::io::Error::last_os_error()).context(node.display().to_string());
    }
    Ok(())
}

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
