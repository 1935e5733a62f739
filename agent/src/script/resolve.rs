//! From a script's calls to what can be replayed: puts them in order, finds the file behind every
//! path and descriptor and the order of calls on each file, and gives each thread its steps.

use std::collections::{BTreeMap, BTreeSet};

use super::call::{Call, CallName, CallTarget, Script};
use super::contents::{Beginning, Contents};
use super::mapped_paths::{MappedPaths, components};
use super::step::{ReplayFile, ReplayStep};

/// A thread's steps in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// As the script has it.
    pub number: u64,
    pub steps: Vec<ReplayStep>,
}

/// A script, ready to be replayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    pub threads: Vec<Thread>,
    pub files: Vec<ReplayFile>,
    pub handles: usize,
    /// Calls that are left out, as their descriptor is not open at their time, by name.
    pub unopened: BTreeMap<(&'static str, NotOpen), u64>,
    /// Threads of which no call is replayed, as the script has them.
    pub idle_threads: Vec<u64>,
}

/// Why a descriptor is not open when a call names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotOpen {
    /// No call of the script opens it: it was open before the recording began.
    Never,
    /// It is opened later.
    Later,
    /// It was closed before.
    Closed,
}

impl NotOpen {
    /// What the report says of such calls.
    pub fn why(self) -> &'static str {
        match self {
            Self::Never => "its descriptor is one that the script does not open",
            Self::Later => "its descriptor is opened by a later call",
            Self::Closed => "its descriptor was closed by an earlier call",
        }
    }
}

impl From<&Script> for Resolved {
    fn from(script: &Script) -> Self {
        let calls = in_order(script);
        let mut resolver = Resolver::new(&calls);
        let mut threads: BTreeMap<u64, Vec<ReplayStep>> = BTreeMap::new();
        let mut unopened: BTreeMap<(&'static str, NotOpen), u64> = BTreeMap::new();
        // The order of all, as thread and number in it.
        let mut order = Vec::with_capacity(calls.len());
        for (time_us, call) in calls {
            let step = match resolver.step(time_us, call) {
                Ok(step) => step,
                Err(why) => {
                    *unopened.entry((call.name.word(), why)).or_default() += 1;
                    continue;
                }
            };
            let steps = threads.entry(call.thread).or_default();
            order.push((call.thread, steps.len()));
            steps.push(step);
        }
        let steps: Vec<&ReplayStep> =
            order.iter().map(|(thread, number)| &threads[thread][*number]).collect();
        let known = resolver.files.iter().map(|file| {
            // A directory's bytes are the filesystem's own matter.
            let there = file.is_directory || file.begins.is_some();
            if there { Beginning::there() } else { Beginning::default() }
        });
        let begin = Contents::beginnings(known.collect(), resolver.handles, &steps);
        let end = Contents::ends(&begin, resolver.handles, &steps);
        let mut files = resolver.files;
        for ((file, begin), end) in files.iter_mut().zip(begin).zip(end) {
            (file.begins, file.ends) = (begin.size, end);
        }
        let idle = |number: &&u64| !threads.contains_key(number);
        let idle_threads = script.threads.iter().filter(idle).copied().collect();
        let threads = threads.into_iter().map(|(number, steps)| Thread { number, steps }).collect();
        Self { threads, files, handles: resolver.handles, unopened, idle_threads }
    }
}

/// The calls in the order of their times, each thread's as they stand: one whose time is less than
/// that of the thread's call before has the same.
fn in_order(script: &Script) -> Vec<(u64, &Call)> {
    let mut latest_us: BTreeMap<u64, u64> = BTreeMap::new();
    let timed = script.calls.iter().map(|call| {
        let latest_us = latest_us.entry(call.thread).or_default();
        *latest_us = call.time_us.max(*latest_us);
        (*latest_us, call)
    });
    let mut calls: Vec<(u64, &Call)> = timed.collect();
    // Stable: at the same time, the script's lines are in order.
    calls.sort_by_key(|(time_us, _)| *time_us);
    calls
}

/// What a script's descriptors and paths stand for, call after call.
struct Resolver {
    names: MappedPaths,
    /// Paths below which others are.
    directories: BTreeSet<Vec<Vec<u8>>>,
    by_path: BTreeMap<Vec<Vec<u8>>, usize>,
    files: Vec<ReplayFile>,
    /// Steps on each file so far.
    turns: Vec<u32>,
    /// By descriptor: handle and file.
    open: BTreeMap<i64, (usize, usize)>,
    /// Descriptors that some call opens, and those that were open by now.
    opened_ever: BTreeSet<i64>,
    opened_before: BTreeSet<i64>,
    handles: usize,
}

impl Resolver {
    fn new(calls: &[(u64, &Call)]) -> Self {
        let mut directories = BTreeSet::new();
        let opens = calls.iter().filter(|(_, call)| call.name == CallName::Open);
        let opened_ever = opens.map(|(_, call)| call.descriptor).collect();
        for (_, call) in calls {
            let CallTarget::Path(path) = &call.target else { continue };
            let parts = components(path);
            let is_directory = call.flags & libc::O_DIRECTORY != 0 || parts.is_empty();
            let above = (0..parts.len()).map(|depth| parts[..depth].to_vec());
            directories.extend(above);
            if is_directory {
                directories.insert(parts);
            }
        }
        Self {
            names: MappedPaths::default(),
            directories,
            by_path: BTreeMap::new(),
            files: Vec::new(),
            turns: Vec::new(),
            open: BTreeMap::new(),
            opened_ever,
            opened_before: BTreeSet::new(),
            handles: 0,
        }
    }

    /// The file of a path; a new one for a path that was not met before.
    fn file(&mut self, mut parts: Vec<Vec<u8>>, is_directory: bool) -> usize {
        if self.directories.contains(&parts) && !is_directory {
            // A file where others have a directory: the recording knew one of them by half a name.
            let last = parts.last_mut();
            last.into_iter().for_each(|name| name.extend(b"\0file"));
        }
        if let Some(file) = self.by_path.get(&parts) {
            return *file;
        }
        let path = self.names.of(&parts);
        self.by_path.insert(parts, self.files.len());
        self.turns.push(0);
        let (begins, ends) = (None, None);
        self.files.push(ReplayFile { path, is_directory, is_nowhere: false, begins, ends });
        self.files.len() - 1
    }

    /// A file that no path of the script leads to: no path has a zero byte.
    fn file_apart(&mut self, directory: &[u8]) -> usize {
        let number = self.files.len().to_string();
        self.file(vec![directory.to_vec(), number.into_bytes()], false)
    }

    /// Whether a path is the directory of others, and the call could be made on one.
    fn is_directory(&self, parts: &[Vec<u8>], call: &Call) -> bool {
        let writes = call.flags & (libc::O_ACCMODE | libc::O_CREAT) != libc::O_RDONLY;
        let removes = call.name == CallName::Unlink;
        self.directories.contains(parts) && (parts.is_empty() || !(writes || removes))
    }

    /// The step of a call; else why its descriptor leads to no file.
    fn step(&mut self, time_us: u64, call: &Call) -> Result<ReplayStep, NotOpen> {
        let (handle, file) = match (&call.target, call.name) {
            (_, CallName::Open) => self.open(call),
            (CallTarget::Path(path), _) => {
                let parts = components(path);
                let is_directory = self.is_directory(&parts, call);
                (None, self.file(parts, is_directory))
            }
            (CallTarget::Descriptor(number), name) => {
                let found = match name {
                    CallName::Close => self.open.remove(number),
                    _ => self.open.get(number).copied(),
                };
                let (handle, file) = found.ok_or_else(|| self.not_open(*number))?;
                (Some(handle), file)
            }
        };
        let turn = self.turns[file];
        self.turns[file] += 1;
        let flags = match &call.target {
            // What MobiGen says of a file that was open before does not hold: such files are read
            // that are said to be open for writing, and none is made anew.
            CallTarget::Descriptor(_) if call.name == CallName::Open => {
                libc::O_RDWR | call.flags & libc::O_APPEND
            }
            _ => call.flags,
        };
        Ok(ReplayStep {
            line: call.line,
            due_ns: (time_us * 1000).cast_signed(),
            name: call.name,
            file,
            handle,
            turn,
            offset: call.offset,
            bytes: usize::try_from(call.bytes).unwrap_or(usize::MAX),
            flags,
            succeeded: call.succeeded,
        })
    }

    /// Handle and file of an open.
    fn open(&mut self, call: &Call) -> (Option<usize>, usize) {
        let failed = call.descriptor < 0;
        let file = match &call.target {
            // Why it failed is not recorded; where it would make the file, it cannot be for want
            // of that.
            CallTarget::Path(path) if !failed || call.flags & libc::O_CREAT == 0 => {
                let parts = components(path);
                let is_directory = self.is_directory(&parts, call);
                self.file(parts, is_directory)
            }
            _ if failed => {
                let file = self.file_apart(b"\0nowhere");
                self.files[file].is_nowhere = true;
                file
            }
            _ => {
                let file = self.file_apart(b"\0opened-before");
                self.files[file].begins = Some(0);
                file
            }
        };
        if failed {
            return (None, file);
        }
        let handle = self.handles;
        self.handles += 1;
        // A number given twice was closed in between, unseen: the first file stays open here.
        self.open.insert(call.descriptor, (handle, file));
        self.opened_before.insert(call.descriptor);
        (Some(handle), file)
    }

    /// Why a descriptor is not among the open ones.
    fn not_open(&self, number: i64) -> NotOpen {
        if self.opened_before.contains(&number) {
            NotOpen::Closed
        } else if number >= 0 && self.opened_ever.contains(&number) {
            NotOpen::Later
        } else {
            NotOpen::Never
        }
    }
}

#[cfg(test)]
#[path = "resolve_test.rs"]
mod tests;
