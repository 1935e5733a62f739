//! One call on a file, as far as commits are found from it, and the program in the kernel that sees
//! such calls (kernel/calls).

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::ptr::NonNull;

use crate::bpf::{BpfError, LoadPlan, Objects, Program, Symbols, SymbolsError};
use crate::byte_text::path_text;
use crate::system_calls;
use crate::system_calls::CommitRole;
use crate::tracer::FileKey;

/// The effect of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Opened a file by a path as it was given; `is_created`: it was not there before.
    Open { path: String, is_created: bool },
    /// Read at a place.
    Read,
    /// Wrote at a place; `head` is what the first bytes were, as far as they are known.
    Write { offset_bytes: u64, length_bytes: u64, head: Vec<u8>, is_synced: bool },
    /// Set the size.
    Truncate { size_bytes: u64 },
    /// Likewise, by a path as it was given.
    TruncatePath { path: String, size_bytes: u64 },
    /// Removed a name, as it was given.
    Unlink { path: String },
    /// Made it durable: the name of the system call.
    Sync { name: &'static str, is_directory: bool },
    /// Committed a batch atomic write of F2FS.
    CommitAtomicWrite,
    /// Took or gave back a lock of bytes; a length of 0 is up to the end.
    Lock { is_unlock: bool, offset_bytes: u64, length_bytes: u64 },
}

/// The root that absolute paths begin at: two callers with equal ones see the same files by the
/// same paths. Zeroes where all callers are known to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PathRoot {
    /// Number of the mount namespace, as in /proc/PID/ns/mnt (mount_namespaces(7)).
    pub namespace: u32,
    /// mnt_id of the mount that the root directory is in, and the inode number of that directory.
    pub mount: u32,
    pub inode: u64,
}

impl PathRoot {
    /// None is greater.
    pub const LAST: PathRoot = PathRoot { namespace: u32::MAX, mount: u32::MAX, inode: u64::MAX };
}

/// The task that made a call; what is not known is 0 or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Caller {
    pub uid: u32,
    /// The root of a call with a path.
    pub root: PathRoot,
    /// The process's command name, up to the first 0 (comm of proc(5)).
    pub process: [u8; 16],
}

/// One call, that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCall {
    pub pid: u32,
    pub tid: u32,
    pub caller: Caller,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// None where it names none by a descriptor.
    pub file: Option<FileKey>,
    pub deed: Deed,
}

impl FileCall {
    /// Bytes that it wrote.
    pub fn written_bytes(&self) -> u64 {
        match self.deed {
            Deed::Write { length_bytes, .. } => length_bytes,
            _ => 0,
        }
    }

    /// The call by which it syncs.
    pub fn sync_name(&self) -> &'static str {
        match self.deed {
            Deed::Sync { name, .. } => name,
            Deed::CommitAtomicWrite => "ioctl",
            _ => "write",
        }
    }
}

// Decodes the records of kernel/calls/call_record.h; calls that failed are left out.

/// CALL_RECORD_BYTES, CALL_HEAD_BYTES and CALL_PATH_BYTES of call_record.h.
const RECORD_BYTES: usize = 160;
const HEAD_BYTES: usize = 32;
const PATH_BYTES: usize = 256;

/// A record whose length or number is none of ours.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CallRecordError {
    #[error("a call's record of {0} bytes")]
    Length(usize),
    #[error("a record of the call {0}, which is not watched")]
    Call(u32),
}

/// Decodes (length u32, record) one after the other.
///
/// # Errors
/// If one is damaged.
pub fn decode_calls(mut bytes: &[u8], into: &mut Vec<FileCall>) -> Result<(), CallRecordError> {
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (record, after) =
            rest.split_at_checked(length).ok_or(CallRecordError::Length(length))?;
        into.extend(decode(record)?);
        bytes = after;
    }
    Ok(())
}

/// Return when the first of these calls ended for which the filesystem had no room (ENOSPC).
fn first_without_room_ns(mut bytes: &[u8]) -> Option<i64> {
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (record, after) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let i64_at = |at: usize| Some(i64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        if i64_at(48)? == -i64::from(libc::ENOSPC) {
            return i64_at(16);
        }
        bytes = after;
    }
    None
}

fn decode(record: &[u8]) -> Result<Option<FileCall>, CallRecordError> {
    if record.len() != RECORD_BYTES && record.len() != RECORD_BYTES + PATH_BYTES {
        return Err(CallRecordError::Length(record.len()));
    }
    let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes"));
    let (number, file_flags, result) = (u32_at(0), u32_at(4).cast_signed(), u64_at(48));
    let (offset_bytes, length_bytes, inode) = (u64_at(56), u64_at(64), u64_at(32));
    let result = result.cast_signed();
    if result < 0 {
        return Ok(None);
    }
    let head_bytes = (u32_at(104) as usize).min(HEAD_BYTES);
    let head = record[72..72 + head_bytes].to_vec();
    let path = || {
        let bytes = &record[RECORD_BYTES..];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        path_text(&bytes[..end])
    };
    let u16_at = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
    let (is_created, is_directory) = (u16_at(116) != 0, u16_at(118) != 0);
    let row = system_calls::row(number.into());
    let (row, role) =
        row.and_then(|row| Some((row, row.commits?))).ok_or(CallRecordError::Call(number))?;
    let deed = match role {
        CommitRole::Write => Deed::Write {
            offset_bytes,
            length_bytes: result.cast_unsigned(),
            head,
            is_synced: file_flags & (libc::O_DSYNC | libc::O_SYNC) != 0,
        },
        CommitRole::Open => Deed::Open { path: path(), is_created },
        CommitRole::Read => Deed::Read,
        // Other requests and commands the kernel's program does not send.
        CommitRole::CommitAtomicWrite => Deed::CommitAtomicWrite,
        CommitRole::Lock => Deed::Lock {
            is_unlock: head.first() == Some(&(libc::F_UNLCK as u8)),
            offset_bytes,
            length_bytes,
        },
        CommitRole::TruncatePath => Deed::TruncatePath { path: path(), size_bytes: length_bytes },
        CommitRole::Truncate => Deed::Truncate { size_bytes: length_bytes },
        CommitRole::Unlink => Deed::Unlink { path: path() },
        CommitRole::Sync => Deed::Sync { name: row.name, is_directory },
    };
    Ok(Some(FileCall {
        begin_ns: u64_at(8).cast_signed(),
        end_ns: u64_at(16).cast_signed(),
        pid: u32_at(24),
        tid: u32_at(28),
        caller: Caller {
            uid: u32_at(112),
            root: PathRoot { inode: u64_at(144), mount: u32_at(152), namespace: u32_at(156) },
            process: record[120..136].try_into().expect("16 bytes"),
        },
        file: (inode != 0).then(|| FileKey {
            filesystem: u32_at(44),
            inode,
            generation: u32_at(40),
            subvolume: u64_at(136),
        }),
        deed,
    }))
}

// Sees calls on files by the program of kernel/calls: all of one user, which nothing reads until
// the ring is half full or it is finished; or everybody's, or a program's, on files of SQLite and
// their syncs, as they come.

/// struct watch of call_record.h.
#[repr(C)]
struct WatchMemory {
    uid: u32,
    is_everyone: u32,
    is_family: u32,
    writers_half: u32,
    lost: u64,
    others: u64,
    uncounted: u64,
}

const _: () = assert!(size_of::<WatchMemory>() == 40);

/// enum kinship of calls.bpf.c.
const MEMBER: u64 = 1;
const STARTER: u64 = 2;

/// Programs for what a live trace alone needs: who starts whom, and who makes pages dirty.
const LIVE_PROGRAMS: [&CStr; 3] = [c"family_grown", c"folio_dirtied", c"page_dirtied"];

/// The end of the names of those that count writers.
const DIRTIED: &[u8] = b"_dirtied";

/// Those of them for a tracepoint that not every kernel has.
const OPTIONAL: [(&CStr, &str); 2] = [
    (c"folio_dirtied", "__traceiter_writeback_dirty_folio"),
    (c"page_dirtied", "__traceiter_writeback_dirty_page"),
];

/// The writes of one process to one file in some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterCount {
    pub file: FileKey,
    pub pid: u32,
    /// Command name of the thread that was first.
    pub name: [u8; 16],
    pub write_calls: u64,
    /// Handed to write calls.
    pub write_bytes: u64,
    /// Times that a clean page, or a folio of several, became dirty.
    pub dirtied: u64,
}

impl WriterCount {
    /// struct writer_key and struct writer of writers.bpf.h.
    fn decode(key: &[u8; 32], value: &[u64; 5]) -> Self {
        let u32_at = |at: usize| u32::from_ne_bytes(key[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_ne_bytes(key[at..at + 8].try_into().expect("8 bytes"));
        let [write_calls, write_bytes, dirtied, ..] = *value;
        let mut name = [0; 16];
        name[..8].copy_from_slice(&value[3].to_ne_bytes());
        name[8..].copy_from_slice(&value[4].to_ne_bytes());
        WriterCount {
            file: FileKey {
                filesystem: u32_at(16),
                inode: u64_at(0),
                generation: u32_at(20),
                subvolume: u64_at(8),
            },
            pid: u32_at(24),
            name,
            write_calls,
            write_bytes,
            dirtied,
        }
    }
}

/// The processes whose calls are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchScope {
    Everyone,
    /// A process that is there, and its children.
    Process(u32),
    /// The processes that this one starts from now on, and not itself.
    StartedBy(u32),
}

/// The reason why the calls cannot be seen.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error(transparent)]
    Symbols(#[from] SymbolsError),
    #[error(transparent)]
    Record(#[from] CallRecordError),
}

/// The program, loaded; it tells of nobody's calls at first.
pub struct CallWitness {
    // Valid as long as the program, which has it mapped.
    watched: NonNull<WatchMemory>,
    program: Program,
    ring_bytes: usize,
    /// The end of the first call for which the filesystem had no room.
    without_room_ns: Option<i64>,
}

impl CallWitness {
    /// Loads and attaches the program; with `has_writers` it can follow what a process starts, and
    /// count who writes.
    ///
    /// # Errors
    /// If the kernel refuses a step.
    pub fn load(ring_bytes: u32, has_writers: bool) -> Result<Self, WitnessError> {
        let optional = OPTIONAL.map(|(_, function)| function);
        let wanted = [&[crate::bpf::RDONLY_CAST, "vfs_fsync_range"], &optional[..]].concat();
        let symbols = Symbols::read(&wanted)?;
        let plan = LoadPlan {
            objects: &Objects::CALLS,
            ring_bytes,
            kept_bytes_each: 0,
            optional: &OPTIONAL,
            unused: if has_writers { &[] } else { &LIVE_PROGRAMS },
        };
        let program = Program::load(&plan, &symbols)?;
        let watched = program.section(c".data.watch")?;
        Ok(Self { watched, program, ring_bytes: ring_bytes as usize, without_room_ns: None })
    }

    /// Tells of the calls of this user from now on; 0: of nobody's.
    pub fn watch(&mut self, uid: u32) {
        // SAFETY: mapped as long as the program lives; only we write to this field.
        unsafe { (&raw mut (*self.watched.as_ptr()).uid).write_volatile(uid) };
    }

    /// Tells of calls on files of SQLite from now on, and of all syncs. The ring is emptied by a
    /// thread of its own, unless more than `backlog_bytes` wait for `read_calls`.
    ///
    /// # Errors
    /// If there can be no thread, or the kernel does not take the processes.
    pub fn follow(&mut self, who: WatchScope, backlog_bytes: usize) -> Result<(), WitnessError> {
        self.program.collect_by_itself(backlog_bytes)?;
        if who != WatchScope::Everyone {
            // SAFETY: as above. What members start is followed from here on.
            unsafe { (&raw mut (*self.watched.as_ptr()).is_family).write_volatile(1) };
        }
        match who {
            WatchScope::Everyone => {}
            WatchScope::StartedBy(process) => drop(self.add_kin(process, STARTER)?),
            WatchScope::Process(process) => {
                self.add_kin(process, MEMBER)?;
                // What one of them starts while it is looked for is found by the next look.
                while self.add_children()? {}
            }
        }
        // SAFETY: as above.
        unsafe { (&raw mut (*self.watched.as_ptr()).is_everyone).write_volatile(1) };
        Ok(())
    }

    /// Tells of nobody's calls any more.
    pub fn leave(&mut self) {
        // SAFETY: as above.
        unsafe { (&raw mut (*self.watched.as_ptr()).is_everyone).write_volatile(0) };
    }

    /// Tells of the calls of this process too while `work` runs; gives what that gives.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn with_own_calls<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, BpfError> {
        let own = std::process::id();
        let is_added = self.add_kin(own, MEMBER)?;
        let result = work();
        if is_added {
            self.program.map::<4, 1>(c"family")?.remove(&own.to_ne_bytes());
        }
        Ok(result)
    }

    fn add_kin(&self, process: u32, kinship: u64) -> Result<bool, BpfError> {
        self.program.map::<4, 1>(c"family")?.add(&process.to_ne_bytes(), &[kinship])
    }

    /// Adds the children of members that were there before; false where there is none.
    fn add_children(&self) -> Result<bool, BpfError> {
        let members = self.members()?;
        let mut is_grown = false;
        for (process, parent) in parents() {
            if members.contains(&parent) {
                is_grown |= self.add_kin(process, MEMBER)?;
            }
        }
        Ok(is_grown)
    }

    /// Return the writers of each file since the last call; at the end, when nothing is counted any
    /// more, all that are left.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn take_writers(&mut self, is_end: bool) -> Result<Vec<WriterCount>, BpfError> {
        // SAFETY: mapped as long as the program lives; only we write to this field.
        let half = unsafe { &raw mut (*self.watched.as_ptr()).writers_half };
        // SAFETY: as above.
        let former = unsafe { half.read_volatile() };
        // Nobody counts in the other one: it is long since that was left.
        let mut counts =
            self.read_writers(if former == 1 { c"writers_b" } else { c"writers_a" })?;
        let next = if is_end { 0 } else { 3 - former.max(1) };
        // SAFETY: as above.
        unsafe { half.write_volatile(next) };
        if is_end {
            // Programs under way have left it by then: none of them waits.
            std::thread::sleep(std::time::Duration::from_millis(10));
            counts.extend(self.read_writers(c"writers_a")?);
            counts.extend(self.read_writers(c"writers_b")?);
        }
        Ok(counts)
    }

    fn read_writers(&self, name: &CStr) -> Result<Vec<WriterCount>, BpfError> {
        let map = self.program.map::<32, 5>(name)?;
        let entries = map.entries()?;
        for (key, _) in &entries {
            map.remove(key);
        }
        Ok(entries.iter().map(|(key, value)| WriterCount::decode(key, value)).collect())
    }

    /// Times that a writer found no room, or that the kernel skipped the program that counts it.
    pub fn uncounted_writers(&self) -> u64 {
        // SAFETY: as above.
        let without_room =
            unsafe { (&raw const (*self.watched.as_ptr()).uncounted).read_volatile() };
        without_room + self.skipped_runs(|name| name.ends_with(DIRTIED))
    }

    /// The processes that are followed, with those that have ended.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn members(&self) -> Result<BTreeSet<u32>, BpfError> {
        let family = self.program.map::<4, 1>(c"family")?.entries()?;
        let members = family.into_iter().filter(|(_, [kinship])| *kinship == MEMBER);
        Ok(members.map(|(process, _)| u32::from_ne_bytes(process)).collect())
    }

    /// The calls that were seen since this was asked last, in the order of their ends.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn read_calls(&mut self) -> Result<Vec<FileCall>, WitnessError> {
        self.program.collect();
        let mut calls = Vec::new();
        while let Some(bytes) = self.program.take_piece() {
            decode_calls(&bytes, &mut calls)?;
            self.without_room_ns = self.without_room_ns.or_else(|| first_without_room_ns(&bytes));
        }
        calls.sort_by_key(|call: &FileCall| call.end_ns);
        Ok(calls)
    }

    /// Return when the first call ended for which the filesystem had no room, of those read.
    pub fn without_room_ns(&self) -> Option<i64> {
        self.without_room_ns
    }

    /// Calls that were not seen for want of room, and runs that the kernel skipped, of the programs
    /// on calls and on forks.
    pub fn lost(&self) -> u64 {
        // SAFETY: mapped as long as the program lives.
        let without_room = unsafe { (&raw const (*self.watched.as_ptr()).lost).read_volatile() };
        without_room + self.skipped_runs(|name| !name.ends_with(DIRTIED))
    }

    fn skipped_runs(&self, counts: impl Fn(&[u8]) -> bool) -> u64 {
        // Where the kernel does not say, some may be missing.
        self.program.skipped_runs(counts).unwrap_or(1)
    }

    /// Calls of 32-bit and x32 programs, which are not told; where everybody is watched, syncs.
    pub fn foreign_calls(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (&raw const (*self.watched.as_ptr()).others).read_volatile() }
    }

    /// Moves what was seen out of the ring, where it is half full.
    pub fn relieve(&mut self) {
        if self.program.waiting_bytes() > self.ring_bytes / 2 {
            self.program.collect();
        }
    }

    /// Stops; gives all calls in the order of their ends.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn finish(&mut self) -> Result<Vec<FileCall>, WitnessError> {
        self.watch(0);
        self.read_calls()
    }
}

/// The numbers of the processes that are there.
pub fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes that are there, each with its parent (proc_pid_stat(5)).
fn parents() -> Vec<(u32, u32)> {
    let process = |number: u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // Its name may have any characters, parentheses too.
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        Some((number, parent))
    };
    processes().into_iter().filter_map(process).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: FileKey = FileKey { filesystem: 9, inode: 7, generation: 8, subvolume: 257 };

    fn record(call: u32, result: i64, path: Option<&str>) -> Vec<u8> {
        let mut record = vec![0; RECORD_BYTES];
        record[..4].copy_from_slice(&call.to_le_bytes());
        for (at, value) in
            [(8, 10_u64), (16, 20), (32, 7), (56, 4096), (64, 24), (136, 257), (144, 2)]
        {
            record[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in
            [(24, 5_u32), (28, 6), (40, 8), (44, 9), (104, 24), (112, 1000), (152, 29), (156, 77)]
        {
            record[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        (record[116], record[120]) = (1, b'p');
        record[48..56].copy_from_slice(&result.to_le_bytes());
        if let Some(path) = path {
            let mut bytes = path.as_bytes().to_vec();
            bytes.resize(PATH_BYTES, 0);
            record.extend(bytes);
        }
        let mut whole = (record.len() as u32).to_le_bytes().to_vec();
        whole.extend(record);
        whole
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<FileCall>, CallRecordError> {
        let mut calls = Vec::new();
        decode_calls(bytes, &mut calls).map(|()| calls)
    }

    #[test]
    fn every_process_has_its_parent() {
        let own = (std::process::id(), std::os::unix::process::parent_id());
        assert!(parents().contains(&own));
    }

    #[test]
    fn every_field_is_where_the_program_puts_it() {
        let bytes = [
            record(18, 24, None),
            record(257, 3, Some("/a/b")),
            record(74, -5, None),
            record(76, 0, Some("c")),
        ];
        let calls = decoded(&bytes.concat()).unwrap();
        let (pid, tid, begin_ns, end_ns, file) = (5, 6, 10, 20, Some(FILE));
        let mut process = [0; 16];
        process[0] = b'p';
        let root = PathRoot { namespace: 77, mount: 29, inode: 2 };
        let caller = Caller { uid: 1000, root, process };
        let call = |deed| FileCall { pid, tid, caller, begin_ns, end_ns, file, deed };
        let head = vec![0; 24];
        let write = Deed::Write { offset_bytes: 4096, length_bytes: 24, head, is_synced: false };
        assert_eq!(
            calls,
            [
                call(write),
                call(Deed::Open { path: "/a/b".into(), is_created: true }),
                call(Deed::TruncatePath { path: "c".into(), size_bytes: 24 }),
            ]
        );
        assert_eq!(decoded(&record(99, 0, None)), Err(CallRecordError::Call(99)));
        assert_eq!(decoded(&[9, 0, 0, 0]), Err(CallRecordError::Length(9)));
    }

    #[test]
    fn the_first_call_without_room_is_told() {
        let records = [24, -5, -i64::from(libc::ENOSPC)].map(|result| record(18, result, None));
        assert_eq!(first_without_room_ns(&records.concat()), Some(20));
        assert_eq!(first_without_room_ns(&records[..2].concat()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = decoded(&bytes);
            let mut whole = 136_u32.to_le_bytes().to_vec();
            whole.extend(bytes.iter().copied().chain(std::iter::repeat(0)).take(136));
            let _ = decoded(&whole);
        }
    }
}
