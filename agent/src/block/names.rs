//! Which file a path is, as a call was given it. Reads the paths of files as the kernel told of
//! them and the table of mounts; a path is matched by its text, so one through a symbolic link is
//! not found.

use std::collections::BTreeMap;

use super::changes::Changed;
use super::files::{Key, path_key};
use super::record::{Name, Path};

/// Paths that are kept of each of two generations: the older one is forgotten when the newer is
/// full, so that the memory has a bound.
const PATHS_KEPT: usize = 32_768;

/// Where a filesystem is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    filesystem: u32,
    /// Path in the filesystem of what is seen at the mount point; without a slash at the end.
    root: String,
    point: String,
}

/// The paths of files, and the mounts.
#[derive(Debug, Default)]
pub struct Names {
    mounts: Vec<Mount>,
    paths: BTreeMap<(u32, String), Key>,
    older_paths: BTreeMap<(u32, String), Key>,
    directories: BTreeMap<Key, String>,
    /// By thread: the file and the old path of the rename whose second name is to come.
    renaming: BTreeMap<u32, (Key, String)>,
}

impl Names {
    /// Takes the mounts from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    pub fn set_mounts(&mut self, mountinfo: &str) {
        self.mounts = mountinfo.lines().filter_map(mount).collect();
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
    pub fn find(&self, name: &Name) -> Option<(u32, Changed)> {
        let (filesystem, path) = self.place(name)?;
        let known = (filesystem, path);
        let key = self.paths.get(&known).or_else(|| self.older_paths.get(&known));
        let last = || known.1.rsplit('/').next().unwrap_or_default().to_owned();
        let changed = key.map_or_else(|| Changed::Named(last()), |key| Changed::File(*key));
        Some((filesystem, changed))
    }

    /// Takes the two names of a rename one after the other; after the second it gives the file
    /// and its path of now, where both are known. The kernel tells the new name itself only when
    /// the file is met again.
    pub fn rename(&mut self, name: &Name) -> Option<(Key, String)> {
        let known = self.place(name);
        if !name.second {
            self.renaming.remove(&name.tid);
            let known = known?;
            let key = self.paths.get(&known).or_else(|| self.older_paths.get(&known)).copied()?;
            self.renaming.insert(name.tid, (key, known.1));
            return None;
        }
        let (key, old) = self.renaming.remove(&name.tid)?;
        let (filesystem, path) = known?;
        if filesystem != key.filesystem {
            return None;
        }
        self.paths.remove(&(filesystem, old.clone()));
        self.older_paths.remove(&(filesystem, old));
        self.paths.insert((filesystem, path.clone()), key);
        if let Some(known) = self.directories.get_mut(&key) {
            known.clone_from(&path);
        }
        Some((key, path))
    }

    /// Filesystem, and path from its root.
    fn place(&self, name: &Name) -> Option<(u32, String)> {
        if name.name.is_empty() {
            return None;
        }
        if !name.name.starts_with('/') {
            let key =
                Key { filesystem: name.filesystem, inode: name.inode, generation: name.generation };
            let directory = self.directories.get(&key)?;
            return Some((name.filesystem, normal(&format!("{directory}/{}", name.name))));
        }
        let path = normal(&name.name);
        let below = |mount: &&Mount| {
            let rest = path.strip_prefix(&mount.point);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of mounts on one point the last one hides the others.
        let mount = self.mounts.iter().filter(below).max_by_key(|mount| mount.point.len())?;
        Some((mount.filesystem, format!("{}{}", mount.root, &path[mount.point.len()..])))
    }
}

/// Without ".", ".." and doubled slashes.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// One line: number, parent, device, root, mount point, and more.
fn mount(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let filesystem = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    let place = |field: &str| unescape(field).trim_end_matches('/').to_owned();
    Some(Mount { filesystem, root: place(fields.next()?), point: place(fields.next()?) })
}

/// Space, tab, newline and backslash stand there as three octal digits behind a backslash.
fn unescape(field: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(field.to_owned(), |text, (escape, byte)| text.replace(escape, byte))
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
        assert_eq!(names.rename(&given(1, 13, false, "x")), None);
        assert_eq!(names.rename(&given(2, 2, true, "of another thread")), None);
        let moved = Some((key, "/y".to_owned()));
        assert_eq!(names.rename(&given(1, 2, true, "y")), moved);
        assert_eq!(names.find(&given(1, 2, false, "y")), file(14));
        let nothing = Some((FLASH, Changed::Named("x".into())));
        assert_eq!(names.find(&given(1, 13, false, "x")), nothing);
        assert_eq!(names.rename(&given(1, 2, false, "never seen")), None);
        assert_eq!(names.rename(&given(1, 2, true, "z")), None);
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
