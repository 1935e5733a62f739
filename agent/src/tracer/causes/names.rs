//! Finds the file behind a path that was passed to a call. Reads the paths of files that the kernel
//! reported, and the mount table. A path is matched by its text. If the text of its folder is not
//! known, the path is looked up, because it may contain a symbolic link.
//!
//! A path means what it means to the process that passed it. Paths that depend on another root
//! directory, or on mounts that this process does not have, are counted and not matched: the same
//! path here may be another file.

use std::collections::BTreeMap;

use super::changes::ChangedSubject;
use super::mounts::{FilesystemPath, Mounts, normal};
use crate::tracer::files::{Effect, FileKey, path_key};
use crate::tracer::records::kernel::{MODE_DIRECTORY, MODE_TYPE};
use crate::tracer::records::{Name, PathRecord, Root, UringOutcome};

/// Paths that are kept of each of two generations: the older one is forgotten when the newer is
/// full, so that the memory has a bound.
const PATHS_LIMIT: usize = 32_768;

/// Calls whose second name is waited for; far more than can be under way.
const CALLS_LIMIT: usize = 65_536;

/// The paths of files, and the mounts.
#[derive(Debug)]
pub struct NameLookup {
    mounts: Mounts,
    own_root: Root,
    paths: BTreeMap<FilesystemPath, FileKey>,
    older_paths: BTreeMap<FilesystemPath, FileKey>,
    directories: BTreeMap<FileKey, String>,
    older_directories: BTreeMap<FileKey, String>,
    /// The first place of a call whose second name is to come, by thread.
    first_places: BTreeMap<u32, FilesystemPath>,
    unmatched: u64,
}

/// A place that a name leads to, or why there is none.
enum NamePlace {
    Place(FilesystemPath),
    /// It is about no traced disk.
    Elsewhere,
    /// It depends on what is not known here.
    Unknown,
}

impl NameLookup {
    /// No path is known. `own_root` is this process's.
    pub fn new(mounts: Mounts, own_root: Root) -> Self {
        NameLookup {
            mounts,
            own_root,
            paths: BTreeMap::new(),
            older_paths: BTreeMap::new(),
            directories: BTreeMap::new(),
            older_directories: BTreeMap::new(),
            first_places: BTreeMap::new(),
            unmatched: 0,
        }
    }

    /// Something was mounted or unmounted.
    pub fn read_mounts(&mut self) {
        self.mounts.read();
    }

    /// Names that depend on a root directory or on mounts that are not known here, or whose folder
    /// is not known: what they changed was not followed.
    pub fn unmatched_names(&self) -> u64 {
        self.unmatched
    }

    /// The kernel reported a file's path.
    pub fn see_path(&mut self, path: &PathRecord) {
        if path.path.is_empty() {
            return;
        }
        let key = path_key(path);
        self.know(key, (path.filesystem, path.path.clone()));
        if path.mode & MODE_TYPE == MODE_DIRECTORY {
            self.directories.insert(key, path.path.clone());
        }
    }

    fn know(&mut self, key: FileKey, place: FilesystemPath) {
        // A path whose directory is ever another has one place, and many directories.
        if self.paths.len().max(self.directories.len()) >= PATHS_LIMIT {
            self.older_paths = std::mem::take(&mut self.paths);
            self.older_directories = std::mem::take(&mut self.directories);
        }
        self.paths.insert(place, key);
    }

    /// The place of a name, on a filesystem that may be on a traced disk (`is_known`: it is). None
    /// where it is none of those, or is not known, which is counted.
    pub fn place(&mut self, name: &Name, is_known: impl Fn(u32) -> bool) -> Option<FilesystemPath> {
        match self.find_place(name) {
            NamePlace::Place(place) => {
                let here = is_known(place.0) || self.mounts.may_be_traced(place.0);
                here.then_some(place)
            }
            NamePlace::Elsewhere => None,
            NamePlace::Unknown => {
                self.unmatched += 1;
                None
            }
        }
    }

    /// The file at a place or, if none of that path was seen, the path's last part.
    pub fn find(&self, place: &FilesystemPath) -> ChangedSubject {
        let last = || place.1.rsplit('/').next().unwrap_or_default().to_owned();
        self.key(place).map_or_else(|| ChangedSubject::Named(last()), ChangedSubject::File)
    }

    /// Takes the two names of a rename one after the other; after the second it gives what became
    /// of the files that are known: the file, what is below it if it is a directory, and the other
    /// one of an exchange or the one that was replaced. The kernel tells the new name itself only
    /// when a file is met again.
    pub fn rename(&mut self, name: &Name, place: Option<FilesystemPath>) -> Vec<Effect> {
        let Some((old, new)) = self.pair(name, place) else { return Vec::new() };
        self.mounts.forget_links();
        if old.0 != new.0 || old == new {
            return Vec::new();
        }
        let moved = self.remove(&old);
        let replaced = self.remove(&new);
        let mut effects = self.put(moved, &old.1, &new);
        if name.exchanges {
            effects.extend(self.put(replaced, &new.1, &old));
        } else {
            let at_new = replaced.into_iter().filter(|(path, _)| *path == new.1);
            effects.extend(at_new.map(|(_, key)| Effect::Unlinked(key)));
        }
        effects
    }

    /// Takes the two names of a link likewise.
    pub fn link(&mut self, name: &Name, place: Option<FilesystemPath>) -> Vec<Effect> {
        let Some((old, new)) = self.pair(name, place) else { return Vec::new() };
        let Some(key) = self.key(&old) else { return Vec::new() };
        self.know(key, new);
        vec![Effect::Linked(key)]
    }

    /// The name is gone.
    pub fn unlink(&mut self, place: &FilesystemPath) -> Vec<Effect> {
        self.mounts.forget_links();
        let gone = self.remove(place);
        let own = gone.into_iter().filter(|(path, _)| *path == place.1);
        own.map(|(_, key)| Effect::Unlinked(key)).collect()
    }

    /// The first place of the call whose second one this is.
    fn pair(
        &mut self,
        name: &Name,
        place: Option<FilesystemPath>,
    ) -> Option<(FilesystemPath, FilesystemPath)> {
        let first = self.first_places.remove(&name.tid);
        if name.second {
            return Some((first?, place?));
        }
        if self.first_places.len() >= CALLS_LIMIT {
            // Of calls whose second names were lost.
            self.first_places.clear();
        }
        self.first_places.extend(place.map(|place| (name.tid, place)));
        None
    }

    /// Removes what is known at a place and below it.
    fn remove(&mut self, place: &FilesystemPath) -> Vec<(String, FileKey)> {
        let below = (place.0, format!("{}/", place.1));
        let mut taken = BTreeMap::new();
        for paths in [&mut self.older_paths, &mut self.paths] {
            let inside = paths.range(below.clone()..).map(|(known, _)| known);
            let inside = inside.take_while(|(filesystem, path)| {
                *filesystem == below.0 && path.starts_with(&below.1)
            });
            let mut found: Vec<FilesystemPath> = inside.cloned().collect();
            found.push(place.clone());
            // What was reported last is in the newer ones.
            taken.extend(
                found.into_iter().filter_map(|it| Some((it.1.clone(), paths.remove(&it)?))),
            );
        }
        let mut taken: Vec<(String, FileKey)> = taken.into_iter().collect();
        taken.sort_by_key(|(path, _)| *path == place.1);
        taken
    }

    /// Enters what was taken at one path again at a place; gives files with their paths of now.
    fn put(
        &mut self,
        taken: Vec<(String, FileKey)>,
        from: &str,
        to: &FilesystemPath,
    ) -> Vec<Effect> {
        let mut renamed = Vec::new();
        for (path, key) in taken {
            let path = format!("{}{}", to.1, &path[from.len()..]);
            self.know(key, (to.0, path.clone()));
            for directories in [&mut self.older_directories, &mut self.directories] {
                if let Some(known) = directories.get_mut(&key) {
                    known.clone_from(&path);
                }
            }
            renamed.push(Effect::Path(key, path));
        }
        renamed
    }

    fn key(&self, place: &FilesystemPath) -> Option<FileKey> {
        self.paths.get(place).or_else(|| self.older_paths.get(place)).copied()
    }

    fn find_place(&mut self, name: &Name) -> NamePlace {
        let is_absolute = name.name.starts_with('/');
        let is_own_root = name.root == self.own_root;
        if is_absolute && is_own_root {
            let Some(by_text) = self.mounts.place(&name.name) else { return NamePlace::Unknown };
            return match self.is_sure(&name.name, &by_text) {
                true => NamePlace::Place(by_text),
                false => self.follow(&name.name),
            };
        }
        let written = name.name.trim_start_matches('/');
        let is_bare = !matches!(written, "" | "." | "..") && !written.contains('/');
        if is_bare && name.elsewhere {
            return NamePlace::Elsewhere;
        }
        let Some(folder) = self.folder_of(name) else { return NamePlace::Unknown };
        if is_bare {
            // In a folder that the kernel reported: neither links nor mounts are on the way.
            return NamePlace::Place((folder.0, normal(&format!("{}/{written}", folder.1))));
        }
        if written.is_empty() || name.root.namespace != self.own_root.namespace {
            return NamePlace::Unknown;
        }
        let Some(by_text) = self.mounts.place_from(&folder, written) else {
            return NamePlace::Unknown;
        };
        if self.is_sure(written, &by_text) {
            return NamePlace::Place(by_text);
        }
        match self.mounts.absolute(&folder) {
            // A link may lead from the root on.
            Some(folder) if is_own_root => self.follow(&format!("{folder}/{written}")),
            _ => NamePlace::Unknown,
        }
    }

    fn follow(&mut self, path: &str) -> NamePlace {
        self.mounts.place_followed(path).map_or(NamePlace::Unknown, NamePlace::Place)
    }

    /// Return whether there can be no symbolic link in a path: the file or its folder is known by
    /// that path. What is above a link is not above where it leads.
    fn is_sure(&self, written: &str, by_text: &FilesystemPath) -> bool {
        if written.split('/').any(|part| part == "..") {
            return false;
        }
        let (above, _) = by_text.1.rsplit_once('/').unwrap_or_default();
        let above = if above.is_empty() { "/" } else { above };
        let is_known = |path: &str| self.key(&(by_text.0, path.to_owned())).is_some();
        is_known(&by_text.1) || is_known(above)
    }

    /// The directory that a path begins in.
    fn folder_of(&self, name: &Name) -> Option<FilesystemPath> {
        let key = FileKey {
            filesystem: name.filesystem,
            inode: name.inode,
            generation: name.generation,
            subvolume: name.subvolume,
        };
        let path = self.directories.get(&key).or_else(|| self.older_directories.get(&key))?;
        Some((name.filesystem, path.clone()))
    }
}

/// Requests that may be under way; of more, those at the lowest addresses are forgotten.
const URING_REQUESTS_LIMIT: usize = 65_536;

/// Names that io_uring was asked to change, by the address of the request. The kernel reports them
/// when io_uring takes a request, and the outcome later, when it completes.
#[derive(Debug, Default)]
pub struct UringNames {
    waiting: BTreeMap<u64, Vec<Name>>,
}

impl UringNames {
    /// The names that are known to be changed by this record: itself if it is of a system call, all
    /// of its request if that is done now, or none.
    pub fn settle(&mut self, name: Name) -> Vec<Name> {
        let Name { request, time_ns, outcome, .. } = name;
        if request == 0 {
            return vec![name];
        }
        match outcome {
            Some(UringOutcome::Done) => {
                let names = self.waiting.remove(&request).unwrap_or_default();
                names.into_iter().map(|name| Name { time_ns, ..name }).collect()
            }
            Some(UringOutcome::Failed) => {
                self.waiting.remove(&request);
                Vec::new()
            }
            None => {
                self.wait(name);
                Vec::new()
            }
        }
    }

    fn wait(&mut self, name: Name) {
        let names = self.waiting.entry(name.request).or_default();
        if !name.second {
            // The address was used before, and the end of that was not seen.
            names.clear();
        }
        names.push(name);
        if self.waiting.len() > URING_REQUESTS_LIMIT {
            self.waiting.pop_first();
        }
    }
}

#[cfg(test)]
#[path = "names_test.rs"]
mod tests;
