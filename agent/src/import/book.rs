//! From calls as a trace tells them to the rows of a recording: numbers calls and threads, follows
//! current directories, and gives each call the paths, files and positions that it was about.

use std::collections::{HashMap, VecDeque};

use super::descriptors::{Descriptors, OpenFile, OpenId, TooMany};
use super::files::{FileId, Names, inode, plain};
use crate::recorder::missed_operations::MissedOperations;
use crate::recorder::output::Round;
use crate::recorder::{DatabaseBefore, words};
use crate::tables::recording::{OpenDescriptor, RecordedCall, RecordedThread};

/// Rows are handed over when so many wait.
const ROUND_CALLS: usize = 1 << 16;
/// PATH_MAX: no call can use a longer one.
const MOST_PATH_BYTES: usize = 4096;
/// The directory that relative paths are put in if nothing tells the current one.
pub const NOWHERE: &[u8] = b"/current-directory";

/// The reason why a trace is none of a program.
#[derive(Debug, thiserror::Error)]
pub enum Impossible {
    #[error("more than four million descriptors are open")]
    Descriptors,
    #[error("directories are renamed with more than two million names below them")]
    Renames,
    #[error("the rows cannot be written")]
    Unwritten,
}

impl From<TooMany> for Impossible {
    fn from(_: TooMany) -> Self {
        Impossible::Descriptors
    }
}

/// The way a thread was made, known from the whole trace before its calls are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCreation {
    pub creator: i64,
    pub flags: i64,
}

/// A call that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BegunCall {
    pub call_id: i64,
    pub thread: usize,
    pub begin_ns: i64,
}

/// A thread's own, which the tables do not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadState {
    pub table: usize,
    pub directory: usize,
    last_clone: Option<i64>,
    /// The thread that has been there since the beginning, of which it is a child.
    root: usize,
}

/// Takes rows that are finished; false if it cannot.
pub type TakeRound<'a> = Box<dyn FnMut(Round) -> bool + 'a>;

/// All that is known so far.
pub struct Book<'a> {
    take: TakeRound<'a>,
    round: Round,
    pub threads: Vec<RecordedThread>,
    pub(super) thread_states: Vec<ThreadState>,
    by_tid: HashMap<i64, usize>,
    creations: HashMap<i64, VecDeque<ThreadCreation>>,
    /// Whether threads of which nothing tells how they were made are of one process.
    are_of_one_process: bool,
    pub(super) descriptors: Descriptors,
    pub(super) open_before: Vec<OpenDescriptor>,
    pub(super) open_before_files: Vec<(OpenId, FileId)>,
    /// Current directories; none where nothing tells.
    pub(super) directories: Vec<Option<Vec<u8>>>,
    default_directory: Option<Vec<u8>>,
    pub names: Names,
    pub counts: BookSummary,
    pub next_call_id: i64,
}

impl<'a> Book<'a> {
    pub fn new(
        take: TakeRound<'a>,
        creations: HashMap<i64, VecDeque<ThreadCreation>>,
        directory: Option<Vec<u8>>,
    ) -> Self {
        Book {
            take,
            round: Round::default(),
            threads: Vec::new(),
            thread_states: Vec::new(),
            by_tid: HashMap::new(),
            are_of_one_process: creations.is_empty(),
            creations,
            descriptors: Descriptors::default(),
            open_before: Vec::new(),
            open_before_files: Vec::new(),
            directories: Vec::new(),
            default_directory: directory,
            names: Names::default(),
            counts: BookSummary::default(),
            next_call_id: 0,
        }
    }

    /// A thread begins a call.
    pub fn begin(&mut self, tid: i64, begin_ns: i64) -> BegunCall {
        let thread = self.thread(tid, begin_ns);
        let call_id = self.next_call_id;
        self.next_call_id += 1;
        BegunCall { call_id, thread, begin_ns }
    }

    /// A thread begins a call that may make another.
    pub fn note_clone_begin(&mut self, begun: BegunCall) {
        self.thread_states[begun.thread].last_clone = Some(begun.call_id);
    }

    /// Threads of which nothing tells how they were made are taken for one process's.
    pub fn assume_one_process(&mut self) {
        self.are_of_one_process = true;
    }

    /// The thread of a number; it begins if it is new.
    pub fn thread(&mut self, tid: i64, begin_ns: i64) -> usize {
        if let Some(thread) = self.by_tid.get(&tid) {
            return *thread;
        }
        let creation = self.creations.get_mut(&tid).and_then(VecDeque::pop_front);
        self.make_thread(tid, begin_ns, creation)
    }

    fn make_thread(&mut self, tid: i64, begin_ns: i64, creation: Option<ThreadCreation>) -> usize {
        let number = self.threads.len();
        let by_call = creation.and_then(|it| Some((*self.by_tid.get(&it.creator)?, it.flags)));
        let is_orphan = by_call.is_none() && number > 0;
        self.counts.orphans += u64::from(is_orphan && !self.are_of_one_process);
        let shares_all = i64::from(libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_THREAD);
        let assumed = (is_orphan && self.are_of_one_process).then_some((0, shares_all));
        let creation = by_call.or(assumed);
        let has = |flag: i32| creation.is_some_and(|(_, flags)| flags & i64::from(flag) != 0);
        let creator = creation.map(|(creator, _)| creator);
        let table = match creator {
            Some(creator) if has(libc::CLONE_FILES) => {
                self.descriptors.share(self.thread_states[creator].table)
            }
            Some(creator) => self.descriptors.copy(self.thread_states[creator].table),
            None => self.descriptors.add(),
        };
        let directory = match creator {
            Some(creator) if has(libc::CLONE_FS) => self.thread_states[creator].directory,
            creator => {
                let of_creator =
                    |it: usize| self.directories[self.thread_states[it].directory].clone();
                let path = creator.map_or(self.default_directory.clone(), of_creator);
                self.directories.push(path);
                self.directories.len() - 1
            }
        };
        let root = creator.map_or(number, |creator| self.thread_states[creator].root);
        let of_creator = creator.map(|creator| &self.threads[creator]);
        self.threads.push(RecordedThread {
            thread_id: number as i64,
            tid,
            pid: of_creator.filter(|_| has(libc::CLONE_THREAD)).map_or(tid, |it| it.pid),
            creator_id: creator.map(|it| it as i64),
            created_by_call_id: by_call
                .and_then(|(creator, _)| self.thread_states[creator].last_clone),
            shares_descriptors: has(libc::CLONE_FILES),
            shares_directory: has(libc::CLONE_FS),
            executable: of_creator.map(|it| it.executable.clone()).unwrap_or_default(),
            directory: words::text(self.directories[directory].as_deref().unwrap_or_default()),
            umask: of_creator.and_then(|it| it.umask),
            begin_ns,
            ..RecordedThread::default()
        });
        self.thread_states.push(ThreadState { table, directory, last_clone: None, root });
        self.by_tid.insert(tid, number);
        number
    }

    /// A call that made a thread has returned: it is there from now on, if it was not before.
    pub(super) fn note_clone_return(&mut self, begun: BegunCall, tid: i64, end_ns: i64) {
        let creator = self.threads[begun.thread].tid;
        let waits = self.creations.get(&tid).and_then(VecDeque::front);
        if waits.is_some_and(|it| it.creator == creator) && !self.by_tid.contains_key(&tid) {
            self.thread_states[begun.thread].last_clone = Some(begun.call_id);
            self.thread(tid, end_ns);
        }
    }

    /// A thread that executes takes the number of its process.
    pub fn note_superseded(&mut self, tid: i64, by: i64, end_ns: i64) {
        if let Some(thread) = self.by_tid.remove(&by)
            && let Some(former) = self.by_tid.insert(tid, thread)
        {
            self.threads[former].end_ns = Some(end_ns);
        }
    }

    /// A thread has ended.
    pub fn end_thread(&mut self, tid: i64, end_ns: i64, code: Option<i64>, signal: Option<i64>) {
        let Some(thread) = self.by_tid.remove(&tid) else { return };
        let row = &mut self.threads[thread];
        (row.end_ns, row.exit_code, row.exit_signal) = (Some(end_ns), code, signal);
        self.descriptors.leave(self.thread_states[thread].table);
    }

    /// A row is finished.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn add(&mut self, row: RecordedCall) -> Result<(), Impossible> {
        self.counts.calls += 1;
        self.round.calls.push(row);
        if self.round.calls.len() < ROUND_CALLS {
            return Ok(());
        }
        let round = std::mem::take(&mut self.round);
        if (self.take)(round) { Ok(()) } else { Err(Impossible::Unwritten) }
    }

    /// The absolute path that a call of a thread names.
    pub(super) fn absolute(
        &mut self,
        thread: usize,
        directory: Option<i64>,
        path: &[u8],
    ) -> Option<Vec<u8>> {
        if path.is_empty() || path.len() >= MOST_PATH_BYTES {
            return None;
        }
        if path[0] == b'/' {
            return Some(plain(path));
        }
        let ThreadState { table, directory: own, .. } = self.thread_states[thread];
        let base = match directory.filter(|it| *it != i64::from(libc::AT_FDCWD)) {
            Some(number) => {
                let open = self.descriptors.at(table, number)?;
                Some(&self.descriptors.opens[open].path).filter(|path| !path.is_empty())?
            }
            None => match &self.directories[own] {
                Some(path) => path,
                None => {
                    self.counts.without_directory += 1;
                    NOWHERE
                }
            },
        };
        let joined = plain(&[base, b"/", path].concat());
        Some(joined).filter(|path| path.len() < MOST_PATH_BYTES)
    }

    /// The open file of a descriptor; one that was open before, if no call has opened it.
    pub(super) fn open_file(
        &mut self,
        begun: BegunCall,
        number: i64,
        reported_path: Option<&[u8]>,
        no_file: Option<&[u8]>,
    ) -> Result<Option<OpenId>, Impossible> {
        let ThreadState { table, root, .. } = self.thread_states[begun.thread];
        if let Some(open) = self.descriptors.at(table, number) {
            return Ok(Some(open));
        }
        if !(0..=i64::from(i32::MAX)).contains(&number) {
            return Ok(None);
        }
        let path = reported_path.map(plain).unwrap_or_default();
        let file = match reported_path {
            Some(_) => self.names.note_present(&path, begun.call_id),
            None => self.names.add(super::files::TracedFile::new(false)),
        };
        let opener = begun.thread;
        // It may have been read and written before.
        let is_position_exact = false;
        let open = OpenFile { path, is_position_exact, ..OpenFile::at_begin(Some(file), opener) };
        let target = words::text(no_file.unwrap_or(&open.path));
        let root_table = self.thread_states[root].table;
        let was_ever = [table, root_table].map(|it| self.descriptors.was_ever(it, number));
        let open = self.descriptors.open(table, number, open, false)?;
        if was_ever.contains(&true) {
            self.counts.unseen_opens += 1;
            return Ok(Some(open));
        }
        if self.descriptors.at(root_table, number).is_none() {
            self.descriptors.put(root_table, number, open, false)?;
        }
        self.open_before.push(OpenDescriptor {
            thread_id: root as i64,
            descriptor: number,
            target,
            flags: libc::O_RDWR.into(),
            position_bytes: 0,
            device: 0,
            inode: inode(file),
            size_bytes: 0,
        });
        self.open_before_files.push((open, file));
        Ok(Some(open))
    }

    /// A call of a thread has given a descriptor of a number.
    pub(super) fn note_opened(&mut self, thread: usize, number: i64) {
        let table = self.thread_states[thread].table;
        if let Some(open) = self.descriptors.at(table, number)
            && self.are_of_one_process
            && self.descriptors.opens[open].opener != thread
        {
            self.counts.collisions += 1;
        }
    }

    /// Hands over what waits; gives the counts.
    pub fn finish(mut self) -> BookSummary {
        for (row, (_, file)) in self.open_before.iter_mut().zip(&self.open_before_files) {
            let file = &self.names.files[*file];
            row.size_bytes = file.size_bytes().unwrap_or(0);
            if row.target.is_empty() && file.kind == Some("other") {
                row.target = "no file".into();
            }
            self.counts.unknown_open += u64::from(row.target.is_empty());
        }
        self.round.snapshot = self.names.rows().collect();
        let counts = BookSummary {
            threads: self.threads.len() as u64,
            surprises: self.names.surprises,
            open_before: self.open_before.len() as u64,
            databases: self.names.databases(),
            ..self.counts
        };
        self.round.threads = self.threads;
        self.round.descriptors = self.open_before;
        // That it cannot be written the output says when it is finished.
        (self.take)(self.round);
        counts
    }
}

/// The counts of a trace whose calls are all told.
#[derive(Debug, Default)]
pub struct BookSummary {
    pub calls: u64,
    pub threads: u64,
    pub missed: MissedOperations,
    /// Relative paths that were put into `NOWHERE`.
    pub without_directory: u64,
    pub orphans: u64,
    pub surprises: u64,
    pub open_before: u64,
    /// Descriptors that were opened by calls which the trace does not have.
    pub unseen_opens: u64,
    /// Descriptors that were open before, and of which nothing tells what they lead to.
    pub unknown_open: u64,
    /// Descriptors that a thread opened under numbers that others of its process had open, if they
    /// are of its process.
    pub collisions: u64,
    pub databases: Vec<DatabaseBefore>,
    pub command: Vec<String>,
}
