//! UBI: attaches it to an MTD device, makes, empties and removes volumes, and detaches it, by the
//! ioctls of include/uapi/mtd/ubi-user.h. A guest has one raw NAND, and one volume of all of it;
//! the kernel makes UBIFS on the empty volume at the first mount.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::device::disk::Disk;
use crate::record::Allocator;

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

/// A device of UBI, by its number.
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

    /// Return whether there is one of this number.
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
        let result = request(&self.node(), MAKE_VOLUME, (&raw mut volume).cast());
        result.context("making the volume")
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

/// Says what UBIFS is mounted from: the volume that is made.
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

/// Return why UBI can only be read from now on, if that is so.
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

// The large buffers of UBI and UBIFS, in a build of both modules whose parameters choose their
// allocator (kernel/ubi): sets it before the buffers are made, and reads back what lies behind
// each.

/// The folder with the parameters of modules.
const MODULES: &str = "/sys/module";

/// One buffer, as the kernel's memory says (kernel/ubi/chosen_buffers.c).
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Buffer {
    pub module: &'static str,
    pub name: String,
    pub length_bytes: u64,
    pub allocator: String,
    /// In the kernel's address space: hexadecimal, as numbers of JSON may lose digits.
    pub address: String,
    /// The physical address of its first byte.
    pub physical_address: String,
    /// The smallest page of the page tables behind it.
    pub page_bytes: u64,
    /// Stretches that are contiguous in physical memory.
    pub physical_stretches: u64,
}

/// Chooses the allocator of the buffers that a module makes from now on.
///
/// # Errors
/// If the module is the distribution's own, which has no such parameter.
pub fn choose_allocator(module: &'static str, allocator: Allocator) -> anyhow::Result<()> {
    let path = parameter(module, "allocator");
    fs::write(&path, allocator.word()).with_context(|| path.display().to_string())
}

/// The buffers that both modules have now.
///
/// # Errors
/// If they cannot be read, or one is by another allocator than `ubi` or `ubifs`.
pub fn read_buffers(ubi: Allocator, ubifs: Allocator) -> anyhow::Result<Vec<Buffer>> {
    let mut buffers = Vec::new();
    for (module, allocator) in [("ubi", ubi), ("ubifs", ubifs)] {
        let path = parameter(module, "buffers");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ensure!(!text.trim().is_empty(), "{module} has no buffers");
        for line in text.lines().filter(|line| !line.is_empty()) {
            let buffer = parse(module, line).with_context(|| format!("{module}: {line:?}"))?;
            let (name, found) = (&buffer.name, &buffer.allocator);
            ensure!(found == allocator.word(), "{module}: {name} is by {found}, not {allocator}");
            buffers.push(buffer);
        }
    }
    Ok(buffers)
}

fn parameter(module: &str, name: &str) -> PathBuf {
    [MODULES, module, "parameters", name].iter().collect()
}

fn parse(module: &'static str, line: &str) -> anyhow::Result<Buffer> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, bytes, allocator, address, physical, page, stretches] = words[..] else {
        anyhow::bail!("{} words where seven were expected", words.len());
    };
    Ok(Buffer {
        module,
        name: name.to_owned(),
        length_bytes: bytes.parse()?,
        allocator: allocator.to_owned(),
        address: format!("{:#x}", u64::from_str_radix(address, 16)?),
        physical_address: format!("{:#x}", u64::from_str_radix(physical, 16)?),
        page_bytes: page.parse()?,
        physical_stretches: stretches.parse()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_what_its_line_says() {
        let line = "peb_buf 131072 vmalloc ffffc90000a5d000 1f3a000 4096 32";
        let buffer = parse("ubi", line).unwrap();
        assert_eq!((buffer.name.as_str(), buffer.allocator.as_str()), ("peb_buf", "vmalloc"));
        assert_eq!((buffer.length_bytes, buffer.page_bytes), (131_072, 4096));
        assert_eq!(buffer.address, "0xffffc90000a5d000");
        assert_eq!(
            (buffer.physical_address.as_str(), buffer.physical_stretches),
            ("0x1f3a000", 32)
        );
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        for line in ["", "peb_buf 131072", "peb_buf many vmalloc 1 2 3 4", "a 1 b 1 2 3 4 5"] {
            assert!(parse("ubi", line).is_err(), "{line:?}");
        }
    }
}
