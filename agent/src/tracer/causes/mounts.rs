//! Resolves a path to a filesystem and the path from that filesystem's root, by the mount table.
//! Where the text of a path is not enough, follows its symbolic links as they are at that moment.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::mounts::Mount;
use crate::tracer::surroundings::{LinkTarget, Surroundings};

/// A filesystem (s_dev), and a path from its root.
pub type FilesystemPath = (u32, String);

/// The mounts, as this process sees them.
#[derive(Debug)]
pub struct Mounts {
    surroundings: Surroundings,
    disks: BTreeSet<u32>,
    /// With roots and points that do not end in a slash.
    mounts: Vec<Mount>,
    /// Filesystems without a device number of their own that may be on a traced disk: of Btrfs.
    on_several: BTreeSet<u32>,
    /// A folder as it was written, and without symbolic links: calls come in rows on one folder.
    followed: Option<(String, LinkTarget)>,
    /// Whether each device is on a traced disk.
    asked: BTreeMap<u32, bool>,
}

impl Mounts {
    /// Those of now. `disks` are the traced ones.
    pub fn new(surroundings: Surroundings, disks: BTreeSet<u32>) -> Self {
        let (mounts, asked) = (Vec::new(), BTreeMap::new());
        let on_several = BTreeSet::new();
        let mut all = Mounts { surroundings, disks, mounts, on_several, followed: None, asked };
        all.read();
        all
    }

    /// Reads them again.
    pub fn read(&mut self) {
        self.mounts = (self.surroundings.read_mounts)();
        for mount in &mut self.mounts {
            // Paths are put together of these.
            for path in [&mut mount.root, &mut mount.point] {
                path.truncate(path.trim_end_matches('/').len());
            }
        }
        // What is changed on an overlay is changed in its upper directory.
        let upper = |mount: &Mount| mount.upper_directory().and_then(|path| self.place(&path));
        let uppers: Vec<Option<FilesystemPath>> = self.mounts.iter().map(upper).collect();
        for (mount, upper) in self.mounts.iter_mut().zip(uppers) {
            let Some((filesystem, path)) = upper else { continue };
            mount.filesystem = filesystem;
            mount.root = format!("{}{}", path.trim_end_matches('/'), mount.root);
        }
        let btrfs = self.mounts.iter().filter(|mount| mount.kind == "btrfs");
        self.on_several = btrfs.map(|mount| mount.filesystem).collect();
        self.asked.clear();
        self.forget_links();
    }

    /// A symbolic link or a folder may lead elsewhere now.
    pub fn forget_links(&mut self) {
        self.followed = None;
    }

    /// A filesystem can be on a traced disk, as far as is known here.
    pub fn may_be_traced(&mut self, filesystem: u32) -> bool {
        let Mounts { surroundings, disks, asked, .. } = self;
        self.on_several.contains(&filesystem)
            || *asked
                .entry(filesystem)
                .or_insert_with(|| disks.contains(&(surroundings.disk_of)(filesystem)))
    }

    /// The place of an absolute path, by its text.
    pub fn place(&self, path: &str) -> Option<FilesystemPath> {
        self.place_below(&normal(path), "")
    }

    /// Return the place of a path by the mounts whose points are longer than `above`; the empty
    /// text is above all.
    fn place_below(&self, path: &str, above: &str) -> Option<FilesystemPath> {
        let below = |mount: &&Mount| {
            let is_deeper = above.is_empty() || mount.point.len() > above.len();
            is_deeper && is_within(path, &mount.point)
        };
        // Of mounts on one point the last one hides the others.
        let mount = self.mounts.iter().filter(below).max_by_key(|mount| mount.point.len())?;
        Some((mount.filesystem, format!("{}{}", mount.root, &path[mount.point.len()..])))
    }

    /// The place of a relative path, by its text, from a folder that a process is in. None where
    /// the folder is seen at several points and a mount lies below one of them: which one the
    /// process means is not known.
    pub fn place_from(&self, folder: &FilesystemPath, path: &str) -> Option<FilesystemPath> {
        let by_text = (folder.0, normal(&format!("{}/{path}", folder.1)));
        let points = self.all_absolute(folder);
        let crossing = |point: &String| {
            let path = normal(&format!("{point}/{path}"));
            self.place_below(&path, if point.is_empty() { "/" } else { point })
        };
        let mut crossings = points.iter().filter_map(crossing);
        match (crossings.next(), points.len()) {
            (None, _) => Some(by_text),
            (Some(place), 1) => Some(place),
            _ => None,
        }
    }

    /// The place of an absolute path, as a call on a name finds it: symbolic links are followed in
    /// its folders, not in its last part. By its text where its folder is gone; None where it
    /// is unknown.
    pub fn place_followed(&mut self, path: &str) -> Option<FilesystemPath> {
        let (folder, last) = path.trim_end_matches('/').rsplit_once('/')?;
        if matches!(last, "" | "." | "..") {
            return None;
        }
        let known = self.followed.as_ref().filter(|(written, _)| written == folder);
        let followed = match known {
            Some((_, followed)) => followed.clone(),
            None => {
                let followed = self.follow(folder);
                self.followed = Some((folder.to_owned(), followed.clone()));
                followed
            }
        };
        match followed {
            LinkTarget::To(real) => self.place(&format!("{real}/{last}")),
            LinkTarget::Gone => self.place(path),
            LinkTarget::Unknown => None,
        }
    }

    /// Return where a folder leads. What is not in memory is asked of a traced disk alone: a
    /// network filesystem may not answer.
    fn follow(&mut self, folder: &str) -> LinkTarget {
        let followed = (self.surroundings.follow)(&format!("{folder}/"));
        let holds = |mount: &&Mount| is_within(folder, &mount.point);
        let mount = self.mounts.iter().filter(holds).max_by_key(|mount| mount.point.len());
        match mount.cloned() {
            Some(Mount { filesystem, point, .. })
                if followed == LinkTarget::Unknown && self.may_be_traced(filesystem) =>
            {
                (self.surroundings.follow_on_filesystem)(&point, &folder[point.len()..])
            }
            _ => followed,
        }
    }

    /// An absolute path that leads to a place.
    pub fn absolute(&self, place: &FilesystemPath) -> Option<String> {
        self.all_absolute(place).pop()
    }

    fn all_absolute(&self, (filesystem, path): &FilesystemPath) -> Vec<String> {
        let path = path.trim_end_matches('/');
        let shows =
            |mount: &&Mount| mount.filesystem == *filesystem && is_within(path, &mount.root);
        let at = |mount: &Mount| format!("{}{}", mount.point, &path[mount.root.len()..]);
        self.mounts.iter().filter(shows).map(at).collect()
    }
}

/// A path is a folder, or below it; neither ends in a slash.
fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::mounts::parse;

    const ROOT: u32 = 8 << 20 | 1;
    const SUB: u32 = 8 << 20 | 2;
    const BTRFS: u32 = 40;
    const TMPFS: u32 = 41;

    fn mounts() -> Mounts {
        let read_mounts = || {
            parse(
                "1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 8:2 /sub /mnt/a\\040b rw - xfs /dev/sda2 rw
3 1 0:40 / /mnt/btrfs rw shared:1 - btrfs /dev/sdb rw
4 2 0:41 / /mnt/a\\040b/c/over rw - tmpfs none rw
5 1 0:42 / /merged rw - overlay none rw,lowerdir=/l,upperdir=/mnt/a\\040b/up\\134\\054per,workdir=/w
6 1 0:42 /in /bound rw - overlay - rw,lowerdir=/l,upperdir=/mnt/a\\040b/up\\134\\054per,workdir=/w
7 1 0:43 / /relative rw - overlay none rw,lowerdir=l,upperdir=up,workdir=w
8 1 0:44 / /lower rw - overlay none ro,lowerdir=/l:/m
damaged line",
            )
        };
        // Where the folder "link" of any folder leads.
        let follow = |folder: &str| match folder {
            "/gone/" => LinkTarget::Gone,
            "/net/" => LinkTarget::Unknown,
            _ => LinkTarget::To(folder.replace("link", "real/deep")),
        };
        let disk_of = |device: u32| if device >> 20 == 8 { 8 << 20 } else { device };
        let own = Surroundings { read_mounts, follow, disk_of, ..Surroundings::nothing() };
        Mounts::new(own, BTreeSet::from([8 << 20]))
    }

    #[test]
    fn a_place_and_its_path_lead_to_each_other() {
        let mounts = mounts();
        for (path, place) in [("/home/x", (ROOT, "/home/x")), ("/mnt/a b/c", (SUB, "/sub/c"))] {
            let place = (place.0, place.1.to_owned());
            assert_eq!(mounts.place(path), Some(place.clone()));
            assert_eq!(mounts.absolute(&place).as_deref(), Some(path));
        }
        assert_eq!(mounts.place("/mnt//a b/./c/../d"), Some((SUB, "/sub/d".to_owned())));
        assert_eq!(mounts.absolute(&(SUB, "/subtle".to_owned())), None);
    }

    #[test]
    fn a_file_of_an_overlay_is_in_its_upper_directory() {
        let mut mounts = mounts();
        for (path, place) in [("/merged/x", "/sub/up,per/x"), ("/bound/x", "/sub/up,per/in/x")] {
            assert_eq!(mounts.place(path), Some((SUB, place.to_owned())));
        }
        for path in ["/relative/x", "/lower/x"] {
            let place = mounts.place(path).unwrap();
            assert!(place.1 == "/x" && !mounts.may_be_traced(place.0));
        }
    }

    #[test]
    fn a_relative_path_may_cross_a_mount() {
        let mounts = mounts();
        let place =
            |folder: (u32, &str), path| mounts.place_from(&(folder.0, folder.1.into()), path);
        assert_eq!(place((SUB, "/sub"), "c/x"), Some((SUB, "/sub/c/x".to_owned())));
        assert_eq!(place((SUB, "/sub"), "c/over/x"), Some((TMPFS, "/x".to_owned())));
        assert_eq!(place((ROOT, "/"), "mnt/a b/x"), Some((SUB, "/sub/x".to_owned())));
        assert_eq!(place((ROOT, "/"), "mnt/x"), Some((ROOT, "/mnt/x".to_owned())));
        assert_eq!(place((99, "/nowhere"), "c/x"), Some((99, "/nowhere/c/x".to_owned())));
    }

    #[test]
    fn a_filesystem_is_traced_by_its_disk_and_one_of_several_may_be() {
        let mut mounts = mounts();
        let known = [ROOT, SUB, BTRFS, TMPFS].map(|filesystem| mounts.may_be_traced(filesystem));
        assert_eq!(known, [true, true, true, false]);
    }

    #[test]
    fn links_are_followed_in_the_folders_alone() {
        let mut mounts = mounts();
        let mut place = |path: &str| mounts.place_followed(path);
        assert_eq!(place("/link/x"), Some((ROOT, "/real/deep/x".to_owned())));
        assert_eq!(place("/mnt/a b/y/link"), Some((SUB, "/sub/y/link".to_owned())));
        assert_eq!(place("/gone/x"), Some((ROOT, "/gone/x".to_owned())));
        assert_eq!((place("/"), place("/link/.."), place("/net/x")), (None, None, None));
    }
}
