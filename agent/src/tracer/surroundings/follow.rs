//! Where a path leads, without waiting: follows its symbolic links by what the kernel has in
//! memory, or on one filesystem alone.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Where a path leads.
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
pub fn follow(folder: &str) -> LinkTarget {
    followed(openat2(CWD, folder, FOLDER, Mode::empty(), ResolveFlags::CACHED))
}

/// Never leaves the filesystem that is mounted there (RESOLVE_NO_XDEV).
pub fn follow_within(point: &str, folder: &str) -> LinkTarget {
    let point = if point.is_empty() { "/" } else { point };
    let Ok(top) = openat2(CWD, point, FOLDER, Mode::empty(), ResolveFlags::CACHED) else {
        return LinkTarget::Unknown;
    };
    let folder = format!("./{folder}/");
    followed(openat2(&top, folder, FOLDER, Mode::empty(), ResolveFlags::NO_XDEV))
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn followed(opened: rustix::io::Result<OwnedFd>) -> LinkTarget {
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::mount::{MountFlags, UnmountFlags};
    use rustix::thread::UnshareFlags;

    use super::*;
    use crate::tracer::surroundings::MountWatch;

    #[test]
    fn a_link_is_followed_by_what_is_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap().display().to_string();
        fs::create_dir_all(format!("{top}/real/deep")).unwrap();
        std::os::unix::fs::symlink("real/deep", format!("{top}/link")).unwrap();
        // As the caller did: the way is in memory then, and the link's time is not due.
        fs::metadata(format!("{top}/link/.")).unwrap();
        fs::metadata(format!("{top}/gone")).unwrap_err();
        let to = |path: &str| LinkTarget::To(format!("{top}/{path}"));
        assert_eq!(follow(&format!("{top}/link/")), to("real/deep"));
        assert_eq!(follow(&format!("{top}/link/..")), to("real"));
        assert_eq!(follow(&format!("{top}/gone/")), LinkTarget::Gone);
    }

    /// What has just been made has an access time that is due, and is followed all the same.
    #[test]
    fn a_link_is_followed_on_its_own_filesystem_and_never_out_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap().display().to_string();
        fs::create_dir_all(format!("{top}/real/deep")).unwrap();
        std::os::unix::fs::symlink("real/deep", format!("{top}/link")).unwrap();
        std::os::unix::fs::symlink("/proc", format!("{top}/out")).unwrap();
        let to = |path: &str| LinkTarget::To(format!("{top}/{path}"));
        assert_eq!(follow_within(&top, "/link"), to("real/deep"));
        assert_eq!(follow_within(&top, "/link/.."), to("real"));
        assert_eq!(follow_within(&top, ""), LinkTarget::To(top.clone()));
        assert_eq!(follow_within(&top, "/gone"), LinkTarget::Gone);
        assert_eq!(follow_within(&top, "/out"), LinkTarget::Unknown);
        assert_eq!(follow_within("/", "proc"), LinkTarget::Unknown);
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
            let watch = MountWatch::of("/proc/thread-self/mountinfo").unwrap();
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
