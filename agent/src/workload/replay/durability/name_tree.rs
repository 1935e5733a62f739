//! The history of a tree of names: which file each name of each directory was of, in the order of
//! the calls' ends, and from when on that is promised.

use std::collections::{BTreeMap, BTreeSet};

use super::file_history::FileHistory;
use super::{CallTime, ChangeTime, NEVER_NS};

/// A file, a directory or something else, whatever its names.
pub type NodeNumber = usize;

/// The directory that all is in.
pub const ROOT: NodeNumber = 0;

#[derive(Debug)]
pub enum Node {
    File(FileHistory),
    Directory(DirectoryHistory),
    /// A symbolic link and the like, of which no more is told than its name.
    Other,
}

/// A change of a name.
#[derive(Debug, Clone, Copy)]
pub struct NameChange {
    pub time: ChangeTime,
    pub to: Option<NodeNumber>,
}

#[derive(Debug, Default)]
pub struct DirectoryHistory {
    pub names: BTreeMap<Vec<u8>, Vec<NameChange>>,
}

/// One name became another, at once.
#[derive(Debug)]
pub struct Rename {
    pub time: ChangeTime,
    pub node: NodeNumber,
    pub from: (NodeNumber, Vec<u8>),
    pub to: (NodeNumber, Vec<u8>),
}

/// The tree.
#[derive(Debug)]
pub struct NameTree {
    pub nodes: Vec<Node>,
    pub renames: Vec<Rename>,
}

impl Default for NameTree {
    fn default() -> Self {
        let root = Node::Directory(DirectoryHistory::default());
        Self { nodes: vec![root], renames: Vec::new() }
    }
}

impl NameTree {
    /// Return the node that is at a path now, relative to the root.
    pub fn at(&self, path: &[u8]) -> Option<NodeNumber> {
        let parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(ROOT, |node, name| self.child(node, name))
    }

    fn child(&self, node: NodeNumber, name: &[u8]) -> Option<NodeNumber> {
        let Node::Directory(directory) = &self.nodes[node] else { return None };
        directory.names.get(name)?.last()?.to
    }

    /// The directory of a path, and the last part of it.
    fn place(&self, path: &[u8]) -> Option<(NodeNumber, Vec<u8>)> {
        let end = path.iter().rposition(|byte| *byte != b'/')? + 1;
        let begin = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |it| it + 1);
        let directory = self.at(&path[..begin])?;
        matches!(self.nodes[directory], Node::Directory(_))
            .then(|| (directory, path[begin..end].to_vec()))
    }

    fn set(&mut self, (directory, name): (NodeNumber, Vec<u8>), change: NameChange) {
        if let Node::Directory(directory) = &mut self.nodes[directory] {
            directory.names.entry(name).or_default().push(change);
        }
    }

    /// A node without a name.
    pub fn add(&mut self, node: Node) -> NodeNumber {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// A node was made at a path; None where the path leads nowhere.
    pub fn make(&mut self, path: &[u8], node: Node, time: ChangeTime) -> Option<NodeNumber> {
        let place = self.place(path)?;
        let number = self.add(node);
        self.set(place, NameChange { time, to: Some(number) });
        Some(number)
    }

    /// Another name of what is at `from`.
    pub fn link(&mut self, from: &[u8], to: &[u8], time: ChangeTime) {
        if let Some(node) = self.at(from) {
            self.link_node(node, to, time);
        }
    }

    /// A name of a file that may have had none.
    pub fn link_node(&mut self, node: NodeNumber, to: &[u8], time: ChangeTime) {
        if let Some(place) = self.place(to) {
            self.set(place, NameChange { time, to: Some(node) });
        }
    }

    /// A name was removed.
    pub fn unlink(&mut self, path: &[u8], time: ChangeTime) {
        if let Some(place) = self.place(path) {
            self.set(place, NameChange { time, to: None });
        }
    }

    /// A name became another one.
    pub fn rename(&mut self, from: &[u8], to: &[u8], time: ChangeTime) {
        let (Some(node), Some(from), Some(to)) = (self.at(from), self.place(from), self.place(to))
        else {
            return;
        };
        if self.child(to.0, &to.1) == Some(node) {
            return;
        }
        self.set(from.clone(), NameChange { time, to: None });
        self.set(to.clone(), NameChange { time, to: Some(node) });
        self.renames.push(Rename { time, node, from, to });
    }

    /// The file, if it is one.
    pub fn file(&mut self, node: NodeNumber) -> Option<&mut FileHistory> {
        match &mut self.nodes[node] {
            Node::File(file) => Some(file),
            _ => None,
        }
    }

    /// A call synced a file, or the names of a directory.
    pub fn sync(&mut self, node: NodeNumber, by: CallTime) {
        match &mut self.nodes[node] {
            Node::File(file) => file.sync(by),
            Node::Directory(directory) => {
                let changes = directory.names.values_mut().flatten();
                changes.for_each(|change| change.time.sync(by));
                let is_here = |rename: &&mut Rename| rename.from.0 == node || rename.to.0 == node;
                self.renames.iter_mut().filter(is_here).for_each(|it| it.time.sync(by));
            }
            Node::Other => {}
        }
    }

    /// A call synced the whole filesystem.
    pub fn sync_all(&mut self, by: CallTime) {
        (0..self.nodes.len()).for_each(|node| self.sync(node, by));
    }

    /// Return the times when something was promised, each once.
    pub fn promise_times_ns(&self) -> Vec<i64> {
        let of_node = |node: &Node| -> Vec<i64> {
            match node {
                Node::File(file) => file.promise_times_ns().collect(),
                Node::Directory(directory) => {
                    directory.names.values().flatten().map(|it| it.time.durable_ns).collect()
                }
                Node::Other => Vec::new(),
            }
        };
        let all: BTreeSet<i64> = self.nodes.iter().flat_map(of_node).collect();
        // What was there before is promised since ever.
        all.into_iter().filter(|at_ns| ![i64::MIN, NEVER_NS].contains(at_ns)).collect()
    }

    /// Names that were made and are there in the end, which no sync of their directory promised;
    /// and bytes that calls wrote of which nobody knows the contents.
    pub fn never_promised(&self) -> (u64, u64) {
        let (mut names, mut bytes) = (0, 0);
        for node in &self.nodes {
            match node {
                Node::Directory(directory) => {
                    let last = directory.names.values().filter_map(|changes| changes.last());
                    let open = last.filter(|it| it.to.is_some() && it.time.durable_ns == NEVER_NS);
                    names += open.count() as u64;
                }
                Node::File(file) => bytes += file.unknown_bytes,
                Node::Other => {}
            }
        }
        (names, bytes)
    }
}
