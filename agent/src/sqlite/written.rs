//! What SQLite writes, as it hands it to the kernel: replaces write(2) and pwrite(2) of its VFS by
//! calls that hand the bytes on and tell a listener of them. Shared memory (-shm) is written
//! through a mapping, and not seen here.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libc::{off_t, size_t, ssize_t};

use super::system_calls::{self, Pointer};

/// One write that the kernel took.
pub struct Written<'a> {
    pub path: &'a Path,
    /// How long the file was before.
    pub length_before: usize,
    pub offset: usize,
    pub bytes: &'a [u8],
}

/// Who is told of writes.
type Listener = Box<dyn FnMut(Written) + Send>;

static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

/// Runs `work`; `listener` is told of every write that SQLite makes in this process meanwhile.
///
/// # Panics
/// If SQLite's default VFS does not know the calls: our build always does.
pub fn listen<T>(listener: impl FnMut(Written) + Send + 'static, work: impl FnOnce() -> T) -> T {
    set_listener(Some(Box::new(listener)));
    replace_calls(true);
    let result = work();
    replace_calls(false);
    set_listener(None);
    result
}

fn set_listener(listener: Option<Listener>) {
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = listener;
}

/// SQLite writes by one of the three, as it was built.
fn replace_calls(ours: bool) {
    type WriteCall = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
    type PwriteCall = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
    // SAFETY: see below; off_t has 64 bits on every target of ours.
    let (write, pwrite) = unsafe {
        (
            std::mem::transmute::<WriteCall, Pointer>(write),
            std::mem::transmute::<PwriteCall, Pointer>(pwrite),
        )
    };
    for (name, call) in [(c"write", write), (c"pwrite", pwrite), (c"pwrite64", pwrite)] {
        // SAFETY: both have the types of the calls that they take the place of.
        let is_known = unsafe { system_calls::replace(name, ours.then_some(call)) };
        // It refuses to give back what it was built without.
        assert!(is_known || !ours, "the unix VFS knows {name:?}");
    }
}

unsafe extern "C" fn write(descriptor: c_int, data: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: SQLite's own descriptor.
    let offset = unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
    // SAFETY: SQLite's own arguments, handed on; `tell` reads the same bytes.
    unsafe {
        let before = length_of(descriptor);
        let written = libc::write(descriptor, data, length);
        tell(descriptor, before, offset, data, written);
        written
    }
}

unsafe extern "C" fn pwrite(
    descriptor: c_int,
    data: *const c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: as in `write`.
    unsafe {
        let before = length_of(descriptor);
        let written = libc::pwrite(descriptor, data, length, offset);
        tell(descriptor, before, offset, data, written);
        written
    }
}

fn length_of(descriptor: c_int) -> usize {
    // SAFETY: zeros are a valid stat, which fstat fills.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(descriptor, &raw mut status);
        usize::try_from(status.st_size).unwrap_or_default()
    }
}

/// Tells the listener what was written of a file that had `length_before` bytes.
///
/// # Safety
/// `written`, where it is no error, is how many bytes are at `data`.
unsafe fn tell(
    descriptor: c_int,
    length_before: usize,
    offset: off_t,
    data: *const c_void,
    written: ssize_t,
) {
    let (Ok(length), Ok(offset)) = (usize::try_from(written), usize::try_from(offset)) else {
        return;
    };
    // SAFETY: as our caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{descriptor}")) else { return };
    let mut listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(listener) = listener.as_mut() {
        listener(Written { path: &path, length_before, offset, bytes });
    }
}
