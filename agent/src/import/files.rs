//! The files of a trace, and their names as calls make and remove them: which file is under a path
//! at each call, and what was there before the first one, as far as what was read, looked up and
//! written lets one know it. The rows of `snapshot`, inferred.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::traced_call::FileStat;
use crate::record::words;
use crate::recorder::{DatabaseBefore, words};
use crate::tables::recording::PathState;

/// The index of a file.
pub type FileId = usize;

/// Names that renames of directories may move, over all: more is no program's doing.
const MOST_MOVED: u64 = 2_000_000;

/// The thing that was under a path before the recording.
#[derive(Debug, Clone, Copy)]
enum FormerState {
    Unknown,
    Absent(Basis),
    There(FileId),
    /// An open with O_CREAT made it, or found it.
    Perhaps(FileId),
}

#[derive(Debug)]
struct NameRow {
    path: Vec<u8>,
    first_call_id: i64,
    before: FormerState,
}

/// The thing that is under a path now.
#[derive(Debug)]
struct PathName {
    row: usize,
    file: Option<FileId>,
    /// Whether it is known what was there before.
    is_settled: bool,
}

/// All paths that calls have named.
#[derive(Debug, Default)]
pub struct Names {
    by_path: BTreeMap<Vec<u8>, PathName>,
    rows: Vec<NameRow>,
    pub files: Vec<TracedFile>,
    moved: u64,
    /// Files that were there although no call had made them.
    pub surprises: u64,
}

impl Names {
    /// The number of a path, which a call names.
    pub fn id(&mut self, path: &[u8], call_id: i64) -> i64 {
        self.name(path, call_id).row as i64
    }

    fn name(&mut self, path: &[u8], call_id: i64) -> &mut PathName {
        if !self.by_path.contains_key(path) {
            let row = self.rows.len();
            self.rows.push(NameRow {
                path: path.to_vec(),
                first_call_id: call_id,
                before: FormerState::Unknown,
            });
            self.by_path.insert(path.to_vec(), PathName { row, file: None, is_settled: false });
        }
        self.by_path.get_mut(path).expect("made above")
    }

    /// A file of its own, such as one that a descriptor led to before the recording.
    pub fn add(&mut self, file: TracedFile) -> FileId {
        self.files.push(file);
        self.files.len() - 1
    }

    /// A call found something there.
    pub fn note_present(&mut self, path: &[u8], call_id: i64) -> FileId {
        let name = self.name(path, call_id);
        if let Some(file) = name.file {
            return file;
        }
        let (row, is_new) = (name.row, name.is_settled);
        let file = self.add(TracedFile::new(is_new));
        self.surprises += u64::from(is_new);
        if !is_new {
            self.rows[row].before = FormerState::There(file);
        }
        self.set_file(path, call_id, Some(file));
        file
    }

    /// A call found nothing there.
    pub fn note_absent(&mut self, path: &[u8], call_id: i64) {
        self.settle_absent(path, call_id, Basis::Reported);
        self.set_file(path, call_id, None);
    }

    /// A call made something, where nothing was.
    pub fn note_creation(&mut self, path: &[u8], call_id: i64) -> FileId {
        self.settle_absent(path, call_id, Basis::Inferred);
        let file = self.add(TracedFile::new(true));
        self.set_file(path, call_id, Some(file));
        file
    }

    /// An open with O_CREAT found something or made it.
    pub fn note_open_or_creation(&mut self, path: &[u8], call_id: i64) -> FileId {
        let name = self.name(path, call_id);
        let (row, is_settled) = (name.row, name.is_settled);
        if let Some(file) = name.file {
            return file;
        }
        if is_settled {
            return self.note_creation(path, call_id);
        }
        let file = self.add(TracedFile::new_or_old());
        self.rows[row].before = FormerState::Perhaps(file);
        self.set_file(path, call_id, Some(file));
        file
    }

    /// Two paths of one file: the second is what the first leads to.
    pub fn note_same_file(&mut self, path: &[u8], real: &[u8], file: FileId, call_id: i64) {
        let name = self.name(real, call_id);
        let (row, is_settled) = (name.row, name.is_settled);
        if !is_settled {
            self.rows[row].before = match self.before(path) {
                Some(before @ (FormerState::There(_) | FormerState::Perhaps(_))) => before,
                _ => FormerState::Absent(Basis::Inferred),
            };
        }
        self.set_file(real, call_id, Some(file));
    }

    /// A path that was not known turns out to lead to a file that is.
    pub fn note_alias(&mut self, path: &[u8], file: FileId, call_id: i64) {
        let is_new = self.files[file].is_new;
        let name = self.name(path, call_id);
        let (row, is_settled) = (name.row, name.is_settled);
        if !is_settled {
            let there = FormerState::Perhaps(file);
            self.rows[row].before =
                if is_new { FormerState::Absent(Basis::Inferred) } else { there };
        }
        self.set_file(path, call_id, Some(file));
    }

    /// The path of a number.
    pub fn path(&self, id: i64) -> Option<Vec<u8>> {
        Some(self.rows.get(usize::try_from(id).ok()?)?.path.clone())
    }

    /// Return the file that is under a path now.
    pub fn at(&self, path: &[u8]) -> Option<FileId> {
        self.by_path.get(path)?.file
    }

    fn before(&self, path: &[u8]) -> Option<FormerState> {
        self.by_path.get(path).map(|name| self.rows[name.row].before)
    }

    fn settle_absent(&mut self, path: &[u8], call_id: i64, basis: Basis) {
        let name = self.name(path, call_id);
        let (row, is_settled) = (name.row, name.is_settled);
        if !is_settled {
            self.rows[row].before = FormerState::Absent(basis);
        }
    }

    /// From here on a file is under a path, or nothing.
    pub fn set_file(&mut self, path: &[u8], call_id: i64, file: Option<FileId>) {
        let name = self.name(path, call_id);
        (name.file, name.is_settled) = (file, true);
    }

    /// A name was removed.
    pub fn note_removal(&mut self, path: &[u8], call_id: i64) {
        self.note_present(path, call_id);
        self.set_file(path, call_id, None);
    }

    /// A name has become another, with all that is below it. False if a trace does so without end.
    pub fn note_rename(&mut self, from: &[u8], to: &[u8], call_id: i64) -> bool {
        let file = self.note_present(from, call_id);
        self.settle_absent(to, call_id, Basis::Assumed);
        self.set_file(from, call_id, None);
        self.set_file(to, call_id, Some(file));
        let mut below = from.to_vec();
        below.push(b'/');
        let range = (Bound::Included(below.clone()), Bound::Unbounded);
        let children: Vec<_> = self
            .by_path
            .range::<Vec<u8>, _>(range)
            .take_while(|(path, _)| path.starts_with(&below))
            .filter_map(|(path, name)| Some((path.clone(), name.file?)))
            .collect();
        self.moved += children.len() as u64;
        if self.moved > MOST_MOVED {
            return false;
        }
        for (path, file) in children {
            let moved = [to, &path[from.len()..]].concat();
            self.settle_absent(&moved, call_id, Basis::Inferred);
            self.set_file(&moved, call_id, Some(file));
            self.set_file(&path, call_id, None);
        }
        true
    }

    /// The databases that were there before.
    pub fn databases(&self) -> Vec<DatabaseBefore> {
        let found = self.rows.iter().filter_map(|row| match row.before {
            FormerState::Perhaps(file) | FormerState::There(file) => Some((row, &self.files[file])),
            FormerState::Unknown | FormerState::Absent(_) => None,
        });
        let there = found.filter(|(_, file)| file.was_there && file.is_database);
        let row = |(row, file): (&NameRow, &TracedFile)| DatabaseBefore {
            path: words::text(&row.path),
            size_bytes: file.size_bytes().unwrap_or(0),
        };
        there.map(row).filter(|it| it.size_bytes > 0).collect()
    }

    /// The rows of `snapshot`.
    pub fn rows(&self) -> impl Iterator<Item = PathState> {
        (0..).zip(&self.rows).map(|(path_id, row)| {
            let state = PathState {
                path_id,
                path: words::text(&row.path),
                first_call_id: row.first_call_id,
                basis: Basis::Inferred.word().into(),
                ..PathState::default()
            };
            self.state(row, state)
        })
    }

    fn state(&self, row: &NameRow, state: PathState) -> PathState {
        let (file, basis) = match row.before {
            FormerState::Unknown => {
                let is_parent = self.has_children(&row.path);
                let kind = if is_parent { "directory" } else { "unknown" };
                return PathState { kind: kind.into(), basis: "assumed".into(), ..state };
            }
            FormerState::Absent(basis) => {
                return PathState { kind: "absent".into(), basis: basis.word().into(), ..state };
            }
            FormerState::Perhaps(file) if !self.files[file].was_there => {
                return PathState { kind: "absent".into(), basis: "assumed".into(), ..state };
            }
            FormerState::Perhaps(file) | FormerState::There(file) => (file, self.files[file].basis),
        };
        let found = &self.files[file];
        let kind = match found.kind {
            Some(kind) => kind,
            None if self.has_children(&row.path) => "directory",
            None => "file",
        };
        PathState {
            kind: kind.into(),
            size_bytes: found.size_bytes(),
            mode: found.mode,
            links: found.links,
            device: Some(0),
            inode: Some(inode(file)),
            link_target: found.link_target.as_deref().map(words::text),
            made_by_recording: Some(false),
            basis: basis.word().into(),
            ..state
        }
    }

    fn has_children(&self, path: &[u8]) -> bool {
        let below = if path == b"/" { path.to_vec() } else { [path, b"/"].concat() };
        let range = (Bound::Excluded(below.clone()), Bound::Unbounded);
        let next = self.by_path.range::<Vec<u8>, _>(range).next();
        next.is_some_and(|(path, _)| path.starts_with(&below))
    }
}

/// The number that stands for st_ino: a trace has none.
pub fn inode(file: FileId) -> i64 {
    file as i64 + 1
}

/// Without `.`, `..` and double slashes. A link before `..` is not known of.
pub fn plain(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|letter| *letter == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut plain = Vec::with_capacity(path.len());
    for part in &parts {
        plain.push(b'/');
        plain.extend_from_slice(part);
    }
    if plain.is_empty() { b"/".to_vec() } else { plain }
}

words! {
    /// The source of a fact of the snapshot (schema/recording/snapshot.toml, basis).
    #[derive(Default)]
    Basis {
        /// Nothing tells; the commoner case is taken.
        Assumed = "assumed",
        /// It follows from what other calls did or could do.
        #[default] Inferred = "inferred",
        /// A call's result says so.
        Reported = "told",
    }
}

/// The offset at which the locks of SQLite begin in a database.
const LOCKED_FROM: i64 = 1 << 30;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Size {
    #[default]
    Unknown,
    AtLeast(i64),
    Exactly(i64),
}

/// A file, directory or link that calls were about, under whatever name.
#[derive(Debug, Clone, Default)]
pub struct TracedFile {
    /// Whether the recording made it.
    pub is_new: bool,
    /// Whether something shows that a file was there which an open may have made or found.
    pub was_there: bool,
    pub kind: Option<&'static str>,
    basis: Basis,
    mode: Option<i64>,
    links: Option<i64>,
    link_target: Option<Vec<u8>>,
    size: Size,
    /// Its size was changed: nothing tells of the former one any more.
    pub is_resized: bool,
    pub is_mode_changed: bool,
    /// End of what was written by offset, and bytes that were appended.
    written_end: i64,
    appended: i64,
    /// Whether its locks are those of a database of SQLite.
    is_database: bool,
}

impl TracedFile {
    pub fn new(is_new: bool) -> Self {
        let (is_resized, is_mode_changed) = (is_new, is_new);
        Self { is_new, was_there: !is_new, is_resized, is_mode_changed, ..Self::default() }
    }

    /// Return a file that was opened with O_CREAT, which does not say whether the open made it.
    pub fn new_or_old() -> Self {
        TracedFile { was_there: false, ..TracedFile::new(false) }
    }

    pub fn set_kind(&mut self, kind: &'static str) {
        if self.kind.is_none() {
            self.kind = Some(kind);
        }
    }

    pub fn set_link_target(&mut self, target: &[u8]) {
        (self.kind, self.basis) = (Some("symlink"), Basis::Reported);
        self.link_target.get_or_insert_with(|| target.to_vec());
    }

    /// A call was told what it is.
    pub fn note_stat(&mut self, stat: FileStat) {
        if let Some(mode) = stat.mode {
            let kind = match mode & i64::from(libc::S_IFMT) {
                it if it == i64::from(libc::S_IFREG) => "file",
                it if it == i64::from(libc::S_IFDIR) => "directory",
                it if it == i64::from(libc::S_IFLNK) => "symlink",
                _ => "other",
            };
            self.kind = Some(kind);
            if !self.is_mode_changed {
                self.basis = Basis::Reported;
                self.mode.get_or_insert(mode & 0o7777);
            }
        }
        if !self.is_new {
            self.links = self.links.or(stat.links);
        }
        if let Some(size) = stat.size_bytes {
            self.note_size(size);
        }
    }

    /// It has that size now.
    pub fn note_size(&mut self, size: i64) {
        let before = size.saturating_sub(self.appended);
        if self.is_resized || before < 0 || matches!(self.size, Size::Exactly(_)) {
            return;
        }
        if before > self.written_end || self.written_end == 0 {
            self.size = Size::Exactly(before);
            self.was_there |= before > 0;
        }
    }

    /// It has contents up to there now.
    pub fn note_end(&mut self, end: i64) {
        let end = end.saturating_sub(self.appended);
        let known = match self.size {
            Size::Unknown => 0,
            Size::AtLeast(bytes) => bytes,
            Size::Exactly(_) => return,
        };
        if !self.is_resized && end > self.written_end && end > known {
            self.size = Size::AtLeast(end);
            self.was_there = true;
        }
    }

    pub fn note_written_end(&mut self, end: i64) {
        self.written_end = self.written_end.max(end);
    }

    pub fn note_appended(&mut self, bytes: i64) {
        self.appended = self.appended.saturating_add(bytes);
    }

    /// A record lock was set that begins there. SQLite locks 512 bytes from 1 GiB on (PENDING_BYTE
    /// of os.h), and no other program is known to.
    pub fn note_lock(&mut self, offset: i64) {
        self.is_database |= (LOCKED_FROM..LOCKED_FROM + 512).contains(&offset);
    }

    /// Bytes before the recording; none where nothing tells.
    pub fn size_bytes(&self) -> Option<i64> {
        match self.size {
            Size::Unknown => None,
            Size::AtLeast(bytes) | Size::Exactly(bytes) => Some(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(names: &Names) -> Vec<(String, String, String)> {
        let row = |row: PathState| (row.path, row.kind.into_owned(), row.basis.into_owned());
        names.rows().map(row).collect()
    }

    fn is(path: &str, kind: &str, basis: &str) -> (String, String, String) {
        (path.into(), kind.into(), basis.into())
    }

    #[test]
    fn files_of_before_follow_from_the_first_calls() {
        let mut names = Names::default();
        names.note_absent(b"/no", 0);
        let old = names.note_present(b"/old", 1);
        assert!(names.note_rename(b"/old", b"/new", 2));
        assert_eq!((names.at(b"/new"), names.at(b"/old")), (Some(old), None));
        names.note_creation(b"/old", 3);
        names.note_open_or_creation(b"/db", 4);
        let there = names.note_open_or_creation(b"/there", 5);
        names.files[there].note_end(10);
        names.id(b"/d", 6);
        names.note_present(b"/d/f", 7);
        assert_eq!(
            kinds(&names),
            [
                is("/no", "absent", "told"),
                is("/old", "file", "inferred"),
                is("/new", "absent", "assumed"),
                is("/db", "absent", "assumed"),
                is("/there", "file", "inferred"),
                is("/d", "directory", "assumed"),
                is("/d/f", "file", "inferred"),
            ]
        );
        assert_eq!(names.rows().nth(4).unwrap().size_bytes, Some(10));
    }

    #[test]
    fn a_directory_takes_its_names_along() {
        let mut names = Names::default();
        names.note_creation(b"/a", 0);
        let file = names.note_creation(b"/a/f", 1);
        names.note_creation(b"/ab", 2);
        assert!(names.note_rename(b"/a", b"/b", 3));
        assert_eq!((names.at(b"/b/f"), names.at(b"/a/f")), (Some(file), None));
        assert!(names.at(b"/ab").is_some());
        names.note_same_file(b"/b/f", b"/real", file, 4);
        assert_eq!(names.at(b"/real"), Some(file));
        names.note_removal(b"/b/f", 5);
        assert_eq!(names.surprises, 0);
        names.note_present(b"/b/f", 6);
        assert_eq!(names.surprises, 1);
        assert_eq!(plain(b"//a/./b/../c//"), b"/a/c");
        assert_eq!(plain(b"/../.."), b"/");
    }

    #[test]
    fn old_content_is_told_from_written_content() {
        let mut file = TracedFile::new_or_old();
        file.note_size(0);
        file.note_written_end(4096);
        file.note_end(4096);
        assert!(!file.was_there);
        let mut file = TracedFile::new_or_old();
        file.note_written_end(100);
        file.note_end(300);
        file.note_end(200);
        assert_eq!((file.was_there, file.size_bytes()), (true, Some(300)));
        let mut log = TracedFile::new(false);
        log.note_appended(50);
        log.note_size(1050);
        assert_eq!(log.size_bytes(), Some(1000));
        let mut cut = TracedFile::new(false);
        cut.is_resized = true;
        cut.note_size(7);
        assert_eq!(cut.size_bytes(), None);
        let mut there = TracedFile::new(false);
        there.note_stat(FileStat { mode: Some(0o100_600), size_bytes: Some(5), links: Some(2) });
        there.note_written_end(9);
        there.note_size(9);
        assert_eq!((there.kind, there.size_bytes()), (Some("file"), Some(5)));
        assert_eq!((there.mode, there.basis), (Some(0o600), Basis::Reported));
    }
}
