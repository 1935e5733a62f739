//! The system call behind SQLite's syncs, chosen at run time. SQLite's unix VFS calls fsync()
//! unless built with HAVE_FDATASYNC; our build has it and renames that call (see
//! .cargo/config.toml), so that it lands here. The switch is technique 1 of "I/O Stack
//! Optimization for Smartphones" (USENIX ATC 2013). Of the syncs, those of one kind of file can be
//! left out, as a SQLite with a fault would: what each protects shows in power cuts then. And that
//! of a truncated journal, as SQLite did before 2014.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::record::words;

words! {
    /// The system call by which SQLite makes a file or a directory durable.
    SyncChoice { Fsync = "fsync", Fdatasync = "fdatasync" }
}

words! {
    /// The syncs that are left out: those of a rollback journal and a super-journal, of a WAL, of a
    /// database, or of a directory in which a journal was made or removed; or only those that
    /// follow the truncation of a rollback journal (src/pager.c, pager_end_transaction(), which
    /// names the report of 2014 for which they were added).
    DroppedSync {
        None = "none", Journal = "journal", Wal = "wal", Database = "database",
        Directory = "directory", TruncatedJournal = "truncated-journal",
    }
}

static DROPPED: AtomicU8 = AtomicU8::new(DroppedSync::None as u8);
static FDATASYNC: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Chooses the call for every later sync of this process, and which are left out.
pub fn choose(call: SyncChoice, dropped: DroppedSync) {
    FDATASYNC.store(call == SyncChoice::Fdatasync, Ordering::Relaxed);
    DROPPED.store(dropped as u8, Ordering::Relaxed);
}

/// Which sync one of that descriptor is, by what it is of. `name` is the file's.
fn kind_of(is_directory: bool, name: &str) -> DroppedSync {
    if is_directory {
        DroppedSync::Directory
    } else if name.ends_with("-wal") {
        DroppedSync::Wal
    // A super-journal is called main.db-mj0123456789 (src/vdbeaux.c, vdbeCommit()).
    } else if name.ends_with("-journal") || name.contains("-mj") {
        DroppedSync::Journal
    } else {
        DroppedSync::Database
    }
}

/// A journal that is synced has at least its header, but where it has been truncated.
fn is_left_out(dropped: u8, kind: DroppedSync, is_empty: bool) -> bool {
    let truncated = kind == DroppedSync::Journal && is_empty;
    kind as u8 == dropped || truncated && dropped == DroppedSync::TruncatedJournal as u8
}

/// Whether the sync of a descriptor is one of those that are left out.
fn is_dropped(descriptor: c_int) -> bool {
    let dropped = DROPPED.load(Ordering::Relaxed);
    if dropped == DroppedSync::None as u8 {
        return false;
    }
    let link = format!("/proc/self/fd/{descriptor}");
    let found = std::fs::metadata(&link).ok();
    let is_directory = found.as_ref().is_some_and(std::fs::Metadata::is_dir);
    let is_empty = found.is_some_and(|found| found.len() == 0);
    let path = std::fs::read_link(&link).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_left_out(dropped, kind_of(is_directory, &name), is_empty)
}

/// Syncs SQLite has made in this thread so far, of files and directories alike.
pub fn count() -> u32 {
    CALLS.get()
}

/// What SQLite calls for fdatasync(); 0, or -1 with errno set, as fsync(2).
#[unsafe(no_mangle)]
extern "C" fn joj_sync_call(descriptor: c_int) -> c_int {
    if is_dropped(descriptor) {
        return 0;
    }
    CALLS.set(CALLS.get() + 1);
    if FDATASYNC.load(Ordering::Relaxed) {
        // SAFETY: a plain system call on a descriptor that SQLite owns.
        unsafe { libc::fdatasync(descriptor) }
    } else {
        // SAFETY: as above.
        unsafe { libc::fsync(descriptor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_named_by_what_it_is_of() {
        for (name, kind) in [
            ("main.db", DroppedSync::Database),
            ("main.db-journal", DroppedSync::Journal),
            ("main.db-mj0A1B2C3D9", DroppedSync::Journal),
            ("main.db-wal", DroppedSync::Wal),
        ] {
            assert_eq!(kind_of(false, name), kind, "{name}");
        }
        assert_eq!(kind_of(true, "flash"), DroppedSync::Directory);
    }

    #[test]
    fn of_a_truncated_journal_alone_the_sync_may_be_left_out() {
        let only = DroppedSync::TruncatedJournal as u8;
        assert!(is_left_out(only, DroppedSync::Journal, true));
        assert!(!is_left_out(only, DroppedSync::Journal, false));
        assert!(!is_left_out(only, DroppedSync::Wal, true));
        assert!(!is_left_out(only, DroppedSync::Database, true));
        assert!(is_left_out(DroppedSync::Journal as u8, DroppedSync::Journal, true));
        assert!(is_left_out(DroppedSync::Journal as u8, DroppedSync::Journal, false));
    }
}
