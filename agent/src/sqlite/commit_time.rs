//! When a connection committed: SQLite's commit hook is called while the connection has the write
//! locks of all databases that the transaction changed (vdbeCommit() in src/vdbeaux.c), so that
//! the times of those who share a database are the order of their transactions.

use std::cell::Cell;

use rusqlite::Connection;

use crate::tables::clock::now_ns;

thread_local! {
    static LAST_NS: Cell<Option<i64>> = const { Cell::new(None) };
}

/// Notes every commit of a connection that changes something.
///
/// # Errors
/// Of SQLite.
pub fn note(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.commit_hook(Some(|| {
        LAST_NS.set(Some(now_ns()));
        false
    }))
}

/// When this thread's connection last committed, if it has since it was asked last.
pub fn take() -> Option<i64> {
    LAST_NS.take()
}
