//! Calls that begin and end become rows: knows nothing of how they are seen.

use super::calls::{Does, SystemCall};
use super::contents::{self, Keeper};
use super::decode::CallStart;
use super::missed_operations::MissedOperations;
use super::output::{RecordingOutput, Round};
use super::snapshot::{self, CallPath, Sight, Snapshot};
use super::{start, words};
use crate::system_calls;
use crate::tables::recording::{OpenDescriptor, RecordedThread};
use crate::tables::timeline::now_ns;

/// Rows are written when so many wait, or so many bytes of contents.
const ROUND_CALLS: usize = 1 << 16;
const ROUND_BYTES: usize = 16 << 20;

/// A call that begins.
pub struct CallBegin<'a> {
    pub thread_id: i64,
    pub call: &'static SystemCall,
    pub arguments: &'a [u64; 6],
    /// Its number and when it began, where that is over; else it is about to begin.
    pub past: Option<(i64, i64)>,
}

/// A call whose end is waited for.
pub struct CallUnderWay {
    begun: CallStart,
    call: &'static SystemCall,
}

impl CallUnderWay {
    /// The flags of a call that makes a thread; fork has none.
    pub fn clone_flags(&self) -> i64 {
        self.begun.row.flags.unwrap_or(0)
    }

    pub fn call_id(&self) -> i64 {
        self.begun.row.call_id
    }
}

/// The row of a thread that is followed from now on.
pub fn thread_row(tid: i32, pid: i32) -> RecordedThread {
    RecordedThread {
        tid: tid.into(),
        pid: pid.into(),
        executable: words::text(&start::link(tid, "exe")),
        directory: words::text(&start::link(tid, "cwd")),
        umask: start::umask(tid),
        begin_ns: now_ns(),
        ..RecordedThread::default()
    }
}

/// Notes the end of a thread, by its wait status.
pub fn note_exit(row: &mut RecordedThread, end_ns: i64, status: i32) {
    row.end_ns = Some(end_ns);
    if libc::WIFEXITED(status) {
        row.exit_code = Some(libc::WEXITSTATUS(status).into());
    } else {
        row.exit_signal = Some(libc::WTERMSIG(status).into());
    }
}

/// The rows of a recording under way.
pub struct Recording {
    output: RecordingOutput,
    round: Round,
    pub snapshot: Snapshot,
    keeper: Keeper,
    next_call_id: i64,
    pub calls: u64,
    pub threads: Vec<RecordedThread>,
    pub descriptors: Vec<OpenDescriptor>,
    pub missed: MissedOperations,
    /// The writer cannot write: the recording ends.
    pub failed: bool,
}

impl Recording {
    pub fn new(output: RecordingOutput, keeper: Keeper) -> Self {
        Recording {
            output,
            round: Round::default(),
            snapshot: Snapshot::new(),
            keeper,
            next_call_id: 0,
            calls: 0,
            threads: Vec::new(),
            descriptors: Vec::new(),
            missed: MissedOperations::default(),
            failed: false,
        }
    }

    /// The call of a number of this kernel, if it is recorded. Of an anonymous mapping there is no
    /// file.
    pub fn recorded_call(number: u64, arguments: &[u64; 6]) -> Option<&'static SystemCall> {
        let is_anonymous = arguments[3] & libc::MAP_ANONYMOUS as u64 != 0;
        let is_of_file =
            |call: &&SystemCall| call.number != system_calls::SYS_mmap || !is_anonymous;
        SystemCall::find_in_kernel(number).filter(is_of_file)
    }

    /// The number of a call that begins now.
    pub fn take_call_id(&mut self) -> i64 {
        self.next_call_id += 1;
        self.next_call_id - 1
    }

    /// A call begins; none if it has no end.
    pub fn begin(&mut self, beginning: &CallBegin, sight: &dyn Sight) -> Option<CallUnderWay> {
        let &CallBegin { thread_id, call, arguments, past } = beginning;
        let mut begun = CallStart::read(sight.memory(), call, arguments);
        self.missed.unread_arguments += begun.unread;
        begun.row.call_id = past.map_or_else(|| self.take_call_id(), |(call_id, _)| call_id);
        begun.row.thread_id = thread_id;
        self.look_up(sight, &mut begun);
        let (data, unread) = self.keeper.note(sight.memory(), &begun.written);
        begun.row.data = data;
        self.missed.unread_bytes += unread;
        begun.row.begin_ns = past.map_or_else(now_ns, |(_, begin_ns)| begin_ns);
        if call.does == Does::Exits {
            self.add(begun);
            return None;
        }
        Some(CallUnderWay { begun, call })
    }

    fn look_up(&mut self, sight: &dyn Sight, begun: &mut CallStart) {
        let call_id = begun.row.call_id;
        let mut id = |named, descriptor, path: &Option<Vec<u8>>| {
            let path = path.as_ref().filter(|path| !path.is_empty())?;
            let absolute = snapshot::absolute(path, || sight.directory(named, descriptor));
            let id = absolute.map(|it| {
                self.snapshot.path_id(it, call_id, |path, found| sight.before(named, path, found))
            });
            self.missed.unresolved_paths += u64::from(id.is_none());
            id
        };
        begun.row.path_id = id(CallPath::First, begun.row.directory, &begun.path);
        begun.row.path2_id = id(CallPath::Second, begun.row.directory2, &begun.path2);
    }

    /// A call has ended.
    pub fn end(&mut self, under_way: CallUnderWay, result: i64, end_ns: i64, sight: &dyn Sight) {
        let CallUnderWay { mut begun, call } = under_way;
        let row = &mut begun.row;
        row.end_ns = Some(end_ns);
        let gives_flags = result >= 0 && row.command.as_deref() == Some("F_GETFL");
        row.result =
            Some(if gives_flags { system_calls::flags_from_kernel(result) } else { result });
        row.error = words::error(result);
        let succeeded = row.error.is_none();
        if call.does == Does::Opens && succeeded {
            (row.device, row.inode) = sight.identity_of(result).unzip();
        }
        if succeeded {
            self.missed.count(call, row);
        }
        if let Some(address) = begun.pair.filter(|_| succeeded) {
            match contents::array::<8>(sight.memory(), address).map(u64::from_ne_bytes) {
                Some(pair) => {
                    row.descriptor = Some(i64::from(pair as i32));
                    row.descriptor2 = Some(i64::from((pair >> 32) as i32));
                }
                None => self.missed.unread_arguments += 1,
            }
        }
        self.add(begun);
    }

    /// A thread runs another program.
    pub fn count_program(&mut self, executable: &[u8]) {
        self.missed.set_id_programs += u64::from(start::is_set_id(executable));
    }

    /// The thread of a call is gone, or is followed no longer.
    pub fn cut_off(&mut self, under_way: CallUnderWay) {
        self.missed.unfinished_calls += 1;
        self.add(under_way.begun);
    }

    fn add(&mut self, begun: CallStart) {
        self.calls += 1;
        self.round.calls.push(begun.row);
        if self.round.calls.len() >= ROUND_CALLS || self.keeper.waiting_bytes() >= ROUND_BYTES {
            self.write();
        }
    }

    /// Hands over what waits.
    pub fn write(&mut self) {
        let mut round = std::mem::take(&mut self.round);
        round.snapshot = self.snapshot.take_new();
        round.contents = self.keeper.take_new();
        round.threads = self.threads.clone();
        round.descriptors = self.descriptors.clone();
        self.failed |= !self.output.add(round);
    }

    /// Return what is written to, once nothing is added any more.
    pub fn into_output(mut self) -> RecordingOutput {
        self.write();
        self.output
    }
}
