//! What the result of a recorded call means: a descriptor, another file behind a name, or a number
//! that the replay must give as well.

use super::names::{Place, ReplayNames};
use crate::script::plan::RecordedEnd;
use crate::tables::recording::RecordedCall;

/// Calls whose result is a descriptor, an address, or depends on the filesystem.
const OWN_RESULTS: [&str; 15] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "mmap",
    "mremap",
    "getdents",
    "getdents64",
    "readlink",
    "readlinkat",
    "ioctl",
];

/// Notes the names that a call makes, takes away or moves.
pub fn note_changes(row: &RecordedCall, names: &mut ReplayNames) {
    let changes = ["mkdir", "rmdir", "rename", "symlink", "unlinkat"];
    let succeeded = row.result.is_some_and(|result| result >= 0);
    if succeeded && changes.iter().any(|name| row.name.starts_with(name)) {
        names.note_change(row.path_id);
        names.note_change(row.path2_id);
    }
}

/// Lets names lead to other files, or to none, as a call did that succeeded.
pub fn rename(row: &RecordedCall, names: &mut ReplayNames) {
    let place = |id: Option<i64>| match id.and_then(|id| names.place(id)) {
        Some(Place::Here(name)) => Some(name),
        _ => None,
    };
    match (&*row.name, place(row.path_id), place(row.path2_id)) {
        ("rename" | "renameat" | "renameat2", Some(from), Some(to)) => {
            *names.file_mut(to) = names.file_mut(from).take();
        }
        ("link" | "linkat", Some(from), Some(to)) => {
            *names.file_mut(to) = *names.file_mut(from);
        }
        ("unlink" | "unlinkat", Some(name), _) => *names.file_mut(name) = None,
        _ => {}
    }
}

/// Whether a call's result is a descriptor.
pub fn gives_descriptor(row: &RecordedCall) -> bool {
    match &*row.name {
        "open" | "openat" | "openat2" | "creat" | "open_by_handle_at" | "dup" | "dup2" | "dup3"
        | "socket" | "accept" | "accept4" | "eventfd" | "eventfd2" | "epoll_create"
        | "epoll_create1" | "signalfd" | "signalfd4" | "timerfd_create" | "inotify_init"
        | "inotify_init1" | "fanotify_init" | "pidfd_open" | "pidfd_getfd" | "memfd_create"
        | "io_uring_setup" => true,
        "fcntl" => row.command.as_deref().is_some_and(|it| it.starts_with("F_DUPFD")),
        _ => false,
    }
}

/// How a call ended, as far as its replay can end in the same way.
pub fn ended(row: &RecordedCall) -> RecordedEnd {
    match row.result {
        None => RecordedEnd::Unknown,
        Some(result @ ..0) => RecordedEnd::Failed(i32::try_from(-result).ok()),
        Some(_) if OWN_RESULTS.contains(&&*row.name) || row.name.ends_with("xattr") => {
            RecordedEnd::Well
        }
        Some(result) => RecordedEnd::With(result),
    }
}

/// Requests of ioctl(2) that are fcntl(F_SETFD) (asm-generic/ioctls.h).
pub const FIONCLEX: i64 = 0x5450;
pub const FIOCLEX: i64 = 0x5451;

/// Whether execve(2) shall close a descriptor from then on, of a call that sets it.
pub fn sets_close_on_exec(row: &RecordedCall) -> Option<bool> {
    match (&*row.name, row.command.as_deref(), row.flags) {
        ("fcntl", Some("F_SETFD"), flags) => Some(flags.unwrap_or(0) & 1 != 0),
        ("ioctl", _, Some(FIOCLEX)) => Some(true),
        ("ioctl", _, Some(FIONCLEX)) => Some(false),
        _ => None,
    }
}

/// Whether the descriptor that a call gave is closed by execve(2).
pub fn closes_on_exec(row: &RecordedCall) -> bool {
    match &*row.name {
        "fcntl" => row.command.as_deref() == Some("F_DUPFD_CLOEXEC"),
        "dup" | "dup2" => false,
        _ => row.flags.unwrap_or(0) & i64::from(libc::O_CLOEXEC) != 0,
    }
}
