//! Questions of a trace to the machine it runs on, in addition to the kernel's records: mounts, the
//! meaning of its own paths, targets of symbolic links, tables on a device. The functions are in a
//! struct, so that tests can trace a machine that does not exist.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags, openat2};
use rustix::io::Errno;

use super::classify::{self, layout::Layout};
use super::records::Root;
use crate::device::mounts::{self, MOUNTINFO, Mount};
use crate::device::sysfs;

/// The questions.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// Layout of the filesystem on a device.
    pub read_layout: fn(u32) -> Layout,
    /// The mount table; empty where it cannot be read.
    pub read_mounts: fn() -> Vec<Mount>,
    /// Return what absolute paths mean to this process.
    pub own_root: fn() -> Root,
    /// Return the place of a folder without symbolic links.
    pub follow: fn(&str) -> LinkTarget,
    /// The same of a folder below a mount point, on that filesystem alone; may read its disk.
    pub follow_on_filesystem: fn(&str, &str) -> LinkTarget,
    /// The whole disk that a device is, or is a partition of.
    pub disk_of: fn(u32) -> u32,
}

impl Surroundings {
    /// This machine's answers.
    pub fn here() -> Self {
        Surroundings { read_layout, read_mounts, own_root, follow, follow_on_filesystem, disk_of }
    }

    /// Nothing is mounted, and every device is a whole disk.
    #[cfg(test)]
    pub fn nothing() -> Self {
        Surroundings {
            read_layout: |_| Layout::default(),
            read_mounts: Vec::new,
            own_root: Root::default,
            follow: |_| LinkTarget::Unknown,
            follow_on_filesystem: |_, _| LinkTarget::Unknown,
            disk_of: |device| device,
        }
    }
}

/// Subtypes of metadata are all it is for: a device that cannot be read, because it is gone, has
/// none.
fn read_layout(device: u32) -> Layout {
    let open = |device| fs::File::open(format!("/dev/{}", sysfs::device_name(device).ok()?)).ok();
    open(device).and_then(|file| classify::read_layout(&file).ok()).unwrap_or_default()
}

fn read_mounts() -> Vec<Mount> {
    mounts::read().unwrap_or_default()
}

fn disk_of(device: u32) -> u32 {
    sysfs::disk_number(device).unwrap_or(device)
}

/// All zero, which no process has, where the system does not report it.
fn own_root() -> Root {
    let (flags, mask) = (AtFlags::empty(), StatxFlags::INO | StatxFlags::MNT_ID);
    let namespace = fs::metadata("/proc/self/ns/mnt").map(|file| file.ino() as u32);
    let (Ok(root), Ok(namespace)) = (rustix::fs::statx(CWD, "/", flags, mask), namespace) else {
        return Root::default();
    };
    let of_mount = root.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    Root { namespace, mount: root.stx_mnt_id as u32, inode: root.stx_ino, of_mount }
}

/// The place that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    To(String),
    /// There is no such folder any more.
    Gone,
    /// Unknown: the answer would require waiting.
    Unknown,
}

/// Uses what is in memory (RESOLVE_CACHED, openat2(2)): other processes choose these paths, and
/// a network filesystem that does not answer must not delay emptying the ring. The process whose
/// path it is has just gone that way, so it is in memory. But a symbolic link whose access time is
/// due is not followed so (legitimize_links() in fs/namei.c), as one that is as old as its use.
fn follow(folder: &str) -> LinkTarget {
    target_of(openat2(CWD, folder, FOLDER, Mode::empty(), ResolveFlags::CACHED))
}

/// Never leaves the filesystem that is mounted there (RESOLVE_NO_XDEV).
fn follow_on_filesystem(point: &str, folder: &str) -> LinkTarget {
    let point = if point.is_empty() { "/" } else { point };
    let Ok(top) = openat2(CWD, point, FOLDER, Mode::empty(), ResolveFlags::CACHED) else {
        return LinkTarget::Unknown;
    };
    let folder = format!("./{folder}/");
    target_of(openat2(&top, folder, FOLDER, Mode::empty(), ResolveFlags::NO_XDEV))
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn target_of(opened: rustix::io::Result<OwnedFd>) -> LinkTarget {
    match opened {
        Ok(file) => path_of(&file).map_or(LinkTarget::Gone, LinkTarget::To),
        Err(Errno::NOENT | Errno::NOTDIR) => LinkTarget::Gone,
        Err(_) => LinkTarget::Unknown,
    }
}

/// None where it was removed in between.
fn path_of(file: &impl AsRawFd) -> Option<String> {
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let path = path.to_str()?;
    (path.starts_with('/') && !path.ends_with(" (deleted)")).then(|| path.to_owned())
}

/// Tells when something was mounted or unmounted, without reading the mount table.
pub struct MountWatch {
    file: fs::File,
}

impl MountWatch {
    /// Watches from now on; None where the system does not report changes.
    pub fn new() -> Option<Self> {
        Self::watch_table(MOUNTINFO)
    }

    /// The same by another thread's table.
    fn watch_table(table: &str) -> Option<Self> {
        Some(MountWatch { file: fs::File::open(table).ok()? })
    }

    /// Since the last time that this was asked (proc_pid_mounts(5)).
    pub fn is_changed(&self) -> bool {
        let mut sets = [PollFd::new(&self.file, PollFlags::PRI)];
        poll(&mut sets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::mount::{MountFlags, UnmountFlags};
    use rustix::thread::UnshareFlags;

    use super::*;

    #[test]
    fn own_root_and_disks_are_told() {
        let root = own_root();
        assert!(root.namespace > 0 && root.inode > 0 && root.mount > 0, "{root:?}");
        assert_eq!(disk_of(u32::MAX), u32::MAX);
    }

    #[test]
    fn a_link_is_followed_by_what_is_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap().display().to_string();
        fs::create_dir_all(format!("{top}/real/deep")).unwrap();
        std::os::unix::fs::symlink("real/deep", format!("{top}/link")).unwrap();
        // As the caller did: the way is in memory then, and the link's time is not due, but for a
        // link made within the same tick of the kernel's clock (relatime_need_update() in
        // fs/inode.c).
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(4));
            fs::metadata(format!("{top}/link/.")).unwrap();
        }
        fs::metadata(format!("{top}/gone")).unwrap_err();
        let to = |path: &str| LinkTarget::To(format!("{top}/{path}"));
        assert_eq!(follow(&format!("{top}/link/")), to("real/deep"));
        assert_eq!(follow(&format!("{top}/link/..")), to("real"));
        assert_eq!(follow(&format!("{top}/gone/")), LinkTarget::Gone);
    }

    /// A folder that has just been made has an access time that is due, and is followed all the
    /// same.
    #[test]
    fn a_link_is_followed_on_its_own_filesystem_and_never_out_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap().display().to_string();
        fs::create_dir_all(format!("{top}/real/deep")).unwrap();
        std::os::unix::fs::symlink("real/deep", format!("{top}/link")).unwrap();
        std::os::unix::fs::symlink("/proc", format!("{top}/out")).unwrap();
        let to = |path: &str| LinkTarget::To(format!("{top}/{path}"));
        assert_eq!(follow_on_filesystem(&top, "/link"), to("real/deep"));
        assert_eq!(follow_on_filesystem(&top, "/link/.."), to("real"));
        assert_eq!(follow_on_filesystem(&top, ""), LinkTarget::To(top.clone()));
        assert_eq!(follow_on_filesystem(&top, "/gone"), LinkTarget::Gone);
        assert_eq!(follow_on_filesystem(&top, "/out"), LinkTarget::Unknown);
        assert_eq!(follow_on_filesystem("/", "proc"), LinkTarget::Unknown);
    }

    /// FUSE without a server stands for a network that does not answer: whoever looks a name up
    /// there waits for ever.
    #[test]
    fn a_filesystem_that_does_not_answer_holds_nobody_up_and_a_mount_is_noticed() {
        if !rustix::process::geteuid().is_root() || !std::path::Path::new("/dev/fuse").exists() {
            // Listed in tests/skips.toml. The test harness keeps what eprintln! prints to itself.
            let mut stderr = std::io::stderr();
            writeln!(stderr, "skipped: {}: needs root and /dev/fuse", file!()).unwrap();
            return;
        }
        let (sender, receiver) = mpsc::channel();
        // A thread of its own, whose mounts nobody else sees.
        std::thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            // SAFETY: no descriptors are unshared, which is what others could rely on.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) }
                .unwrap();
            let flags = rustix::mount::MountPropagationFlags::REC
                | rustix::mount::MountPropagationFlags::PRIVATE;
            rustix::mount::mount_change("/", flags).unwrap();
            // Of this thread; /proc/self is the first thread's.
            let watch = MountWatch::watch_table("/proc/thread-self/mountinfo").unwrap();
            let before = watch.is_changed();
            let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
            let options =
                format!("fd={},rootmode=40000,user_id=0,group_id=0\0", device.as_raw_fd());
            let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).unwrap();
            rustix::mount::mount("none", folder.path(), "fuse", MountFlags::empty(), options)
                .unwrap();
            let changed = [before, watch.is_changed(), watch.is_changed()];
            let followed = follow(&format!("{}/x/", folder.path().display()));
            rustix::mount::unmount(folder.path(), UnmountFlags::DETACH).unwrap();
            sender.send((changed, followed)).unwrap();
        });
        let told = receiver.recv_timeout(Duration::from_secs(60)).expect("nobody waits");
        assert_eq!(told, ([false, true, false], LinkTarget::Unknown));
    }
}
