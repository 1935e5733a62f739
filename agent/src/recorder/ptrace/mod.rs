//! Records by ptrace(2), which needs no root: a seccomp filter stops the calls that are recorded,
//! at their begin and at their end.

mod stops;

use std::collections::{HashMap, HashSet};
use std::io;

use stops::Stop;

use super::contents::RecordedProgram;
use super::recording::{CallBegin, CallUnderWay, Recording, note_exit, thread_row};
use super::snapshot::FoundPath;
use super::start::Starts;
use super::{signals, start, words};
use crate::recorder::contents::{ProcessMemory, ProgramMemory};
use crate::recorder::signals::{Caught, WaitResult};
use crate::recorder::snapshot;
use crate::recorder::snapshot::{CallPath, Sight};
use crate::tables::recording::{PathState, RecordedThread};
use crate::tables::timeline::now_ns;

/// Records a program to its end, or until a signal asks to stop; returns the command's wait status.
///
/// # Errors
/// If the program cannot be run or traced.
pub fn record(program: &RecordedProgram, recording: &mut Recording) -> anyhow::Result<Option<i32>> {
    let (mut waiting, threads) = match program {
        RecordedProgram::Command(command) => {
            let waiting = start::command(command, Starts::Filtered(stops::seccomp_filter()))?;
            stops::seize_command(waiting.pid)?;
            let threads = vec![waiting.pid];
            (Some(waiting), threads)
        }
        RecordedProgram::Process(pid) => (None, stops::seize_process(*pid)?),
    };
    signals::catch()?;
    let command = waiting.as_ref().map(|it| it.pid);
    let mut watch = FollowedProgram::new(recording, command, &threads);
    if let Some(waiting) = &mut waiting {
        // Until its execve it is a copy of this process.
        let executable = words::text(waiting.program.as_os_str().as_encoded_bytes());
        watch.recording.threads[0].executable = executable;
        waiting.go()?;
    }
    let status = watch.run()?;
    waiting.map_or(Ok(()), |mut it| it.check())?;
    Ok(status)
}

// Follows the threads of a program from stop to stop until all have ended: what each stop is
// about, what the recording is told of it, and how the thread goes on (ptrace(2)).

/// The event of ptrace(2) in the upper half of a status, PTRACE_EVENT_STOP (linux/ptrace.h).
const EVENT_STOP: i32 = 128;
/// The signal of a stop at a call, with PTRACE_O_TRACESYSGOOD.
const AT_CALL: i32 = libc::SIGTRAP | 0x80;

/// A thread that is followed.
struct FollowedThread {
    thread_id: i64,
    under_way: Option<CallUnderWay>,
    /// Whether the begin of any call of it was seen.
    has_begun: bool,
    /// It has ended, or is followed no longer, when it stops next.
    detaching: bool,
}

/// The threads of a program, and the rows made of their calls.
pub struct FollowedProgram<'a> {
    pub recording: &'a mut Recording,
    followed: HashMap<i32, FollowedThread>,
    /// Threads that stand still because the call that made them has not been heard of.
    early: HashSet<i32>,
    /// Whether calls of no interest do not stop.
    filtered: bool,
    /// The command's process; none where a process that was there is followed.
    command: Option<i32>,
    status: Option<i32>,
    heeded: i32,
}

impl<'a> FollowedProgram<'a> {
    /// Follow a command, which has a filter, or the threads of a process, which have none.
    pub fn new(recording: &'a mut Recording, command: Option<i32>, threads: &[i32]) -> Self {
        let mut watch = FollowedProgram {
            recording,
            followed: HashMap::new(),
            early: HashSet::new(),
            filtered: command.is_some(),
            command,
            status: None,
            heeded: 0,
        };
        for tid in threads {
            watch.follow(*tid, None, 0);
        }
        if let Some(first) = threads.first() {
            let mut descriptors = snapshot::descriptors(*first, 0);
            // Of a command, our own are still open: execve will close them.
            let stays = |flags: i64| flags & i64::from(libc::O_CLOEXEC) == 0;
            descriptors.retain(|row| command.is_none() || stays(row.flags));
            watch.recording.descriptors = descriptors;
        }
        watch
    }

    /// Follows the threads until none is left; returns the command's wait status.
    ///
    /// # Errors
    /// If the system does not let us wait.
    pub fn run(&mut self) -> io::Result<Option<i32>> {
        loop {
            self.heed(signals::caught());
            if self.recording.failed {
                match self.command {
                    Some(_) => self.end_by_force(),
                    None => self.let_go(),
                }
            }
            match signals::wait(false)? {
                WaitResult::Changed { tid, status } => self.follow_change(tid, status),
                WaitResult::Interrupted => {}
                WaitResult::NobodyLeft => return Ok(self.status),
            }
        }
    }

    /// A signal is passed on to the command, which ends as it will; the second one kills it. A
    /// process that was there goes on without us.
    fn heed(&mut self, caught: Caught) {
        if caught.count == self.heeded {
            return;
        }
        let is_first = self.heeded == 0;
        self.heeded = caught.count;
        match self.command {
            None => self.let_go(),
            Some(pid) if is_first => {
                if !caught.from_terminal {
                    // SAFETY: a child of ours that nobody has waited for, or an error.
                    unsafe { libc::kill(pid, caught.first) };
                }
            }
            Some(_) => self.end_by_force(),
        }
    }

    /// Return whether threads are let go: a process that was there outlives the recording.
    fn detaches(&self) -> bool {
        self.command.is_none() && (self.heeded > 0 || self.recording.failed)
    }

    /// Asks each thread to stop once more, and then to go on without us.
    fn let_go(&mut self) {
        for (tid, followed) in &mut self.followed {
            if !followed.detaching {
                followed.detaching = true;
                let _ = stops::interrupt(*tid);
            }
        }
    }

    fn end_by_force(&mut self) {
        self.recording.missed.killed = true;
        for tid in self.followed.keys() {
            // SAFETY: a thread that is traced by us is not another's by now.
            unsafe { libc::syscall(libc::SYS_tkill, *tid, libc::SIGKILL) };
        }
    }

    fn follow(&mut self, tid: i32, creator: Option<&Creation>, pid_hint: i32) {
        let thread_id = self.recording.threads.len() as i64;
        let has = |flag: i32| creator.is_some_and(|it| it.flags & i64::from(flag) != 0);
        let pid = if has(libc::CLONE_THREAD) { pid_hint } else { start::process(tid) };
        self.recording.threads.push(RecordedThread {
            thread_id,
            creator_id: creator.map(|it| it.thread_id),
            created_by_call_id: creator.map(|it| it.call_id),
            shares_descriptors: has(libc::CLONE_FILES),
            shares_directory: has(libc::CLONE_FS),
            ..thread_row(tid, pid)
        });
        let followed = FollowedThread {
            thread_id,
            under_way: None,
            has_begun: false,
            detaching: self.detaches(),
        };
        self.followed.insert(tid, followed);
    }

    fn follow_change(&mut self, tid: i32, status: i32) {
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            return self.end_thread(tid, status);
        }
        if !self.followed.contains_key(&tid) {
            // It stands still until the call that made it is heard of.
            self.early.insert(tid);
            return;
        }
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let is_call = signal == AT_CALL || event == libc::PTRACE_EVENT_SECCOMP;
        let makes = [libc::PTRACE_EVENT_CLONE, libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK];
        if makes.contains(&event) {
            self.add_child(tid);
        } else if event == libc::PTRACE_EVENT_EXEC {
            self.execute(tid);
        }
        if self.followed.get(&tid).is_some_and(|it| it.detaching) {
            let passed_on = if event == 0 && !is_call { signal } else { 0 };
            let _ = stops::detach(tid, passed_on);
            self.forget(tid);
            return;
        }
        match event {
            _ if is_call => self.at_call(tid),
            EVENT_STOP if signal != libc::SIGTRAP => {
                // Stopped by SIGSTOP or its like: it stays so until it is continued.
                let _ = stops::listen(tid);
                return;
            }
            0 => return self.resume(tid, signal),
            _ => {}
        }
        self.resume(tid, 0);
    }

    /// A thread that has been killed meanwhile cannot be resumed; its end is heard of next.
    fn resume(&self, tid: i32, signal: i32) {
        let waits_for_end = self.followed.get(&tid).is_some_and(|it| it.under_way.is_some());
        let _ = stops::resume(tid, waits_for_end || !self.filtered, signal);
    }

    fn at_call(&mut self, tid: i32) {
        let now_ns = now_ns();
        let Some(followed) = self.followed.get_mut(&tid) else { return };
        match stops::stop(tid) {
            Ok(Stop::Entry { architecture, number, arguments }) => {
                let thread_id = followed.thread_id;
                followed.has_begun = true;
                followed.under_way = if stops::is_decoded(architecture, number) {
                    let begun = Recording::recorded_call(number, &arguments).and_then(|call| {
                        let arguments = &arguments;
                        let begins = CallBegin { thread_id, call, arguments, past: None };
                        self.recording.begin(&begins, &StoppedThread::new(tid))
                    });
                    if self.filtered {
                        // What fails has been killed meanwhile.
                        let _ = stops::trace_what_it_makes(tid, number, &arguments);
                    }
                    begun
                } else {
                    self.recording.missed.other_abi_calls += 1;
                    None
                };
            }
            Ok(Stop::Exit { result }) => {
                if let Some(under_way) = followed.under_way.take() {
                    self.recording.end(under_way, result, now_ns, &StoppedThread::new(tid));
                } else if !followed.has_begun {
                    self.recording.missed.begun_before += 1;
                }
            }
            Ok(Stop::Other) | Err(_) => {}
        }
    }

    fn add_child(&mut self, tid: i32) {
        let Ok(new) = stops::event_message(tid) else { return };
        let Some(followed) = self.followed.get(&tid) else { return };
        let creation = followed.under_way.as_ref().map(|call| Creation {
            thread_id: followed.thread_id,
            call_id: call.call_id(),
            flags: call.clone_flags(),
        });
        let pid = self.recording.threads[followed.thread_id as usize].pid as i32;
        self.follow(new, creation.as_ref(), pid);
        if self.early.remove(&new) {
            if self.detaches() {
                let _ = stops::detach(new, 0);
                self.forget(new);
            } else {
                self.resume(new, 0);
            }
        }
    }

    /// Whichever thread runs another program gets the number of its process, and the others end.
    fn execute(&mut self, tid: i32) {
        self.recording.count_program(&start::link(tid, "exe"));
        let Ok(former) = stops::event_message(tid) else { return };
        if former != tid
            && let Some(follower) = self.followed.remove(&former)
        {
            if let Some(displaced) = self.followed.get(&tid) {
                self.recording.threads[displaced.thread_id as usize].end_ns = Some(now_ns());
            }
            self.forget(tid);
            self.followed.insert(tid, follower);
        }
    }

    fn end_thread(&mut self, tid: i32, status: i32) {
        if self.command == Some(tid) {
            self.status = Some(status);
        }
        let Some(followed) = self.followed.get(&tid) else {
            self.early.remove(&tid);
            return;
        };
        let row = &mut self.recording.threads[followed.thread_id as usize];
        note_exit(row, now_ns(), status);
        self.forget(tid);
    }

    fn forget(&mut self, tid: i32) {
        if let Some(under_way) = self.followed.remove(&tid).and_then(|it| it.under_way) {
            self.recording.cut_off(under_way);
        }
    }
}

/// The call that makes a thread.
struct Creation {
    thread_id: i64,
    call_id: i64,
    flags: i64,
}

// A thread that stands at the begin or the end of a call: what it knows is looked at in /proc and
// in its memory.

pub struct StoppedThread {
    tid: i32,
    memory: ProcessMemory,
}

impl StoppedThread {
    pub fn new(tid: i32) -> Self {
        StoppedThread { tid, memory: ProcessMemory(tid) }
    }
}

impl Sight for StoppedThread {
    fn directory(&self, _named: CallPath, descriptor: Option<i64>) -> Option<Vec<u8>> {
        snapshot::directory(self.tid, descriptor)
    }

    /// The call has not been made yet: what is found is what was there.
    fn before(&self, _named: CallPath, _absolute: &[u8], found: FoundPath) -> PathState {
        found.row
    }

    fn identity_of(&self, descriptor: i64) -> Option<(i64, i64)> {
        snapshot::identity(self.tid, descriptor)
    }

    fn memory(&self) -> &dyn ProgramMemory {
        &self.memory
    }
}
