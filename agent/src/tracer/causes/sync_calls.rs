//! Finds who waits. Follows the calls that wait for the device (fsync and its kin) from begin to
//! end, and returns the call that a bio serves.
//!
//! Kernel threads do most of the writing (jbd2, f2fs_ckpt, segctord), so the submitter is not the
//! answer; a call in progress on the same filesystem is. If there are several, one commit serves
//! all of them: of ext4 those that wait for that transaction, as far as the kernel says which one a
//! call waits for. The bio is attributed to the call that began first and has had no commit yet;
//! the others are counted.

use std::collections::{BTreeMap, BTreeSet};

use super::calls::{MSYNC, UMOUNT2, sync_name};
use crate::tables::capture::ring_owner;
use crate::tracer::classify::{BlockType, Class};
use crate::tracer::files::{FileKey, run_key, sync_key};
use crate::tracer::records::kernel::{OPERATION_MASK, OPERATION_READ, OPERATION_WRITE};
use crate::tracer::records::{Bio, CALL_DIRECT, RUN_DIRECT, Run, Sync};

/// Calls and requests that are followed at once; no machine has as many threads that wait.
const MOST: usize = 65_536;

/// The call a bio serves.
#[derive(Debug, Clone, PartialEq)]
pub struct Asker {
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    pub call: &'static str,
    /// None for direct I/O, whose bios alone are seen.
    pub begin_ns: Option<u64>,
    /// None for a call that names no file: sync, umount.
    pub file: Option<FileKey>,
    /// Calls that the bio may serve: 1 where it is certain.
    pub waiting: u32,
    /// The command names of those that wait, and how many have each, where they are several.
    pub all: Option<String>,
    /// Number of the call, in the order in which calls began; None for direct I/O, which waits for
    /// nothing but its own bios.
    pub number: Option<u64>,
}

#[derive(Debug)]
struct SyncCall {
    number: u64,
    sync: Sync,
    /// The transaction that it waits for, where that is known.
    transaction: Option<u32>,
    /// A commit that may be for it was finished since it began.
    served: bool,
}

/// The calls that are going on.
#[derive(Debug)]
pub struct SyncCalls {
    /// The calls by what does them: see `caller_key`.
    active: BTreeMap<u64, SyncCall>,
    /// Kernel threads that do one of them for its caller, and which.
    workers: BTreeMap<u32, u64>,
    begun: u64,
    disks: BTreeSet<u32>,
    /// s_dev of the filesystems that are known to be on the disks.
    filesystems: BTreeSet<u32>,
}

impl SyncCalls {
    /// No call is going on. `disks` are the numbers of the traced disks.
    pub fn new(disks: BTreeSet<u32>) -> Self {
        let (active, workers) = Default::default();
        SyncCalls { active, workers, begun: 0, disks, filesystems: BTreeSet::new() }
    }

    /// A filesystem (s_dev) is on a traced disk; true if that is news.
    pub fn learn(&mut self, filesystem: u32) -> bool {
        self.filesystems.insert(filesystem)
    }

    /// A filesystem is known to be on a traced disk.
    pub fn is_known(&self, filesystem: u32) -> bool {
        self.filesystems.contains(&filesystem)
    }

    /// A call began. Whether it is on a traced disk may come out only later (Btrfs has no device
    /// of its own).
    pub fn begin(&mut self, sync: Sync) {
        if self.active.len() >= MOST {
            // Requests whose ends were lost.
            self.active.retain(|_, call| call.sync.request == 0);
        }
        let call = SyncCall { number: self.begun, sync, transaction: None, served: false };
        self.active.insert(caller_key(&call.sync), call);
        self.begun += 1;
    }

    /// A kernel thread begins what was left to it: what it sends is for that, until it is over.
    pub fn begin_work(&mut self, sync: &Sync) {
        if self.active.contains_key(&sync.request) {
            self.workers.insert(sync.tid, sync.request);
        }
    }

    /// The call of a thread, or the request, waits for a transaction of jbd2.
    pub fn wait(&mut self, caller: u64, transaction: u32) {
        if let Some(call) = self.active.get_mut(&caller) {
            call.transaction = Some(transaction);
        }
    }

    /// The call is about everything, or about a filesystem on a traced disk as far as is known.
    pub fn is_here(&self, sync: &Sync) -> bool {
        sync.filesystem == 0
            || self.disks.contains(&sync.disk)
            || self.filesystems.contains(&sync.filesystem)
    }

    /// The call that a thread was in, or the request, ended; its number if it was seen to begin.
    pub fn end(&mut self, sync: &Sync) -> Option<u64> {
        self.workers.remove(&sync.tid);
        self.active.remove(&caller_key(sync)).map(|call| call.number)
    }

    /// A commit of the filesystem is finished: it was for the calls that are going on, but for
    /// those that are known to wait for another transaction.
    pub fn serve(&mut self, filesystem: u32, transaction: Option<u32>) {
        for call in self.active.values_mut() {
            let is_there = call.sync.filesystem == filesystem || call.sync.filesystem == 0;
            call.served |= is_there && call.may_wait_for(transaction);
        }
    }

    /// The filesystem of all calls in progress, if it is one; for bios that name none.
    pub fn only_filesystem(&self) -> Option<u32> {
        let here = self.active.values().filter(|call| self.is_here(&call.sync));
        let mut named = here.map(|call| call.sync.filesystem).filter(|&number| number > 0);
        let first = named.next()?;
        named.all(|filesystem| filesystem == first).then_some(first)
    }

    /// The submitter itself if it is in such a call, or in direct I/O; else the call on the file
    /// that a run is of; else the one of those on the filesystem that began first and that no
    /// commit has served. What other tasks read meanwhile serves no sync. `transaction` is that of
    /// jbd2 which the bio is a block of: it serves nobody who waits for another.
    pub fn asker(
        &mut self,
        bio: &Bio,
        runs: &[(Run, Class)],
        filesystem: u32,
        transaction: Option<u32>,
    ) -> Option<Asker> {
        if let Some(own) = self.own(bio, runs) {
            return Some(own);
        }
        let reads = bio.flags & OPERATION_MASK == OPERATION_READ;
        if let Some((run, _)) = runs.iter().find(|(run, _)| run.flags & RUN_DIRECT != 0) {
            let file = run_key(run);
            if let Some(call) = self.active.values().find(|call| is_of_ring(call, bio, file)) {
                return Some(asker(call, 1));
            }
            // What a cgroup's limit held back is sent by a kernel thread, which asks for nothing.
            if !bio.kernel_thread {
                return Some(direct(bio, reads, Some(file)));
            }
        }
        if bio.call_flags & CALL_DIRECT != 0 {
            return Some(direct(bio, reads, file_of(runs)));
        }
        // For the zeroes and discards of a kernel thread (ext4lazyinit, discarding after a commit)
        // nobody waits.
        let moves_data = bio.flags & OPERATION_MASK == OPERATION_WRITE;
        let nobody = reads || (bio.kernel_thread && !moves_data && bio.length_bytes > 0);
        if nobody || self.active.is_empty() {
            return None;
        }
        let mut keys: Vec<FileKey> = runs.iter().map(|(run, _)| run_key(run)).collect();
        keys.sort_unstable();
        keys.dedup();
        let of_file = |sync: &Sync| sync.inode != 0 && keys.binary_search(&sync_key(sync)).is_ok();
        let about = |sync: &Sync| sync.filesystem == 0 || sync.filesystem == filesystem;
        let calls: Vec<&SyncCall> = self
            .active
            .values()
            .filter(|call| self.is_here(&call.sync) && about(&call.sync))
            .filter(|call| call.may_wait_for(transaction))
            .collect();
        // umount, and msync of a file that is not known yet, name no filesystem here: a call that
        // does is likelier.
        // What a worker of io_uring sends is for one of its ring's requests.
        let of_ring =
            |sync: &Sync| sync.request != 0 && ring_owner(&bio.comm) == Some(i64::from(sync.tid));
        let rank = |call: &SyncCall| {
            let is_likelier = (!of_file(&call.sync), !of_ring(&call.sync), call.served);
            let is_anywhere = call.sync.inode == 0 && matches!(call.sync.call, MSYNC | UMOUNT2);
            (is_likelier, is_anywhere, call.number)
        };
        let call = calls.iter().min_by_key(|call| rank(call))?;
        let certain = of_file(&call.sync);
        let waiting = if certain { 1 } else { calls.len() as u32 };
        let all = (waiting > 1).then(|| names(&calls));
        Some(Asker { all, ..asker(call, waiting) })
    }

    fn own(&mut self, bio: &Bio, runs: &[(Run, Class)]) -> Option<Asker> {
        let caller = self.workers.get(&bio.tid).copied().unwrap_or(u64::from(bio.tid));
        if !self.active.get(&caller).is_some_and(|own| self.is_here(&own.sync)) {
            return None;
        }
        let own = self.active.get_mut(&caller)?;
        if own.sync.call == MSYNC
            && own.sync.inode == 0
            && let Some(key) = file_of(runs)
        {
            // msync names an address: the file is known from what it writes.
            own.sync.inode = key.inode;
            own.sync.generation = key.generation;
            own.sync.filesystem = key.filesystem;
            own.sync.subvolume = key.subvolume;
        }
        Some(asker(own, 1))
    }
}

impl SyncCall {
    /// False where it is known to wait for another transaction.
    fn may_wait_for(&self, transaction: Option<u32>) -> bool {
        let (Some(own), Some(other)) = (self.transaction, transaction) else { return true };
        own == other
    }
}

/// A thread's number, or the address of a request of io_uring, which is in the kernel's half.
fn caller_key(sync: &Sync) -> u64 {
    if sync.request != 0 { sync.request } else { u64::from(sync.tid) }
}

/// A worker of io_uring sends the bio for this request on the file.
fn is_of_ring(call: &SyncCall, bio: &Bio, file: FileKey) -> bool {
    let sync = &call.sync;
    let is_about = sync.request != 0 && sync.inode != 0 && sync_key(sync) == file;
    is_about && ring_owner(&bio.comm) == Some(i64::from(sync.tid))
}

/// The file whose data the runs are.
fn file_of(runs: &[(Run, Class)]) -> Option<FileKey> {
    let data = runs.iter().find(|(_, class)| class.block_type == BlockType::Data);
    data.filter(|(run, _)| run.inode != 0).map(|(run, _)| run_key(run))
}

/// As schema/requests.toml spells `askers`.
fn names(calls: &[&SyncCall]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    calls.iter().for_each(|call| *counts.entry(&call.sync.comm).or_default() += 1);
    let words = counts.iter().map(|(comm, count)| format!("{count} of {comm}"));
    words.collect::<Vec<_>>().join(", ")
}

fn direct(bio: &Bio, reads: bool, file: Option<FileKey>) -> Asker {
    let call = if reads { "O_DIRECT read" } else { "O_DIRECT write" };
    let comm = bio.comm.clone();
    let (pid, tid) = (bio.pid, bio.tid);
    Asker { pid, tid, comm, call, begin_ns: None, file, waiting: 1, all: None, number: None }
}

fn asker(call: &SyncCall, waiting: u32) -> Asker {
    let sync = &call.sync;
    Asker {
        pid: sync.pid,
        tid: sync.tid,
        comm: sync.comm.clone(),
        call: sync_name(sync.call, sync.flags),
        begin_ns: Some(sync.time_ns),
        file: (sync.inode != 0).then(|| sync_key(sync)),
        waiting,
        all: None,
        number: Some(call.number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::Symbols;
    use crate::tracer::classify::classify;
    use crate::tracer::classify::layout::Layout;

    const DISK: u32 = 9;

    fn call(tid: u32, number: u32, inode: u64, disk: u32) -> Sync {
        let filesystem = if inode == 0 { 0 } else { disk };
        Sync { tid, pid: tid, call: number, inode, disk, filesystem, ..Sync::default() }
    }

    fn calls() -> SyncCalls {
        SyncCalls::new(BTreeSet::from([DISK]))
    }

    fn write_by(tid: u32) -> Bio {
        Bio { tid, flags: 1, ..Bio::default() }
    }

    fn run_of(inode: u64) -> Vec<(Run, Class)> {
        let (filesystem, mode, magic) = (DISK, 0o100644, 0xef53);
        let run = Run { inode, filesystem, mode, magic, ..Run::default() };
        let class = classify(&Bio::default(), &run, &Symbols::default(), &Layout::default());
        vec![(run, class)]
    }

    #[test]
    fn the_submitter_itself_comes_first() {
        let mut calls = calls();
        calls.begin(call(1, 74, 11, DISK));
        calls.begin(call(2, 75, 12, DISK));
        let asker = calls.asker(&write_by(2), &run_of(11), DISK, None).unwrap();
        assert_eq!((asker.call, asker.waiting), ("fdatasync", 1));
    }

    #[test]
    fn then_whose_file_it_is_then_who_began_first() {
        let mut calls = calls();
        calls.begin(call(5, 74, 11, DISK));
        calls.begin(call(2, 74, 12, DISK));
        let asker = |calls: &mut SyncCalls, inode| {
            let asker = calls.asker(&write_by(77), &run_of(inode), DISK, None);
            asker.map(|asker| (asker.tid, asker.waiting))
        };
        assert_eq!(asker(&mut calls, 12), Some((2, 1)));
        assert_eq!(asker(&mut calls, 99), Some((5, 2)));
        assert_eq!(calls.end(&call(5, 74, 0, DISK)), Some(0));
        assert_eq!(asker(&mut calls, 99), Some((2, 1)));
        calls.end(&call(2, 74, 0, DISK));
        assert_eq!(asker(&mut calls, 99), None);
    }

    /// A commit serves whoever waits; the next one is for who came after.
    #[test]
    fn a_call_that_was_served_does_not_ask_again() {
        let mut calls = calls();
        calls.begin(call(1, 74, 11, DISK));
        calls.begin(call(2, 74, 12, DISK));
        assert_eq!(calls.asker(&write_by(77), &[], DISK, None).unwrap().tid, 1);
        calls.serve(DISK, None);
        calls.begin(call(3, 74, 13, DISK));
        let asker = calls.asker(&write_by(77), &[], DISK, None).unwrap();
        assert_eq!((asker.tid, asker.waiting), (3, 3));
    }

    /// A commit is not asked for by a task that joined the next transaction; its asker is a task
    /// that waits for it, though another began before.
    #[test]
    fn a_transaction_serves_those_who_wait_for_it() {
        let mut calls = calls();
        for tid in 1..=4 {
            calls.begin(call(tid, 74, 10 + u64::from(tid), DISK));
        }
        // Of the fourth nothing is known.
        for (caller, transaction) in [(1, 8), (2, 7), (3, 6)] {
            calls.wait(caller, transaction);
        }
        let asker = |calls: &mut SyncCalls, transaction| {
            let asker = calls.asker(&write_by(77), &[], DISK, Some(transaction));
            asker.map(|asker| (asker.tid, asker.waiting))
        };
        assert_eq!(asker(&mut calls, 7), Some((2, 2)));
        calls.serve(DISK, Some(7));
        calls.end(&call(2, 74, 0, DISK));
        assert_eq!(asker(&mut calls, 8), Some((1, 2)));
        calls.end(&call(1, 74, 0, DISK));
        calls.end(&call(4, 74, 0, DISK));
        assert_eq!(asker(&mut calls, 9), None);
        calls.wait(3, 9);
        assert_eq!(asker(&mut calls, 9), Some((3, 1)));
    }

    #[test]
    fn an_msync_of_an_unknown_file_asks_after_calls_on_the_filesystem() {
        let mut calls = calls();
        calls.begin(call(1, MSYNC, 0, 0));
        calls.begin(call(2, 74, 12, DISK));
        let asker = |calls: &mut SyncCalls| calls.asker(&write_by(77), &[], DISK, None);
        assert_eq!(asker(&mut calls).unwrap().tid, 2);
        calls.end(&call(2, 74, 0, DISK));
        assert_eq!(asker(&mut calls).unwrap().tid, 1);
    }

    #[test]
    fn an_atomic_write_of_f2fs_serves_the_file_it_commits() {
        let mut calls = calls();
        calls.begin(call(3, 16, 11, DISK));
        let asker = calls.asker(&write_by(77), &run_of(99), DISK, None).unwrap();
        assert_eq!((asker.tid, asker.call), (3, "f2fs-commit-atomic-write"));
        let file = FileKey { filesystem: DISK, inode: 11, generation: 0, subvolume: 0 };
        assert_eq!(asker.file, Some(file));
        calls.end(&call(3, 74, 0, DISK));
        assert_eq!(calls.asker(&write_by(77), &run_of(11), DISK, None), None);
    }

    #[test]
    fn other_filesystems_and_other_readers_are_not_served() {
        let mut calls = calls();
        calls.begin(call(1, 74, 11, 8));
        assert_eq!(calls.asker(&write_by(1), &[], DISK, None), None);
        calls.learn(8);
        assert_eq!(calls.asker(&write_by(2), &[], DISK, None), None);
        calls.begin(call(1, 162, 0, 0));
        assert_eq!(calls.asker(&write_by(2), &[], DISK, None).unwrap().file, None);
        let read = Bio { tid: 2, flags: 0, ..Bio::default() };
        assert_eq!(calls.asker(&read, &[], DISK, None), None);
        let place = Bio { length_bytes: 4096, kernel_thread: true, ..Bio::default() };
        for (operation, served) in [(1, true), (3, false), (9, false)] {
            let lazy = Bio { tid: 77, flags: operation, ..place.clone() };
            assert_eq!(
                calls.asker(&lazy, &[], DISK, None).is_some(),
                served,
                "operation {operation}"
            );
        }
    }

    #[test]
    fn a_filesystem_without_a_device_of_its_own_is_known_by_its_pages() {
        let mut calls = calls();
        calls.learn(39);
        calls.begin(Sync { disk: 0, filesystem: 39, ..call(1, 74, 11, 0) });
        calls.begin(Sync { disk: 0, filesystem: 40, ..call(2, 74, 11, 0) });
        assert_eq!(calls.asker(&write_by(3), &[], 39, None).unwrap().tid, 1);
        assert_eq!(calls.asker(&write_by(2), &[], 39, None).unwrap().tid, 1);
        assert_eq!(calls.only_filesystem(), Some(39));
    }

    #[test]
    fn direct_io_asks_for_itself() {
        let mut calls = calls();
        calls.begin(call(1, 74, 11, DISK));
        let mut runs = run_of(12);
        runs[0].0.flags = RUN_DIRECT;
        let asker = calls.asker(&write_by(2), &runs, DISK, None).unwrap();
        assert_eq!((asker.tid, asker.call, asker.number), (2, "O_DIRECT write", None));
        assert_eq!(asker.file.unwrap().inode, 12);
        let read = Bio { call_flags: CALL_DIRECT, ..Bio::default() };
        assert_eq!(calls.asker(&read, &[], DISK, None).unwrap().call, "O_DIRECT read");
    }

    #[test]
    fn a_kernel_thread_asks_for_no_direct_io() {
        let mut calls = calls();
        let mut runs = run_of(11);
        runs[0].0.flags = RUN_DIRECT;
        let bio = Bio { kernel_thread: true, ..write_by(77) };
        assert_eq!(calls.asker(&bio, &runs, DISK, None), None);
        calls.begin(call(1, 74, 11, DISK));
        assert_eq!(calls.asker(&bio, &runs, DISK, None).unwrap().tid, 1);
    }

    #[test]
    fn a_write_within_msync_tells_its_file() {
        let mut calls = calls();
        calls.learn(DISK);
        calls.begin(call(1, MSYNC, 0, 0));
        assert_eq!(calls.asker(&write_by(1), &[], DISK, None).unwrap().file, None);
        assert_eq!(
            calls.asker(&write_by(1), &run_of(12), DISK, None).unwrap().file.unwrap().inode,
            12
        );
        // And so for what others write for it then.
        assert_eq!(calls.asker(&write_by(77), &[], DISK, None).unwrap().file.unwrap().inode, 12);
    }

    #[test]
    fn a_request_of_io_uring_asks_beside_the_calls_of_its_thread() {
        let mut calls = calls();
        let request = |address, inode| Sync { request: address, ..call(5, 74, inode, DISK) };
        let addresses = [0xffff_8880_0000_1000, 0xffff_8880_0000_2000];
        calls.begin(call(3, 74, 11, DISK));
        calls.begin(request(addresses[0], 12));
        calls.begin(request(addresses[1], 13));
        // The thread goes on, and waits for something else.
        calls.begin(call(5, 74, 14, DISK));
        let asker = |calls: &mut SyncCalls, comm: &str, inode| {
            let bio = Bio { comm: comm.to_owned(), ..write_by(77) };
            let asker = calls.asker(&bio, &run_of(inode), DISK, None);
            asker.map(|asker| (asker.tid, asker.file.unwrap().inode))
        };
        assert_eq!(asker(&mut calls, "iou-wrk-5", 13), Some((5, 13)));
        assert_eq!(asker(&mut calls, "iou-wrk-5", 99), Some((5, 12)));
        assert_eq!(asker(&mut calls, "jbd2", 99), Some((3, 11)));
        let ends = [request(addresses[0], 0), call(5, 74, 0, DISK), request(addresses[1], 0)];
        assert_eq!(ends.map(|end| calls.end(&end)), [Some(1), Some(3), Some(2)]);
        assert_eq!(calls.end(&request(addresses[0], 0)), None);
    }

    /// A worker of another processor may end a sync after its submitter has gone on.
    #[test]
    fn a_worker_sends_for_the_sync_that_it_makes() {
        let mut calls = calls();
        let works = [0xffff_8880_0000_1000, 0xffff_8880_0000_2000];
        for (work, worker) in works.into_iter().zip([77, 78]) {
            let sync = Sync { request: work, time_ns: worker, ..call(5, 74, 12, DISK) };
            calls.begin(sync.clone());
            calls.begin_work(&Sync { tid: worker as u32, ..sync });
        }
        let begin_ns = |calls: &mut SyncCalls, worker| {
            calls.asker(&write_by(worker), &run_of(12), DISK, None).unwrap().begin_ns
        };
        assert_eq!(begin_ns(&mut calls, 78), Some(78));
        assert_eq!(begin_ns(&mut calls, 77), Some(77));
        assert_eq!(calls.end(&Sync { request: works[1], ..call(78, 209, 0, 0) }), Some(1));
        assert_eq!(begin_ns(&mut calls, 78), Some(77));
    }

    #[test]
    fn a_direct_write_of_a_ring_s_worker_is_its_request_s() {
        let mut calls = calls();
        let request = Sync { request: 0xffff_8880_0000_1000, flags: 2, ..call(5, 328, 12, DISK) };
        calls.begin(request);
        let bio = Bio { comm: "iou-wrk-5".to_owned(), ..write_by(77) };
        let asker = |calls: &mut SyncCalls, inode| {
            let mut runs = run_of(inode);
            runs[0].0.flags = RUN_DIRECT;
            calls.asker(&bio, &runs, DISK, None).map(|asker| (asker.tid, asker.call))
        };
        assert_eq!(asker(&mut calls, 12), Some((5, "O_DSYNC write")));
        assert_eq!(asker(&mut calls, 13), Some((77, "O_DIRECT write")));
    }

    #[test]
    fn requests_whose_ends_are_lost_are_forgotten_and_calls_are_not() {
        let mut calls = calls();
        calls.begin(call(3, 74, 11, DISK));
        for number in 0..2 * MOST as u64 {
            calls.begin(Sync { request: 1 << 63 | number, ..call(5, 74, 12, DISK) });
        }
        assert!(calls.active.len() <= MOST);
        assert_eq!(calls.end(&call(3, 74, 0, DISK)), Some(0));
    }
}
