//! The state at a moment of a recording: open files, mappings, names, the descriptor tables of
//! processes, and their threads. A call is looked up here before it becomes a step. A descriptor
//! may also be of what is no file on a disk: a pipe, a socket, a terminal.

use std::collections::{BTreeMap, HashMap};

use super::names::{Place, ReplayNames};
use super::order::Resource;
use crate::tables::recording::RecordedThread;
use crate::workload::replay::plan::{FileHandle, Name, PlanText, RecordLock};

/// The reason why a call is no step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStep {
    /// It is about no file of a disk.
    Elsewhere,
    /// Its effect is in other steps.
    Carried,
    LeftOut(&'static str),
}

/// The reason why a call is left out.
pub const NOT_OPENED: NoStep =
    NoStep::LeftOut("its descriptor is one that no recorded call opened");
pub const NOT_LOOKED_UP: NoStep = NoStep::LeftOut("its path could not be looked up");
pub const UNKNOWN_END: NoStep = NoStep::LeftOut("how it ended was not recorded");
pub const TOO_FAR: NoStep = NoStep::LeftOut("it reaches beyond 16 TiB");
pub const TOO_LONG: NoStep = NoStep::LeftOut("it is of more than 64 MiB at once");

/// Most bytes that mappings are filled with at a time: the replay's limit of memory.
const MOST_POPULATED_BYTES: u64 = 1 << 30;

/// A mapping of a file.
#[derive(Debug, Clone, Copy)]
pub struct Mapping {
    pub number: u32,
    pub bytes: u64,
    pub file: Option<(i64, i64)>,
    /// Whether stores to it reach the file.
    pub is_shared: bool,
    /// Bytes of memory that it was filled with.
    pub populated_bytes: u64,
}

/// All that is known at a moment.
#[derive(Debug, Default)]
pub struct Scene {
    pub tables: DescriptorTables,
    pub names: ReplayNames,
    pub texts: Vec<PlanText>,
    pub locks: Vec<RecordLock>,
    /// The device and inode of each handle's file.
    files: Vec<Option<(i64, i64)>>,
    /// The mappings of each process, by their address.
    mappings: HashMap<i64, BTreeMap<u64, Mapping>>,
    pub mapped: usize,
    populated_bytes: u64,
    pub most_populated_bytes: u64,
    open: usize,
    pub most_open: usize,
}

impl Scene {
    /// Return the scene of names, before the first call.
    pub fn new(names: ReplayNames) -> Self {
        Self { names, ..Self::default() }
    }

    /// A handle for a file that is about to be opened.
    pub fn new_handle(&mut self, file: Option<(i64, i64)>) -> FileHandle {
        self.files.push(file);
        (self.files.len() - 1) as FileHandle
    }

    pub fn handles(&self) -> usize {
        self.files.len()
    }

    /// The file of a handle.
    pub fn file_of(&self, handle: FileHandle) -> Option<(i64, i64)> {
        self.files[handle as usize]
    }

    /// A handle was opened.
    pub fn note_open(&mut self) {
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
    }

    /// So many handles were closed.
    pub fn note_closed(&mut self, handles: usize) {
        self.open = self.open.saturating_sub(handles);
    }

    /// The handle of a number.
    ///
    /// # Errors
    /// If the number is of no file, or of none that is known.
    pub fn handle(&mut self, thread: i64, number: Option<i64>) -> Result<FileHandle, NoStep> {
        match self.tables.at(thread, number.ok_or(NOT_OPENED)?) {
            Some(DescriptorTarget::File(handle)) => Ok(handle),
            Some(DescriptorTarget::Elsewhere) => Err(NoStep::Elsewhere),
            None => Err(NOT_OPENED),
        }
    }

    /// The name of a path.
    ///
    /// # Errors
    /// If it is the kernel's, or was not looked up.
    pub fn name(&self, path_id: Option<i64>) -> Result<Name, NoStep> {
        match path_id.and_then(|id| self.names.place(id)) {
            Some(Place::Here(name)) => Ok(name),
            Some(Place::Elsewhere) => Err(NoStep::Elsewhere),
            None => Err(NOT_LOOKED_UP),
        }
    }

    /// Add what a call about a handle has in common with others.
    pub fn resources(&self, handle: FileHandle, resources: &mut Vec<Resource>) {
        resources.push(Resource::Handle(handle));
        if let Some((device, inode)) = self.file_of(handle) {
            resources.push(Resource::File(device, inode));
        }
    }

    /// A process has mapped a file.
    pub fn map(&mut self, process: i64, address: i64, mapping: Mapping) {
        self.populated_bytes += mapping.populated_bytes;
        self.most_populated_bytes = self.most_populated_bytes.max(self.populated_bytes);
        let addresses = self.mappings.entry(process).or_default();
        if let Some(former) = addresses.insert(address.cast_unsigned(), mapping) {
            self.populated_bytes -= former.populated_bytes;
        }
    }

    /// Return whether mappings may be filled with so many bytes more.
    pub fn may_populate(&self, bytes: u64) -> bool {
        self.populated_bytes.saturating_add(bytes) <= MOST_POPULATED_BYTES
    }

    /// The mapping that has an address, and how far into it that is.
    pub fn mapping(&self, process: i64, address: i64) -> Option<(Mapping, u64)> {
        let address = address.cast_unsigned();
        let (begin, mapping) = self.mappings.get(&process)?.range(..=address).next_back()?;
        let offset = address - begin;
        (offset < mapping.bytes).then_some((*mapping, offset))
    }

    /// Return whether a process has mapped anything in a range.
    pub fn has_mapping_in(&self, process: i64, address: i64, bytes: i64) -> bool {
        let first = address.cast_unsigned();
        let end = first.saturating_add(bytes.max(0).cast_unsigned());
        self.mapping(process, address).is_some()
            || self.mappings.get(&process).is_some_and(|it| it.range(first..end).next().is_some())
    }

    /// A process takes a mapping away.
    pub fn unmap(&mut self, process: i64, address: i64) {
        if let Some(addresses) = self.mappings.get_mut(&process) {
            let former = addresses.remove(&address.cast_unsigned());
            self.populated_bytes -= former.map_or(0, |it| it.populated_bytes);
        }
    }

    /// A process takes all its mappings away.
    pub fn unmap_all(&mut self, process: i64) -> Vec<u32> {
        let addresses = self.mappings.remove(&process).unwrap_or_default();
        self.populated_bytes -= addresses.values().map(|it| it.populated_bytes).sum::<u64>();
        addresses.into_values().map(|mapping| mapping.number).collect()
    }
}

/// The thing that a descriptor's number leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorTarget {
    File(FileHandle),
    Elsewhere,
}

#[derive(Debug, Clone, Copy)]
struct OpenNumber {
    opened: DescriptorTarget,
    closes_on_exec: bool,
}

/// One table, which threads of one process share.
#[derive(Debug, Clone, Default)]
struct DescriptorTable {
    entries: BTreeMap<i64, OpenNumber>,
    /// Threads that have it.
    users: usize,
}

/// All tables, by thread.
#[derive(Debug, Default)]
pub struct DescriptorTables {
    tables: Vec<DescriptorTable>,
    of_thread: BTreeMap<i64, usize>,
    /// Numbers of all copies that were made.
    pub copied: usize,
}

impl DescriptorTables {
    /// Return whether a thread has begun.
    pub fn has(&self, thread: i64) -> bool {
        self.of_thread.contains_key(&thread)
    }

    /// A thread begins with a table of its own, which is empty.
    pub fn begin(&mut self, thread: i64) {
        self.of_thread.insert(thread, self.tables.len());
        self.tables.push(DescriptorTable { users: 1, ..DescriptorTable::default() });
    }

    /// A thread begins with the table of another.
    pub fn share(&mut self, thread: i64, creator: i64) {
        let table = self.of_thread[&creator];
        self.tables[table].users += 1;
        self.of_thread.insert(thread, table);
    }

    /// A thread begins with a copy of another's table, of handles that `copy` makes of those.
    pub fn copy(
        &mut self,
        thread: i64,
        creator: i64,
        mut copy: impl FnMut(FileHandle) -> FileHandle,
    ) {
        let mut table = self.tables[self.of_thread[&creator]].clone();
        table.users = 1;
        self.copied += table.entries.len();
        for entry in table.entries.values_mut() {
            if let DescriptorTarget::File(handle) = &mut entry.opened {
                *handle = copy(*handle);
            }
        }
        self.of_thread.insert(thread, self.tables.len());
        self.tables.push(table);
    }

    fn table(&mut self, thread: i64) -> &mut DescriptorTable {
        let table = self.of_thread[&thread];
        &mut self.tables[table]
    }

    /// Return the thing that a number of a thread leads to.
    pub fn at(&mut self, thread: i64, number: i64) -> Option<DescriptorTarget> {
        self.table(thread).entries.get(&number).map(|entry| entry.opened)
    }

    /// A number leads to something from now on.
    pub fn set(
        &mut self,
        thread: i64,
        number: i64,
        opened: DescriptorTarget,
        closes_on_exec: bool,
    ) {
        self.table(thread).entries.insert(number, OpenNumber { opened, closes_on_exec });
    }

    /// A number is closed.
    pub fn remove(&mut self, thread: i64, number: i64) {
        self.table(thread).entries.remove(&number);
    }

    /// Return whether an execve shall close a number.
    pub fn mark(&mut self, thread: i64, number: i64, closes_on_exec: bool) {
        if let Some(entry) = self.table(thread).entries.get_mut(&number) {
            entry.closes_on_exec = closes_on_exec;
        }
    }

    /// The numbers of a range.
    pub fn between(&mut self, thread: i64, first: i64, last: i64) -> Vec<i64> {
        if first > last {
            return Vec::new();
        }
        self.table(thread).entries.range(first..=last).map(|(number, _)| *number).collect()
    }

    /// A thread runs another program: gives the files that are closed by that.
    pub fn execute(&mut self, thread: i64) -> Vec<FileHandle> {
        let mut closed = Vec::new();
        self.table(thread).entries.retain(|_, entry| {
            if let (DescriptorTarget::File(handle), true) = (entry.opened, entry.closes_on_exec) {
                closed.push(handle);
            }
            !entry.closes_on_exec
        });
        closed
    }

    /// A thread ends: gives the files that are closed by that, of the last one with its table.
    pub fn end(&mut self, thread: i64) -> Vec<FileHandle> {
        let table = self.table(thread);
        table.users = table.users.saturating_sub(1);
        if table.users > 0 {
            return Vec::new();
        }
        let closed = std::mem::take(&mut table.entries).into_values();
        let handle = |entry: OpenNumber| match entry.opened {
            DescriptorTarget::File(handle) => Some(handle),
            DescriptorTarget::Elsewhere => None,
        };
        closed.filter_map(handle).collect()
    }
}

/// The umask of a process that nobody has set it for (umask(2)).
const DEFAULT_UMASK: i64 = 0o22;

/// All threads, by their numbers in the recording.
pub struct RecordedThreads<'a> {
    rows: HashMap<i64, (u32, &'a RecordedThread)>,
    made_by_call: HashMap<i64, Vec<i64>>,
    umasks: HashMap<i64, i64>,
    /// The threads of each process that began since one of them ended it.
    begun: HashMap<i64, Vec<i64>>,
}

impl<'a> RecordedThreads<'a> {
    /// Return the threads of the rows; none of them has begun.
    pub fn new(threads: &'a [RecordedThread]) -> Self {
        let mut made_by_call: HashMap<i64, Vec<i64>> = HashMap::new();
        for thread in threads {
            if let Some(call) = thread.created_by_call_id {
                made_by_call.entry(call).or_default().push(thread.thread_id);
            }
        }
        let umask = |it: &RecordedThread| (it.thread_id, it.umask.unwrap_or(DEFAULT_UMASK));
        Self {
            rows: (0..).zip(threads).map(|it| (it.1.thread_id, it)).collect(),
            made_by_call,
            umasks: threads.iter().map(umask).collect(),
            begun: HashMap::new(),
        }
    }

    pub fn has(&self, thread: i64) -> bool {
        self.rows.contains_key(&thread)
    }

    /// Return the index of a thread's row.
    pub fn index(&self, thread: i64) -> u32 {
        self.rows[&thread].0
    }

    pub fn process(&self, thread: i64) -> i64 {
        self.rows[&thread].1.pid
    }

    pub fn creator(&self, thread: i64) -> Option<i64> {
        self.rows[&thread].1.creator_id
    }

    /// Return whether a thread has its creator's table of descriptors, not a copy.
    pub fn shares_descriptors(&self, thread: i64) -> bool {
        self.rows[&thread].1.shares_descriptors
    }

    /// The threads that a call made; they are given once.
    pub fn take_made_by(&mut self, call: i64) -> Vec<i64> {
        self.made_by_call.remove(&call).unwrap_or_default()
    }

    pub fn umask(&self, thread: i64) -> i64 {
        self.umasks.get(&thread).copied().unwrap_or(DEFAULT_UMASK)
    }

    pub fn set_umask(&mut self, thread: i64, mode: Option<i64>) {
        self.umasks.insert(thread, mode.unwrap_or(DEFAULT_UMASK) & 0o777);
    }

    /// A thread begins.
    pub fn begin(&mut self, thread: i64) {
        let process = self.process(thread);
        self.begun.entry(process).or_default().push(thread);
    }

    /// A thread begins, with its creator's umask.
    pub fn begin_child(&mut self, child: i64, creator: i64) {
        self.umasks.insert(child, self.umask(creator));
        self.begin(child);
    }

    /// A process ends: gives the threads of it that have begun. Each is given once, so that all the
    /// ends of a recording together take no longer than its rows.
    pub fn end_process(&mut self, process: i64) -> Vec<i64> {
        let mut ended = self.begun.remove(&process).unwrap_or_default();
        ended.sort_unstable();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_a_table_of_its_own_and_an_execve_closes_what_is_marked() {
        let mut tables = DescriptorTables::default();
        tables.begin(0);
        tables.set(0, 3, DescriptorTarget::File(0), true);
        tables.set(0, 4, DescriptorTarget::File(1), false);
        tables.set(0, 5, DescriptorTarget::Elsewhere, false);
        tables.copy(1, 0, |handle| handle + 10);
        tables.remove(0, 4);
        assert_eq!(tables.at(1, 4), Some(DescriptorTarget::File(11)));
        assert_eq!(tables.execute(1), [10]);
        assert_eq!(tables.at(1, 3), None);
        assert_eq!((tables.end(1), tables.end(0)), (vec![11], vec![0]));
    }

    #[test]
    fn a_shared_table_is_closed_by_the_last_thread() {
        let mut tables = DescriptorTables::default();
        tables.begin(0);
        tables.share(1, 0);
        tables.set(1, 3, DescriptorTarget::File(0), false);
        assert_eq!(tables.between(0, 0, 9), [3]);
        assert!(tables.end(0).is_empty());
        assert_eq!(tables.end(1), [0]);
    }

    #[test]
    fn a_process_ends_with_those_that_began_and_once() {
        let thread = |thread_id, pid| RecordedThread { thread_id, pid, ..Default::default() };
        let rows = [thread(3, 1), thread(1, 1), thread(2, 2), thread(4, 1)];
        let mut threads = RecordedThreads::new(&rows);
        threads.set_umask(3, Some(0o1077));
        threads.begin(3);
        threads.begin(2);
        threads.begin_child(1, 3);
        assert_eq!((threads.umask(1), threads.umask(4)), (0o77, 0o22));
        assert_eq!(threads.end_process(1), [1, 3]);
        assert!(threads.end_process(1).is_empty());
        assert_eq!(threads.end_process(2), [2]);
        assert_eq!((threads.index(4), threads.has(5)), (3, false));
    }
}
