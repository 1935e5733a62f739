//! Which file a path is, as a call was given it. Reads the paths of files as the kernel told of
//! them and the table of mounts. A path is matched by its text; one whose folder is not known by
//! its text is looked up, in case there is a symbolic link in it.

use std::collections::BTreeMap;

use super::changes::Changed;
use super::mounts::{Mounts, Place, normal};
use crate::block::files::{Key, path_key};
use crate::block::records::{Name, Path};

/// Paths that are kept of each of two generations: the older one is forgotten when the newer is
/// full, so that the memory has a bound.
const PATHS_KEPT: usize = 32_768;

/// The paths of files, and the mounts.
#[derive(Debug, Default)]
pub struct Names {
    mounts: Mounts,
    paths: BTreeMap<Place, Key>,
    older_paths: BTreeMap<Place, Key>,
    directories: BTreeMap<Key, String>,
    /// By thread: the old place of the rename whose second name is to come.
    renaming: BTreeMap<u32, Place>,
}

impl Names {
    /// Takes the mounts from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    pub fn set_mounts(&mut self, mountinfo: &str) {
        self.mounts.set(mountinfo);
    }

    /// The kernel told a file's path.
    pub fn see_path(&mut self, path: &Path) {
        if path.path.is_empty() {
            return;
        }
        if self.paths.len() >= PATHS_KEPT {
            self.older_paths = std::mem::take(&mut self.paths);
            self.directories.clear();
        }
        let key = path_key(path);
        self.paths.insert((path.filesystem, path.path.clone()), key);
        self.directories.insert(key, path.path.clone());
    }

    /// The filesystem a name is on, and the file or, if none of that path was seen, its last part.
    /// None where the place is not known.
    pub fn find(&mut self, name: &Name) -> Option<(u32, Changed)> {
        let place = self.place(name)?;
        let last = || place.1.rsplit('/').next().unwrap_or_default().to_owned();
        let changed = self.key(&place).map_or_else(|| Changed::Named(last()), Changed::File);
        Some((place.0, changed))
    }

    /// Takes the two names of a rename one after the other; after the second it gives the files
    /// that have another path now, of those that are known: the file, what is below it if it is a
    /// directory, and the other one of an exchange. The kernel tells the new name itself only when
    /// a file is met again.
    pub fn rename(&mut self, name: &Name) -> Vec<(Key, String)> {
        let place = self.place(name);
        if !name.second {
            self.renaming.remove(&name.tid);
            self.renaming.extend(place.map(|place| (name.tid, place)));
            return Vec::new();
        }
        let (Some(old), Some(new)) = (self.renaming.remove(&name.tid), place) else {
            return Vec::new();
        };
        self.mounts.forget_links();
        if old.0 != new.0 || old == new {
            return Vec::new();
        }
        let moved = self.take(&old);
        let replaced = self.take(&new);
        let mut renamed = self.put(moved, &old.1, &new);
        if name.exchanges {
            renamed.extend(self.put(replaced, &new.1, &old));
        }
        renamed
    }

    /// Removes what is known at a place and below it.
    fn take(&mut self, place: &Place) -> Vec<(String, Key)> {
        let below = (place.0, format!("{}/", place.1));
        let mut taken = Vec::new();
        for paths in [&mut self.older_paths, &mut self.paths] {
            let inside = paths.range(below.clone()..).map(|(known, _)| known);
            let inside = inside.take_while(|(filesystem, path)| {
                *filesystem == below.0 && path.starts_with(&below.1)
            });
            let mut found: Vec<Place> = inside.cloned().collect();
            found.push(place.clone());
            taken.extend(found.into_iter().filter_map(|it| Some((paths.remove(&it)?, it.1))));
        }
        taken.into_iter().map(|(key, path)| (path, key)).collect()
    }

    /// Enters what was taken at one path again at a place; gives files with their paths of now.
    fn put(&mut self, taken: Vec<(String, Key)>, from: &str, to: &Place) -> Vec<(Key, String)> {
        let mut renamed = Vec::new();
        for (path, key) in taken {
            let path = format!("{}{}", to.1, &path[from.len()..]);
            self.paths.insert((to.0, path.clone()), key);
            if let Some(known) = self.directories.get_mut(&key) {
                known.clone_from(&path);
            }
            renamed.push((key, path));
        }
        renamed
    }

    fn key(&self, place: &Place) -> Option<Key> {
        self.paths.get(place).or_else(|| self.older_paths.get(place)).copied()
    }

    fn place(&mut self, name: &Name) -> Option<Place> {
        if name.name.is_empty() {
            return None;
        }
        let folder = if name.name.starts_with('/') { None } else { Some(self.folder_of(name)?) };
        let by_text = match &folder {
            None => self.mounts.place(&name.name)?,
            Some((filesystem, path)) => (*filesystem, normal(&format!("{path}/{}", name.name))),
        };
        if self.is_sure(&name.name, folder.is_some(), &by_text) {
            return Some(by_text);
        }
        let absolute = match &folder {
            None => Some(name.name.clone()),
            Some(folder) => {
                self.mounts.absolute(folder).map(|path| format!("{path}/{}", name.name))
            }
        };
        absolute.and_then(|path| self.mounts.place_followed(&path)).or(Some(by_text))
    }

    /// Whether there can be no symbolic link in a path: it is a bare name in a folder, or the file
    /// or its folder is known by that path. What is above a link is not above where it leads.
    fn is_sure(&self, written: &str, is_relative: bool, by_text: &Place) -> bool {
        if written.split('/').any(|part| part == "..") {
            return false;
        }
        let (above, _) = by_text.1.rsplit_once('/').unwrap_or_default();
        let above = if above.is_empty() { "/" } else { above };
        let is_known = |path: &str| self.key(&(by_text.0, path.to_owned())).is_some();
        (is_relative && !written.contains('/')) || is_known(&by_text.1) || is_known(above)
    }

    /// The directory that a relative name begins in.
    fn folder_of(&self, name: &Name) -> Option<Place> {
        let key =
            Key { filesystem: name.filesystem, inode: name.inode, generation: name.generation };
        Some((name.filesystem, self.directories.get(&key)?.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLASH: u32 = 259 << 20;
    const MOUNTS: &str = "21 1 0:20 / / rw - rootfs none rw
35 21 259:0 / /mnt/flash rw,noatime shared:1 - ext4 /dev/flash0 rw
36 21 259:1 /sub /mnt/with\\040space rw - btrfs /dev/flash1 rw
damaged line";

    fn names() -> Names {
        let mut names = Names::default();
        names.set_mounts(MOUNTS);
        for (inode, path) in [(2, "/"), (12, "/main.db-journal"), (13, "/dir"), (14, "/dir/x")] {
            let path = Path { filesystem: FLASH, inode, path: path.into(), ..Path::default() };
            names.see_path(&path);
        }
        names
    }

    fn find(directory: u64, name: &str) -> Option<(u32, Changed)> {
        let filesystem = if directory > 0 { FLASH } else { 0 };
        let given = Name { inode: directory, filesystem, name: name.into(), ..Name::default() };
        names().find(&given)
    }

    fn file(inode: u64) -> Option<(u32, Changed)> {
        let key = Key { filesystem: FLASH, inode, generation: 0 };
        Some((FLASH, Changed::File(key)))
    }

    #[test]
    fn an_absolute_path_is_found_by_its_mount() {
        assert_eq!(find(0, "/mnt/flash/main.db-journal"), file(12));
        assert_eq!(find(0, "/mnt/flash//dir/./y/../x"), file(14));
        let elsewhere = Some((20, Changed::Named("main.db-journal".into())));
        assert_eq!(find(0, "/tmp/main.db-journal"), elsewhere);
        assert_eq!(find(0, "/mnt/flashy/x"), Some((20, Changed::Named("x".into()))));
        let below = Some((FLASH + 1, Changed::Named("z".into())));
        assert_eq!(find(0, "/mnt/with space/z"), below);
    }

    #[test]
    fn a_relative_path_is_found_by_its_directory() {
        assert_eq!(find(2, "main.db-journal"), file(12));
        assert_eq!(find(13, "x"), file(14));
        assert_eq!(find(13, "../main.db-journal"), file(12));
        assert_eq!(find(13, "new"), Some((FLASH, Changed::Named("new".into()))));
        assert_eq!(find(99, "x"), None);
        assert_eq!(find(2, ""), None);
    }

    #[test]
    fn a_rename_is_followed_by_its_two_names() {
        let mut names = names();
        let given = |tid, inode, second, name: &str| Name {
            tid,
            inode,
            second,
            filesystem: FLASH,
            name: name.into(),
            ..Name::default()
        };
        let key = Key { filesystem: FLASH, inode: 14, generation: 0 };
        assert_eq!(names.rename(&given(1, 13, false, "x")), []);
        assert_eq!(names.rename(&given(2, 2, true, "of another thread")), []);
        assert_eq!(names.rename(&given(1, 2, true, "y")), [(key, "/y".to_owned())]);
        assert_eq!(names.find(&given(1, 2, false, "y")), file(14));
        let nothing = Some((FLASH, Changed::Named("x".into())));
        assert_eq!(names.find(&given(1, 13, false, "x")), nothing);
        assert_eq!(names.rename(&given(1, 2, false, "never seen")), []);
        assert_eq!(names.rename(&given(1, 2, true, "z")), []);
    }

    fn renamed(names: &mut Names, from: &str, to: &str, exchanges: bool) -> Vec<(u64, String)> {
        let given = |name: &str, second| Name {
            inode: 2,
            filesystem: FLASH,
            name: name.into(),
            second,
            exchanges,
            ..Name::default()
        };
        assert_eq!(names.rename(&given(from, false)), []);
        let found = names.rename(&given(to, true));
        found.into_iter().map(|(key, path)| (key.inode, path)).collect()
    }

    #[test]
    fn what_is_below_a_renamed_directory_moves_with_it() {
        let mut names = names();
        let beside = Path { filesystem: FLASH, inode: 15, path: "/dirt".into(), ..Path::default() };
        names.see_path(&beside);
        let moved = [(14, "/new/x".to_owned()), (13, "/new".to_owned())];
        assert_eq!(renamed(&mut names, "dir", "new", false), moved);
        assert_eq!(renamed(&mut names, "new/x", "x", false), [(14, "/x".to_owned())]);
        assert_eq!(renamed(&mut names, "dirt", "new/y", false), [(15, "/new/y".to_owned())]);
    }

    #[test]
    fn an_exchange_gives_each_the_name_of_the_other_and_a_rename_over_takes_one_away() {
        let mut names = names();
        let swapped = [(12, "/dir/x".to_owned()), (14, "/main.db-journal".to_owned())];
        assert_eq!(renamed(&mut names, "main.db-journal", "dir/x", true), swapped);
        assert_eq!(renamed(&mut names, "dir/x", "main.db-journal", false).len(), 1);
        assert_eq!(renamed(&mut names, "main.db-journal", "z", false), [(12, "/z".to_owned())]);
    }

    #[test]
    fn a_name_behind_a_symbolic_link_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(folder.path()).unwrap().display().to_string();
        std::fs::create_dir(format!("{top}/dir")).unwrap();
        std::os::unix::fs::symlink("dir", format!("{top}/link")).unwrap();
        let mut names = names();
        names.set_mounts(&format!("35 21 259:0 / {top} rw"));
        for (directory, name) in [(2, "link/x".to_owned()), (0, format!("{top}/link/x"))] {
            let filesystem = if directory > 0 { FLASH } else { 0 };
            let given = Name { inode: directory, filesystem, name, ..Name::default() };
            assert_eq!(names.find(&given), file(14));
        }
    }

    #[test]
    fn the_memory_has_a_bound() {
        let mut names = names();
        for inode in 0..3 * PATHS_KEPT as u64 {
            let path = Path { inode, path: format!("/{inode}"), ..Path::default() };
            names.see_path(&path);
        }
        assert!(names.paths.len() + names.older_paths.len() <= 2 * PATHS_KEPT);
        assert!(names.directories.len() <= PATHS_KEPT);
    }
}
