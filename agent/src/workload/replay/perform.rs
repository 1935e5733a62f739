//! Makes one recorded call in the directory of a replay: takes a step, the open files and memory to
//! read to and write from; gives what the kernel said.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};

use crate::script::call::CallName;
use crate::script::step::ReplayStep;

/// Open files of all threads; none where it was closed, or not opened yet.
pub type Handles = Vec<Mutex<Option<File>>>;

/// Makes the call; gives the bytes read or written, 0 of other calls.
///
/// # Errors
/// As the call's.
pub fn perform(
    step: &ReplayStep,
    path: &Path,
    handles: &Handles,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let Some(handle) = step.handle else { return on_path(step, path) };
    let mut handle = handles[handle].lock().unwrap_or_else(PoisonError::into_inner);
    if step.name == CallName::Open {
        let opened = open(path, step.flags);
        let (file, result) = match opened {
            Ok(file) => (Ok(file), Ok(0)),
            // Every use of it is to fail as it does of a closed one: with EBADF (open(2), O_PATH).
            Err(error) => (open(Path::new("/"), libc::O_PATH), Err(error)),
        };
        *handle = Some(file?);
        return result;
    }
    if step.name == CallName::Close {
        drop(handle.take());
        return Ok(0);
    }
    let mut file = handle.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    let bytes = &mut buffer[..step.bytes];
    match step.name {
        CallName::Read => file.read(bytes),
        CallName::Pread => file.read_at(bytes, step.offset),
        CallName::Write => file.write(bytes),
        CallName::Pwrite => file.write_at(bytes, step.offset),
        CallName::Fsync => file.sync_all().map(|()| 0),
        CallName::Fdatasync => file.sync_data().map(|()| 0),
        _ => Ok(rustix::fs::fstat(file).map(|_| 0)?),
    }
}

fn on_path(step: &ReplayStep, path: &Path) -> io::Result<usize> {
    match step.name {
        CallName::Open => open(path, step.flags).map(|_| 0),
        // The script does not say what was asked; SQLite asks whether a journal is there.
        CallName::Access => Ok(rustix::fs::access(path, Access::EXISTS).map(|()| 0)?),
        CallName::Stat => Ok(rustix::fs::stat(path).map(|_| 0)?),
        CallName::Lstat => Ok(rustix::fs::lstat(path).map(|_| 0)?),
        _ => Ok(rustix::fs::unlinkat(CWD, path, AtFlags::empty()).map(|()| 0)?),
    }
}

/// Opens a file for its owner alone. No name in the directory is a link, for none is ever made.
fn open(path: &Path, flags: i32) -> io::Result<File> {
    let flags = OFlags::from_bits_retain(flags.cast_unsigned());
    let kept = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags | kept, Mode::RUSR | Mode::WUSR)?.into())
}

/// Whether an error is the machine's, and not an answer that the recorded app may have got.
pub fn is_fatal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOSPC
                | libc::EDQUOT
                | libc::EIO
                | libc::EMFILE
                | libc::ENFILE
                | libc::ENOMEM
                | libc::EROFS
        )
    )
}
