//! Records by a program in the kernel, which nothing waits for: it tells of calls, and the rows are
//! made behind them. Linux 5.10 or newer, with BTF; root, or CAP_BPF and CAP_PERFMON.
//!
//! program (and the plan of what it reads) -> records -> observations -> here -> ../recording

mod observations;
mod program;
mod records;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

use observations::{EarlyNames, KnownFiles, SeenCall, SeenMemory};
use records::{EXECUTABLE, KernelRecord, OpenedFile, WORKING_DIRECTORY, decode};

use super::calls::{Does, Role, SystemCall};
use super::contents::RecordedProgram;
use super::decode::CallStart;
use super::recording::{CallBegin, Recording, note_exit, thread_row};
use super::signals::Caught;
use super::start::Starts;
use super::{signals, start, words};
use crate::errors::WrongUse;
use crate::recorder::snapshot;
use crate::tables::recording::RecordedThread;

pub use program::{KernelRecorder, obstacle};

/// Records a program to its end, or until a signal asks to stop; returns the command's wait status.
///
/// # Errors
/// If the program cannot be run or watched.
pub fn record(
    program: &RecordedProgram,
    recording: &mut Recording,
    kernel: KernelRecorder,
) -> anyhow::Result<Option<i32>> {
    let mut waiting = match program {
        RecordedProgram::Command(command) => Some(start::command(command, Starts::Plain)?),
        RecordedProgram::Process(_) => None,
    };
    signals::catch()?;
    let mut watch = WatchedProgram::new(recording, kernel, waiting.as_ref().map(|it| it.pid));
    match (&mut waiting, program) {
        (Some(waiting), _) => {
            watch.join(waiting.pid)?;
            watch.see_surroundings(waiting.pid);
            // Until its execve it is a copy of this process.
            let executable = words::text(waiting.program.as_os_str().as_encoded_bytes());
            if let Some(first) = watch.recording.threads.first_mut() {
                first.executable = executable;
            }
            waiting.go()?;
        }
        (None, RecordedProgram::Process(pid)) => join_process(&mut watch, *pid)?,
        (None, RecordedProgram::Command(_)) => {}
    }
    let status = watch.run()?;
    waiting.map_or(Ok(()), |mut it| it.check())?;
    Ok(status)
}

/// Joins all threads of a process, which goes on meanwhile.
fn join_process(watch: &mut WatchedProgram, pid: i32) -> anyhow::Result<()> {
    if pid == std::process::id() as i32 {
        return Err(WrongUse(format!("--pid {pid}: the recorder's own process")).into());
    }
    loop {
        // Threads that began while others joined show up in the next round.
        let threads = start::threads(pid)
            .map_err(|error| WrongUse(format!("--pid {pid}: no such process: {error}")))?;
        let mut has_new = false;
        for tid in threads {
            has_new |= watch.join(tid)?;
        }
        if !has_new {
            break;
        }
    }
    watch.see_surroundings(pid);
    Ok(())
}

// Follows the threads of a program by what the kernel tells of them: which call is under way,
// which thread made which, and what the recording is told of it.

/// Between two looks at what was told, where nothing was.
const PAUSE: Duration = Duration::from_millis(5);

/// A call whose end has not been told.
struct PendingCall {
    call: &'static SystemCall,
    call_id: i64,
    begin_ns: i64,
    arguments: [u64; 6],
    pieces: SeenMemory,
}

/// The end of a call.
struct CallEnd {
    end_ns: i64,
    result: i64,
    file: OpenedFile,
}

/// A thread that is followed.
struct WatchedThread {
    thread_id: i64,
    pending: Option<PendingCall>,
}

/// The threads of a program, and the rows made of their calls.
pub struct WatchedProgram<'a> {
    pub recording: &'a mut Recording,
    kernel: KernelRecorder,
    watched: HashMap<i32, WatchedThread>,
    /// Holds what was read for a thread, of which no record has come yet that it belongs to.
    pieces: HashMap<i32, SeenMemory>,
    known: RefCell<KnownFiles>,
    early: EarlyNames,
    /// The command has not been run yet: its process still makes calls of ours.
    is_ours: bool,
    /// The command's process; none where a process that was there is followed.
    command: Option<i32>,
    status: Option<i32>,
    heeded: i32,
}

impl<'a> WatchedProgram<'a> {
    pub fn new(recording: &'a mut Recording, kernel: KernelRecorder, command: Option<i32>) -> Self {
        WatchedProgram {
            recording,
            kernel,
            watched: HashMap::new(),
            pieces: HashMap::new(),
            known: RefCell::default(),
            early: EarlyNames::default(),
            is_ours: command.is_some(),
            command,
            status: None,
            heeded: 0,
        }
    }

    /// Follows a thread that is there; false if it is followed already, or has gone.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn join(&mut self, tid: i32) -> anyhow::Result<bool> {
        let has_joined = self.kernel.join(tid)?;
        if has_joined {
            self.follow(thread_row(tid, start::process(tid)));
        }
        Ok(has_joined)
    }

    /// Notes the descriptors that are open now, and the names in the current directory.
    pub fn see_surroundings(&mut self, tid: i32) {
        let directory = start::link(tid, "cwd");
        self.early = EarlyNames::below(&directory, |path| self.recording.snapshot.find(path).row);
        let mut descriptors = snapshot::descriptors(tid, 0);
        // Of a command, our own are still open: execve will close them.
        let stays = |flags: i64| flags & i64::from(libc::O_CLOEXEC) == 0;
        descriptors.retain(|row| self.command.is_none() || stays(row.flags));
        self.recording.descriptors = descriptors;
    }

    /// Follows the threads until none is left; returns the command's wait status.
    ///
    /// # Errors
    /// If the system does not let us wait, or what the kernel tells is damaged.
    pub fn run(&mut self) -> anyhow::Result<Option<i32>> {
        loop {
            let mut has_left = self.heed(signals::caught())?;
            if self.recording.failed {
                has_left |= self.give_up()?;
            }
            self.reap()?;
            let is_over = !self.kernel.has_threads();
            let takes_all = is_over || has_left;
            if takes_all {
                self.kernel.collect();
            }
            let has_records = self.take_records(takes_all)?;
            if has_left || (is_over && (self.command.is_none() || self.status.is_some())) {
                break;
            }
            if !has_records {
                std::thread::sleep(PAUSE);
            }
        }
        for tid in self.watched.keys().copied().collect::<Vec<_>>() {
            self.cut(tid);
        }
        let lost = self.kernel.losses();
        self.recording.missed.lost_calls = lost.calls;
        self.recording.missed.lost_threads = lost.threads;
        // The command's own is the one by which it waited for us.
        self.recording.missed.begun_before =
            if self.command.is_some() { 0 } else { self.kernel.begun_before() };
        Ok(self.status)
    }

    /// A signal is passed on to the command, which ends as it will; the second one kills it. A
    /// process that was there goes on without us: true if it does.
    fn heed(&mut self, caught: Caught) -> anyhow::Result<bool> {
        if caught.count == self.heeded {
            return Ok(false);
        }
        let is_first = self.heeded == 0;
        self.heeded = caught.count;
        match self.command {
            None => {
                self.kernel.leave()?;
                return Ok(true);
            }
            Some(pid) if is_first => {
                if !caught.from_terminal && self.status.is_none() {
                    // SAFETY: a child of ours that nobody has waited for.
                    unsafe { libc::kill(pid, caught.first) };
                }
            }
            Some(_) => self.end_by_force()?,
        }
        Ok(false)
    }

    /// Nothing can be written any more: kills the command. A process that was there goes on without
    /// us: true if it does.
    fn give_up(&mut self) -> anyhow::Result<bool> {
        if self.command.is_some() {
            self.end_by_force()?;
        } else {
            self.kernel.leave()?;
        }
        Ok(self.command.is_none())
    }

    /// Kills the threads that are there now: of one that has ended since it was told of, the number
    /// may be another's.
    fn end_by_force(&mut self) -> anyhow::Result<()> {
        self.recording.missed.killed = true;
        for tid in self.kernel.threads()? {
            // SAFETY: a system call without any memory.
            unsafe { libc::syscall(libc::SYS_tkill, tid, libc::SIGKILL) };
        }
        Ok(())
    }

    /// Learns how the command ended, if it did.
    fn reap(&mut self) -> io::Result<()> {
        let Some(pid) = self.command.filter(|_| self.status.is_none()) else { return Ok(()) };
        let mut status = 0;
        // SAFETY: the status is ours.
        let found = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) };
        if found == pid {
            self.status = Some(status);
        } else if found < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes rows of what was told, or of its oldest part: a program that calls faster than rows
    /// are made never stops to tell. False if nothing was told.
    fn take_records(&mut self, all: bool) -> anyhow::Result<bool> {
        let mut has_records = false;
        while let Some(bytes) = self.kernel.take_records() {
            has_records = true;
            decode(&bytes, |tid, record| self.apply(tid, record))?;
            if !all {
                break;
            }
        }
        Ok(has_records)
    }

    fn apply(&mut self, tid: i32, record: KernelRecord) {
        match record {
            KernelRecord::Piece { address, bytes } => {
                self.pieces.entry(tid).or_default().0.push((address, bytes));
            }
            KernelRecord::Begin { is_other_abi: true, .. } => {
                self.recording.missed.other_abi_calls += 1;
            }
            KernelRecord::Begin { begin_ns, number, pieces, arguments, .. } => {
                let mut own = self.pieces.remove(&tid).unwrap_or_default();
                own.keep_last(pieces.into());
                self.begin_call(tid, own, (begin_ns, number, arguments));
            }
            KernelRecord::End { end_ns, result, file } => {
                self.ended_call(tid, &CallEnd { end_ns, result, file });
            }
            KernelRecord::Fork { time_ns, creator, pid, umask } => {
                self.add_thread(tid, time_ns, creator, pid, umask);
            }
            KernelRecord::Exec { time_ns, former_tid } => self.execute(tid, time_ns, former_tid),
            KernelRecord::Exit { time_ns, status } => self.end_thread(tid, time_ns, status),
        }
    }

    fn begin_call(&mut self, tid: i32, pieces: SeenMemory, begin: (i64, u32, [u64; 6])) {
        let (begin_ns, number, arguments) = begin;
        let Some(call) = Recording::recorded_call(number.into(), &arguments) else { return };
        self.is_ours &= call.does != Does::Executes;
        if self.is_ours {
            return;
        }
        let call_id = self.recording.take_call_id();
        // What is still pending has lost its end.
        self.cut(tid);
        let pending = PendingCall { call, call_id, begin_ns, arguments, pieces };
        let Some(watched) = self.watched.get_mut(&tid) else { return };
        let thread_id = watched.thread_id;
        if call.does == Does::Exits {
            self.add(thread_id, &pending, None);
        } else {
            watched.pending = Some(pending);
        }
    }

    fn ended_call(&mut self, tid: i32, end: &CallEnd) {
        let mut pieces = self.pieces.remove(&tid).unwrap_or_default();
        let Some(watched) = self.watched.get_mut(&tid) else { return };
        let thread_id = watched.thread_id;
        let Some(mut pending) = watched.pending.take() else { return };
        pending.pieces.0.append(&mut pieces.0);
        self.add(thread_id, &pending, Some(end));
        self.known.borrow_mut().note(&end.file);
    }

    /// The call under way of a thread has no end.
    fn cut(&mut self, tid: i32) {
        let Some(watched) = self.watched.get_mut(&tid) else { return };
        let thread_id = watched.thread_id;
        let Some(pending) = watched.pending.take() else { return };
        self.add(thread_id, &pending, None);
    }

    /// Makes the row of a call.
    fn add(&mut self, thread_id: i64, pending: &PendingCall, end: Option<&CallEnd>) {
        let PendingCall { call, call_id, begin_ns, arguments, pieces } = pending;
        let past = Some((*call_id, *begin_ns));
        let begins = CallBegin { thread_id, call, arguments, past };
        let nothing_opened = OpenedFile::default();
        let seen = SeenCall {
            call,
            arguments,
            result: end.map(|it| it.result),
            pieces,
            file: end.map_or(&nothing_opened, |it| &it.file),
            known: &self.known,
            early: &self.early,
        };
        let Some(under_way) = self.recording.begin(&begins, &seen) else { return };
        match end {
            Some(end) => self.recording.end(under_way, end.result, end.end_ns, &seen),
            None => self.recording.cut_off(under_way),
        }
    }

    fn add_thread(&mut self, tid: i32, time_ns: i64, creator: i32, pid: i32, umask: u32) {
        let pieces = self.pieces.remove(&tid).unwrap_or_default();
        let path = |place| words::text(&pieces.path(place).unwrap_or_default());
        let (executable, directory) = (path(EXECUTABLE), path(WORKING_DIRECTORY));
        let mut thread = RecordedThread {
            tid: tid.into(),
            pid: pid.into(),
            executable,
            directory,
            umask: Some(umask.into()),
            begin_ns: time_ns,
            ..RecordedThread::default()
        };
        if let Some(creator) = self.watched.get(&creator) {
            thread.creator_id = Some(creator.thread_id);
            if let Some(pending) = &creator.pending {
                let call = CallStart::read(&pending.pieces, pending.call, &pending.arguments);
                let has = |flag: i32| call.row.flags.unwrap_or(0) & i64::from(flag) != 0;
                thread.created_by_call_id = Some(pending.call_id);
                thread.shares_descriptors = has(libc::CLONE_FILES);
                thread.shares_directory = has(libc::CLONE_FS);
            }
        }
        self.follow(thread);
    }

    fn follow(&mut self, thread: RecordedThread) {
        let (tid, thread_id) = (thread.tid as i32, self.recording.threads.len() as i64);
        self.recording.threads.push(RecordedThread { thread_id, ..thread });
        self.watched.insert(tid, WatchedThread { thread_id, pending: None });
    }

    /// Whichever thread runs another program gets the number of its process, and the others end.
    fn execute(&mut self, tid: i32, time_ns: i64, former_tid: i32) {
        let mut pieces = self.pieces.remove(&tid).unwrap_or_default();
        self.recording.count_program(&pieces.path(EXECUTABLE).unwrap_or_default());
        if tid != former_tid {
            // The thread that had the number has ended in its favour: it has no code of its own.
            let displaced =
                self.recording.threads.iter_mut().rev().find(|it| it.tid == i64::from(tid));
            if let Some(displaced) = displaced {
                displaced.end_ns = displaced.end_ns.or(Some(time_ns));
                (displaced.exit_code, displaced.exit_signal) = (None, None);
            }
            if let Some(watched) = self.watched.remove(&former_tid) {
                self.watched.insert(tid, watched);
            }
        }
        // A path that was not in memory when the call began, as the kernel has it.
        let pending = self.watched.get_mut(&tid).and_then(|it| it.pending.as_mut());
        if let Some(pending) = pending
            && let Some(place) = pending.call.roles.iter().position(|it| *it == Role::Path)
        {
            let address = pending.arguments[place];
            pieces.0.iter_mut().filter(|it| it.0 == 0).for_each(|it| it.0 = address);
            pending.pieces.0.append(&mut pieces.0);
        }
    }

    fn end_thread(&mut self, tid: i32, time_ns: i64, status: i32) {
        self.cut(tid);
        self.pieces.remove(&tid);
        let Some(watched) = self.watched.remove(&tid) else { return };
        let row = &mut self.recording.threads[watched.thread_id as usize];
        note_exit(row, time_ns, status);
    }
}
