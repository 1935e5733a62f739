//! The paths of a recording as names in the directory of the replay: takes rows of `snapshot`,
//! whose paths are a stranger's; gives relative paths without `..`, and texts for symbolic links
//! that lead nowhere else, wherever they are moved to.

use std::collections::{BTreeSet, HashMap};

use super::order::Resource;
use crate::tables::recording::PathState;
use crate::workload::replay::plan::{Name, PlanText};

/// The folders in which the kernel shows things of its own; of these `dev/shm` alone holds files.
const KERNELS: [&[u8]; 3] = [b"proc", b"sys", b"dev"];

/// PATH_MAX, of bytes that are written `\xNN`. A longer path was never looked up.
pub const MOST_PATH_BYTES: usize = 4 * 4096;

/// Bytes of a path and of all directories above it: each of them becomes a name.
pub fn bytes_with_above(path: &str) -> usize {
    let ends = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    path.len() + ends.map(|(end, _)| end).sum::<usize>()
}

/// The place of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Here(Name),
    /// Among the kernel's own files, or a device, pipe or socket.
    Elsewhere,
}

/// All names of a recording.
#[derive(Debug, Default)]
pub struct ReplayNames {
    pub paths: Vec<Vec<u8>>,
    known: HashMap<Vec<u8>, Name>,
    places: HashMap<i64, Place>,
    /// The file that a name leads to, by device and inode, as far as known.
    files: Vec<Option<(i64, i64)>>,
    /// The number of paths that the snapshot has; they are the first.
    looked_up: usize,
    /// Names that calls make, take away or change.
    changed: BTreeSet<Name>,
    /// The recorded directory that is the root of the replay, without a slash at its begin.
    root: Vec<u8>,
}

impl ReplayNames {
    /// Return the names of a snapshot. What is not below the recorded directory `root` is
    /// elsewhere.
    pub fn new(snapshot: &[PathState], root: &[u8]) -> Self {
        let mut names = Self { root: relative(root), ..Self::default() };
        for row in snapshot.iter().filter(|row| row.path.len() <= MOST_PATH_BYTES) {
            let path = names.below_root(&bytes_of(&row.path)).filter(|_| row.kind != "other");
            let place = match path {
                None => Place::Elsewhere,
                Some(path) => {
                    let name = names.add(path);
                    if row.kind == "file"
                        && let (Some(device), Some(inode)) = (row.device, row.inode)
                    {
                        names.files[name as usize] = Some((device, inode));
                    }
                    Place::Here(name)
                }
            };
            names.places.insert(row.path_id, place);
        }
        names.looked_up = names.paths.len();
        names
    }

    /// A recorded path from the root of the replay; none where it is elsewhere.
    pub fn below_root(&self, path: &[u8]) -> Option<Vec<u8>> {
        let path = relative(path);
        if is_kernels(&path) {
            return None;
        }
        if self.root.is_empty() || path == self.root {
            return Some(path[self.root.len()..].to_vec());
        }
        Some(path.strip_prefix(&*self.root)?.strip_prefix(b"/")?.to_vec())
    }

    /// Return whether a path of the snapshot is in the replay.
    pub fn has_any(&self) -> bool {
        self.places.values().any(|place| matches!(place, Place::Here(_)))
    }

    /// Return the text that a symbolic link at a path from the root of the replay is made to hold.
    /// A relative text without `..` leads below the link's own directory, wherever that is; every
    /// other becomes a path in the directory of the replay, as a text that climbs would lead
    /// elsewhere once the link is moved up.
    pub fn target(&self, link: &[u8], text: &[u8]) -> PlanText {
        let climbs = text.split(|byte| *byte == b'/').any(|part| part == b"..");
        if text.first() != Some(&b'/') && !climbs && !text.contains(&0) {
            return PlanText::Plain(text.to_vec());
        }
        let mut whole = Vec::new();
        if text.first() != Some(&b'/') {
            whole.extend_from_slice(&self.root);
            whole.push(b'/');
            let end = link.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            whole.extend_from_slice(&link[..end]);
            whole.push(b'/');
        }
        whole.extend_from_slice(text);
        PlanText::Inside(self.below_root(&whole).unwrap_or_else(|| relative(&whole)))
    }

    /// The name of a relative path.
    pub fn add(&mut self, path: Vec<u8>) -> Name {
        if let Some(name) = self.known.get(&path) {
            return *name;
        }
        let name = self.paths.len() as Name;
        self.known.insert(path.clone(), name);
        self.paths.push(path);
        self.files.push(None);
        name
    }

    pub fn get(&self, path: &[u8]) -> Option<Name> {
        self.known.get(path).copied()
    }

    /// Return the place of the path of a number in the snapshot.
    pub fn place(&self, path_id: i64) -> Option<Place> {
        self.places.get(&path_id).copied()
    }

    /// Return whether the snapshot has a name.
    pub fn is_looked_up(&self, name: Name) -> bool {
        (name as usize) < self.looked_up
    }

    /// A call of the recording changes what a path leads to.
    pub fn note_change(&mut self, path_id: Option<i64>) {
        if let Some(Place::Here(name)) = path_id.and_then(|id| self.place(id)) {
            self.changed.insert(name);
        }
    }

    /// Add what a call about a name has in common with others: the name, those of directories above
    /// it that are ever changed, and its file.
    pub fn resources(&self, name: Name, resources: &mut Vec<Resource>) {
        resources.push(Resource::Name(name));
        let path = &self.paths[name as usize];
        for (end, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            if let Some(above) = self.get(&path[..end])
                && self.changed.contains(&above)
            {
                resources.push(Resource::Name(above));
            }
        }
        if let Some((device, inode)) = self.files[name as usize] {
            resources.push(Resource::File(device, inode));
        }
    }

    /// The file of a name, when a call has shown it, taken it away or moved it.
    pub fn file_mut(&mut self, name: Name) -> &mut Option<(i64, i64)> {
        &mut self.files[name as usize]
    }
}

/// The bytes that a text column stands for: `\\` is a backslash, `\xNN` a byte.
pub fn bytes_of(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, more @ ..] = rest {
        let digits = |high: u8, low: u8| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            Some((digit(high)? * 16 + digit(low)?) as u8)
        };
        (rest, bytes) = match (first, more) {
            (b'\\', [b'\\', rest @ ..]) => (rest, with(bytes, b'\\')),
            (b'\\', [b'x', high, low, rest @ ..]) if digits(*high, *low).is_some() => {
                (rest, with(bytes, digits(*high, *low).unwrap_or_default()))
            }
            _ => (more, with(bytes, *first)),
        };
    }
    bytes
}

fn with(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

/// An absolute path from the root of the replay: above the root is the root, as path_resolution(7)
/// has it. A zero byte, which no path has, is a question mark.
fn relative(path: &[u8]) -> Vec<u8> {
    let mut found: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(found.pop()),
            part => found.push(part),
        }
    }
    let mut path = found.join(&b'/');
    path.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'?');
    path
}

/// Return whether a path is among the kernel's own files.
fn is_kernels(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    parts.next().is_some_and(|first| KERNELS.contains(&first))
        && !(path == b"dev/shm" || path.starts_with(b"dev/shm/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(path_id: i64, path: &str, kind: &'static str) -> PathState {
        PathState { path_id, path: path.into(), kind: kind.into(), ..PathState::default() }
    }

    #[test]
    fn paths_stay_below_and_the_kernels_own_are_elsewhere() {
        let rows = [
            row(0, "/a/../../../etc/passwd", "file"),
            row(1, "/proc/self/maps", "file"),
            row(2, "/dev/shm/x", "file"),
            row(3, "/tmp/pipe", "other"),
            row(4, "/etc/passwd", "file"),
        ];
        let names = ReplayNames::new(&rows, b"/");
        assert_eq!(names.paths, [b"etc/passwd".to_vec(), b"dev/shm/x".to_vec()]);
        let places: Vec<_> = (0..6).map(|id| names.place(id)).collect();
        let (first, second) = (Some(Place::Here(0)), Some(Place::Here(1)));
        let elsewhere = Some(Place::Elsewhere);
        assert_eq!(places, [first, elsewhere, second, elsewhere, first, None]);
    }

    #[test]
    fn a_path_not_below_the_root_is_elsewhere() {
        let rows = [
            row(0, "/home/app", "directory"),
            row(1, "/home/app/../app/a.db", "file"),
            row(2, "/home/application", "file"),
            row(3, "/home", "directory"),
        ];
        let names = ReplayNames::new(&rows, b"/home/./app/");
        assert_eq!(names.paths, [b"".to_vec(), b"a.db".to_vec()]);
        assert_eq!(names.place(2), Some(Place::Elsewhere));
        assert_eq!(names.place(3), Some(Place::Elsewhere));
        let target = |text: &[u8]| names.target(b"a/link", text);
        assert_eq!(target(b"/home/app/x"), PlanText::Inside(b"x".to_vec()));
        assert_eq!(target(b"../x"), PlanText::Inside(b"x".to_vec()));
        assert_eq!(target(b"../../../../etc/x"), PlanText::Inside(b"etc/x".to_vec()));
    }

    #[test]
    fn links_lead_nowhere_else() {
        let inside = |path: &[u8]| PlanText::Inside(path.to_vec());
        let target = |link: &[u8], text: &[u8]| ReplayNames::new(&[], b"/").target(link, text);
        assert_eq!(target(b"a/link", b"x/y"), PlanText::Plain(b"x/y".to_vec()));
        assert_eq!(target(b"a/link", b"../../../etc/x"), inside(b"etc/x"));
        assert_eq!(target(b"a/b/link", b"../c"), inside(b"a/c"));
        assert_eq!(target(b"link", b"/etc/passwd"), inside(b"etc/passwd"));
        assert_eq!(target(b"link", b"x/../../y"), inside(b"y"));
    }

    #[test]
    fn a_name_has_the_changed_directories_above_it() {
        let mut names =
            ReplayNames::new(&[row(0, "/a", "absent"), row(1, "/a/b/c", "absent")], b"/");
        let of = |names: &ReplayNames| {
            let mut found = Vec::new();
            names.resources(1, &mut found);
            found
        };
        assert_eq!(of(&names), [Resource::Name(1)]);
        names.note_change(Some(0));
        *names.file_mut(1) = Some((7, 8));
        assert_eq!(of(&names), [Resource::Name(1), Resource::Name(0), Resource::File(7, 8)]);
    }

    proptest! {
        #[test]
        fn no_path_climbs(path in prop::collection::vec(any::<u8>(), 0..60)) {
            let climbs = |path: &[u8]| path.split(|byte| *byte == b'/').any(|it| it == b"..");
            let found = relative(&path);
            prop_assert!(!climbs(&found) && found.first() != Some(&b'/') && !found.contains(&0));
            match ReplayNames::new(&[], b"/x").target(&path, &found) {
                PlanText::Plain(text) => {
                    prop_assert!(!climbs(&text) && text.first() != Some(&b'/'));
                }
                PlanText::Inside(text) => prop_assert_eq!(relative(&text), text),
            }
        }
    }
}
