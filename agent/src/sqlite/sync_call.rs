//! The system call behind SQLite's syncs, chosen at run time. SQLite's unix VFS calls fsync()
//! unless built with HAVE_FDATASYNC; our build has it and renames that call (see
//! .cargo/config.toml), so that it lands here. The switch is technique 1 of "I/O Stack
//! Optimization for Smartphones" (USENIX ATC 2013).

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::record::words;

words! {
    /// The system call by which SQLite makes a file or a directory durable.
    SyncChoice { Fsync = "fsync", Fdatasync = "fdatasync" }
}

static FDATASYNC: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Chooses the call for every later sync of this process.
pub fn choose(call: SyncChoice) {
    FDATASYNC.store(call == SyncChoice::Fdatasync, Ordering::Relaxed);
}

/// Syncs SQLite has made in this thread so far, of files and directories alike.
pub fn count() -> u32 {
    CALLS.get()
}

/// What SQLite calls for fdatasync(); 0, or -1 with errno set, as fsync(2).
#[unsafe(no_mangle)]
extern "C" fn joj_sync_call(descriptor: c_int) -> c_int {
    CALLS.set(CALLS.get() + 1);
    if FDATASYNC.load(Ordering::Relaxed) {
        // SAFETY: a plain system call on a descriptor that SQLite owns.
        unsafe { libc::fdatasync(descriptor) }
    } else {
        // SAFETY: as above.
        unsafe { libc::fsync(descriptor) }
    }
}
