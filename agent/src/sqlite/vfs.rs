//! The operating system as SQLite sees it in this process: by SQLite's own VFS or by one of vfs/;
//! system calls that are replaced by ours, to see every write and to count batch atomic writes of
//! F2FS; and randomness that depends on the seed alone.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_ulong, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{off_t, size_t, ssize_t};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rusqlite::{Connection, OpenFlags, ffi};

use crate::record::words;

words! {
    /// The VFS between SQLite and its own VFS: none, the one that keeps a WAL and fills it with
    /// zeros, or the one that commits by one redo log of the folder (docs/cure.md).
    Vfs { None = "none", Wal = "wal", Redo = "redo" }
}

unsafe extern "C" {
    // vfs/wal_vfs.h, vfs/redo_vfs.h
    fn joj_wal_register(make_default: c_int) -> c_int;
    fn joj_redo_register(make_default: c_int) -> c_int;
}

/// Serialises registrations: a VFS is one for the whole process.
static REGISTRATION: Mutex<()> = Mutex::new(());

impl Vfs {
    /// Opens a database, and so those that are attached to it later.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn open(self, path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
        type Register = unsafe extern "C" fn(c_int) -> c_int;
        let (register, name): (Register, _) = match self {
            Self::None => return Connection::open_with_flags(path, flags),
            Self::Wal => (joj_wal_register, c"joj_wal"),
            Self::Redo => (joj_redo_register, c"joj_redo"),
        };
        let registration = REGISTRATION.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: it takes a number; SQLite's own functions, which it calls, are linked.
        let result = unsafe { register(0) };
        drop(registration);
        match result {
            ffi::SQLITE_OK => Connection::open_with_flags_and_vfs(path, flags, name),
            code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
        }
    }
}

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

/// One write that the kernel took.
pub struct FileWrite<'a> {
    pub path: &'a Path,
    /// The length of the file before.
    pub length_before: usize,
    pub offset: usize,
    pub bytes: &'a [u8],
}

/// A function that is told of writes.
type Listener = Box<dyn FnMut(FileWrite) + Send>;

static LISTENER: Mutex<Option<Listener>> = Mutex::new(None);

/// Runs `work`; `listener` is told of every write that SQLite makes in this process meanwhile.
///
/// # Panics
/// If SQLite's default VFS does not know the calls: our build always does.
pub fn listen<T>(listener: impl FnMut(FileWrite) + Send + 'static, work: impl FnOnce() -> T) -> T {
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
        let is_known = unsafe { replace(name, ours.then_some(call)) };
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
        listener(FileWrite { path: &path, length_before, offset, bytes });
    }
}

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
/// If they are allowed, and SQLite's default VFS has no `ioctl` to replace, as before 3.21.
pub fn choose(allowed: bool) {
    ALLOWED.store(allowed, Ordering::Relaxed);
    type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;
    // SAFETY: `ioctl` has the type of the call that it takes the place of; C passes the third
    // argument as it passes any pointer.
    let is_known = unsafe {
        let ours = std::mem::transmute::<Ioctl, Pointer>(ioctl);
        replace(c"ioctl", Some(ours))
    };
    assert!(is_known || !allowed, "the unix VFS knows ioctl");
}

/// Transactions that this thread has committed by F2FS's atomic write.
pub fn commits() -> i64 {
    COMMITS.get()
}

/// The function that SQLite calls for ioctl().
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

/// The mount point of the databases, while calls that tell nothing are left out.
static MOUNT_POINT: OnceLock<PathBuf> = OnceLock::new();

/// Has SQLite make no call from now on whose answer is known where no other process has a database
/// open, and none lies elsewhere than below `mount_point`: a lock of a file is always free, the
/// mount point and what it lies in are folders, and a new file is of who made it, root, as its
/// database is. In User Mode Linux each call takes two switches between processes. What is read and
/// written stays the same.
///
/// # Panics
/// If SQLite's default VFS does not know fcntl: every one does.
pub fn leave_known_answers_out(mount_point: &Path) {
    MOUNT_POINT.get_or_init(|| mount_point.to_owned());
    type Fcntl = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;
    type Lstat = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;
    type Geteuid = unsafe extern "C" fn() -> libc::uid_t;
    // SAFETY: all have the types of the calls that they take the place of; C passes the third
    // argument of fcntl as it passes any pointer.
    let is_known = unsafe {
        // An older SQLite does not know these two, and makes the calls, if any, itself.
        replace(c"lstat", Some(std::mem::transmute::<Lstat, Pointer>(lstat)));
        replace(c"geteuid", Some(std::mem::transmute::<Geteuid, Pointer>(geteuid)));
        replace(c"fcntl", Some(std::mem::transmute::<Fcntl, Pointer>(fcntl)))
    };
    assert!(is_known, "the unix VFS knows fcntl");
}

/// The function that SQLite calls for fcntl() then.
unsafe extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: *mut c_void) -> c_int {
    match command {
        libc::F_SETLK | libc::F_SETLKW => 0,
        libc::F_GETLK => {
            // SAFETY: that command's argument is a lock.
            unsafe { (*argument.cast::<libc::flock>()).l_type = libc::F_UNLCK as libc::c_short };
            0
        }
        // SAFETY: SQLite's own arguments, handed on.
        _ => unsafe { libc::fcntl(descriptor, command, argument) },
    }
}

/// The function that SQLite calls for geteuid() then: where that is root, it gives a new file the
/// owner of its database.
unsafe extern "C" fn geteuid() -> libc::uid_t {
    libc::uid_t::MAX
}

/// The function that SQLite calls for lstat() then, which looks at the mode alone.
unsafe extern "C" fn lstat(path: *const c_char, found: *mut libc::stat) -> c_int {
    // SAFETY: SQLite's own arguments: a C string, and room for what is found.
    unsafe {
        let text = OsStr::from_bytes(CStr::from_ptr(path).to_bytes());
        if MOUNT_POINT.get().is_some_and(|it| it.starts_with(text)) {
            found.write(std::mem::zeroed());
            (*found).st_mode = libc::S_IFDIR;
            return 0;
        }
        libc::lstat(path, found)
    }
}

/// Largest seed that SQLite takes: a C int, of which 0 means /dev/urandom.
const SEEDS: u64 = i32::MAX as u64;
/// A SQLite that has SQLITE_TESTCTRL_PRNG_SEED; those before take no notice of it, from 3.24 back
/// at least, and begin with what their default VFS gives.
const SEEDED: i32 = 3_032_000;
/// The control that has the generator begin anew; it does nothing in 3.32.
const TESTCTRL_PRNG_RESET: c_int = 7;

/// The seed of an older SQLite's generator.
static OLDER_SEED: AtomicU64 = AtomicU64::new(0);

/// Starts SQLite's generator anew from `seed`; it is one for the whole process.
///
/// # Panics
/// If SQLite was built without test controls: our build never is.
pub fn seed(seed: u64) {
    if rusqlite::version_number() < SEEDED {
        OLDER_SEED.store(seed, Ordering::Relaxed);
        // SAFETY: the default VFS is static; this control has no argument, and no byte is drawn.
        unsafe {
            (*ffi::sqlite3_vfs_find(std::ptr::null())).xRandomness = Some(randomness);
            ffi::sqlite3_test_control(TESTCTRL_PRNG_RESET);
            // Where the control does nothing, this has it begin anew.
            ffi::sqlite3_randomness(0, std::ptr::null_mut());
        }
        return;
    }
    let seed = c_int::try_from(seed % SEEDS + 1).unwrap_or(1);
    let no_handle = std::ptr::null_mut::<ffi::sqlite3>();
    // SAFETY: the arguments that SQLITE_TESTCTRL_PRNG_SEED takes (src/main.c): an int, and a handle
    // whose schema would overrule it, or null.
    let result =
        unsafe { ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_PRNG_SEED, seed, no_handle) };
    assert_eq!(result, ffi::SQLITE_OK, "SQLite takes a seed");
}

/// The function by which an older SQLite's VFS gives its generator what it begins with: drawn from
/// the seed, the same each time.
unsafe extern "C" fn randomness(
    _vfs: *mut ffi::sqlite3_vfs,
    length: c_int,
    bytes: *mut c_char,
) -> c_int {
    // SAFETY: SQLite's own arguments: a buffer and its length.
    let buffer = unsafe {
        std::slice::from_raw_parts_mut(bytes.cast::<u8>(), usize::try_from(length).unwrap_or(0))
    };
    ChaCha8Rng::seed_from_u64(OLDER_SEED.load(Ordering::Relaxed)).fill_bytes(buffer);
    length
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_lock_is_free_and_the_mount_point_a_folder_where_answers_are_known() {
        // The calls themselves, as SQLite is one for all tests of this process.
        MOUNT_POINT.get_or_init(|| "/none/flash".into());
        let file = tempfile::tempfile().unwrap();
        let descriptor = file.as_raw_fd();
        // SAFETY: a lock and a stat of zeros are valid; the paths are C strings.
        unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = libc::F_WRLCK as libc::c_short;
            let pointer = (&raw mut lock).cast();
            assert_eq!(fcntl(descriptor, libc::F_SETLK, pointer), 0);
            assert_eq!(fcntl(descriptor, libc::F_GETLK, pointer), 0);
            assert_eq!(i32::from(lock.l_type), libc::F_UNLCK);
            let flags = fcntl(descriptor, libc::F_GETFD, std::ptr::null_mut());
            assert_eq!(flags, libc::FD_CLOEXEC);
            let mut found: libc::stat = std::mem::zeroed();
            for path in [c"/none", c"/none/flash"] {
                assert_eq!(lstat(path.as_ptr(), &raw mut found), 0);
                assert_eq!(found.st_mode & libc::S_IFMT, libc::S_IFDIR);
            }
            assert_eq!(lstat(c"/none/flash/main.db".as_ptr(), &raw mut found), -1);
        }
    }

    #[test]
    fn an_older_generator_begins_with_what_the_seed_alone_decides() {
        let drawn = |number: u64| {
            OLDER_SEED.store(number, Ordering::Relaxed);
            let mut bytes = [0_u8; 256];
            // SAFETY: the length is the buffer's; the VFS is not looked at.
            let length =
                unsafe { randomness(std::ptr::null_mut(), 256, bytes.as_mut_ptr().cast()) };
            assert_eq!(length, 256);
            bytes
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        // Other tests draw from the one generator meanwhile; between seed and draw few fit in.
        let drawn = |number: u64| {
            seed(number);
            let mut bytes = [0_u8; 8];
            // SAFETY: the length is the buffer's.
            unsafe { ffi::sqlite3_randomness(8, bytes.as_mut_ptr().cast()) };
            bytes
        };
        assert!((0..100).any(|_| drawn(7) == drawn(7)));
        assert!((0..100).any(|_| drawn(7) != drawn(8)));
    }
}
