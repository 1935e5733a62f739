//! The system call behind SQLite's syncs, chosen at run time. SQLite's unix VFS calls fsync()
//! unless built with HAVE_FDATASYNC; our build has it and renames that call (see
//! .cargo/config.toml), so that it lands here. The switch is technique 1 of "I/O Stack
//! Optimization for Smartphones" (USENIX ATC 2013). Of the syncs, those of one kind of file can be
//! left out, as a SQLite with a fault would: what each protects shows in power cuts then. And that
//! of a truncated journal, as SQLite did until 2014. A third call is what F2FS of Linux 3.8 made
//! of fdatasync.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::record::words;

words! {
    /// The system call by which SQLite makes a file or a directory durable. The third one is
    /// fdatasync where a file's size, or a directory, has changed since its last sync; otherwise it
    /// writes a file's data and waits for it, without the inode and without a flush, and does
    /// nothing for a directory: f2fs_sync_file() of fs/f2fs/file.c left at once then, for want of
    /// I_DIRTY_DATASYNC. That flag stayed until the inode was written back; here a sync ends it.
    SyncChoice {
        Fsync = "fsync", Fdatasync = "fdatasync", FdatasyncOfSize = "fdatasync-of-size",
    }
}

words! {
    /// The syncs that are left out: those of a rollback journal and a super-journal, or of the redo
    /// log that takes their place (vfs = redo), of a WAL, of a database, or of a directory in which
    /// a journal was made or removed; or only those that follow the truncation of a rollback
    /// journal (src/pager.c, pager_end_transaction(), which names the report of 2014 for which they
    /// were added).
    DroppedSync {
        None = "none", Journal = "journal", Wal = "wal", Database = "database",
        Directory = "directory", TruncatedJournal = "truncated-journal",
    }
}

static DROPPED: AtomicU8 = AtomicU8::new(DroppedSync::None as u8);
static CHOICE: AtomicU8 = AtomicU8::new(SyncChoice::Fsync as u8);

/// The state of each file when it was synced last, by filesystem and inode.
static SYNCED: Mutex<SyncedFiles> = Mutex::new(SyncedFiles(BTreeMap::new()));

/// The size of each file, by filesystem and inode; of a directory, the time at which it was
/// changed.
#[derive(Debug, Default)]
struct SyncedFiles(BTreeMap<(u64, u64), (i64, i64)>);

const WRITE_AND_WAIT: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE
    | libc::SYNC_FILE_RANGE_WRITE
    | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Makes a sync in the place of SQLite: of the file of a path, or of a directory, by the call of a
/// name, which it is given; gives what that returned, as fsync(2) does.
type Witness = Box<dyn Fn(&Path, bool, &'static str, &dyn Fn() -> c_int) -> c_int + Send>;

static WITNESS: Mutex<Option<Witness>> = Mutex::new(None);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Chooses the call for every later sync of this process, and which are left out.
pub fn choose(call: SyncChoice, dropped: DroppedSync) {
    CHOICE.store(call as u8, Ordering::Relaxed);
    DROPPED.store(dropped as u8, Ordering::Relaxed);
}

/// Return whether this is the call that was chosen.
#[cfg(test)]
pub fn is_chosen(call: SyncChoice) -> bool {
    CHOICE.load(Ordering::Relaxed) == call as u8
}

/// Has every later sync of this process made by `witness`, one after the other; None: by nobody.
pub fn watch(witness: Option<Witness>) {
    IS_WATCHED.store(witness.is_some(), Ordering::Relaxed);
    *WITNESS.lock().unwrap_or_else(PoisonError::into_inner) = witness;
}

/// Makes a sync, by who watches them.
fn make(descriptor: c_int, name: &'static str, sync: &dyn Fn() -> c_int) -> c_int {
    if !IS_WATCHED.load(Ordering::Relaxed) {
        return sync();
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
    let is_directory = metadata(descriptor).is_some_and(|found| found.is_dir());
    match &*WITNESS.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(witness) => witness(&path, is_directory, name, sync),
        None => sync(),
    }
}

/// Return the kind of a sync by the descriptor that it gets. `name` is the file's.
fn kind_of(is_directory: bool, name: &str) -> DroppedSync {
    if is_directory {
        DroppedSync::Directory
    } else if name.ends_with("-wal") {
        DroppedSync::Wal
    // A super-journal is called main.db-mj0123456789 (src/vdbeaux.c, vdbeCommit()).
    } else if name.ends_with("-journal") || name.contains("-mj") || name == "joj-redo.log" {
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

impl SyncedFiles {
    /// Return whether it is as at its last sync, also one that is left out.
    fn is_as_before(&mut self, found: &Metadata) -> bool {
        let now = match found.is_dir() {
            true => (found.mtime(), found.mtime_nsec()),
            false => (found.len().cast_signed(), 0),
        };
        self.0.insert((found.dev(), found.ino()), now) == Some(now)
    }
}

fn metadata(descriptor: c_int) -> Option<Metadata> {
    std::fs::metadata(format!("/proc/self/fd/{descriptor}")).ok()
}

/// Return whether the sync of a descriptor is one of those that are left out.
fn is_dropped(descriptor: c_int) -> bool {
    let dropped = DROPPED.load(Ordering::Relaxed);
    if dropped == DroppedSync::None as u8 {
        return false;
    }
    let link = format!("/proc/self/fd/{descriptor}");
    let found = metadata(descriptor);
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

/// The function that a VFS of vfs/ calls for fdatasync(), whatever SQLite was built to call:
/// fdatasync(2), or nothing where syncs of that file are left out.
#[unsafe(no_mangle)]
extern "C" fn joj_vfs_fdatasync(descriptor: c_int) -> c_int {
    sync_of_vfs(descriptor, "fdatasync", libc::fdatasync)
}

/// The same for fsync().
#[unsafe(no_mangle)]
extern "C" fn joj_vfs_fsync(descriptor: c_int) -> c_int {
    sync_of_vfs(descriptor, "fsync", libc::fsync)
}

fn sync_of_vfs(
    descriptor: c_int,
    name: &'static str,
    sync: unsafe extern "C" fn(c_int) -> c_int,
) -> c_int {
    if is_dropped(descriptor) {
        return 0;
    }
    CALLS.set(CALLS.get() + 1);
    // SAFETY: a plain system call on a descriptor that the VFS owns.
    make(descriptor, name, &|| unsafe { sync(descriptor) })
}

/// The function that SQLite calls for fdatasync(). It returns 0, or -1 with errno set, as fsync(2).
#[unsafe(no_mangle)]
extern "C" fn joj_sync_call(descriptor: c_int) -> c_int {
    let choice = CHOICE.load(Ordering::Relaxed);
    let found =
        (choice == SyncChoice::FdatasyncOfSize as u8).then(|| metadata(descriptor)).flatten();
    let unchanged = found
        .filter(|found| SYNCED.lock().unwrap_or_else(PoisonError::into_inner).is_as_before(found));
    if is_dropped(descriptor) {
        return 0;
    }
    CALLS.set(CALLS.get() + 1);
    // SAFETY: plain system calls on a descriptor that SQLite owns, here and below.
    let range = || unsafe { libc::sync_file_range(descriptor, 0, 0, WRITE_AND_WAIT) };
    match unchanged {
        Some(found) if found.is_dir() => 0,
        Some(_) => make(descriptor, "sync_file_range", &range),
        None if choice == SyncChoice::Fsync as u8 => {
            // SAFETY: as above.
            make(descriptor, "fsync", &|| unsafe { libc::fsync(descriptor) })
        }
        // SAFETY: as above.
        None => make(descriptor, "fdatasync", &|| unsafe { libc::fdatasync(descriptor) }),
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
            ("joj-redo.log", DroppedSync::Journal),
        ] {
            assert_eq!(kind_of(false, name), kind, "{name}");
        }
        assert_eq!(kind_of(true, "flash"), DroppedSync::Directory);
    }

    #[test]
    fn the_sync_of_a_truncated_journal_alone_may_be_left_out() {
        let only = DroppedSync::TruncatedJournal as u8;
        assert!(is_left_out(only, DroppedSync::Journal, true));
        assert!(!is_left_out(only, DroppedSync::Journal, false));
        assert!(!is_left_out(only, DroppedSync::Wal, true));
        assert!(!is_left_out(only, DroppedSync::Database, true));
        assert!(is_left_out(DroppedSync::Journal as u8, DroppedSync::Journal, true));
        assert!(is_left_out(DroppedSync::Journal as u8, DroppedSync::Journal, false));
    }

    #[test]
    fn a_file_is_as_before_until_its_size_changes_and_a_directory_until_a_name_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(folder.path().join("a")).unwrap();
        let mut synced = SyncedFiles::default();
        let mut at = |bytes| {
            file.set_len(bytes).unwrap();
            synced.is_as_before(&file.metadata().unwrap())
        };
        assert_eq!([at(0), at(512), at(512), at(0), at(512)], [false, false, true, false, false]);
        let mut directory = || synced.is_as_before(&folder.path().metadata().unwrap());
        assert_eq!([directory(), directory()], [false, true]);
    }
}
