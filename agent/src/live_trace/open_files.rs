//! Files of SQLite that processes had open before they were watched. The kernel's program knows the
//! role of a file by the path that it is opened by, and that of a database by its locks: so the
//! tracer opens these once itself, by the same paths below the process's own root directory, and
//! closes them again. A process in WAL mode keeps its lock of the database: there the tracer gives
//! back a lock that it does not have. It takes none, and reads 16 bytes of what may be a database.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::commits::database::{LOCKS, MAGIC};

/// Suffixes of the files beside a database (src/pager.c and src/wal.c of SQLite).
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Opens what a process has open of SQLite's files; gives how many.
pub fn open_anew(pid: u32) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    let descriptors = descriptors.into_iter().flatten().flatten();
    let paths = descriptors.filter_map(|entry| path(pid, &entry.path()));
    paths.filter(|path| open(path).is_some()).count()
}

/// The path of an open regular file below the root of its process, if the same one is there.
fn path(pid: u32, descriptor: &Path) -> Option<PathBuf> {
    let path = fs::read_link(descriptor).ok().filter(|path| path.is_absolute())?;
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    // As this process sees it, where the other one has another root in the same mounts.
    let outside = fs::read_link(&root).ok()?;
    let path = root.join(path.strip_prefix(&outside).or_else(|_| path.strip_prefix("/")).ok()?);
    let (open, there) = (fs::metadata(descriptor).ok()?, fs::metadata(&path).ok()?);
    let is_it = open.is_file() && (open.dev(), open.ino()) == (there.dev(), there.ino());
    is_it.then_some(path)
}

/// Return the process that a path which `open_anew` opened is of, and the path as that process has
/// it.
pub fn process_and_path(path: &str) -> Option<(u32, &str)> {
    let (pid, below) = path.strip_prefix("/proc/")?.split_once("/root/")?;
    Some((pid.parse().ok()?, &path[path.len() - below.len() - 1..]))
}

/// Opens a file of SQLite: a database so that it may be written, as only such opens are told.
fn open(path: &Path) -> Option<File> {
    let name = path.to_str()?;
    if COMPANIONS.iter().any(|suffix| name.ends_with(suffix)) {
        return File::open(path).ok();
    }
    let mut head = [0; 16];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    let is_database = &head == MAGIC;
    let database = is_database.then(|| OpenOptions::new().read(true).write(true).open(path));
    let database = database?.ok()?;
    give_back_no_lock(&database);
    Some(database)
}

/// Gives back SQLite's lock of a database, which this process does not have. Locks are those of a
/// process (fcntl_locking(2)), so those of others stay; that it fails is no harm.
fn give_back_no_lock(database: &File) {
    // SAFETY: flock is plain old data, for which all zeroes is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_UNLCK as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock.l_start = LOCKS.start as i64;
    lock.l_len = (LOCKS.end - LOCKS.start) as i64;
    // SAFETY: the pointer is to a live flock, which the call only reads.
    unsafe { libc::fcntl(database.as_raw_fd(), libc::F_SETLK, &raw const lock) };
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_path_below_the_root_of_a_process_is_split() {
        assert_eq!(process_and_path("/proc/71/root/srv/a.db"), Some((71, "/srv/a.db")));
        let nested = process_and_path("/proc/7/root/proc/8/root/a.db");
        assert_eq!(nested, Some((7, "/proc/8/root/a.db")));
        assert_eq!(process_and_path("/proc/self/root/a.db"), None);
        assert_eq!(process_and_path("/srv/a.db"), None);
    }

    #[test]
    fn only_files_of_sqlite_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let database = [MAGIC.as_slice(), b"more"].concat();
        assert!(open(&file("a.db", &database)).is_some());
        assert!(open(&file("a.db-wal", b"")).is_some());
        assert!(open(&file("note", b"sixteen bytes or more")).is_none());
        assert!(open(&file("short", b"x")).is_none());
        let held = |name: &str| File::open(folder.path().join(name)).unwrap();
        let mut holder = Command::new("sleep");
        holder.arg("1000").stdin(held("a.db")).stdout(held("a.db-wal")).stderr(held("note"));
        let mut holder = holder.spawn().unwrap();
        assert_eq!(open_anew(holder.id()), 2);
        // Another file has the path now.
        fs::remove_file(folder.path().join("a.db-wal")).unwrap();
        file("a.db-wal", b"");
        assert_eq!(open_anew(holder.id()), 1);
        holder.kill().unwrap();
        holder.wait().unwrap();
    }
}
