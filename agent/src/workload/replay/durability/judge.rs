//! Looks at a directory after a power cut, name by name, and says what of it is not as calls have
//! promised.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::ExpectedMoment;
use super::file_history::FileVerdict;
use super::name_tree::{NameChange, NameTree, Node, NodeNumber, ROOT};
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::power_cut::{CutFindings, CutOutcome};

/// The names of directories now: of each of a directory's names, the inode.
type FoundNames = BTreeMap<(NodeNumber, Vec<u8>), u64>;

/// Looks at all names of the tree in `directory`; `stream` is where the calls' bytes are from.
///
/// # Errors
/// If something cannot be read, or holds what no call put there.
pub fn judge_files(
    tree: &NameTree,
    directory: &Path,
    stream: &[u8],
    expected: ExpectedMoment,
) -> Result<CutFindings, WorkloadError> {
    let mut judge = TreeJudge { tree, stream, expected, lost: Vec::new(), found: BTreeMap::new() };
    judge.directory(ROOT, directory)?;
    judge.renames();
    let TreeJudge { lost, found, .. } = judge;
    for rename in &tree.renames {
        let (from, to) = (found.get(&rename.from), found.get(&rename.to));
        let is_last = |place: &(NodeNumber, Vec<u8>), to: Option<NodeNumber>| {
            last_begun(tree, place, expected).is_some_and(|it| it.to == to)
        };
        if from.is_some()
            && from == to
            && is_last(&rename.from, None)
            && is_last(&rename.to, Some(rename.node))
        {
            let name = String::from_utf8_lossy(&rename.to.1);
            let message = format!("{name} has its old name too");
            return Ok(CutFindings::without_states(CutOutcome::Torn, message));
        }
    }
    let outcome = if lost.is_empty() { CutOutcome::Kept } else { CutOutcome::Lost };
    let message = lost.first().cloned().unwrap_or_default();
    Ok(CutFindings { outcome, found: Vec::new(), lost: lost.len() as u64, message })
}

/// The last change of a name that had begun.
fn last_begun(
    tree: &NameTree,
    (directory, name): &(NodeNumber, Vec<u8>),
    expected: ExpectedMoment,
) -> Option<NameChange> {
    let Node::Directory(directory) = &tree.nodes[*directory] else { return None };
    let mut begun = directory.names.get(name)?.iter().filter(|it| expected.has_begun(it.time));
    begun.next_back().copied()
}

struct TreeJudge<'a> {
    tree: &'a NameTree,
    stream: &'a [u8],
    expected: ExpectedMoment,
    /// The names that are not as promised, and what of each.
    lost: Vec<String>,
    found: FoundNames,
}

impl TreeJudge<'_> {
    fn directory(&mut self, node: NodeNumber, path: &Path) -> Result<(), WorkloadError> {
        let Node::Directory(directory) = &self.tree.nodes[node] else { return Ok(()) };
        for (name, changes) in &directory.names {
            let path = path.join(OsStr::from_bytes(name));
            let begun = changes.iter().filter(|change| self.expected.has_begun(change.time));
            let begun: Vec<NameChange> = begun.copied().collect();
            let is_settled = |it: &NameChange| self.expected.is_settled(it.time);
            let settled = begun.iter().rposition(is_settled);
            let (stale, fresh) = begun.split_at(settled.unwrap_or(0));
            let may_be_gone = settled.is_none() || fresh.iter().any(|change| change.to.is_none());
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if !may_be_gone {
                        self.lost.push(format!("{} is not there", path.display()));
                    }
                }
                Err(error) => return Err(step_error("stat", &path)(error)),
                Ok(found) => {
                    self.found.insert((node, name.clone()), found.ino());
                    self.name(&path, &found, stale, fresh)?;
                }
            }
        }
        Ok(())
    }

    /// Compares what a name is of with what it may be of.
    fn name(
        &mut self,
        path: &Path,
        found: &Metadata,
        stale: &[NameChange],
        fresh: &[NameChange],
    ) -> Result<(), WorkloadError> {
        let nodes = |changes: &[NameChange]| -> Vec<NodeNumber> {
            changes.iter().rev().filter_map(|change| change.to).collect()
        };
        let mut best: Option<FileVerdict> = None;
        for node in nodes(fresh) {
            match (&self.tree.nodes[node], found.is_dir(), found.is_file()) {
                (Node::Directory(_), true, _) => return self.directory(node, path),
                (Node::Other, false, false) => return Ok(()),
                (Node::File(file), _, true) => {
                    let look = file.look(path, self.stream, self.expected);
                    let found = look.map_err(step_error("read back", path))?;
                    best = Some(best.map_or(found.clone(), |best| best.min(found)));
                }
                _ => {}
            }
        }
        let is_old = || {
            nodes(stale).iter().any(|node| match &self.tree.nodes[*node] {
                Node::Directory(_) => found.is_dir(),
                Node::File(_) => found.is_file(),
                Node::Other => true,
            })
        };
        match best {
            Some(FileVerdict::Kept) => {}
            Some(FileVerdict::Old(what)) => self.lost.push(format!("{} {what}", path.display())),
            _ if is_old() => self.lost.push(format!("{} is what it was before", path.display())),
            Some(FileVerdict::Strange(what)) => {
                return Err(WorkloadError::Contents { path: path.to_owned(), what });
            }
            None => {
                let what = "is what no call made there".into();
                return Err(WorkloadError::Contents { path: path.to_owned(), what });
            }
        }
        Ok(())
    }

    /// Check that each renamed file has one of its names, whatever is not promised.
    fn renames(&mut self) {
        for rename in &self.tree.renames {
            let changes = |place: &(NodeNumber, Vec<u8>)| match &self.tree.nodes[place.0] {
                Node::Directory(directory) => directory.names.get(&place.1).cloned(),
                _ => None,
            };
            let (Some(old), Some(new)) = (changes(&rename.from), changes(&rename.to)) else {
                continue;
            };
            // Where nothing else was ever done to the two names, but that the first was promised.
            let is_plain = new.len() == 1
                && matches!(&old[..], [made, _] if self.expected.is_settled(made.time));
            let has = |place| self.found.contains_key(place);
            if is_plain
                && self.expected.has_begun(rename.time)
                && !self.expected.is_settled(rename.time)
                && !has(&rename.from)
                && !has(&rename.to)
            {
                let name = String::from_utf8_lossy(&rename.to.1).into_owned();
                self.lost.push(format!("{name} has neither its old name nor its new one"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::name_tree::DirectoryHistory;
    use super::super::{CallTime, ChangeTime};
    use super::*;
    use crate::workload::replay::durability::file_history::FileHistory;

    fn at(begin_ns: i64) -> CallTime {
        CallTime { begin_ns, end_ns: begin_ns + 1 }
    }

    fn open(begin_ns: i64) -> ChangeTime {
        ChangeTime::open(at(begin_ns))
    }

    /// Outcome, and how many names are not as promised, where a directory has these names.
    fn judge_names(tree: &NameTree, names: &[&str], at_ns: i64) -> (CutOutcome, u64) {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            match name.strip_suffix('/') {
                Some(_) => fs::create_dir(path).unwrap(),
                None => fs::write(path, "").unwrap(),
            }
        }
        let found = judge_files(tree, folder.path(), &[], ExpectedMoment::AfterCut { at_ns });
        let found = found.unwrap_or_else(|error| {
            CutFindings::without_states(CutOutcome::Corrupt, error.to_string())
        });
        (found.outcome, found.lost)
    }

    fn file() -> Node {
        Node::File(FileHistory::default())
    }

    #[test]
    fn a_name_is_promised_by_a_sync_of_its_directory_alone() {
        let mut tree = NameTree::default();
        let node = tree.make(b"a", file(), open(10)).unwrap();
        tree.sync(node, at(20));
        tree.sync(ROOT, at(30));
        tree.unlink(b"a", open(40));
        tree.sync(ROOT, at(50));
        assert_eq!(judge_names(&tree, &[], 30), (CutOutcome::Kept, 0));
        assert_eq!(judge_names(&tree, &["a"], 30), (CutOutcome::Kept, 0));
        assert_eq!(judge_names(&tree, &[], 31), (CutOutcome::Lost, 1));
        assert_eq!(judge_names(&tree, &[], 50), (CutOutcome::Kept, 0));
        assert_eq!(judge_names(&tree, &["a"], 50), (CutOutcome::Kept, 0));
        assert_eq!(judge_names(&tree, &["a"], 51), (CutOutcome::Lost, 1));
        assert_eq!(judge_names(&tree, &["a/"], 30).0, CutOutcome::Corrupt);
    }

    #[test]
    fn a_renamed_file_has_one_of_its_names() {
        let mut tree = NameTree::default();
        tree.make(b"a", file(), open(10));
        tree.sync(ROOT, at(20));
        tree.rename(b"a", b"b", open(30));
        assert_eq!(judge_names(&tree, &["a"], 35), (CutOutcome::Kept, 0));
        assert_eq!(judge_names(&tree, &["b"], 35), (CutOutcome::Kept, 0));
        assert_eq!(judge_names(&tree, &[], 35), (CutOutcome::Lost, 1));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "").unwrap();
        fs::hard_link(folder.path().join("a"), folder.path().join("b")).unwrap();
        let found = judge_files(&tree, folder.path(), &[], ExpectedMoment::AfterCut { at_ns: 35 });
        assert_eq!(found.unwrap().outcome, CutOutcome::Torn);
        tree.sync(ROOT, at(40));
        assert_eq!(judge_names(&tree, &["a"], 45), (CutOutcome::Lost, 2));
        assert_eq!(judge_names(&tree, &["b"], 45), (CutOutcome::Kept, 0));
    }

    #[test]
    fn a_renamed_file_replaces_another_whole() {
        let stream: Vec<u8> = (0..=255).collect();
        let mut tree = NameTree::default();
        for (name, begin_ns, place) in [("a", 10, 0), ("b", 30, 100)] {
            let node = tree.make(name.as_bytes(), file(), open(begin_ns)).unwrap();
            let bytes = crate::workload::replay::durability::file_history::WrittenBytes::Stream {
                place,
                offset_bytes: 0,
            };
            tree.file(node).unwrap().write(at(begin_ns), 0, 50, bytes, false);
            tree.sync(node, at(begin_ns + 5));
        }
        tree.sync(ROOT, at(40));
        tree.rename(b"b", b"a", open(50));
        tree.sync(ROOT, at(60));
        let outcome_of = |contents: &[u8], names: &[&str], at_ns| {
            let folder = tempfile::tempdir().unwrap();
            names.iter().for_each(|name| fs::write(folder.path().join(name), contents).unwrap());
            let expected = ExpectedMoment::AfterCut { at_ns };
            judge_files(&tree, folder.path(), &stream, expected).map(|it| it.outcome).ok()
        };
        assert_eq!(outcome_of(&stream[100..150], &["a"], 61), Some(CutOutcome::Kept));
        assert_eq!(outcome_of(&stream[..50], &["a"], 61), Some(CutOutcome::Lost));
        assert_eq!(outcome_of(&stream[100..150], &["a"], 55), Some(CutOutcome::Kept));
        assert_eq!(outcome_of(&stream[..49], &["a"], 55), Some(CutOutcome::Lost));
        assert_eq!(outcome_of(&[7; 50], &["a"], 55), None);
        assert_eq!(outcome_of(&[], &[], 55), Some(CutOutcome::Lost));
    }

    #[test]
    fn a_directory_that_nobody_promised_may_be_missing_with_all_that_is_in_it() {
        let mut tree = NameTree::default();
        let inner = Node::Directory(DirectoryHistory::default());
        let inner = tree.make(b"d", inner, open(10)).unwrap();
        tree.make(b"d/f", file(), open(20));
        tree.sync(inner, at(30));
        assert_eq!(judge_names(&tree, &[], 40), (CutOutcome::Kept, 0));
        assert_eq!(judge_names(&tree, &["d/"], 40), (CutOutcome::Lost, 1));
        tree.sync_all(at(50));
        assert_eq!(judge_names(&tree, &[], 60), (CutOutcome::Lost, 1));
    }
}
