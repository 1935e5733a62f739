//! The records that the kernel's program has sent of the threads: their calls with the memory that
//! belongs to them, and the children that were seen before their creators' calls had ended.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::super::calls::{Role, SystemCall};
use super::super::snapshot::{ABSENT, FoundPath, LOOKED_UP, kind_of};
use super::records::{DIRECTORY, DIRECTORY2, OpenedFile, WAS_CUT, WAS_MADE, WAS_THERE};
use crate::recorder::contents::{self, ProgramMemory};
use crate::recorder::snapshot::{CallPath, Sight};
use crate::system_calls;
use crate::tables::recording::PathState;

/// The size of struct stat, STAT_BYTES of kernel/bpf/processor.bpf.h.
const STAT_BYTES: usize = size_of::<libc::stat>();

const STATED: &str = "told";
const INFERRED: &str = "inferred";

/// Memory of a program, piece by piece.
#[derive(Debug, Default)]
pub struct SeenMemory(pub Vec<(u64, Vec<u8>)>);

/// Below are no addresses of programs (mmap_min_addr), but the places of `records`.
const FIRST_ADDRESS: u64 = 4096;

impl ProgramMemory for SeenMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let at = address.wrapping_add(done as u64);
            let behind = |(begin, bytes): &'_ (u64, Vec<u8>)| {
                let place = usize::try_from(at.checked_sub(*begin)?).ok()?;
                (*begin >= FIRST_ADDRESS && place < bytes.len()).then_some(place)
            };
            let mut found = self.0.iter();
            let found = found.find_map(|piece| Some(&piece.1[behind(piece)?..]));
            let Some(rest) = found else { break };
            let count = rest.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
        }
        done
    }
}

impl SeenMemory {
    /// Leaves only the last pieces: those before belong to a call whose begin or end was lost.
    pub fn keep_last(&mut self, count: usize) {
        self.0.drain(..self.0.len().saturating_sub(count));
    }

    /// The path of a directory or file, at a place that is no address.
    pub fn path(&self, place: u64) -> Option<Vec<u8>> {
        let (_, names) = self.0.iter().find(|(at, _)| *at == place)?;
        let mut path = Vec::with_capacity(names.len() + 1);
        // From the leaf to the root, each with its NUL.
        let names = names.strip_suffix(&[0]).unwrap_or(names);
        for name in names.rsplit(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        Some(if path.is_empty() { vec![b'/'] } else { path })
    }
}

/// st_dev of a file by its s_dev, and files that the recording made.
#[derive(Debug, Default)]
pub struct KnownFiles {
    /// The st_dev of each s_dev, where they differ: filesystems of several devices have numbers of
    /// their own.
    devices: HashMap<u32, i64>,
    made: HashSet<(i64, i64)>,
}

impl KnownFiles {
    /// s_dev has 20 bits for the minor number (include/linux/kdev_t.h).
    fn device(&self, filesystem: u32) -> i64 {
        let own = || libc::makedev(filesystem >> 20, filesystem & 0xf_ffff) as i64;
        self.devices.get(&filesystem).copied().unwrap_or_else(own)
    }

    fn identity(&self, file: &OpenedFile) -> (i64, i64) {
        (self.device(file.filesystem), file.inode.cast_signed())
    }

    /// A call has ended: remembers the file that it made.
    pub fn note(&mut self, file: &OpenedFile) {
        if file.knowledge & WAS_MADE != 0 {
            self.made.insert(self.identity(file));
        }
    }

    /// Learn what stat(2) gives for the device of a file that is still found under its path.
    fn learn(&mut self, file: &OpenedFile, found: &PathState) {
        let is_known = file.knowledge & (WAS_THERE | WAS_MADE) != 0;
        let is_found = found.inode == Some(file.inode.cast_signed());
        if let Some(device) = found.device.filter(|_| is_known && is_found)
            && device != self.device(file.filesystem)
        {
            self.devices.insert(file.filesystem, device);
        }
    }
}

/// A call, begun and perhaps ended.
pub struct SeenCall<'a> {
    pub call: &'static SystemCall,
    pub arguments: &'a [u64; 6],
    pub result: Option<i64>,
    pub pieces: &'a SeenMemory,
    pub file: &'a OpenedFile,
    pub early: &'a EarlyNames,
    pub known: &'a RefCell<KnownFiles>,
}

impl Sight for SeenCall<'_> {
    fn directory(&self, named: CallPath, _descriptor: Option<i64>) -> Option<Vec<u8>> {
        self.pieces.path(if named == CallPath::First { DIRECTORY } else { DIRECTORY2 })
    }

    fn before(&self, named: CallPath, absolute: &[u8], found: FoundPath) -> PathState {
        self.known.borrow_mut().learn(self.file, &found.row);
        if found.is_as_before {
            return found.row;
        }
        if self.file.knowledge & WAS_MADE != 0 {
            return absent(found.row, LOOKED_UP);
        }
        if found.row.made_by_recording == Some(false) && found.row.kind == "directory" {
            return found.row;
        }
        let early = self.early.get(absolute);
        if self.file.knowledge & WAS_THERE != 0 {
            return self.opened_before(found.row, early);
        }
        if let Some(row) = self.state_from_stat(&found.row) {
            return row;
        }
        let error = self.result.filter(|it| *it < 0).map(|it| -it as i32);
        match error {
            Some(libc::ENOENT | libc::ENOTDIR) if named == CallPath::First => {
                absent(found.row, STATED)
            }
            Some(libc::EEXIST) | None if self.result.is_some() => {
                self.state_from_success(named, found, early)
            }
            _ => early.cloned().unwrap_or(found.row),
        }
    }

    fn identity_of(&self, _descriptor: i64) -> Option<(i64, i64)> {
        let file = self.file;
        (file.knowledge & (WAS_THERE | WAS_MADE) != 0).then(|| self.known.borrow().identity(file))
    }

    fn memory(&self) -> &dyn ProgramMemory {
        self.pieces
    }
}

impl SeenCall<'_> {
    fn opened_before(&self, found: PathState, early: Option<&PathState>) -> PathState {
        let file = self.file;
        let (device, inode) = self.known.borrow().identity(file);
        let is_found = found.inode == Some(inode);
        let is_new = self.known.borrow().made.contains(&(device, inode));
        let early = early.filter(|it| it.inode == Some(inode));
        let size_bytes = match file.knowledge & WAS_CUT {
            0 => Some(file.size_bytes.cast_signed()),
            _ => early.and_then(|it| it.size_bytes),
        };
        PathState {
            kind: kind_of(file.mode).into(),
            size_bytes,
            mode: Some(i64::from(file.mode & 0o7777)),
            links: Some(file.links.into()),
            device: Some(device),
            inode: Some(inode),
            link_target: found.link_target.filter(|_| is_found),
            made_by_recording: found.made_by_recording.filter(|_| is_found).or(Some(is_new)),
            basis: LOOKED_UP.into(),
            path: found.path,
            ..PathState::default()
        }
    }

    /// Return the state that the call itself was told (stat(2), statx(2)).
    fn state_from_stat(&self, found: &PathState) -> Option<PathState> {
        let address = |role| {
            let place = self.call.roles.iter().position(|it| *it == role)?;
            Some(self.arguments[place])
        };
        let (inode, device, links, mode, size);
        if self.result != Some(0) {
            return None;
        } else if let Some(address) = address(Role::Stat) {
            let stat = contents::array::<STAT_BYTES>(self.pieces, address)?;
            let number = |at: usize| i64::from_ne_bytes(stat[at..at + 8].try_into().expect("8"));
            let small = |at: usize| u32::from_ne_bytes(stat[at..at + 4].try_into().expect("4"));
            (device, inode, size) = (number(0), number(8), number(48));
            (links, mode) = if cfg!(target_arch = "aarch64") {
                (small(20).into(), small(16))
            } else {
                (number(16), small(24))
            };
        } else {
            // struct statx: stx_nlink at 16, stx_mode at 28, stx_ino, stx_size; stx_dev at 136.
            let stat = contents::array::<152>(self.pieces, address(Role::Statx)?)?;
            let number = |at: usize| i64::from_ne_bytes(stat[at..at + 8].try_into().expect("8"));
            let small = |at: usize| u32::from_ne_bytes(stat[at..at + 4].try_into().expect("4"));
            (links, inode, size) = (i64::from(small(16)), number(32), number(40));
            device = libc::makedev(small(136), small(140)) as i64;
            mode = small(28) & 0xffff;
        }
        let is_found = (found.device, found.inode) == (Some(device), Some(inode));
        let is_new = self.known.borrow().made.contains(&(device, inode));
        Some(PathState {
            kind: kind_of(mode).into(),
            size_bytes: Some(size),
            mode: Some(i64::from(mode & 0o7777)),
            links: Some(links),
            device: Some(device),
            inode: Some(inode),
            link_target: found.link_target.clone().filter(|_| is_found),
            made_by_recording: found.made_by_recording.filter(|_| is_found).or(Some(is_new)),
            basis: STATED.into(),
            path: found.path.clone(),
            ..PathState::default()
        })
    }

    /// The call succeeded, or failed because something was there.
    fn state_from_success(
        &self,
        named: CallPath,
        found: FoundPath,
        early: Option<&PathState>,
    ) -> PathState {
        let row = found.row;
        let number = self.call.number;
        let makes = [
            system_calls::SYS_mkdir,
            system_calls::SYS_mkdirat,
            system_calls::SYS_mknod,
            system_calls::SYS_mknodat,
            system_calls::SYS_symlink,
            system_calls::SYS_symlinkat,
        ];
        let succeeded = self.result.is_some_and(|it| it >= 0);
        if succeeded && makes.contains(&number) {
            return absent(row, STATED);
        }
        if let Some(early) = early {
            return early.clone();
        }
        if succeeded && named == CallPath::Second {
            return absent(row, STATED);
        }
        if row.kind == ABSENT {
            // It was there, and is gone.
            let directories = [system_calls::SYS_rmdir, system_calls::SYS_chdir];
            let kind = if directories.contains(&number) { "directory" } else { "file" };
            return PathState { kind: kind.into(), basis: STATED.into(), ..row };
        }
        if row.made_by_recording == Some(true) || row.kind != "file" {
            return row;
        }
        let size_bytes = row.size_bytes.filter(|_| found.has_same_contents);
        PathState { size_bytes, basis: INFERRED.into(), ..row }
    }
}

fn absent(found: PathState, basis: &'static str) -> PathState {
    let basis = basis.into();
    PathState { path: found.path, kind: ABSENT.into(), basis, ..PathState::default() }
}

/// Looking at so many takes some 50 ms.
const MOST_NAMES: usize = 10_000;

/// Absolute paths and what they led to.
#[derive(Default)]
pub struct EarlyNames(HashMap<Vec<u8>, PathState>);

impl EarlyNames {
    /// Those of the directory and of the directories below on its filesystem, the nearest first.
    pub fn below(directory: &[u8], find: impl Fn(&[u8]) -> PathState) -> Self {
        let mut names = HashMap::new();
        let device = find(directory).device;
        let mut waiting = VecDeque::from([PathBuf::from(OsStr::from_bytes(directory))]);
        while let Some(directory) = waiting.pop_front() {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for path in entries.flatten().map(|entry| entry.path()) {
                if names.len() == MOST_NAMES {
                    return EarlyNames(names);
                }
                let row = find(path.as_os_str().as_bytes());
                if row.kind == "directory" && row.device == device {
                    waiting.push_back(path.clone());
                }
                names.insert(path.into_os_string().into_encoded_bytes(), row);
            }
        }
        EarlyNames(names)
    }

    /// Return what was there; none where nothing was, or nobody looked.
    pub fn get(&self, path: &[u8]) -> Option<&PathState> {
        self.0.get(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::contents;

    #[test]
    fn memory_is_read_across_pieces() {
        let piece = |at: u64, bytes: &[u8]| (at, bytes.to_vec());
        let pieces = SeenMemory(vec![
            piece(3, b"e\0d\0"),
            piece(5000, b"old\0"),
            piece(5004, b"new\0"),
            piece(8192, &[1; 4096]),
            piece(12288, &[2; 16]),
        ]);
        assert_eq!(contents::string(&pieces, 5000).unwrap(), b"old");
        assert_eq!(contents::string(&pieces, 5004).unwrap(), b"new");
        assert_eq!(contents::string(&pieces, 3), None);
        assert_eq!(contents::vectors(&pieces, 8192, 257).unwrap().len(), 257);
        assert_eq!(contents::vectors(&pieces, 8192, 258), None);
        assert_eq!(pieces.path(3).unwrap(), b"/d/e");
        assert_eq!(pieces.path(1), None);
        assert_eq!(SeenMemory(vec![piece(1, b"")]).path(1).unwrap(), b"/");
        let mut own = SeenMemory(vec![piece(5000, b"lost\0"), piece(5000, b"own\0")]);
        own.keep_last(1);
        assert_eq!(contents::string(&own, 5000).unwrap(), b"own");
        own.keep_last(0);
        assert_eq!(contents::string(&own, 5000), None);
    }

    #[test]
    fn names_are_found_in_directories_below() {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join("d")).unwrap();
        fs::write(here.path().join("d/f"), "x").unwrap();
        let find = |path: &[u8]| {
            let is_directory = fs::metadata(OsStr::from_bytes(path)).unwrap().is_dir();
            let kind = if is_directory { "directory" } else { "file" };
            PathState { kind: kind.into(), device: Some(1), ..PathState::default() }
        };
        let early = EarlyNames::below(here.path().as_os_str().as_bytes(), find);
        let kind = |name: &str| {
            let path = here.path().join(name);
            early.get(path.as_os_str().as_bytes()).map(|row| row.kind.to_string())
        };
        assert_eq!(kind("d").as_deref(), Some("directory"));
        assert_eq!(kind("d/f").as_deref(), Some("file"));
        assert_eq!(kind("e"), None);
    }
}
