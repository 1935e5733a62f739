//! Calls whose making depends on more than their arguments: those that open, copy and close
//! descriptors, map files, and lock them.

use super::arguments::{self, CallDraft, FIOCLEX};
use super::order::Resource;
use super::scene::{Mapping, NOT_OPENED, NoStep, TOO_FAR, UNKNOWN_END};
use crate::process::page_bytes;
use crate::system_calls;
use crate::workload::replay::plan::{CallArgument, CallEffect, RecordLock};

/// The flags of open(2) that are replayed; close-on-exec is ours.
const OPEN_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_APPEND
    | libc::O_CREAT
    | libc::O_DIRECT
    | libc::O_DIRECTORY
    | libc::O_DSYNC
    | libc::O_EXCL
    | libc::O_NOATIME
    | libc::O_NOFOLLOW
    | libc::O_NONBLOCK
    | libc::O_PATH
    | libc::O_SYNC
    | libc::O_TMPFILE
    | libc::O_TRUNC
    | libc::O_CLOEXEC;
/// Largest mapping: an address space has room for thousands.
const MOST_MAPPED: i64 = 1 << 36;

/// Requests of ioctl(2) that ask a file, or tell f2fs of a transaction, and whether they answer:
/// TCGETS, FS_IOC_GETFLAGS, F2FS_IOC_GET_FEATURES, and F2FS_IOC_START_ATOMIC_WRITE,
/// _COMMIT_ATOMIC_WRITE, _ABORT_ATOMIC_WRITE (include/uapi/linux/f2fs.h).
const REQUESTS: [(i64, bool); 6] = [
    (0x5401, true),
    (0x8008_6601, true),
    (0x8004_f50c, true),
    (0xf501, false),
    (0xf502, false),
    (0xf505, false),
];

/// Errors of requests that a file or its filesystem does not know.
const REFUSALS: [&str; 5] = ["ENOTTY", "EOPNOTSUPP", "EINVAL", "EXDEV", "ENOSYS"];

/// A call's name, its number, and what is to be done about it.
type SpecialCall = (&'static str, i64, CallEffect);

macro_rules! call {
    ($name:literal, $number:ident, $effect:expr) => {
        Ok(($name, system_calls::$number, $effect))
    };
}

/// Makes the arguments of a call that is among them; None where it is not.
///
/// # Errors
/// If it is not replayed.
pub fn special(draft: &mut CallDraft) -> Option<Result<SpecialCall, NoStep>> {
    Some(match &*draft.row.name {
        "open" | "openat" | "openat2" | "creat" => open(draft),
        "close" => close(draft),
        "dup" | "dup2" | "dup3" => copy(draft),
        "fcntl" => control(draft),
        "flock" => lock(draft),
        "ioctl" => request(draft),
        "mmap" => map(draft),
        "mremap" => remap(draft),
        "munmap" => unmap(draft),
        "msync" => sync_mapping(draft),
        "sync" => {
            // That of the whole machine would be others' I/O too.
            draft.arguments.push(CallArgument::Root);
            call!("sync", SYS_syncfs, CallEffect::Nothing)
        }
        "fork" | "vfork" | "clone" | "clone3" | "execve" | "execveat" | "exit" | "exit_group"
        | "chdir" | "fchdir" | "getcwd" | "umask" | "close_range" => Err(NoStep::Carried),
        "pipe" | "pipe2" | "socket" | "socketpair" | "accept" | "accept4" | "eventfd"
        | "eventfd2" | "epoll_create" | "epoll_create1" | "signalfd" | "signalfd4"
        | "timerfd_create" | "inotify_init" | "inotify_init1" | "fanotify_init" | "pidfd_open"
        | "memfd_create" => Err(NoStep::Elsewhere),
        _ => return None,
    })
}

fn open(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let row = draft.row;
    let flags = match &*row.name {
        "creat" => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
        _ => system_calls::flags_to_kernel(row.flags.unwrap_or(0)) as i32 & OPEN_FLAGS,
    };
    draft.number(libc::AT_FDCWD.into());
    draft.path(row.path_id, row.path.as_deref())?;
    draft.number((flags | libc::O_CLOEXEC).into());
    draft.number(row.mode.unwrap_or(0o600) & 0o777 & !draft.umask);
    let file = row.device.zip(row.inode);
    if let Some((device, inode)) = file {
        draft.resources.push(Resource::File(device, inode));
    }
    let has_failed = row.result.is_some_and(|result| result < 0);
    let effect = if has_failed {
        CallEffect::Tries
    } else {
        CallEffect::Opens(draft.scene.new_handle(file))
    };
    // All ways of opening are one here: the path is from the root of the replay.
    let name = match &*row.name {
        "open" => "open",
        "creat" => "creat",
        "openat2" => "openat2",
        _ => "openat",
    };
    Ok((name, system_calls::SYS_openat, effect))
}

fn close(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let handle = draft.handle(draft.row.descriptor)?;
    call!("close", SYS_close, CallEffect::Closes(handle))
}

fn copy(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let row = draft.row;
    if row.name != "dup" && row.descriptor == row.descriptor2 {
        return Err(NoStep::Carried);
    }
    let handle = draft.handle(row.descriptor)?;
    let file = draft.scene.file_of(handle);
    draft.number(libc::F_DUPFD_CLOEXEC.into());
    draft.number(3);
    let effect = match row.result {
        Some(0..) => CallEffect::Opens(draft.scene.new_handle(file)),
        _ => CallEffect::Tries,
    };
    let name = match &*row.name {
        "dup" => "dup",
        "dup2" => "dup2",
        _ => "dup3",
    };
    Ok((name, system_calls::SYS_fcntl, effect))
}

fn control(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let row = draft.row;
    let handle = draft.handle(row.descriptor)?;
    let argument = row.flags.unwrap_or(0);
    let settable = i64::from(libc::O_APPEND | libc::O_DIRECT | libc::O_NOATIME | libc::O_NONBLOCK);
    let number = |draft: &mut CallDraft, command: i32, argument: i64| {
        draft.number(command.into());
        draft.number(argument);
        call!("fcntl", SYS_fcntl, CallEffect::Nothing)
    };
    match row.command.as_deref().unwrap_or_default() {
        "F_DUPFD" | "F_DUPFD_CLOEXEC" => {
            let file = draft.scene.file_of(handle);
            let effect = match row.result {
                Some(0..) => CallEffect::Opens(draft.scene.new_handle(file)),
                _ => CallEffect::Tries,
            };
            number(draft, libc::F_DUPFD_CLOEXEC, 3).map(|(name, call, _)| (name, call, effect))
        }
        "F_GETFD" => number(draft, libc::F_GETFD, 0),
        // Whether it closes on exec is done by our own steps.
        "F_SETFD" => number(draft, libc::F_SETFD, libc::FD_CLOEXEC.into()),
        "F_GETFL" => number(draft, libc::F_GETFL, 0),
        "F_SETFL" => {
            number(draft, libc::F_SETFL, system_calls::flags_to_kernel(argument) & settable)
        }
        "F_GETLK" => record_lock(draft, libc::F_GETLK, CallEffect::Nothing),
        "F_SETLK" => record_lock(draft, libc::F_SETLK, CallEffect::Nothing),
        "F_SETLKW" => record_lock(draft, libc::F_SETLKW, CallEffect::Nothing),
        "F_OFD_GETLK" => record_lock(draft, libc::F_OFD_GETLK, CallEffect::Nothing),
        "F_OFD_SETLK" => record_lock(draft, libc::F_OFD_SETLK, CallEffect::Nothing),
        "F_OFD_SETLKW" => record_lock(draft, libc::F_OFD_SETLK, CallEffect::Locks),
        _ => Err(NoStep::LeftOut("such commands of fcntl are not replayed")),
    }
}

/// A call that waits for a lock may wait until its program is killed: nothing tells that it got it.
fn got_lock(draft: &CallDraft) -> Result<(), NoStep> {
    draft.row.result.map(|_| ()).ok_or(NoStep::Carried)
}

/// To the kernel, all processes of a replay are one: its record locks never meet. One that met
/// another's when it was recorded had no effect, and is not made.
fn record_lock(
    draft: &mut CallDraft,
    command: i32,
    effect: CallEffect,
) -> Result<SpecialCall, NoStep> {
    let row = draft.row;
    if matches!(row.error.as_deref(), Some("EAGAIN" | "EACCES" | "EDEADLK")) {
        return Err(NoStep::Carried);
    }
    got_lock(draft)?;
    let kind = match row.lock.as_deref() {
        Some("F_RDLCK") => libc::F_RDLCK,
        Some("F_WRLCK") => libc::F_WRLCK,
        Some("F_UNLCK") => libc::F_UNLCK,
        _ => return Err(NoStep::LeftOut("what it locks is not known")),
    };
    let lock = RecordLock {
        kind: kind as i16,
        whence: row.flags.unwrap_or(0) as i16,
        start: row.offset_bytes.unwrap_or(0),
        length: row.length_bytes.unwrap_or(0),
    };
    draft.scene.locks.push(lock);
    draft.number(command.into());
    draft.arguments.push(CallArgument::Lock((draft.scene.locks.len() - 1) as u32));
    call!("fcntl", SYS_fcntl, effect)
}

fn lock(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let row = draft.row;
    draft.handle(row.descriptor)?;
    got_lock(draft)?;
    let operation = match row.command.as_deref() {
        Some("LOCK_SH") => libc::LOCK_SH,
        Some("LOCK_EX") => libc::LOCK_EX,
        Some("LOCK_UN") => libc::LOCK_UN,
        _ => return Err(NoStep::LeftOut("what it locks is not known")),
    };
    draft.number((operation | libc::LOCK_NB).into());
    let waits = row.flags.unwrap_or(0) as i32 & libc::LOCK_NB == 0;
    call!("flock", SYS_flock, if waits { CallEffect::Locks } else { CallEffect::Nothing })
}

fn request(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let row = draft.row;
    draft.handle(row.descriptor)?;
    if arguments::sets_close_on_exec(row).is_some() {
        // Ours are closed anyway; the recorded one's is done by our own steps.
        draft.number(FIOCLEX);
        draft.number(0);
        return call!("ioctl", SYS_ioctl, CallEffect::Nothing);
    }
    let found = REQUESTS.iter().find(|(number, _)| Some(*number) == row.flags);
    let (number, answers) = match found {
        Some(found) => found,
        // It did nothing: it asked a file whether it is a terminal, or for what its filesystem has
        // not, such as a clone (ioctl_ficlonerange(2)).
        None if row.error.as_deref().is_some_and(|it| REFUSALS.contains(&it)) => {
            return Err(NoStep::Carried);
        }
        None => return Err(NoStep::LeftOut("such requests are not replayed")),
    };
    draft.number(*number);
    draft.arguments.push(if *answers { CallArgument::Into(512) } else { CallArgument::Number(0) });
    call!("ioctl", SYS_ioctl, CallEffect::Nothing)
}

fn map(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let row = draft.row;
    let bytes = row.length_bytes.unwrap_or(0);
    if bytes > MOST_MAPPED || row.offset_bytes.unwrap_or(0) > 1 << 44 {
        return Err(TOO_FAR);
    }
    // Linux maps from a multiple of its page; another machine's may be smaller.
    if row.result >= Some(0) && row.offset_bytes.unwrap_or(0) % page_bytes() as i64 != 0 {
        return Err(NoStep::LeftOut("it maps from within a page of this machine"));
    }
    let mut flags = row.flags.unwrap_or(0) as i32;
    if row.result.ok_or(UNKNOWN_END)? < 0 {
        // Should it not fail here, it is to take no memory.
        flags &= !libc::MAP_POPULATE;
    }
    let is_filled = flags & libc::MAP_POPULATE != 0;
    let populated_bytes = if is_filled { bytes.max(0).cast_unsigned() } else { 0 };
    if !draft.scene.may_populate(populated_bytes) {
        return Err(NoStep::LeftOut("mappings would be filled with more than 1 GiB of memory"));
    }
    let kept = libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_POPULATE | libc::MAP_NORESERVE;
    // Anywhere, and nobody runs what is in it.
    draft.number(0);
    draft.number(bytes);
    draft.number(row.mode.unwrap_or(0) & i64::from(libc::PROT_READ | libc::PROT_WRITE));
    draft.number((flags & kept).into());
    let handle = draft.handle(row.descriptor)?;
    draft.number(row.offset_bytes.unwrap_or(0));
    let Some(address @ 0..) = row.result else {
        return call!("mmap", SYS_mmap, CallEffect::Nothing);
    };
    let number = draft.scene.mapped as u32;
    draft.scene.mapped += 1;
    let writes = row.mode.unwrap_or(0) as i32 & libc::PROT_WRITE != 0;
    let mapping = Mapping {
        number,
        bytes: bytes.max(0).cast_unsigned(),
        file: draft.scene.file_of(handle),
        is_shared: flags & libc::MAP_SHARED != 0 && writes,
        populated_bytes,
    };
    draft.resources.push(Resource::Mapping(number));
    draft.scene.map(draft.process, address, mapping);
    call!("mmap", SYS_mmap, CallEffect::Maps(number, mapping.bytes))
}

/// A mapping becomes longer or shorter, and may move: as a whole.
fn remap(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let (row, process) = (draft.row, draft.process);
    let (address, bytes) = (row.address.unwrap_or(0), row.length_bytes.unwrap_or(0));
    let Some((mapping, offset)) = draft.scene.mapping(process, address) else {
        return Err(NoStep::Elsewhere);
    };
    let to = match row.result {
        Some(to @ 0..) => to,
        Some(_) => return Err(NoStep::Carried),
        None => return Err(UNKNOWN_END),
    };
    if !(1..=MOST_MAPPED).contains(&bytes) {
        return Err(TOO_FAR);
    }
    let is_whole = |old: i64| pages(old.max(0).cast_unsigned()) == pages(mapping.bytes);
    if offset > 0 || !row.offset2_bytes.is_none_or(is_whole) {
        return Err(NoStep::LeftOut("it is about a part of a mapping, or several"));
    }
    if row.flags.unwrap_or(0) & i64::from(libc::MREMAP_DONTUNMAP) != 0 {
        return Err(NoStep::LeftOut("it leaves the old mapping there"));
    }
    draft.arguments.push(CallArgument::Mapped(mapping.number, 0));
    draft.number(mapping.bytes.cast_signed());
    draft.number(bytes);
    // What is beside it differs.
    draft.number(libc::MREMAP_MAYMOVE.into());
    note_mapping(draft, mapping);
    draft.scene.unmap(process, address);
    draft.scene.map(process, to, Mapping { bytes: bytes.cast_unsigned(), ..mapping });
    call!("mremap", SYS_mremap, CallEffect::Remaps(mapping.number, bytes.cast_unsigned()))
}

/// Note what calls about a mapping have in common, of whatever thread they are.
fn note_mapping(draft: &mut CallDraft, mapping: Mapping) {
    draft.resources.push(Resource::Mapping(mapping.number));
    if let Some((device, inode)) = mapping.file {
        draft.resources.push(Resource::File(device, inode));
    }
}

fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(4096)
}

fn unmap(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let (row, process) = (draft.row, draft.process);
    let (address, bytes) = (row.address.unwrap_or(0), row.length_bytes.unwrap_or(0));
    match draft.scene.mapping(process, address) {
        Some((mapping, 0)) if pages(mapping.bytes) == pages(bytes.max(0).cast_unsigned()) => {
            row.result.ok_or(UNKNOWN_END)?;
            note_mapping(draft, mapping);
            draft.arguments.push(CallArgument::Mapped(mapping.number, 0));
            draft.number(bytes);
            if row.result == Some(0) {
                draft.scene.unmap(process, address);
            }
            call!("munmap", SYS_munmap, CallEffect::Unmaps(mapping.number))
        }
        // The end of one mapping, as SQLite does before it makes it longer.
        Some((mapping, offset))
            if offset > 0
                && offset % page_bytes() as u64 == 0
                && pages(offset + bytes.max(0).cast_unsigned()) == pages(mapping.bytes) =>
        {
            row.result.ok_or(UNKNOWN_END)?;
            note_mapping(draft, mapping);
            draft.arguments.push(CallArgument::Mapped(mapping.number, offset));
            draft.number((mapping.bytes - offset).cast_signed());
            if row.result == Some(0) {
                let begin = address - offset.cast_signed();
                draft.scene.unmap(process, begin);
                draft.scene.map(process, begin, Mapping { bytes: offset, ..mapping });
            }
            call!("munmap", SYS_munmap, CallEffect::Cuts(mapping.number, offset))
        }
        _ if draft.scene.has_mapping_in(process, address, bytes) => {
            Err(NoStep::LeftOut("it is about a part of a mapping, or several"))
        }
        _ => Err(NoStep::Elsewhere),
    }
}

/// Return the sync of a mapping. What was stored in it is not known: all of the range is taken to
/// be new.
fn sync_mapping(draft: &mut CallDraft) -> Result<SpecialCall, NoStep> {
    let (row, process) = (draft.row, draft.process);
    let (address, bytes) = (row.address.unwrap_or(0), row.length_bytes.unwrap_or(0));
    let Some((mapping, offset)) = draft.scene.mapping(process, address) else {
        return Err(NoStep::Elsewhere);
    };
    let bytes = bytes.clamp(0, (mapping.bytes - offset).cast_signed());
    draft.arguments.push(CallArgument::Mapped(mapping.number, offset));
    draft.number(bytes);
    draft.number(row.flags.unwrap_or(0));
    note_mapping(draft, mapping);
    let dirties = CallEffect::Dirties(mapping.number, offset, bytes.cast_unsigned());
    call!("msync", SYS_msync, if mapping.is_shared { dirties } else { CallEffect::Nothing })
}

/// Return whether a call that is left out failed for want of a descriptor, as it would again.
pub fn had_no_descriptor(why: NoStep, error: Option<&str>) -> bool {
    why == NOT_OPENED && error == Some("EBADF")
}
