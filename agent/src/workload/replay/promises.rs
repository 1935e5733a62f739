//! The promises of a replay's calls: gets the plan and when each of its steps was made; makes the
//! tree of names and contents that power cuts are judged by. What was written is known: the
//! contents that the recording kept, or else what the replay wrote in their place.

use std::collections::BTreeMap;

use super::durability::file_history::{FileHistory, FileMark, WrittenBytes};
use super::durability::name_tree::{DirectoryHistory, NameTree, Node, NodeNumber, ROOT};
use super::durability::{CallTime, ChangeTime};
use super::memory::place_of;
use super::plan::{
    Action, CallArgument, CallEffect, FileBefore, FileHandle, Name, PlannedStep, RecordedEnd,
    ReplayPlan,
};
use crate::system_calls;
use crate::workload::ledger::{Ledger, LedgerEntry};

/// F2FS_IOC_START_ATOMIC_WRITE and F2FS_IOC_ABORT_ATOMIC_WRITE (include/uapi/linux/f2fs.h).
const F2FS_START: i64 = 0xf501;
const F2FS_ABORT: i64 = 0xf505;
/// Flags of pwritev2(2).
const RWF_SYNCED: i64 = (libc::RWF_DSYNC | libc::RWF_SYNC) as i64;
const RWF_APPEND: i64 = libc::RWF_APPEND as i64;
/// The offset of preadv2(2) and pwritev2(2) that stands for the place where the file goes on.
const AT_POSITION: i64 = -1;
/// The time of what was there before the first call.
const BEFORE: ChangeTime =
    ChangeTime { begin_ns: i64::MIN, end_ns: i64::MIN, durable_ns: i64::MIN };

/// Tells what a plan has promised whose lanes made their steps as `ledgers` say. `kept_places` says
/// where each of the plan's kept contents is in the stream of what was written.
pub fn promises_of(plan: &ReplayPlan, ledgers: &[Ledger], kept_places: &[usize]) -> NameTree {
    let mut teller = PromiseTeller {
        plan,
        kept_places,
        tree: NameTree::default(),
        open: Vec::new(),
        handles: BTreeMap::new(),
        mappings: BTreeMap::new(),
        atomic_writes: BTreeMap::new(),
    };
    teller.before();
    let of_lanes = plan.lanes.iter().zip(ledgers);
    let mut steps: Vec<(&PlannedStep, &LedgerEntry)> =
        of_lanes.flat_map(|(lane, ledger)| lane.steps.iter().zip(&ledger.entries)).collect();
    steps.sort_by_key(|(_, done)| (done.return_ns, done.begin_ns));
    for (step, done) in steps {
        let at = CallTime { begin_ns: done.begin_ns, end_ns: done.return_ns };
        match &step.action {
            Action::Inherit(pairs) => {
                pairs.iter().for_each(|(from, to)| teller.copy(*from, *to));
            }
            Action::Release(handles, mappings) => {
                teller.handles.retain(|handle, _| !handles.contains(handle));
                teller.mappings.retain(|mapping, _| !mappings.contains(mapping));
            }
            Action::Call { .. } if matches!(step.ended, RecordedEnd::Failed(_)) => {}
            Action::Call { number, arguments, effect } => {
                let call = SucceededCall { step, number: *number, arguments, effect: *effect, at };
                teller.apply(&call);
            }
        }
    }
    teller.tree
}

/// An open file, which several descriptors may be of.
#[derive(Debug, Clone, Copy)]
struct OpenDescription {
    node: NodeNumber,
    position: u64,
    flags: i32,
}

/// A call that succeeded.
struct SucceededCall<'a> {
    step: &'a PlannedStep,
    number: i64,
    arguments: &'a [CallArgument],
    effect: CallEffect,
    at: CallTime,
}

impl SucceededCall<'_> {
    fn number_at(&self, place: usize) -> i64 {
        match self.arguments.get(place) {
            Some(CallArgument::Number(number)) => *number,
            _ => 0,
        }
    }

    fn handles(&self) -> impl Iterator<Item = FileHandle> {
        self.arguments.iter().filter_map(|argument| match argument {
            CallArgument::Handle(handle) => Some(*handle),
            _ => None,
        })
    }

    fn names(&self) -> impl Iterator<Item = Name> {
        self.arguments.iter().filter_map(|argument| match argument {
            CallArgument::Path(name) => Some(*name),
            _ => None,
        })
    }

    /// Bytes that it read, wrote or copied; where that was not recorded, those it asked for.
    fn bytes(&self) -> u64 {
        let flags = self.arguments.iter().find_map(|argument| match argument {
            CallArgument::Into(bytes)
            | CallArgument::From(bytes)
            | CallArgument::VectorsInto { bytes, .. }
            | CallArgument::VectorsFrom { bytes, .. } => Some(i64::from(*bytes)),
            _ => None,
        });
        let bytes = match self.step.ended {
            RecordedEnd::With(bytes) => bytes,
            _ => flags.unwrap_or(0),
        };
        bytes.max(0).cast_unsigned()
    }
}

/// The tree, while the steps are gone through.
struct PromiseTeller<'a> {
    plan: &'a ReplayPlan,
    kept_places: &'a [usize],
    tree: NameTree,
    open: Vec<OpenDescription>,
    handles: BTreeMap<FileHandle, usize>,
    /// The file of each mapping, and the place in it at which the mapping begins.
    mappings: BTreeMap<u32, (NodeNumber, u64)>,
    /// The state of each file when an atomic write of F2FS began.
    atomic_writes: BTreeMap<NodeNumber, FileMark>,
}

impl PromiseTeller<'_> {
    fn path(&self, name: Name) -> &[u8] {
        &self.plan.names[name as usize]
    }

    fn before(&mut self) {
        let plan = self.plan;
        let path = |name: Name| plan.names[name as usize].as_slice();
        for before in &plan.before {
            let tree = &mut self.tree;
            match before {
                FileBefore::Directory(name) if tree.at(path(*name)).is_some() => {}
                FileBefore::Directory(name) => {
                    let node = Node::Directory(DirectoryHistory::default());
                    tree.make(path(*name), node, BEFORE);
                }
                FileBefore::File { name, bytes, .. } => {
                    tree.make(path(*name), Node::File(FileHistory::with_content(*bytes)), BEFORE);
                }
                FileBefore::Link { name, of } => tree.link(path(*of), path(*name), BEFORE),
                FileBefore::Symlink { name, .. } => {
                    tree.make(path(*name), Node::Other, BEFORE);
                }
            }
        }
        for open in &plan.open_before {
            if let Some(node) = self.tree.at(path(open.name)) {
                let position = open.position.max(0).cast_unsigned();
                self.note_open(open.handle, OpenDescription { node, position, flags: open.flags });
            }
        }
    }

    fn note_open(&mut self, handle: FileHandle, file: OpenDescription) {
        self.open.push(file);
        self.handles.insert(handle, self.open.len() - 1);
    }

    fn copy(&mut self, from: FileHandle, to: FileHandle) {
        match self.handles.get(&from).copied() {
            Some(file) => self.handles.insert(to, file),
            None => self.handles.remove(&to),
        };
    }

    fn open_file(&mut self, handle: Option<FileHandle>) -> Option<&mut OpenDescription> {
        let number = *self.handles.get(&handle?)?;
        self.open.get_mut(number)
    }

    fn apply(&mut self, call: &SucceededCall) {
        if let CallEffect::Dirties(mapping, from, bytes) = call.effect
            && let Some(&(node, offset)) = self.mappings.get(&mapping)
            && let Some(file) = self.tree.file(node)
        {
            file.store(call.at, offset + from, bytes);
        }
        let handle = call.handles().next();
        match call.effect {
            CallEffect::Opens(to) => match handle {
                Some(from) => self.copy(from, to),
                None => self.open_path(call, to),
            },
            CallEffect::Closes(handle) => {
                self.handles.remove(&handle);
            }
            CallEffect::Maps(mapping, _) => {
                if let Some(file) = self.open_file(handle).copied() {
                    let offset = call.number_at(5).max(0).cast_unsigned();
                    self.mappings.insert(mapping, (file.node, offset));
                }
            }
            CallEffect::Unmaps(mapping) => {
                self.mappings.remove(&mapping);
            }
            _ => self.change(call, handle),
        }
    }

    fn open_path(&mut self, call: &SucceededCall, to: FileHandle) {
        let Some(path) = call.names().next().map(|name| self.path(name).to_vec()) else { return };
        let flags = call.number_at(2) as i32;
        self.handles.remove(&to);
        let new = Node::File(FileHistory::default());
        let found = if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            // The path is that of its directory.
            Some(self.tree.add(new))
        } else {
            let node = |tree: &mut NameTree| match flags & libc::O_CREAT {
                0 => None,
                _ => tree.make(&path, new, ChangeTime::open(call.at)),
            };
            self.tree.at(&path).or_else(|| node(&mut self.tree))
        };
        let Some(node) = found else { return };
        if flags & libc::O_TRUNC != 0
            && let Some(file) = self.tree.file(node)
            && file.size_bytes() > 0
        {
            file.resize(call.at, 0);
        }
        self.note_open(to, OpenDescription { node, position: 0, flags });
    }

    fn change(&mut self, call: &SucceededCall, handle: Option<FileHandle>) {
        let at = call.at;
        let mut names = call.names().map(|name| self.path(name).to_vec()).collect::<Vec<_>>();
        let open = ChangeTime::open(at);
        match (call.number, &mut names[..]) {
            (system_calls::SYS_rename | system_calls::SYS_renameat, [from, to]) => {
                self.tree.rename(from, to, open)
            }
            (system_calls::SYS_renameat2, [from, to]) if call.number_at(4) & 2 != 0 => {
                self.exchange(from, to, open);
            }
            (system_calls::SYS_renameat2, [from, to]) => self.tree.rename(from, to, open),
            (system_calls::SYS_link | system_calls::SYS_linkat, [from, to]) => {
                self.tree.link(from, to, open)
            }
            // What it links is a descriptor's (AT_EMPTY_PATH).
            (system_calls::SYS_linkat, [to]) => {
                if let Some(file) = self.open_file(handle).copied() {
                    self.tree.link_node(file.node, to, open);
                }
            }
            (
                system_calls::SYS_unlink | system_calls::SYS_unlinkat | system_calls::SYS_rmdir,
                [path],
            ) => {
                self.tree.unlink(path, open);
            }
            (system_calls::SYS_mkdir | system_calls::SYS_mkdirat, [path]) => {
                self.tree.make(path, Node::Directory(DirectoryHistory::default()), open);
            }
            (system_calls::SYS_mknod | system_calls::SYS_mknodat, [path]) => {
                self.tree.make(path, Node::File(FileHistory::default()), open);
            }
            (system_calls::SYS_symlink | system_calls::SYS_symlinkat, [path]) => {
                self.tree.make(path, Node::Other, open);
            }
            (system_calls::SYS_truncate, [path]) => {
                let node = self.tree.at(path);
                let size = call.number_at(1).max(0).cast_unsigned();
                if let Some(file) = node.and_then(|node| self.tree.file(node)) {
                    file.resize(at, size);
                }
            }
            (system_calls::SYS_syncfs, _) => self.tree.sync_all(at),
            _ => self.change_open(call, handle),
        }
    }

    fn exchange(&mut self, from: &[u8], to: &[u8], time: ChangeTime) {
        if self.tree.at(from) == self.tree.at(to) {
            return;
        }
        // A name of nobody's in between: nothing but the two ends is looked for.
        let aside = b"\0exchanged".to_vec();
        self.tree.rename(from, &aside, time);
        self.tree.rename(to, from, time);
        self.tree.rename(&aside, to, time);
        self.tree.renames.retain(|rename| rename.to.1 != aside && rename.from.1 != aside);
        if let Node::Directory(root) = &mut self.tree.nodes[ROOT] {
            root.names.remove(&aside);
        }
    }

    /// Note what a call does to an open file.
    fn change_open(&mut self, call: &SucceededCall, handle: Option<FileHandle>) {
        let at = call.at;
        let Some(&mut OpenDescription { node, position, flags }) = self.open_file(handle) else {
            return;
        };
        let number = |place| call.number_at(place).max(0).cast_unsigned();
        match call.number {
            system_calls::SYS_fsync | system_calls::SYS_fdatasync => self.tree.sync(node, at),
            // That which commits one promises nothing: it need not wait (docs/findings).
            system_calls::SYS_ioctl if call.number_at(1) == F2FS_START => {
                let mark = self.tree.file(node).map(|file| file.mark());
                self.atomic_writes.extend(mark.map(|mark| (node, mark)));
            }
            system_calls::SYS_ioctl if call.number_at(1) == F2FS_ABORT => {
                if let (Some(mark), Some(file)) =
                    (self.atomic_writes.remove(&node), self.tree.file(node))
                {
                    file.go_back_to(mark);
                }
            }
            system_calls::SYS_ftruncate => {
                if let Some(file) = self.tree.file(node) {
                    file.resize(at, number(1));
                }
            }
            system_calls::SYS_fallocate => {
                if let Some(file) = self.tree.file(node) {
                    allocate(file, call.number_at(1) as i32, number(2), number(3), at);
                }
            }
            system_calls::SYS_read | system_calls::SYS_readv => {
                self.move_position(handle, position + call.bytes())
            }
            system_calls::SYS_preadv2 if call.number_at(3) == AT_POSITION => {
                self.move_position(handle, position + call.bytes())
            }
            system_calls::SYS_lseek => {
                let size = self.tree.file(node).map_or(0, |file| file.size_bytes());
                let to = match (call.step.ended, call.number_at(2) as i32) {
                    (RecordedEnd::With(position), _) => position,
                    (_, libc::SEEK_CUR) => position.cast_signed() + call.number_at(1),
                    (_, libc::SEEK_END) => size.cast_signed() + call.number_at(1),
                    _ => call.number_at(1),
                };
                self.move_position(handle, to.max(0).cast_unsigned());
            }
            system_calls::SYS_fcntl if call.number_at(1) == i64::from(libc::F_SETFL) => {
                let kept = flags & (libc::O_SYNC | libc::O_DSYNC);
                if let Some(file) = self.open_file(handle) {
                    file.flags = call.number_at(2) as i32 | kept;
                }
            }
            system_calls::SYS_write | system_calls::SYS_writev => {
                let end = self.write(call, node, flags, position);
                self.move_position(handle, end);
            }
            system_calls::SYS_pwrite64 | system_calls::SYS_pwritev | system_calls::SYS_pwritev2 => {
                let by_flags = if call.number_at(5) & RWF_APPEND != 0 { libc::O_APPEND } else { 0 };
                let synced = if call.number_at(5) & RWF_SYNCED != 0 { libc::O_DSYNC } else { 0 };
                let at_position =
                    call.number == system_calls::SYS_pwritev2 && call.number_at(3) == AT_POSITION;
                let offset = if at_position { position } else { number(3) };
                let end = self.write(call, node, flags | by_flags | synced, offset);
                if at_position {
                    self.move_position(handle, end);
                }
            }
            system_calls::SYS_sendfile => self.send_file(call, node, position),
            system_calls::SYS_copy_file_range => self.copy_range(call),
            _ => {}
        }
    }

    fn move_position(&mut self, handle: Option<FileHandle>, position: u64) {
        if let Some(file) = self.open_file(handle) {
            file.position = position;
        }
    }

    /// Gives the end of what was written.
    fn write(&mut self, call: &SucceededCall, node: NodeNumber, flags: i32, offset: u64) -> u64 {
        let Some(file) = self.tree.file(node) else { return offset };
        let offset_bytes = if flags & libc::O_APPEND != 0 { file.size_bytes() } else { offset };
        let place = match call.step.writes {
            Some(number) => self.kept_places[number as usize],
            None => place_of(call.step.call),
        };
        let bytes = WrittenBytes::Stream { place, offset_bytes };
        // O_SYNC has the bit of O_DSYNC.
        let is_synced = flags & libc::O_DSYNC != 0;
        file.write(call.at, offset_bytes, call.bytes(), bytes, is_synced);
        offset_bytes + call.bytes()
    }

    /// Something reached a file of which nobody knows what it is.
    fn store_unknown(&mut self, node: NodeNumber, offset: u64, bytes: u64, at: CallTime) {
        if let Some(file) = self.tree.file(node) {
            file.write(at, offset, bytes, WrittenBytes::Unknown, false);
        }
    }

    /// The first descriptor is of the file that is written to; the other one's place moves where
    /// the call has no offset.
    fn send_file(&mut self, call: &SucceededCall, node: NodeNumber, position: u64) {
        let handles: Vec<FileHandle> = call.handles().collect();
        let has_offset = matches!(call.arguments.get(2), Some(CallArgument::Offset(_)));
        if let (Some(from), false) = (self.open_file(handles.get(1).copied()), has_offset) {
            from.position += call.bytes();
        }
        self.store_unknown(node, position, call.bytes(), call.at);
        self.move_position(handles.first().copied(), position + call.bytes());
    }

    fn copy_range(&mut self, call: &SucceededCall) {
        let offsets: Vec<Option<u64>> = [1, 3]
            .map(|place| match call.arguments.get(place) {
                Some(CallArgument::Offset(offset)) => Some(offset.max(&0).cast_unsigned()),
                _ => None,
            })
            .into();
        let handles: Vec<FileHandle> = call.handles().collect();
        let bytes = call.bytes();
        if let (Some(from), None) = (self.open_file(handles.first().copied()), offsets[0]) {
            from.position += bytes;
        }
        let Some(to) = self.open_file(handles.get(1).copied()) else { return };
        let offset = offsets[1].unwrap_or(to.position);
        let node = to.node;
        if offsets[1].is_none() {
            to.position += bytes;
        }
        self.store_unknown(node, offset, bytes, call.at);
    }
}

/// A range of a file was allocated, made zero, taken out of it or put into it, by fallocate(2).
fn allocate(file: &mut FileHistory, mode: i32, offset: u64, bytes: u64, at: CallTime) {
    let (size, end) = (file.size_bytes(), offset + bytes);
    let range = |from: u64, to: u64| (from, to.saturating_sub(from));
    let write = |file: &mut FileHistory, (offset, bytes), what| {
        file.write(at, offset, bytes, what, false);
    };
    match mode & !(libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_UNSHARE_RANGE) {
        // What is moved by it is not followed.
        libc::FALLOC_FL_COLLAPSE_RANGE => {
            write(file, range(offset, size), WrittenBytes::Unknown);
            file.resize(at, size.saturating_sub(bytes));
            return;
        }
        libc::FALLOC_FL_INSERT_RANGE => {
            file.resize(at, size + bytes);
            write(file, range(offset, size + bytes), WrittenBytes::Unknown);
            return;
        }
        libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE => {
            write(file, range(offset, end.min(size)), WrittenBytes::Zeros);
        }
        _ => {}
    }
    if mode & libc::FALLOC_FL_KEEP_SIZE == 0 && end > size {
        file.resize(at, end);
    }
}

#[cfg(test)]
#[path = "promises_test.rs"]
mod tests;
