//! Calls that begin and end become rows: knows nothing of how threads are stopped, only that one
//! stands at the begin or at the end of a call.

use super::calls::{Does, SystemCall};
use super::contents::Keeper;
use super::decode::Begun;
use super::missed::Missed;
use super::output::{RecordingOutput, Round};
use super::snapshot::{self, Snapshot};
use super::{filter, memory, start, words};
use crate::tables::clock::now_ns;
use crate::tables::recording::{OpenDescriptor, RecordedThread};

/// Rows are written when so many wait, or so many bytes of contents.
const ROUND_CALLS: usize = 1 << 16;
const ROUND_BYTES: usize = 16 << 20;

/// A call whose end is waited for.
pub struct UnderWay {
    begun: Begun,
    call: &'static SystemCall,
}

impl UnderWay {
    /// The flags of a call that makes a thread; fork has none.
    pub fn clone_flags(&self) -> i64 {
        self.begun.row.flags.unwrap_or(0)
    }

    pub fn call_id(&self) -> i64 {
        self.begun.row.call_id
    }
}

/// The rows of a recording under way.
pub struct Recording {
    output: RecordingOutput,
    round: Round,
    snapshot: Snapshot,
    keeper: Keeper,
    next_call_id: i64,
    calls: u64,
    pub threads: Vec<RecordedThread>,
    pub descriptors: Vec<OpenDescriptor>,
    pub missed: Missed,
    /// The writer cannot write: the recording ends.
    failed: bool,
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
            missed: Missed::default(),
            failed: false,
        }
    }

    /// A thread stands at the begin of a call; none if its end is of no interest.
    pub fn begin(
        &mut self,
        tid: i32,
        thread_id: i64,
        architecture: u32,
        number: u64,
        arguments: &[u64; 6],
    ) -> Option<UnderWay> {
        if architecture != filter::X86_64 || number & u64::from(filter::X32_BIT) != 0 {
            self.missed.other_abi_calls += 1;
            return None;
        }
        let call = SystemCall::of(number)?;
        // Of an anonymous mapping there is no file; the filter lets it pass as well.
        let is_anonymous = arguments[3] & libc::MAP_ANONYMOUS as u64 != 0;
        if number == libc::SYS_mmap as u64 && is_anonymous {
            return None;
        }
        let mut begun = Begun::of(tid, call, arguments);
        self.missed.unread_arguments += begun.unread;
        begun.row.call_id = self.next_call_id;
        begun.row.thread_id = thread_id;
        self.next_call_id += 1;
        self.look_up(tid, &mut begun);
        let (data, unread) = self.keeper.note(tid, &begun.written);
        begun.row.data = data;
        self.missed.unread_bytes += unread;
        begun.row.begin_ns = now_ns();
        if call.does == Does::Exits {
            self.add(begun);
            return None;
        }
        Some(UnderWay { begun, call })
    }

    fn look_up(&mut self, tid: i32, begun: &mut Begun) {
        let call_id = begun.row.call_id;
        let mut id = |directory, path: &Option<Vec<u8>>| {
            let path = path.as_ref().filter(|path| !path.is_empty())?;
            let id = self.snapshot.path_id(tid, directory, path, call_id);
            self.missed.unresolved_paths += u64::from(id.is_none());
            id
        };
        begun.row.path_id = id(begun.row.directory, &begun.path);
        begun.row.path2_id = id(begun.row.directory2, &begun.path2);
    }

    /// A thread stands at the end of a call.
    pub fn end(&mut self, tid: i32, under_way: UnderWay, result: i64, end_ns: i64) {
        let UnderWay { mut begun, call } = under_way;
        let row = &mut begun.row;
        row.end_ns = Some(end_ns);
        row.result = Some(result);
        row.error = words::error(result);
        let succeeded = row.error.is_none();
        match call.does {
            Does::Opens if succeeded => {
                (row.device, row.inode) = snapshot::identity(tid, result).unzip();
            }
            Does::Executes if succeeded => {
                self.missed.set_id_programs += u64::from(start::is_set_id(tid));
            }
            _ => {}
        }
        if succeeded {
            self.missed.count(call, row);
        }
        if let Some(address) = begun.pair.filter(|_| succeeded) {
            match memory::array::<8>(tid, address).map(u64::from_ne_bytes) {
                Some(pair) => {
                    row.descriptor = Some(i64::from(pair as i32));
                    row.descriptor2 = Some(i64::from((pair >> 32) as i32));
                }
                None => self.missed.unread_arguments += 1,
            }
        }
        self.add(begun);
    }

    /// The thread of a call is gone, or is followed no longer.
    pub fn cut_off(&mut self, under_way: UnderWay) {
        self.missed.unfinished_calls += 1;
        self.add(under_way.begun);
    }

    fn add(&mut self, begun: Begun) {
        self.calls += 1;
        self.round.calls.push(begun.row);
        if self.round.calls.len() >= ROUND_CALLS || self.keeper.waiting_bytes() >= ROUND_BYTES {
            self.write();
        }
    }

    /// Hands over what waits.
    pub fn write(&mut self) {
        let mut round = std::mem::take(&mut self.round);
        round.snapshot = self.snapshot.take();
        round.contents = self.keeper.take();
        round.threads = self.threads.clone();
        round.descriptors = self.descriptors.clone();
        self.failed |= !self.output.add(round);
    }

    /// Whether rows cannot be written any more.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// What is written to, once nothing is added any more.
    pub fn into_output(mut self) -> RecordingOutput {
        self.write();
        self.output
    }
}
