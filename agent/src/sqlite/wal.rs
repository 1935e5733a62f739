//! How long each WAL is: SQLite's WAL hook, which notes the frames after every commit, and makes
//! SQLite's own checkpoints where it is asked to.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusqlite::{Connection, ffi};

use super::sync_call;
use crate::tables::clock::now_ns;

/// One database of a connection, which other connections may have open too.
#[derive(Debug, Clone)]
pub struct Database {
    /// The name that SQL knows it by: main, db2, db3 ...
    pub name: String,
    pub path: PathBuf,
    /// Frames in its WAL after the last commit of any connection; written by SQLite's WAL hook.
    wal_frames: Arc<AtomicU32>,
    /// Whether SQLite has copied all of them back itself.
    is_copied: Arc<AtomicBool>,
}

impl Database {
    /// Of a name and a file.
    pub fn new(name: String, path: PathBuf) -> Self {
        Self { name, path, wal_frames: Arc::default(), is_copied: Arc::default() }
    }

    /// The same file, by the name that another connection has for it.
    pub fn called(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Frames in its WAL after the last commit; 0 in other journal modes.
    pub fn wal_frames(&self) -> u32 {
        self.wal_frames.load(Ordering::Relaxed)
    }

    /// Those of them that a checkpoint would have to copy.
    pub fn frames_to_copy(&self) -> u32 {
        if self.is_copied.load(Ordering::Relaxed) { 0 } else { self.wal_frames() }
    }

    /// A checkpoint has copied them all; gives how many there were.
    pub fn take_frames(&self) -> u32 {
        self.wal_frames.swap(0, Ordering::Relaxed)
    }
}

/// The checkpoints that SQLite made inside one COMMIT, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct CommitCheckpoint {
    pub databases: u16,
    pub wal_frames: u32,
    pub sync_calls: u32,
    pub begin_ns: i64,
    pub return_ns: i64,
}

/// What SQLite's WAL hook reads and writes.
pub struct FollowedWals {
    pub databases: Vec<Database>,
    /// Frames at which SQLite makes a checkpoint inside COMMIT; none where it makes none.
    pub autocheckpoint_frames: Option<u32>,
    /// The checkpoints of the last COMMIT.
    pub autocheckpoint: RefCell<Option<CommitCheckpoint>>,
}

/// Has SQLite call the hook for every commit of the connection.
///
/// # Safety
/// `followed` must stay where it is, and live longer than the connection.
pub unsafe fn follow(connection: &Connection, followed: &FollowedWals) {
    let context = std::ptr::from_ref(followed).cast_mut().cast::<c_void>();
    // SAFETY: the handle is open; the pointer lives as long as our caller promises.
    unsafe { ffi::sqlite3_wal_hook(connection.handle(), Some(wal_grew), context) };
}

/// SQLite's WAL hook (sqlite.org/c3ref/wal_hook.html), called for each database of a commit before
/// COMMIT returns. Notes the frames, and makes the checkpoint that sqlite3WalDefaultHook() would
/// (main.c); like it, it takes a checkpoint that readers hold up for none.
unsafe extern "C" fn wal_grew(
    context: *mut c_void,
    handle: *mut ffi::sqlite3,
    name: *const c_char,
    frames: c_int,
) -> c_int {
    // SAFETY: `context` is what `follow` gave, alive while the handle is.
    let followed = unsafe { &*context.cast::<FollowedWals>() };
    // SAFETY: SQLite gives the database's name as a C string that outlives the call.
    let word = unsafe { CStr::from_ptr(name) };
    let Some(database) = followed.databases.iter().find(|d| d.name.as_bytes() == word.to_bytes())
    else {
        return ffi::SQLITE_OK;
    };
    let frames = frames.unsigned_abs();
    database.wal_frames.store(frames, Ordering::Relaxed);
    database.is_copied.store(false, Ordering::Relaxed);
    if followed.autocheckpoint_frames.is_some_and(|limit| frames >= limit) {
        let (begin_ns, sync_calls) = (now_ns(), sync_call::count());
        let (mut in_log, mut copied) = (0, 0);
        let passive = ffi::SQLITE_CHECKPOINT_PASSIVE;
        // SAFETY: handle and name are SQLite's own, the two numbers are ours.
        let code = unsafe {
            ffi::sqlite3_wal_checkpoint_v2(handle, name, passive, &mut in_log, &mut copied)
        };
        let is_whole = code == ffi::SQLITE_OK && in_log == copied;
        database.is_copied.store(is_whole, Ordering::Relaxed);
        let mut noted = followed.autocheckpoint.borrow_mut();
        let made = noted.get_or_insert(CommitCheckpoint {
            databases: 0,
            wal_frames: 0,
            sync_calls: 0,
            begin_ns,
            return_ns: begin_ns,
        });
        made.databases += 1;
        made.wal_frames += copied.unsigned_abs();
        made.sync_calls += sync_call::count() - sync_calls;
        made.return_ns = now_ns();
    }
    ffi::SQLITE_OK
}
