//! What SQLite writes, as it hands it to the kernel: its VFS lets write(2) be replaced, and ours
//! keeps of every sector of every file each content that it ever had. So the bytes of a journal
//! that is gone, or of a page that was written again, are known like those of a stamped file.
//! Shared memory (-shm) is written through a mapping, and not seen here. Others tell what they
//! write themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libc::{off_t, size_t, ssize_t};
use rusqlite::ffi;

use super::stamp::SECTOR;

/// Every content that each sector of the files had.
#[derive(Default)]
pub struct Recorded {
    /// By path from the root of the filesystem.
    files: BTreeMap<String, Shadow>,
}

/// One name's file as it is now, and what its sectors were.
#[derive(Default)]
struct Shadow {
    bytes: Vec<u8>,
    /// Hashes by the sector's offset.
    versions: BTreeMap<u64, BTreeSet<u64>>,
}

impl Recorded {
    /// Takes down a write to a file.
    pub fn write(&mut self, path: &str, offset: usize, bytes: &[u8]) {
        self.files.entry(path.to_owned()).or_default().write(offset, bytes);
    }

    /// Whether a file of this name was written.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether the file's sector at an offset ever held these bytes. What was not written reads
    /// as zeros.
    pub fn held(&self, path: &str, offset: u64, sector: &[u8]) -> bool {
        let Some(shadow) = self.files.get(path) else { return false };
        match shadow.versions.get(&offset) {
            Some(hashes) => hashes.contains(&hash(sector)),
            None => sector.iter().all(|&byte| byte == 0),
        }
    }
}

impl Shadow {
    /// The file is so long now: it was cut, made anew under its name, or grew by a hole.
    fn resize(&mut self, length: usize) {
        let changed = self.bytes.len().min(length)..self.bytes.len().max(length);
        self.bytes.resize(length, 0);
        self.note(changed);
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.bytes.len() {
            self.resize(end);
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        self.note(offset..end);
    }

    /// Keeps what the sectors of these bytes hold now; beyond the end of a file are zeros.
    fn note(&mut self, changed: std::ops::Range<usize>) {
        for offset in (changed.start / SECTOR * SECTOR..changed.end).step_by(SECTOR) {
            let mut sector = [0; SECTOR];
            if let Some(rest) = self.bytes.get(offset..) {
                let length = rest.len().min(SECTOR);
                sector[..length].copy_from_slice(&rest[..length]);
            }
            self.versions.entry(offset as u64).or_default().insert(hash(&sector));
        }
    }
}

fn hash(sector: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sector.hash(&mut hasher);
    hasher.finish()
}

/// The recording under way: where the filesystem is mounted, and what was written to it.
static UNDER_WAY: Mutex<Option<(PathBuf, Recorded)>> = Mutex::new(None);

/// Runs `work`, and records what SQLite writes below `directory` meanwhile.
///
/// # Panics
/// If SQLite's default VFS does not know the calls: our build always does.
pub fn record<T>(directory: &Path, work: impl FnOnce() -> T) -> (T, Recorded) {
    let set_under_way = |value| {
        std::mem::replace(&mut *UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner), value)
    };
    set_under_way(Some((directory.to_owned(), Recorded::default())));
    replace_calls(true);
    let result = work();
    replace_calls(false);
    let recorded = set_under_way(None).map_or_else(Recorded::default, |(_, recorded)| recorded);
    (result, recorded)
}

/// SQLite writes by one of the three, as it was built; null gives it its own back.
fn replace_calls(ours: bool) {
    type Pointer = unsafe extern "C" fn();
    type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
    type Pwrite = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
    // SAFETY: function pointers of other types, which SQLite casts back before it calls them
    // (aSyscall in os_unix.c). off_t has 64 bits on every target of ours.
    let (write, pwrite) = unsafe {
        (
            std::mem::transmute::<Write, Pointer>(write),
            std::mem::transmute::<Pwrite, Pointer>(pwrite),
        )
    };
    for (name, call) in [(c"write", write), (c"pwrite", pwrite), (c"pwrite64", pwrite)] {
        // SAFETY: the default VFS is static; the name is a C string; functions live for ever.
        let result = unsafe {
            let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
            let set = (*vfs).xSetSystemCall.expect("the unix VFS has xSetSystemCall");
            set(vfs, name.as_ptr(), ours.then_some(call))
        };
        // It refuses to give back what it was built without.
        assert!(result == ffi::SQLITE_OK || !ours, "the unix VFS knows {name:?}");
    }
}

unsafe extern "C" fn write(descriptor: c_int, data: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: SQLite's own descriptor.
    let offset = unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
    // SAFETY: SQLite's own arguments, handed on; `keep` reads the same bytes.
    unsafe {
        let before = size_of_file(descriptor);
        let written = libc::write(descriptor, data, length);
        keep(descriptor, before, offset, data, written);
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
        let before = size_of_file(descriptor);
        let written = libc::pwrite(descriptor, data, length, offset);
        keep(descriptor, before, offset, data, written);
        written
    }
}

fn size_of_file(descriptor: c_int) -> usize {
    // SAFETY: zeros are a valid stat, which fstat fills.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fstat(descriptor, &raw mut status);
        usize::try_from(status.st_size).unwrap_or_default()
    }
}

/// Takes down what was written of a file that had `before` bytes.
///
/// # Safety
/// `written`, where it is no error, is how many bytes are at `data`.
unsafe fn keep(
    descriptor: c_int,
    before: usize,
    offset: off_t,
    data: *const c_void,
    written: ssize_t,
) {
    let (Ok(length), Ok(offset)) = (usize::try_from(written), usize::try_from(offset)) else {
        return;
    };
    // SAFETY: as our caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((directory, recorded)) = under_way.as_mut() else { return };
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{descriptor}")) else { return };
    let Ok(path) = path.strip_prefix(directory) else { return };
    let path = format!("/{}", path.display());
    let shadow = recorded.files.entry(path).or_default();
    if shadow.bytes.len() != before {
        shadow.resize(before);
    }
    shadow.write(offset, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_content_that_a_sector_had_is_known_and_no_other() {
        let mut shadow = Shadow::default();
        shadow.write(0, &[1; 700]);
        shadow.write(600, &[2; 10]);
        shadow.resize(0);
        shadow.write(0, &[3; 4]);
        let recorded = Recorded { files: BTreeMap::from([("/a".to_owned(), shadow)]) };
        let sector = |parts: &[(u8, usize)]| {
            let bytes = parts.iter().flat_map(|&(byte, count)| std::iter::repeat_n(byte, count));
            bytes.collect::<Vec<u8>>()
        };
        let held = |offset, parts: &[(u8, usize)]| recorded.held("/a", offset, &sector(parts));
        assert!(held(0, &[(1, 512)]) && held(0, &[(3, 4), (0, 508)]) && held(0, &[(0, 512)]));
        assert!(held(512, &[(1, 188), (0, 324)]));
        assert!(held(512, &[(1, 88), (2, 10), (1, 90), (0, 324)]));
        assert!(held(512, &[(0, 512)]) && held(1024, &[(0, 512)]));
        assert!(!held(0, &[(3, 512)]) && !held(512, &[(1, 512)]) && !held(1024, &[(1, 512)]));
        assert!(!recorded.held("/b", 0, &sector(&[(0, 512)])));
    }
}
