//! Prepares a guest for its programs: mounts /proc, /sys and /dev, loads the kernel modules of the
//! initramfs, and seeds the kernel's generator of random numbers.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Context;
use rustix::mount::{MountFlags, mount};
use rustix::system::finit_module;

/// Loads every module that `folder`/order names, in its order: one file name a line, dependencies
/// first, and the module's parameters after a space.
///
/// # Errors
/// With the file that is missing, or that the kernel refused.
pub fn load_modules(folder: &Path) -> anyhow::Result<()> {
    let order = folder.join("order");
    let names = fs::read_to_string(&order).with_context(|| format!("{}", order.display()))?;
    for line in names.lines() {
        let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
        let parameters =
            CString::new(parameters).with_context(|| format!("parameters of {name}"))?;
        let path = folder.join(name);
        let file = File::open(&path).with_context(|| format!("{}", path.display()))?;
        finit_module(&file, &parameters, 0)
            .with_context(|| format!("the kernel refused the module {}", path.display()))?;
    }
    Ok(())
}

/// Mount points of the kernel's filesystems. The folders are in the initramfs, a tmpfs.
const MOUNTS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];

/// The list of mounts under its old name, without which mkfs.nilfs2 makes no filesystem.
const MOUNT_LIST: &str = "/etc/mtab";

/// Mounts all of them, and makes the list.
///
/// # Errors
/// With the place that could not be mounted or made.
pub fn mount_kernel_filesystems() -> anyhow::Result<()> {
    for (filesystem, place) in MOUNTS {
        mount(filesystem, place, filesystem, MountFlags::empty(), None)
            .with_context(|| format!("cannot mount {filesystem} on {place}"))?;
    }
    std::fs::create_dir_all("/etc").context("/etc")?;
    symlink("/proc/self/mounts", MOUNT_LIST).context(MOUNT_LIST)
}

/// _IOW('R', 0x03, int[2]), include/uapi/linux/random.h.
const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
const SEED: [u8; 32] = *b"jojlab: the seed of every guest.";

/// struct rand_pool_info of include/uapi/linux/random.h, with its buffer.
#[repr(C)]
struct RandomPool {
    entropy_bits: libc::c_int,
    seed_bytes: libc::c_int,
    seed: [u8; SEED.len()],
}

/// Seeds the kernel's generator of random numbers, which finds no source of them in a guest: it
/// would collect the jitter of its own clock for a second of virtual time
/// (try_to_generate_entropy() in drivers/char/random.c), a fifth of the 5.2 thousand million
/// instructions of a boot, and a guest's numbers are to be the same in every boot anyway.
///
/// # Errors
/// If the kernel refuses the seed: only root may give one.
pub fn seed_random_numbers() -> io::Result<()> {
    let pool = RandomPool { entropy_bits: 256, seed_bytes: 32, seed: SEED };
    let file = File::open("/dev/urandom")?;
    // SAFETY: the call reads a rand_pool_info and as many bytes behind it as its length says.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), RNDADDENTROPY, &raw const pool) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
