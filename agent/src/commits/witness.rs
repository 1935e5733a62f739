//! Sees calls on files by the program of kernel/calls: all of one user, which nothing reads until
//! the ring is half full or it is finished; or everybody's, or a program's, on files of SQLite and
//! their syncs, as they come.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::call::{CallRecordError, FileCall, decode_calls, first_without_room_ns};
use crate::bpf::{BpfError, LoadPlan, Objects, Program, Symbols, SymbolsError};
use crate::tracer::FileKey;

/// struct watch of call_record.h.
#[repr(C)]
struct WatchMemory {
    uid: AtomicU32,
    is_everyone: AtomicU32,
    is_family: AtomicU32,
    writers_half: AtomicU32,
    lost: AtomicU64,
    others: AtomicU64,
    uncounted: AtomicU64,
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
    pub without_room_ns: Option<i64>,
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

    fn watch_memory(&self) -> &WatchMemory {
        // SAFETY: mapped as long as the program lives; of atomic numbers only.
        unsafe { self.watched.as_ref() }
    }

    /// Tells of the calls of this user from now on; 0: of nobody's.
    pub fn watch(&mut self, uid: u32) {
        self.watch_memory().uid.store(uid, Ordering::SeqCst);
    }

    /// Tells of calls on files of SQLite from now on, and of all syncs. The ring is emptied by a
    /// thread of its own, unless more than `backlog_bytes` wait for `read_calls`.
    ///
    /// # Errors
    /// If there can be no thread, or the kernel does not take the processes.
    pub fn follow(&mut self, who: WatchScope, backlog_bytes: usize) -> Result<(), WitnessError> {
        self.program.collect_by_itself(backlog_bytes)?;
        if who != WatchScope::Everyone {
            // What members start is followed from here on.
            self.watch_memory().is_family.store(1, Ordering::SeqCst);
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
        self.watch_memory().is_everyone.store(1, Ordering::SeqCst);
        Ok(())
    }

    /// Tells of nobody's calls any more.
    pub fn leave(&mut self) {
        self.watch_memory().is_everyone.store(0, Ordering::SeqCst);
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
        let former = self.watch_memory().writers_half.load(Ordering::SeqCst);
        // Nobody counts in the other one: it is long since that was left.
        let mut counts =
            self.read_writers(if former == 1 { c"writers_b" } else { c"writers_a" })?;
        let next = if is_end { 0 } else { 3 - former.max(1) };
        self.watch_memory().writers_half.store(next, Ordering::SeqCst);
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
        let without_room = self.watch_memory().uncounted.load(Ordering::SeqCst);
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

    /// Calls that were not seen for want of room, and runs that the kernel skipped, of the programs
    /// on calls and on forks.
    pub fn lost_calls(&self) -> u64 {
        let without_room = self.watch_memory().lost.load(Ordering::SeqCst);
        without_room + self.skipped_runs(|name| !name.ends_with(DIRTIED))
    }

    fn skipped_runs(&self, counts: impl Fn(&[u8]) -> bool) -> u64 {
        // Where the kernel does not say, some may be missing.
        self.program.skipped_runs(counts).unwrap_or(1)
    }

    /// Calls of 32-bit and x32 programs, which are not told; where everybody is watched, syncs.
    pub fn foreign_calls(&self) -> u64 {
        self.watch_memory().others.load(Ordering::SeqCst)
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
    use super::*;

    #[test]
    fn every_process_has_its_parent() {
        let own = (std::process::id(), std::os::unix::process::parent_id());
        assert!(parents().contains(&own));
    }
}
