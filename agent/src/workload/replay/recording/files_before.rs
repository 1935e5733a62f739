//! The files before the first call: from the rows of `snapshot` to directories, files, and other
//! names of files, in an order in which they can be made.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::{Place, ReplayNames, bytes_of};
use crate::system_calls;
use crate::tables::recording::{OpenDescriptor, PathState};
use crate::workload::replay::plan::{FileBefore, Name, PlanText};

/// The kind of a name at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KindBefore {
    Directory,
    File,
    Symlink,
    /// Nothing, as the recording makes it, or something that cannot be made.
    Nothing,
}

/// Lists what is there; adds the names of directories that no call names, and texts of links.
pub fn files_before(
    snapshot: &[PathState],
    names: &mut ReplayNames,
    texts: &mut Vec<PlanText>,
) -> Vec<FileBefore> {
    let mut rows: BTreeMap<Name, &PathState> = BTreeMap::new();
    for row in snapshot {
        if let Some(Place::Here(name)) = names.place(row.path_id) {
            rows.entry(name).or_insert(row);
        }
    }
    let kinds: HashMap<Vec<u8>, KindBefore> =
        rows.iter().map(|(name, row)| (names.paths[*name as usize].clone(), kind(row))).collect();
    let mut tree = DirectoryTree { kinds, directories: BTreeSet::new() };
    let mut list = Lists::default();
    // By path: a directory comes before what is in it.
    let mut sorted: Vec<(Vec<u8>, &PathState)> =
        rows.iter().map(|(name, row)| (names.paths[*name as usize].clone(), *row)).collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    for (path, row) in &sorted {
        if tree.make_above(path, names, &mut list) {
            list.add(path, row, names, texts, &mut tree);
        }
    }
    list.in_order()
}

fn kind(row: &PathState) -> KindBefore {
    match &*row.kind {
        _ if row.made_by_recording == Some(true) => KindBefore::Nothing,
        "directory" => KindBefore::Directory,
        "file" => KindBefore::File,
        "symlink" => KindBefore::Symlink,
        _ => KindBefore::Nothing,
    }
}

/// The directories so far.
struct DirectoryTree {
    kinds: HashMap<Vec<u8>, KindBefore>,
    directories: BTreeSet<Vec<u8>>,
}

impl DirectoryTree {
    /// Sees to the directories above a path; says whether they are there at first.
    fn make_above(&mut self, path: &[u8], names: &mut ReplayNames, list: &mut Lists) -> bool {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        let mut is_linked = false;
        for end in ends.collect::<Vec<usize>>() {
            let above = &path[..end];
            match self.kinds.get(above) {
                Some(KindBefore::File | KindBefore::Nothing) => return false,
                Some(KindBefore::Symlink) => is_linked = true,
                Some(KindBefore::Directory) | None => {
                    if self.directories.insert(above.to_vec()) {
                        let name = names.add(above.to_vec());
                        list.directories(is_linked).push(FileBefore::Directory(name));
                    }
                }
            }
        }
        true
    }
}

#[derive(Default)]
struct Lists {
    directories: Vec<FileBefore>,
    symlinks: Vec<FileBefore>,
    linked_directories: Vec<FileBefore>,
    files: Vec<FileBefore>,
    links: Vec<FileBefore>,
    /// The name that a file or directory got first, by device and inode.
    first: HashMap<(i64, i64), Name>,
    /// The texts of links to directories that have several names.
    targets: HashMap<Name, u32>,
}

impl Lists {
    /// Those that are reached by way of a symbolic link come after it.
    fn directories(&mut self, is_linked: bool) -> &mut Vec<FileBefore> {
        if is_linked { &mut self.linked_directories } else { &mut self.directories }
    }

    fn add(
        &mut self,
        path: &[u8],
        row: &PathState,
        names: &mut ReplayNames,
        texts: &mut Vec<PlanText>,
        made: &mut DirectoryTree,
    ) {
        let name = names.add(path.to_vec());
        // Whoever imported a recording may not know what is one file.
        let identity = row.device.zip(row.inode);
        let first = identity.and_then(|identity| self.first.get(&identity).copied());
        match kind(row) {
            KindBefore::Nothing => return,
            KindBefore::Symlink => {
                let text = bytes_of(row.link_target.as_deref().unwrap_or_default());
                let target = add_text(texts, names.target(path, &text));
                self.symlinks.push(FileBefore::Symlink { name, target });
                return;
            }
            KindBefore::Directory => match first {
                // Two names of a directory: a link above them that no call names.
                Some(of) if !path.starts_with(&names.paths[of as usize]) => {
                    let inside = || PlanText::Inside(names.paths[of as usize].clone());
                    let target =
                        *self.targets.entry(of).or_insert_with(|| add_text(texts, inside()));
                    made.kinds.insert(path.to_vec(), KindBefore::Symlink);
                    self.symlinks.push(FileBefore::Symlink { name, target });
                }
                _ => {
                    if made.directories.insert(path.to_vec()) {
                        let is_linked = made.is_linked(path);
                        self.directories(is_linked).push(FileBefore::Directory(name));
                    }
                }
            },
            KindBefore::File => match first {
                Some(of) => self.links.push(FileBefore::Link { name, of }),
                None => {
                    let bytes = row.size_bytes.unwrap_or(0).max(0).cast_unsigned();
                    let mode = (row.mode.unwrap_or(0o600) & 0o777) as u32 | 0o600;
                    self.files.push(FileBefore::File { name, bytes, mode });
                }
            },
        }
        if let Some(identity) = identity {
            self.first.entry(identity).or_insert(name);
        }
    }

    fn in_order(self) -> Vec<FileBefore> {
        let parts =
            [self.directories, self.symlinks, self.linked_directories, self.files, self.links];
        parts.into_iter().flatten().collect()
    }
}

impl DirectoryTree {
    fn is_linked(&self, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        ends.map(|(end, _)| &path[..end]).any(|it| self.kinds.get(it) == Some(&KindBefore::Symlink))
    }
}

/// The file of a descriptor that is open at first, where no call names it.
pub fn descriptor_file(
    names: &mut ReplayNames,
    name: Name,
    row: &OpenDescriptor,
) -> Vec<FileBefore> {
    if names.is_looked_up(name) {
        return Vec::new();
    }
    let path = names.paths[name as usize].clone();
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    let above: Vec<usize> = ends.collect();
    let mut list: Vec<FileBefore> = above
        .into_iter()
        .map(|end| FileBefore::Directory(names.add(path[..end].to_vec())))
        .collect();
    if system_calls::flags_to_kernel(row.flags) & i64::from(libc::O_DIRECTORY) != 0 {
        list.push(FileBefore::Directory(name));
    } else {
        let bytes = row.size_bytes.max(0).cast_unsigned();
        list.push(FileBefore::File { name, bytes, mode: 0o600 });
    }
    list
}

/// Adds a text; gives its number.
pub fn add_text(texts: &mut Vec<PlanText>, text: PlanText) -> u32 {
    texts.push(text);
    (texts.len() - 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path_id: i64, path: &str, kind: &'static str, inode: i64) -> PathState {
        let (device, inode) = (Some(1), Some(inode));
        let size_bytes = (kind == "file").then_some(path_id + 100);
        let link_target = (kind == "symlink").then(|| "usr/lib".to_owned());
        let path = path.to_owned();
        PathState {
            path_id,
            path,
            kind: kind.into(),
            device,
            inode,
            size_bytes,
            link_target,
            ..PathState::default()
        }
    }

    fn show(rows: &[PathState]) -> Vec<String> {
        let (mut names, mut texts) = (ReplayNames::new(rows, b"/"), Vec::new());
        let list = files_before(rows, &mut names, &mut texts);
        let path = |name: Name| String::from_utf8_lossy(&names.paths[name as usize]).into_owned();
        let show = |it: FileBefore| match it {
            FileBefore::Directory(name) => format!("directory {}", path(name)),
            FileBefore::File { name, bytes, .. } => format!("file {} {bytes}", path(name)),
            FileBefore::Link { name, of } => format!("{} is {}", path(name), path(of)),
            FileBefore::Symlink { name, target } => {
                format!("{} to {:?}", path(name), texts[target as usize])
            }
        };
        list.into_iter().map(show).collect()
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let rows = [
            row(0, "/lib", "symlink", 1),
            row(1, "/lib/x.so", "file", 2),
            row(2, "/usr/lib", "directory", 3),
            row(3, "/a/f", "file", 4),
            row(4, "/a/g", "file", 4),
            row(5, "/new", "absent", 0),
            row(6, "/new/f", "absent", 0),
        ];
        let wanted = [
            "directory a",
            "directory usr",
            "directory usr/lib",
            "lib to Plain([117, 115, 114, 47, 108, 105, 98])",
            "file a/f 103",
            "file lib/x.so 101",
            "a/g is a/f",
        ];
        assert_eq!(show(&rows), wanted);
    }

    #[test]
    fn files_that_the_recording_made_are_not_there_before() {
        let mut made = row(0, "/d/f", "file", 1);
        made.made_by_recording = Some(true);
        assert_eq!(
            show(&[made, row(1, "/e", "file", 2), row(2, "/e/f", "file", 3)]),
            ["directory d", "file e 101",]
        );
    }
}
