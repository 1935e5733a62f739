//! The state under each path before the first call that names it; and a call as either way of
//! recording sees it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use rustix::time::{ClockId, clock_gettime};

use super::contents::ProgramMemory;
use super::words;
use crate::messages::count_words;
use crate::system_calls;
use crate::tables::recording::{OpenDescriptor, PathState};

/// The smallest page of a database.
const LEAST_DATABASE_BYTES: i64 = 512;
/// As many symbolic links as the kernel follows (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// The source of what the snapshot says of a path.
pub const LOOKED_UP: &str = "looked-up";
/// The kind of a path that leads to nothing.
pub const ABSENT: &str = "absent";

/// A database that was there before the first call. A recording does not have what is in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DatabaseBefore {
    pub path: String,
    pub size_bytes: i64,
}

/// Return what a reader should know of databases that were there.
pub fn note_of(databases: &[DatabaseBefore]) -> Option<String> {
    let first = &databases.first()?.path;
    let were = count_words(databases.len() as u64, "database{s} {was|were} there before, such as");
    Some(format!(
        "{were} {first}: a recording does not have the contents, and a replay fills files of the \
         same sizes with made bytes"
    ))
}

/// Holds what a path leads to now.
pub struct FoundPath {
    pub row: PathState,
    /// Neither it nor its contents have changed since the recording began.
    pub is_as_before: bool,
    pub has_same_contents: bool,
}

/// The word for the type in a file's mode (inode(7)).
pub fn kind_of(mode: u32) -> &'static str {
    match mode & libc::S_IFMT {
        libc::S_IFREG => "file",
        libc::S_IFDIR => "directory",
        libc::S_IFLNK => "symlink",
        _ => "other",
    }
}

/// The paths so far.
pub struct Snapshot {
    ids: HashMap<Vec<u8>, i64>,
    rows: Vec<PathState>,
    /// Files that were there before, and their sizes.
    files: Vec<(Vec<u8>, i64)>,
    began: SystemTime,
}

impl Snapshot {
    /// Begin the snapshot of a recording that begins when this returns. Files are born by a clock
    /// that moves with the timer's tick, so the next one is awaited: what was there before is older
    /// than it.
    pub fn new() -> Self {
        let before = clock_gettime(ClockId::RealtimeCoarse);
        let now = loop {
            let now = clock_gettime(ClockId::RealtimeCoarse);
            if now != before {
                break now;
            }
            thread::sleep(Duration::from_micros(500));
        };
        let began = UNIX_EPOCH + Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
        Snapshot { ids: HashMap::new(), rows: Vec::new(), files: Vec::new(), began }
    }

    /// The number of a path that a call names. `before` makes of what is found there now what was
    /// there before the call.
    pub fn path_id(
        &mut self,
        absolute: Vec<u8>,
        call_id: i64,
        before: impl Fn(&[u8], FoundPath) -> PathState,
    ) -> i64 {
        let (mut absolute, mut first) = (absolute, None);
        for _ in 0..MOST_LINKS {
            if let Some(id) = self.ids.get(&absolute) {
                return first.unwrap_or(*id);
            }
            let path_id = self.ids.len() as i64;
            let found = before(&absolute, self.find(&absolute));
            let row = PathState { path_id, first_call_id: call_id, ..found };
            self.ids.insert(absolute.clone(), path_id);
            first.get_or_insert(path_id);
            if row.kind == "file" && row.made_by_recording != Some(true) {
                self.files.push((absolute.clone(), row.size_bytes.unwrap_or(0)));
            }
            self.rows.push(row);
            // Where it leads to, another call may not say.
            let Ok(target) = fs::read_link(path_of(&absolute)) else { break };
            let parent = path_of(&absolute).parent().unwrap_or(Path::new("/"));
            let leads_to = parent.join(target).into_os_string();
            absolute = plain(leads_to.as_bytes());
        }
        first.unwrap_or_default()
    }

    /// Return what a path leads to now.
    pub fn find(&self, absolute: &[u8]) -> FoundPath {
        let (path, basis) = (words::text(absolute), LOOKED_UP.into());
        let found = match fs::symlink_metadata(path_of(absolute)) {
            Ok(found) => found,
            Err(error) => {
                let absent = matches!(
                    error.raw_os_error(),
                    Some(libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG)
                );
                let kind = if absent { ABSENT } else { "unknown" };
                let row = PathState { path, kind: kind.into(), basis, ..PathState::default() };
                return FoundPath { row, is_as_before: false, has_same_contents: false };
            }
        };
        let link = fs::read_link(path_of(absolute)).ok();
        let row = PathState {
            path,
            kind: kind_of(found.mode()).into(),
            size_bytes: Some(found.len() as i64),
            mode: Some(i64::from(found.permissions().mode() & 0o7777)),
            links: Some(found.nlink() as i64),
            device: Some(found.dev() as i64),
            inode: Some(found.ino() as i64),
            link_target: link.map(|target| words::text(target.as_os_str().as_bytes())),
            basis,
            made_by_recording: found.created().ok().map(|born| born >= self.began),
            ..PathState::default()
        };
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_older = |seconds: i64, nanoseconds: i64| {
            (seconds, nanoseconds) < (began.as_secs() as i64, began.subsec_nanos().into())
        };
        FoundPath {
            row,
            is_as_before: is_older(found.ctime(), found.ctime_nsec()),
            has_same_contents: is_older(found.mtime(), found.mtime_nsec()),
        }
    }

    /// The databases of SQLite that were there before, as far as they are there still: by their
    /// headers (https://www.sqlite.org/fileformat2.html, section 1.3).
    pub fn databases(&self) -> Vec<DatabaseBefore> {
        let is_database = |path: &[u8]| {
            let mut header = [0; 16];
            let read = fs::File::open(path_of(path)).and_then(|mut it| it.read_exact(&mut header));
            read.is_ok() && &header == b"SQLite format 3\0"
        };
        let found = self
            .files
            .iter()
            .filter(|(path, size_bytes)| *size_bytes >= LEAST_DATABASE_BYTES && is_database(path));
        let row = |(path, size_bytes): &(Vec<u8>, i64)| DatabaseBefore {
            path: words::text(path),
            size_bytes: *size_bytes,
        };
        found.map(row).collect()
    }

    /// The rows since the last time.
    pub fn take_new(&mut self) -> Vec<PathState> {
        std::mem::take(&mut self.rows)
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A path from the root; a relative one begins at `directory`. None where it is empty
/// (AT_EMPTY_PATH), or its directory cannot be told.
pub fn absolute(path: &[u8], directory: impl FnOnce() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    if path.is_empty() {
        return None;
    }
    if path[0] == b'/' {
        return Some(plain(path));
    }
    let mut joined = directory()?;
    let mut rest = path;
    // Above a directory that has been found there is no symbolic link: `..` is its parent's name.
    while let Some(after) = rest.strip_prefix(b"..").filter(|it| it.is_empty() || it[0] == b'/') {
        joined.truncate(joined.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
        let slashes = after.iter().take_while(|byte| **byte == b'/').count();
        rest = &after[slashes..];
    }
    joined.push(b'/');
    joined.extend_from_slice(rest);
    Some(plain(&joined))
}

/// The directory of a stopped thread's descriptor, or its current one.
pub fn directory(tid: i32, descriptor: Option<i64>) -> Option<Vec<u8>> {
    let found = match descriptor.filter(|it| *it != i64::from(libc::AT_FDCWD)) {
        Some(descriptor) => fs::read_link(format!("/proc/{tid}/fd/{descriptor}")),
        None => fs::read_link(format!("/proc/{tid}/cwd")),
    };
    Some(found.ok()?.into_os_string().into_encoded_bytes())
}

/// Without `.`, and with single slashes. What `..` leads to only the filesystem knows.
fn plain(path: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    let mut path = Vec::new();
    for part in &parts {
        path.push(b'/');
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    if parts.contains(&&b".."[..]) {
        return without_parents(path);
    }
    path
}

fn without_parents(path: Vec<u8>) -> Vec<u8> {
    let whole = PathBuf::from(OsStr::from_bytes(&path));
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        let found = fs::canonicalize(&whole);
        return found.map_or(path, |it| it.into_os_string().into_encoded_bytes());
    };
    let found = fs::canonicalize(parent).map(|parent| parent.join(name));
    found.map_or(path, |it| it.into_os_string().into_encoded_bytes())
}

/// Device and inode of a thread's descriptor.
pub fn identity(tid: i32, descriptor: i64) -> Option<(i64, i64)> {
    let found = fs::metadata(format!("/proc/{tid}/fd/{descriptor}")).ok()?;
    Some((found.dev() as i64, found.ino() as i64))
}

/// The descriptors that a process has; of what may end meanwhile, those that could be seen.
pub fn descriptors(tid: i32, thread_id: i64) -> Vec<OpenDescriptor> {
    let Ok(entries) = fs::read_dir(format!("/proc/{tid}/fd")) else { return Vec::new() };
    let row = |entry: fs::DirEntry| {
        let descriptor: i64 = entry.file_name().to_str()?.parse().ok()?;
        let info = fs::read_to_string(format!("/proc/{tid}/fdinfo/{descriptor}")).ok()?;
        let field =
            |name: &str| info.lines().find_map(|line| Some(line.strip_prefix(name)?.trim()));
        let target = fs::read_link(entry.path()).ok()?;
        let found = fs::metadata(entry.path()).ok()?;
        Some(OpenDescriptor {
            thread_id,
            descriptor,
            target: words::text(target.as_os_str().as_bytes()),
            flags: system_calls::flags_from_kernel(i64::from_str_radix(field("flags:")?, 8).ok()?),
            position_bytes: field("pos:")?.parse().ok()?,
            device: found.dev() as i64,
            inode: found.ino() as i64,
            size_bytes: found.len() as i64,
        })
    };
    let mut rows: Vec<_> = entries.flatten().filter_map(row).collect();
    rows.sort_by_key(|row| row.descriptor);
    rows
}

/// One of the paths of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPath {
    First,
    /// The new name of rename and link.
    Second,
}

/// A call, as it is seen.
pub trait Sight {
    /// The directory that a relative path begins at, by the descriptor that the call names.
    fn directory(&self, named: CallPath, descriptor: Option<i64>) -> Option<Vec<u8>>;

    /// Return what a path led to before the call, of what it leads to now.
    fn before(&self, named: CallPath, absolute: &[u8], found: FoundPath) -> PathState;

    /// st_dev and st_ino of the file that the call opened.
    fn identity_of(&self, descriptor: i64) -> Option<(i64, i64)>;

    /// The memory of its program.
    fn memory(&self) -> &dyn ProgramMemory;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn a_path_is_looked_up_once_and_before_it_changes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let name = file.as_os_str().as_bytes();
        let mut snapshot = Snapshot::new();
        let now = |_: &[u8], found: FoundPath| found.row;
        assert_eq!(snapshot.path_id(name.to_vec(), 7, now), 0);
        fs::write(&file, "1234").unwrap();
        assert_eq!(snapshot.path_id(name.to_vec(), 8, now), 0);
        let rows = snapshot.take_new();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].first_call_id, &*rows[0].kind), (7, "absent"));
        assert_eq!(rows[0].size_bytes, None);
        let mut later = Snapshot::new();
        later.path_id(name.to_vec(), 0, now);
        assert_eq!(later.take_new()[0].size_bytes, Some(4));
        assert!(later.find(name).is_as_before);
        fs::write(&file, "12345").unwrap();
        let changed = later.find(name);
        assert!(!changed.is_as_before && !changed.has_same_contents);
    }

    #[test]
    fn a_link_and_what_it_leads_to_are_two() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "12").unwrap();
        std::os::unix::fs::symlink("file", directory.path().join("link")).unwrap();
        std::os::unix::fs::symlink("ring", directory.path().join("ring")).unwrap();
        let mut snapshot = Snapshot::new();
        let mut id = |name: &str| {
            let path = directory.path().join(name);
            snapshot.path_id(path.into_os_string().into_encoded_bytes(), 0, |_, found| found.row)
        };
        assert_eq!([id("link"), id("file"), id("ring")], [0, 1, 2]);
        let kinds: Vec<_> = snapshot.take_new().into_iter().map(|row| row.kind).collect();
        assert_eq!(kinds, ["symlink", "file", "symlink"]);
    }

    #[test]
    fn paths_are_absolute_and_without_ornament() {
        assert_eq!(plain(b"//a/./b//"), b"/a/b");
        assert_eq!(plain(b"/"), b"/");
        assert_eq!(plain(b"/proc/../no-such-name"), b"/no-such-name");
        let here = std::env::current_dir().unwrap().join("x");
        assert_eq!(
            absolute(b"./x", || directory(own(), Some(-100))).unwrap(),
            here.as_os_str().as_bytes()
        );
        let root = fs::File::open("/").unwrap();
        let descriptor = i64::from(std::os::fd::AsRawFd::as_raw_fd(&root));
        assert_eq!(absolute(b"x", || directory(own(), Some(descriptor))).unwrap(), b"/x");
        assert_eq!(absolute(b"x", || directory(own(), Some(9999))), None);
        let parent = |path: &[u8]| absolute(path, || Some(b"/gone/d".to_vec())).unwrap();
        assert_eq!(parent(b".."), b"/gone");
        assert_eq!(parent(b"..//../x"), b"/x");
        assert_eq!(parent(b"..x"), b"/gone/d/..x");
        assert_eq!(absolute(b"", || Some(Vec::new())), None);
        assert!(descriptors(own(), 0).iter().any(|row| row.descriptor == descriptor));
    }
}
