//! What was under each path before the first call that names it: makes paths absolute, looks them
//! up once, and gives rows of `snapshot`.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::words;
use crate::tables::recording::{OpenDescriptor, PathState};

/// As many symbolic links as the kernel follows (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// How what is told of a path is known.
const LOOKED_UP: &str = "looked-up";

/// The paths so far.
pub struct Snapshot {
    ids: HashMap<Vec<u8>, i64>,
    rows: Vec<PathState>,
    began: SystemTime,
}

impl Snapshot {
    /// Of a recording that begins when this returns. Files are born by a clock that moves with the
    /// timer's tick, so the next one is awaited: what was there before is older than it.
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
        Snapshot { ids: HashMap::new(), rows: Vec::new(), began }
    }

    /// The number of a path that a call of a thread names, which has not been made yet.
    pub fn path_id(
        &mut self,
        tid: i32,
        directory: Option<i64>,
        path: &[u8],
        call_id: i64,
    ) -> Option<i64> {
        let absolute = absolute(tid, directory, path)?;
        Some(self.id_of(absolute, call_id))
    }

    fn id_of(&mut self, absolute: Vec<u8>, call_id: i64) -> i64 {
        let (mut absolute, mut first) = (absolute, None);
        for _ in 0..MOST_LINKS {
            if let Some(id) = self.ids.get(&absolute) {
                return first.unwrap_or(*id);
            }
            let path_id = self.ids.len() as i64;
            let row = PathState { path_id, first_call_id: call_id, ..self.state(&absolute) };
            self.ids.insert(absolute.clone(), path_id);
            first.get_or_insert(path_id);
            self.rows.push(row);
            // Where it leads to, another call may not say.
            let Ok(target) = fs::read_link(path_of(&absolute)) else { break };
            let parent = path_of(&absolute).parent().unwrap_or(Path::new("/"));
            let leads_to = parent.join(target).into_os_string();
            absolute = plain(leads_to.as_bytes());
        }
        first.unwrap_or_default()
    }

    fn state(&self, absolute: &[u8]) -> PathState {
        let path = words::text(absolute);
        let found = match fs::symlink_metadata(path_of(absolute)) {
            Ok(found) => found,
            Err(error) => {
                let absent = matches!(
                    error.raw_os_error(),
                    Some(libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG)
                );
                let kind = if absent { "absent" } else { "unknown" };
                let basis = LOOKED_UP.into();
                return PathState { path, kind: kind.into(), basis, ..PathState::default() };
            }
        };
        let kind = match found.file_type() {
            kind if kind.is_file() => "file",
            kind if kind.is_dir() => "directory",
            kind if kind.is_symlink() => "symlink",
            _ => "other",
        };
        let link = fs::read_link(path_of(absolute)).ok();
        PathState {
            path,
            kind: kind.into(),
            size_bytes: Some(found.len() as i64),
            mode: Some(i64::from(found.permissions().mode() & 0o7777)),
            links: Some(found.nlink() as i64),
            device: Some(found.dev() as i64),
            inode: Some(found.ino() as i64),
            link_target: link.map(|target| words::text(target.as_os_str().as_bytes())),
            basis: LOOKED_UP.into(),
            made_by_recording: found.created().ok().map(|born| born >= self.began),
            ..PathState::default()
        }
    }

    /// The rows since the last time.
    pub fn take(&mut self) -> Vec<PathState> {
        std::mem::take(&mut self.rows)
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A path from the root. None where it is empty (AT_EMPTY_PATH), or its directory cannot be told.
fn absolute(tid: i32, directory: Option<i64>, path: &[u8]) -> Option<Vec<u8>> {
    if path.is_empty() {
        return None;
    }
    if path[0] == b'/' {
        return Some(plain(path));
    }
    let base = match directory.filter(|it| *it != i64::from(libc::AT_FDCWD)) {
        Some(descriptor) => fs::read_link(format!("/proc/{tid}/fd/{descriptor}")),
        None => fs::read_link(format!("/proc/{tid}/cwd")),
    };
    let mut joined = base.ok()?.into_os_string().into_encoded_bytes();
    joined.push(b'/');
    joined.extend_from_slice(path);
    Some(plain(&joined))
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
            flags: i64::from_str_radix(field("flags:")?, 8).ok()?,
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
        assert_eq!(snapshot.path_id(own(), None, name, 7), Some(0));
        fs::write(&file, "1234").unwrap();
        assert_eq!(snapshot.path_id(own(), None, name, 8), Some(0));
        assert_eq!(snapshot.path_id(own(), None, b"", 9), None);
        let rows = snapshot.take();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].first_call_id, &*rows[0].kind), (7, "absent"));
        assert_eq!(rows[0].size_bytes, None);
        let mut later = Snapshot::new();
        later.path_id(own(), None, name, 0);
        assert_eq!(later.take()[0].size_bytes, Some(4));
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
            snapshot.path_id(own(), None, path.as_os_str().as_bytes(), 0)
        };
        assert_eq!([id("link"), id("file"), id("ring")], [Some(0), Some(1), Some(2)]);
        let kinds: Vec<_> = snapshot.take().into_iter().map(|row| row.kind).collect();
        assert_eq!(kinds, ["symlink", "file", "symlink"]);
    }

    #[test]
    fn paths_are_absolute_and_without_ornament() {
        assert_eq!(plain(b"//a/./b//"), b"/a/b");
        assert_eq!(plain(b"/"), b"/");
        assert_eq!(plain(b"/proc/../no-such-name"), b"/no-such-name");
        let here = std::env::current_dir().unwrap().join("x");
        assert_eq!(absolute(own(), Some(-100), b"./x").unwrap(), here.as_os_str().as_bytes());
        let root = fs::File::open("/").unwrap();
        let descriptor = i64::from(std::os::fd::AsRawFd::as_raw_fd(&root));
        assert_eq!(absolute(own(), Some(descriptor), b"x").unwrap(), b"/x");
        assert_eq!(absolute(own(), Some(9999), b"x"), None);
        assert!(descriptors(own(), 0).iter().any(|row| row.descriptor == descriptor));
    }
}
