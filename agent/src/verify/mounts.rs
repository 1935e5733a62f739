//! Files that are reached by other mounts than the filesystem's own: a bind mount, a root directory
//! of its own, an overlay as containers have it, one path that leads to two files, and a snapshot
//! of a subvolume. But for that, a thread does it in a mount namespace of its own
//! (mount_namespaces(7)), and leaves nothing behind.

use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, chroot};
use std::path::Path;

use anyhow::Context;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::log::{KnownFile, Log};
use super::side_writes::LeftOutReason;

const PAGE: usize = 4096;

/// A folder of the filesystem: as it is reached, its path there, and itself.
struct ReachedFolder<'a> {
    at: &'a Path,
    path: &'a str,
    folder: &'a File,
}

/// Files below a folder that is seen at a second place.
pub fn write_to_bind_mount(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let [source, place] = ["bind-source", "bind-place"].map(|name| directory.join(name));
    fs::create_dir(&source)?;
    fs::create_dir(&place)?;
    let folder = File::open(&source)?;
    elsewhere(|| {
        rustix::mount::mount_bind(&source, &place).context("a bind mount")?;
        write_and_rename(&ReachedFolder { at: &place, path: "/bind-source", folder: &folder }, log)
    })?;
    Ok(None)
}

/// Write files by absolute paths below another root directory (chroot(2)).
pub fn write_below_root(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let root = directory.join("root");
    fs::create_dir(&root)?;
    let folder = File::open(&root)?;
    elsewhere(|| {
        enter(&root)?;
        write_and_rename(&ReachedFolder { at: Path::new("/"), path: "/root", folder: &folder }, log)
    })?;
    Ok(None)
}

/// Two programs, each of which has a folder of its own at one path, with a file of one name.
pub fn write_at_same_path(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let place = directory.join("same");
    fs::create_dir(&place)?;
    let first = log.known.len();
    for (number, source) in ["one", "other"].into_iter().enumerate() {
        fs::create_dir(directory.join(source))?;
        elsewhere(|| {
            rustix::mount::mount_bind(directory.join(source), &place).context("a bind mount")?;
            let file = create(&place.join("app"))?;
            let number = (first + number) as u32;
            log.known.push(KnownFile::new(number, &format!("/{source}/app"), file)?);
            write(&mut log.known[number as usize], 0)
        })?;
    }
    for round in 1..3 {
        log.known[first..].iter_mut().try_for_each(|known| write(known, round))?;
    }
    Ok(None)
}

pub fn on_overlay(
    directory: &Path,
    name: &str,
    is_root: bool,
    log: &mut Log,
) -> anyhow::Result<LeftOutReason> {
    let base = directory.join(name);
    let [lower, upper, work, merged] =
        ["lower", "upper", "work", "merged"].map(|layer| base.join(layer));
    for folder in [&base, &lower, &upper, &work, &merged] {
        fs::create_dir(folder)?;
    }
    // What is only read is in the lower layer, and is copied up when it is opened to be written.
    let bytes: Vec<u8> = (0..5 * PAGE).map(|at| (at / 11) as u8 | 1).collect();
    let copied = File::create_new(lower.join("copied"))?;
    copied.write_all_at(&bytes, 0)?;
    copied.sync_all()?;
    let path = format!("/{name}/upper");
    for layer in ["lower", "upper"] {
        log.recorded.write(&format!("/{name}/{layer}/copied"), 0, &bytes);
    }
    let folder = File::open(&upper)?;
    elsewhere(|| {
        let layers = [("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)];
        let options = layers.map(|(option, layer)| format!("{option}={}", layer.display()));
        let options = CString::new(options.join(","))?;
        let flags = MountFlags::empty();
        match rustix::mount::mount("overlay", &merged, "overlay", flags, options.as_c_str()) {
            Ok(()) => {}
            // The kernel has none, or the filesystem cannot have its layers.
            Err(error @ (Errno::NODEV | Errno::INVAL)) => {
                return Ok(Some(format!("mount: {error}")));
            }
            Err(error) => return Err(error).context("an overlay"),
        }
        if is_root {
            enter(&merged)?;
        }
        let at = if is_root { Path::new("/") } else { &merged };
        write_and_rename(&ReachedFolder { at, path: &path, folder: &folder }, log)?;
        // All of it: XFS and Btrfs copy up by sharing extents, whose bytes are then of two files.
        let file = OpenOptions::new().write(true).open(at.join("copied"))?;
        let changed: Vec<u8> = bytes.iter().map(|byte| byte ^ 2).collect();
        file.write_all_at(&changed, 0)?;
        log.recorded.write(&format!("{path}/copied"), 0, &changed);
        file.sync_all()?;
        Ok(None)
    })
}

fn create(path: &Path) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(true);
    options.open(path).with_context(|| path.display().to_string())
}

/// A file is made, written, renamed by the path that it has here, written once more, and closed.
fn write_and_rename(reached: &ReachedFolder, log: &mut Log) -> anyhow::Result<()> {
    let ReachedFolder { at, path, folder } = reached;
    let mut known =
        KnownFile::new(log.known.len() as u32, &format!("{path}/made"), create(&at.join("made"))?)?;
    known.inode = rustix::fs::statat(folder, "made", AtFlags::empty())?.st_ino;
    write(&mut known, 0)?;
    fs::rename(at.join("made"), at.join("renamed"))?;
    known.paths.push(format!("{path}/renamed"));
    File::open(at)?.sync_all()?;
    write(&mut known, 1)?;
    known.close();
    log.known.push(known);
    Ok(())
}

fn write(known: &mut KnownFile, round: u64) -> anyhow::Result<()> {
    Ok(known.write_durably(round * PAGE as u64, 3 * PAGE)?)
}

/// Makes a folder the root directory of this thread, which has one of its own.
fn enter(root: &Path) -> anyhow::Result<()> {
    chroot(root).context("chroot")?;
    std::env::set_current_dir("/").context("chdir")
}

/// Does something in a thread with mounts and a root directory of its own; they are gone when this
/// returns, so that the filesystem can be unmounted.
pub(super) fn elsewhere<T: Send>(
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let inside = || {
        let before = File::open("/proc/thread-self/ns/mnt").context("/proc")?;
        // SAFETY: descriptors are not affected.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.context("unshare")?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", private).context("private mounts")?;
        let result = work();
        let kind = Some(LinkNameSpaceType::Mount);
        move_into_link_name_space(before.as_fd(), kind).context("setns")?;
        result
    };
    std::thread::scope(|scope| scope.spawn(inside).join().expect("the thread does not panic"))
}

/// _IOW(0x94, 14 and 1, struct btrfs_ioctl_vol_args), include/uapi/linux/btrfs.h.
const SUBVOL_CREATE: libc::c_ulong = 0x5000_940e;
const SNAP_CREATE: libc::c_ulong = 0x5000_9401;

/// struct btrfs_ioctl_vol_args.
#[repr(C)]
struct VolumeArguments {
    descriptor: i64,
    name: [u8; 4088],
}

/// Return whether the filesystem has subvolumes.
pub fn has_subvolumes(directory: &Path) -> anyhow::Result<bool> {
    Ok(rustix::fs::statfs(directory)?.f_type == libc::BTRFS_SUPER_MAGIC)
}

/// A file in a subvolume and the same in a snapshot of it (btrfs-subvolume(8)), whose inodes have
/// number and generation in common: both are written by turns, in whole pages. A part of one would
/// have the rest written too, which still holds what the other file was stamped with.
pub fn snapshots(directory: &Path, log: &mut Log) -> anyhow::Result<LeftOutReason> {
    let folder = File::open(directory)?;
    ask(&folder, SUBVOL_CREATE, 0, c"original").context("a subvolume")?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let path = |name: &str| directory.join(name).join("file");
    let file = options.clone().create_new(true).open(path("original"))?;
    let number = log.known.len() as u32;
    let mut original = KnownFile::new(number, "/original/file", file)?;
    let page = crate::process::page_bytes();
    original.write_durably(0, 8 * page)?;
    let source = File::open(directory.join("original"))?;
    ask(&folder, SNAP_CREATE, source.as_raw_fd().into(), c"copy").context("a snapshot")?;
    let mut copy = KnownFile::new(number + 1, "/copy/file", options.open(path("copy"))?)?;
    for round in 0..2 {
        copy.write_durably((round + 1) * page as u64, 3 * page)?;
        original.write_durably((2 * round + 3) * page as u64, 2 * page)?;
    }
    log.known.extend([original, copy]);
    Ok(None)
}

fn ask(folder: &File, what: libc::c_ulong, source: i64, name: &CStr) -> std::io::Result<()> {
    let mut arguments = VolumeArguments { descriptor: source, name: [0; 4088] };
    arguments.name[..name.count_bytes()].copy_from_slice(name.to_bytes());
    // SAFETY: both calls read a struct btrfs_ioctl_vol_args, whose name ends with NUL.
    match unsafe { libc::ioctl(folder.as_raw_fd(), what, &raw const arguments) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
