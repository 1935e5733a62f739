//! F2FS's atomic writes under SQLite, chosen at run time. Built with
//! SQLITE_ENABLE_BATCH_ATOMIC_WRITE, SQLite asks every filesystem through ioctl(2) whether it can
//! commit several pages at once (sqlite.org/draft/c3ref/c_fcntl_begin_atomic_write.html), and where
//! F2FS says yes it writes no rollback journal at all. Its VFS lets that call be replaced: ours
//! answers no unless the case wants it, and counts the commits made this way.

use std::cell::Cell;
use std::ffi::{c_int, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use super::system_calls::{self, Pointer};

// _IOR(0xf5, 12, u32) and _IO(0xf5, 2), Linux include/uapi/linux/f2fs.h.
const F2FS_IOC_GET_FEATURES: c_ulong = 0x8004_f50c;
const F2FS_IOC_COMMIT_ATOMIC_WRITE: c_ulong = 0xf502;

static ALLOWED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static COMMITS: Cell<i64> = const { Cell::new(0) };
}

/// Allows or forbids batch atomic writes for every file SQLite opens from now on.
///
/// # Panics
/// If SQLite's default VFS has no `ioctl` to replace: our build always does.
pub fn choose(allowed: bool) {
    ALLOWED.store(allowed, Ordering::Relaxed);
    type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;
    // SAFETY: `ioctl` has the type of the call that it takes the place of; C passes the third
    // argument as it passes any pointer.
    let is_known = unsafe {
        let ours = std::mem::transmute::<Ioctl, Pointer>(ioctl);
        system_calls::replace(c"ioctl", Some(ours))
    };
    assert!(is_known, "the unix VFS knows ioctl");
}

/// Transactions that this thread has committed by F2FS's atomic write.
pub fn commits() -> i64 {
    COMMITS.get()
}

/// What SQLite calls for ioctl().
unsafe extern "C" fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if request == F2FS_IOC_GET_FEATURES && !ALLOWED.load(Ordering::Relaxed) {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
        return -1;
    }
    // SAFETY: SQLite's own arguments, handed on.
    let result = unsafe { libc::ioctl(descriptor, request, argument) };
    if request == F2FS_IOC_COMMIT_ATOMIC_WRITE && result == 0 {
        COMMITS.set(COMMITS.get() + 1);
    }
    result
}
