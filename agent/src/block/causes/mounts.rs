//! Where a path leads: which filesystem, and the path from that one's root. Reads the text of
//! /proc/self/mountinfo; where the text of a path is not enough, follows the symbolic links in it,
//! as they are by now.

use std::fs;

/// Where a filesystem is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    filesystem: u32,
    /// Path in the filesystem of what is seen at the mount point; without a slash at the end.
    root: String,
    point: String,
}

/// A filesystem (s_dev), and a path from its root.
pub type Place = (u32, String);

/// The mounts, as this process sees them.
#[derive(Debug, Default)]
pub struct Mounts {
    mounts: Vec<Mount>,
    /// A folder as it was written, and without symbolic links: calls come in rows on one folder.
    followed: Option<(String, String)>,
}

impl Mounts {
    /// Takes the mounts from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    pub fn set(&mut self, mountinfo: &str) {
        self.mounts = mountinfo.lines().filter_map(mount).collect();
        self.forget_links();
    }

    /// A symbolic link or a folder may lead elsewhere now.
    pub fn forget_links(&mut self) {
        self.followed = None;
    }

    /// The place of an absolute path, by its text.
    pub fn place(&self, path: &str) -> Option<Place> {
        let path = normal(path);
        let below = |mount: &&Mount| {
            let rest = path.strip_prefix(&mount.point);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of mounts on one point the last one hides the others.
        let mount = self.mounts.iter().filter(below).max_by_key(|mount| mount.point.len())?;
        Some((mount.filesystem, format!("{}{}", mount.root, &path[mount.point.len()..])))
    }

    /// The place of an absolute path, as a call on a name finds it: symbolic links are followed in
    /// its folders, not in its last part. None where there is no such folder any more.
    pub fn place_followed(&mut self, path: &str) -> Option<Place> {
        let (folder, last) = path.trim_end_matches('/').rsplit_once('/')?;
        if matches!(last, "" | "." | "..") {
            return None;
        }
        let known = self.followed.as_ref().filter(|(written, _)| written == folder);
        let real = match known {
            Some((_, real)) => real.clone(),
            None => {
                let real = fs::canonicalize(format!("{folder}/")).ok()?.to_str()?.to_owned();
                self.followed = Some((folder.to_owned(), real.clone()));
                real
            }
        };
        self.place(&format!("{real}/{last}"))
    }

    /// An absolute path that leads to a place.
    pub fn absolute(&self, (filesystem, path): &Place) -> Option<String> {
        let shows = |mount: &&Mount| {
            let rest = path.strip_prefix(&mount.root);
            mount.filesystem == *filesystem
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mount = self.mounts.iter().rfind(shows)?;
        Some(format!("{}{}", mount.point, &path[mount.root.len()..]))
    }
}

/// Without ".", ".." and doubled slashes.
pub fn normal(path: &str) -> String {
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

    #[test]
    fn a_place_and_its_path_lead_to_each_other() {
        let mut mounts = Mounts::default();
        mounts.set("1 0 8:1 / / rw\n2 1 8:2 /sub /mnt/a\\040b rw\ndamaged line");
        let (root, sub) = (8 << 20 | 1, 8 << 20 | 2);
        for (path, place) in [("/home/x", (root, "/home/x")), ("/mnt/a b/c", (sub, "/sub/c"))] {
            let place = (place.0, place.1.to_owned());
            assert_eq!(mounts.place(path), Some(place.clone()));
            assert_eq!(mounts.absolute(&place).as_deref(), Some(path));
        }
        assert_eq!(mounts.place("/mnt//a b/./c/../d"), Some((sub, "/sub/d".to_owned())));
        assert_eq!(mounts.absolute(&(sub, "/subtle".to_owned())), None);
    }

    #[test]
    fn links_are_followed_in_the_folders_alone() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap().display().to_string();
        fs::create_dir_all(format!("{top}/real/deep")).unwrap();
        std::os::unix::fs::symlink("real/deep", format!("{top}/link")).unwrap();
        std::os::unix::fs::symlink("x", format!("{top}/real/deep/last")).unwrap();
        let mut mounts = Mounts::default();
        mounts.set(&format!("1 0 8:1 / {top} rw"));
        let mut place = |path: &str| mounts.place_followed(&format!("{top}/{path}"));
        assert_eq!(place("link/x"), Some((8 << 20 | 1, "/real/deep/x".to_owned())));
        assert_eq!(place("link/last"), Some((8 << 20 | 1, "/real/deep/last".to_owned())));
        // The parent of where the link leads, not of the link.
        assert_eq!(place("link/../y"), Some((8 << 20 | 1, "/real/y".to_owned())));
        assert_eq!((place("gone/x"), place("link/..")), (None, None));
    }
}
