//! A database: its files, its write-ahead log and how long that is, and its checkpoints.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, ffi};
use serde::Serialize;

use super::error::{SqliteError, step_error};
use super::sync_call;
use crate::tables::timeline::now_ns;

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
    /// The counts of checkpoints that are made while other connections have it open.
    shared: Arc<Mutex<SharedWal>>,
}

/// The counts that SQLite gives of a checkpoint (sqlite.org/pragma.html#pragma_wal_checkpoint):
/// both numbers are of the WAL as it is then, however many checkpoints copied of it.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointCounts {
    pub is_busy: bool,
    pub in_log: i64,
    pub copied: i64,
}

impl CheckpointCounts {
    /// Return whether nothing is left to copy.
    pub fn is_whole(self) -> bool {
        !self.is_busy && self.copied == self.in_log
    }
}

/// A WAL that several connections have open: who reads it keeps a checkpoint from copying all of
/// it, and a writer from beginning it anew (sqlite.org/wal.html, section 6, "checkpoint
/// starvation").
#[derive(Debug, Default, Clone, Copy)]
pub struct SharedWal {
    /// Checkpoints that were made of it.
    pub checkpoints: u64,
    /// Those of them that left frames.
    pub left_frames: u64,
    /// Those that found the WAL as it was at the one before, with more behind it.
    pub found_longer: u64,
    pub most_frames: i64,
    /// The number in its header at the last checkpoint, its frames, and those copied by then.
    sequence: Option<u32>,
    in_log: i64,
    copied: i64,
}

impl Database {
    /// Return the database of a name and a file.
    pub fn new(name: String, path: PathBuf) -> Self {
        let (wal_frames, is_copied, shared) = (Arc::default(), Arc::default(), Arc::default());
        Self { name, path, wal_frames, is_copied, shared }
    }

    /// The same file, by the name that another connection has for it.
    pub fn with_name(&self, name: &str) -> Self {
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

    /// Its WAL is gone, or begun anew; gives how many frames there were.
    pub fn take_frames(&self) -> u32 {
        self.wal_frames.swap(0, Ordering::Relaxed)
    }

    /// Return whether another connection of this process has it open.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Return what checkpoints found of its WAL beside other connections.
    pub fn shared_wal(&self) -> SharedWal {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number in the header of its WAL, which changes when it is begun anew.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub fn wal_sequence(&self) -> Result<Option<u32>, SqliteError> {
        wal_sequence(&self.path)
            .map_err(|source| SqliteError::Wal { path: self.path.clone(), source })
    }

    /// A checkpoint was made while others have it open; gives how many frames it copied itself.
    /// `sequence` is that of the WAL before it.
    pub fn note_checkpoint(&self, sequence: Option<u32>, made: CheckpointCounts) -> u32 {
        // Another connection was making one.
        if made.in_log < 0 {
            return 0;
        }
        let before = self.wal_frames();
        // TRUNCATE says 0 of 0.
        let is_emptied = made.is_whole() && made.in_log == 0;
        // Not where another connection has written since.
        if made.is_whole() && (is_emptied || i64::from(before) == made.in_log) {
            self.take_frames();
        }
        let (in_log, copied) =
            if is_emptied { (before.into(), before.into()) } else { (made.in_log, made.copied) };
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = sequence.is_some() && shared.sequence == sequence;
        let new = if is_same { (copied - shared.copied).max(0) } else { copied };
        shared.checkpoints += 1;
        shared.left_frames += u64::from(!made.is_whole());
        shared.found_longer += u64::from(is_same && in_log > shared.in_log);
        shared.most_frames = shared.most_frames.max(in_log);
        (shared.sequence, shared.in_log, shared.copied) = (sequence, in_log, copied);
        u32::try_from(new).unwrap_or(u32::MAX)
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

/// The state that SQLite's WAL hook reads and writes.
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
        let sequence = if database.is_shared() { database.wal_sequence() } else { Ok(None) };
        let passive = ffi::SQLITE_CHECKPOINT_PASSIVE;
        // SAFETY: handle and name are SQLite's own, the two numbers are ours.
        let code = unsafe {
            ffi::sqlite3_wal_checkpoint_v2(handle, name, passive, &mut in_log, &mut copied)
        };
        let is_whole = code == ffi::SQLITE_OK && in_log == copied;
        database.is_copied.store(is_whole, Ordering::Relaxed);
        let mut new = copied.unsigned_abs();
        if let Ok(sequence @ Some(_)) = sequence {
            let (in_log, copied) = (in_log.into(), copied.into());
            let counts = CheckpointCounts { is_busy: code != ffi::SQLITE_OK, in_log, copied };
            new = database.note_checkpoint(sequence, counts);
        }
        let mut noted = followed.autocheckpoint.borrow_mut();
        let checkpoint = noted.get_or_insert(CommitCheckpoint {
            databases: 0,
            wal_frames: 0,
            sync_calls: 0,
            begin_ns,
            return_ns: begin_ns,
        });
        checkpoint.databases += 1;
        checkpoint.wal_frames += new;
        checkpoint.sync_calls += sync_call::count() - sync_calls;
        checkpoint.return_ns = now_ns();
    }
    ffi::SQLITE_OK
}

/// Has SQLite leave a database's WAL where it is when its last connection is closed
/// (SQLITE_FCNTL_PERSIST_WAL in sqlite.org/c3ref/c_fcntl_begin_atomic_write.html).
///
/// # Errors
/// If SQLite fails.
pub fn keep(connection: &Connection, database: &Database) -> Result<(), SqliteError> {
    let mut on: c_int = 1;
    // SAFETY: this control takes an int.
    unsafe { control(connection, database, ffi::SQLITE_FCNTL_PERSIST_WAL, &mut on) }
        .map_err(step_error("SQLITE_FCNTL_PERSIST_WAL", &database.path))
}

/// Has SQLite give a database's file a multiple of so many bytes whenever it makes it longer or
/// shorter, by zeros that it syncs with the pages (SQLITE_FCNTL_CHUNK_SIZE in
/// sqlite.org/c3ref/c_fcntl_begin_atomic_write.html; fcntlSizeHint() in src/os_unix.c). 0 leaves
/// the file as long as its pages.
///
/// # Errors
/// If SQLite fails.
pub fn set_chunk(
    connection: &Connection,
    database: &Database,
    length_bytes: u64,
) -> Result<(), SqliteError> {
    if length_bytes == 0 {
        return Ok(());
    }
    let mut length = c_int::try_from(length_bytes).unwrap_or(c_int::MAX);
    // SAFETY: this control takes an int.
    unsafe { control(connection, database, ffi::SQLITE_FCNTL_CHUNK_SIZE, &mut length) }
        .map_err(step_error("SQLITE_FCNTL_CHUNK_SIZE", &database.path))
}

/// Makes a database's WAL so long at least, by zeros behind what it has, and syncs it. To SQLite
/// zeros are no frames, as their salts are not those of the WAL's header.
///
/// # Errors
/// If SQLite fails.
pub fn fill(
    connection: &Connection,
    database: &Database,
    length_bytes: u64,
) -> Result<(), SqliteError> {
    let step = step_error("filling the WAL", &database.path);
    // It opens the WAL, and nobody appends to that meanwhile.
    connection.execute_batch("BEGIN IMMEDIATE").map_err(&step)?;
    let filled = fill_locked(connection, database, length_bytes);
    connection.execute_batch("ROLLBACK").map_err(&step)?;
    filled.map_err(step)
}

fn fill_locked(
    connection: &Connection,
    database: &Database,
    length_bytes: u64,
) -> rusqlite::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    let (mut length, end) = (0, length_bytes.cast_signed());
    // SAFETY: this control gives a file, in WAL mode the WAL, which stays open; every open file has
    // these methods.
    unsafe {
        control(connection, database, ffi::SQLITE_FCNTL_JOURNAL_POINTER, &mut file)?;
        let methods = &*(*file).pMethods;
        let (Some(size), Some(write), Some(sync)) =
            (methods.xFileSize, methods.xWrite, methods.xSync)
        else {
            return answer(ffi::SQLITE_MISUSE);
        };
        answer(size(file, &mut length))?;
        if length >= end {
            return Ok(());
        }
        while length < end {
            let count = c_int::try_from(end - length).unwrap_or(c_int::MAX);
            let count = count.min(ZEROS.len() as c_int);
            answer(write(file, ZEROS.as_ptr().cast(), count, length))?;
            length += i64::from(count);
        }
        answer(sync(file, ffi::SQLITE_SYNC_NORMAL))
    }
}

/// Calls sqlite3_file_control() for a database.
///
/// # Safety
/// `argument` must have the type that the control takes.
unsafe fn control<T>(
    connection: &Connection,
    database: &Database,
    code: c_int,
    argument: &mut T,
) -> rusqlite::Result<()> {
    let name = CString::new(database.name.as_str()).map_err(rusqlite::Error::NulError)?;
    let argument = std::ptr::from_mut(argument).cast();
    // SAFETY: the handle is open, the name ends with a NUL; the rest is our caller's promise.
    answer(unsafe { ffi::sqlite3_file_control(connection.handle(), name.as_ptr(), code, argument) })
}

fn answer(code: c_int) -> rusqlite::Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}

/// The suffixes of a database's files: none, rollback journal, WAL, its index.
const SUFFIXES: [&str; 4] = ["", "-journal", "-wal", "-shm"];
/// Place and length of the checkpoint sequence number in a WAL's header
/// (sqlite.org/fileformat2.html#the_write_ahead_log); big-endian.
const SEQUENCE: std::ops::Range<usize> = 12..16;

/// One file's size at one moment, as stat(2) has it; all zero where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FileSize {
    pub name: String,
    pub size_bytes: u64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
}

/// The file of a database that has a suffix.
pub fn path(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The sizes of all files of a database.
///
/// # Errors
/// If one is there and cannot be looked at.
pub fn sizes(database: &Path) -> std::io::Result<Vec<FileSize>> {
    let of = |suffix| {
        let path = path(database, suffix);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match std::fs::metadata(&path) {
            Ok(found) => Ok(FileSize { name, size_bytes: found.len(), blocks: found.blocks() }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(FileSize { name, ..FileSize::default() })
            }
            Err(error) => Err(error),
        }
    };
    SUFFIXES.into_iter().map(of).collect()
}

/// The number in the header of the database's WAL, one more each time that it is begun anew
/// (walRestartHdr() in src/wal.c). None where there is no WAL, or nothing is in it.
///
/// # Errors
/// If it is there and cannot be read.
pub fn wal_sequence(database: &Path) -> std::io::Result<Option<u32>> {
    let mut header = [0; 32];
    let read = File::open(path(database, "-wal")).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Ok(()) => {
            let number = header[SEQUENCE].try_into().map(u32::from_be_bytes).unwrap_or_default();
            Ok(Some(number))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
