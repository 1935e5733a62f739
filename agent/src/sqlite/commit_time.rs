//! When a connection committed, and how many databases it changed: SQLite's commit hook is called
//! while the connection has the write locks of all databases that the transaction changed
//! (vdbeCommit() in src/vdbeaux.c), so that the times of those who share a database are the order
//! of their transactions.

use std::cell::Cell;
use std::ffi::{CString, c_int};

use rusqlite::{Connection, ffi};

use crate::tables::timeline::now_ns;

/// How the last transaction of this thread's connection ended since it was asked last.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionEnd {
    /// When it committed, if it had a write lock.
    pub committed_ns: Option<i64>,
    /// Databases whose write lock it had: not the temporary one, which nobody else has.
    pub databases: u16,
    pub is_rolled_back: bool,
}

thread_local! {
    static ENDED: Cell<TransactionEnd> = Cell::default();
}

/// Notes every commit of a connection that has a write lock, and every rollback. `names` are what
/// SQL knows its databases by.
///
/// # Errors
/// Of SQLite, and of a name with a NUL.
pub fn note(connection: &mut Connection, names: &[String]) -> rusqlite::Result<()> {
    let names = names.iter().map(|name| CString::new(name.as_str()));
    let names: Vec<CString> = names.collect::<Result<_, _>>().map_err(rusqlite::Error::NulError)?;
    // SAFETY: the handle is only used in the hook, which SQLite calls while it is open.
    let handle = Handle(unsafe { connection.handle() });
    connection.commit_hook(Some(move || {
        let writing = names.iter().filter(|name| handle.is_writing(name)).count();
        let (committed_ns, databases) =
            (Some(now_ns()), u16::try_from(writing).unwrap_or(u16::MAX));
        ENDED.set(TransactionEnd { committed_ns, databases, is_rolled_back: false });
        false
    }))?;
    connection.rollback_hook(Some(|| {
        ENDED.set(TransactionEnd { is_rolled_back: true, ..TransactionEnd::default() })
    }))
}

/// How this thread's connection ended its transactions since it was asked last.
pub fn take() -> TransactionEnd {
    ENDED.take()
}

/// Pages that a connection has written to its databases and WALs, checkpoints apart; those of
/// temporary tables too. A transaction that changed nothing writes none, though it had the write
/// lock (sqlite3PagerCommitPhaseOne() in src/pager.c).
pub fn pages_written(connection: &Connection) -> i32 {
    let (mut written, mut most): (c_int, c_int) = (0, 0);
    // SAFETY: the handle is open; both numbers are ours.
    unsafe {
        let operation = ffi::SQLITE_DBSTATUS_CACHE_WRITE;
        ffi::sqlite3_db_status(connection.handle(), operation, &mut written, &mut most, 0);
    }
    written
}

/// A connection's handle, which its own hook uses.
struct Handle(*mut ffi::sqlite3);

// SAFETY: SQLite is built to be used by any thread (SQLITE_THREADSAFE=1), and the hook is called by
// the one that uses the connection.
unsafe impl Send for Handle {}

impl Handle {
    fn is_writing(&self, name: &CString) -> bool {
        // SAFETY: SQLite calls the hook with its handle open; the name ends with a NUL.
        unsafe { ffi::sqlite3_txn_state(self.0, name.as_ptr()) == ffi::SQLITE_TXN_WRITE }
    }
}
