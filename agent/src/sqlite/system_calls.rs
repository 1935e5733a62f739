//! The system calls of SQLite's unix VFS, which lets each be replaced by name
//! (sqlite.org/c3ref/vfs.html, xSetSystemCall; aSyscall in src/os_unix.c).

use std::ffi::CStr;

use rusqlite::ffi;

/// A function of whichever type: SQLite casts it back before it calls it.
pub type Pointer = unsafe extern "C" fn();

/// Replaces the call of that name for every file from now on; None gives SQLite its own back. False
/// where SQLite was built without the call.
///
/// # Safety
/// The function must have the type of the call that it takes the place of.
///
/// # Panics
/// If SQLite's default VFS is another than the unix one: our build's always is that.
pub unsafe fn replace(name: &CStr, call: Option<Pointer>) -> bool {
    // SAFETY: the default VFS is static; the name is a C string; functions live for ever.
    let result = unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        let set = (*vfs).xSetSystemCall.expect("the unix VFS has xSetSystemCall");
        set(vfs, name.as_ptr(), call)
    };
    result == ffi::SQLITE_OK
}
